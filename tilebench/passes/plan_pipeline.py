"""The plan of each pipelined loop: stages, and which of its copies run ahead.

`for k in T.Pipelined(n, num_stages=3)` -> `T.Pipelined(n, plan=T.Plan(3))` with `at_stage=T.Stage(0)` on
some copies. A copy into shared memory runs ahead when nothing it needs is computed in the loop and its
tile is this loop's alone; when none can, or the machine has no use for stages, the loop stays serial and
a remark says why.
"""

from __future__ import annotations

from typing import Any

from ..errors import IRError
from ..ir import (
    WRITES,
    Function,
    Let,
    Load,
    Node,
    Stmt,
    Store,
    Var,
    children,
    const_of,
    effects_in,
    effects_of,
    map_children,
    names_read_and_written,
    walk,
)
from ..ir.stmt import statements
from ..language.copy import Copy
from ..language.lowered.decisions import Plan, Stage
from ..language.structure import Parallel, Pipelined
from .context import Context

NAME = "plan_pipeline"
_LEFT = "the loop may be left before its end, with copies in flight that nobody waits for"


def plan_pipeline(function: Function, context: Context) -> Function:
    """The function with a plan on each pipelined loop."""

    def step(node: Any) -> Any:
        if isinstance(node, Pipelined):
            return _plan(map_children(node, step), function, context)
        return map_children(node, step) if isinstance(node, Stmt) else node

    return step(function)


def _plan(loop: Pipelined, function: Function, context: Context) -> Pipelined:
    if loop.num_stages < 1:
        return loop.but(plan=Plan(1), num_stages=None)
    unused = context.machine.why_unused("num_stages")
    if unused:
        context.remark(NAME, "note", f"num_stages={loop.num_stages} is {unused}", loop)
        return loop.but(plan=Plan(1), num_stages=None)
    if loop.condition is not None:
        context.remark(NAME, "missed", f"num_stages={loop.num_stages} has no effect: {_LEFT}", loop)
        return loop.but(plan=Plan(1), num_stages=None)
    ahead = _copies_ahead(loop, function, context)
    if not ahead:
        return loop.but(plan=Plan(1), num_stages=None)
    stages = _most_useful(loop, context)
    if stages == 1:
        return loop.but(plan=Plan(1), num_stages=None)
    context.remark(
        NAME, "applied", f"{stages} stages, {len(ahead)} copies run ahead", loop,
        stages=stages, bytes_per_stage=sum(statement.dst.buffer.bytes for statement in ahead),
    )  # fmt: skip
    body: list[Stmt] = []
    for statement in loop.body:
        if isinstance(statement, Copy) and any(statement is copy for copy in ahead):
            same = statement.src.buffer.dtype == statement.dst.buffer.dtype
            statement = statement.but(at_stage=Stage(0, can_be_async=same))
        body.append(statement)
    return loop.but(body=tuple(body), plan=Plan(stages), num_stages=None)


def _copies_ahead(loop: Pipelined, function: Function, context: Context) -> list[Copy]:
    """The copies of a loop that can run ahead, with a remark at each that cannot, and where none can."""
    ahead: list[Copy] = []
    missed: list[str] = []
    for copy in [statement for statement in loop.body if isinstance(statement, Copy)]:
        name = copy.dst.buffer.name
        if copy.dst.buffer.scope != "shared" or copy.src.buffer.scope != "global":
            continue
        why = _cannot_run_ahead(copy, loop, function)
        if why:
            missed.append(f"{name}: {why}")
            context.remark(NAME, "missed", f"the copy into {name} cannot run ahead: {why}", copy)
        else:
            ahead.append(copy)
    if not ahead:
        why = "; ".join(missed) or "no statement of its body copies from global to shared memory"
        context.remark(NAME, "missed", f"num_stages={loop.num_stages} has no effect: {why}", loop)
    return ahead


def check_plans(function: Function) -> None:
    """Raises `IRError` at a copy that is told to run ahead where it cannot, as a person may have written."""
    nodes = list(statements(function.body))
    loops = [node for node in nodes if isinstance(node, Pipelined)]
    inside = {id(statement): loop for loop in loops for statement in loop.body}
    for copy in [node for node in nodes if isinstance(node, Copy) and node.at_stage is not None]:
        loop = inside.get(id(copy))
        stage = copy.at_stage.number if copy.at_stage is not None else 0
        why = f"a copy runs ahead at stage 0 or not at all, found T.Stage({stage})" if stage else ""
        if not why:
            why = "it stands in no pipelined loop" if loop is None else _no_ring(copy, loop, function)
        if why:
            name = copy.dst.buffer.name
            raise IRError(
                "the copy into {name} cannot run ahead: {why}", at=copy.place, name=name, why=why,
                hint="leave at_stage= out",
            )  # fmt: skip


def _no_ring(copy: Copy, loop: Pipelined, function: Function) -> str:
    if copy.dst.buffer.scope != "shared" or copy.src.buffer.scope != "global":
        return "it does not bring a tile from global to shared memory"
    if loop.condition is not None:
        return _LEFT
    return _cannot_run_ahead(copy, loop, function)


def _most_useful(loop: Pipelined, context: Context) -> int:
    """The stages asked for, or the iterations where those are fewer: more would never be filled."""
    start, stop = const_of(loop.start), const_of(loop.stop)
    if start is None or stop is None or stop - start >= loop.num_stages:
        return loop.num_stages
    useful = max(1, stop - start)
    context.remark(
        NAME, "note", f"num_stages={loop.num_stages} is cut to the loop's {stop - start} iterations", loop,
        stages=useful,
    )  # fmt: skip
    return useful


def _cannot_run_ahead(copy: Copy, loop: Pipelined, function: Function) -> str:
    """Why a copy must stay where it is; empty when it can run ahead."""
    name = copy.dst.buffer.name
    if not copy.dst.is_whole:
        return "it fills a part of the tile only"
    position = next(k for k, statement in enumerate(loop.body) if statement is copy)
    written: set[str] = set()
    for k, statement in enumerate(loop.body):
        reads, writes = names_read_and_written([statement])
        written |= writes
        if k != position and name in writes:
            return f"{name} is written by another statement of the loop"
        if k < position and name in reads:
            return f"{name} is read before it is filled"
    if copy.src.buffer.name in written:
        return f"{copy.src.buffer.name} is written in the loop"
    address = walk(copy.src)
    bound = {node.var.name for node in statements(loop.body) if isinstance(node, Let)}
    for node in address:
        if isinstance(node, Load) and node.buffer.name in written:
            return f"its address reads {node.buffer.name}, which the loop writes"
        if isinstance(node, Var) and node.name in bound:
            return f"its address uses {node.name}, which the loop computes"
    return "" if _fresh_elsewhere(function, loop, name) else f"{name} is used outside the loop too"


def _fresh_elsewhere(node: Node, loop: Pipelined, name: str) -> bool:
    """Whether nothing outside the loop reads what the loop leaves in a buffer.

    So it is when the buffer stands nowhere else, or only in other pipelined loops that fill all
    of it in each iteration before they use it.
    """
    if node is loop:
        return True
    if isinstance(node, (Pipelined, Parallel)) or not isinstance(node, Stmt) or effects_of(node):
        if not any(effect.buffer.name == name for effect in effects_in(node)):
            return True
        return isinstance(node, Pipelined) and _fills_first(node, name)
    return all(_fresh_elsewhere(part, loop, name) for part in children(node))


def _fills_first(loop: Pipelined, name: str) -> bool:
    for statement in loop.body:
        own = [effect for effect in effects_of(statement) if effect.buffer.name == name]
        if own and not isinstance(statement, Store):
            return all(e.kind == WRITES and e.region is not None and e.region.is_whole for e in own)
        if any(name in _touched(node) for node in walk(statement)):
            return False
    return False


def _touched(node: Node) -> set[str]:
    return {each.buffer.name for each in effects_of(node)}
