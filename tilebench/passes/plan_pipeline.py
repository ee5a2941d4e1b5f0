"""The plan of each pipelined loop: stages, and the stage of each statement.

`for k in T.Pipelined(n, num_stages=3)` -> `T.Pipelined(n, num_stages=3, plan=T.Plan(3))` with
`at_stage=` on its copies, gemms, fills and reductions. A copy into shared memory runs ahead
(stage 0) when nothing it needs is computed in the loop and its tile is this loop's alone; when
none can, the loop stays serial and a remark says why.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..ir import Function, Let, Load, Node, Region, Stmt, Store, Var, children, const_of, map_children, walk
from ..language.copy import Copy, Fill
from ..language.decisions import Plan, Stage
from ..language.gemm import Gemm
from ..language.reduce import Reduce
from ..language.structure import Parallel, Pipelined
from .context import Context

NAME = "plan_pipeline"


def plan_pipeline(function: Function, context: Context) -> Function:
    """The function with a plan on each pipelined loop."""

    def step(at: Any) -> Any:
        if isinstance(at, Pipelined):
            return _plan(map_children(at, step), function, context)
        return map_children(at, step) if isinstance(at, Stmt) else at

    return step(function)


def _plan(loop: Pipelined, function: Function, context: Context) -> Pipelined:
    if loop.num_stages < 1:
        return loop.but(plan=Plan(1))
    ahead: list[Copy] = []
    missed: list[str] = []
    for each in loop.body:
        if isinstance(each, Copy) and each.dst.buffer.scope == "shared" and each.src.buffer.scope == "global":
            why = _cannot_run_ahead(each, loop, function)
            if why:
                missed.append(f"{each.dst.buffer.name}: {why}")
                context.remark(
                    NAME, "missed", f"the copy into {each.dst.buffer.name} cannot run ahead: {why}", each
                )
            else:
                ahead.append(each)
    if not ahead:
        why = "; ".join(missed) or "no statement of its body copies from global to shared memory"
        context.remark(NAME, "missed", f"num_stages={loop.num_stages} has no effect: {why}", loop)
        return loop.but(plan=Plan(1))
    stages = _most_useful(loop, context)
    if stages == 1:
        return loop.but(plan=Plan(1))
    context.remark(
        NAME, "applied", f"{stages} stages, {len(ahead)} copies run ahead", loop,
        stages=stages, bytes_per_stage=sum(each.dst.buffer.bytes for each in ahead),
    )  # fmt: skip
    body: list[Stmt] = []
    for each in loop.body:
        if isinstance(each, (Copy, Fill, Gemm, Reduce)):
            first = any(each is other for other in ahead)
            same = isinstance(each, Copy) and each.src.buffer.dtype == each.dst.buffer.dtype
            body.append(each.but(at_stage=Stage(0, can_be_async=same) if first else Stage(stages - 1)))
        else:
            body.append(each)
    return loop.but(body=tuple(body), plan=Plan(stages))


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
    position = next(k for k, each in enumerate(loop.body) if each is copy)
    for k, each in enumerate(loop.body):
        reads, writes = accesses(each)
        if k != position and name in writes:
            return f"{name} is written by another statement of the loop"
        if k < position and name in reads:
            return f"{name} is read before it is filled"
    written = {n for each in loop.body for n in accesses(each)[1]}
    if copy.src.buffer.name in written:
        return f"{copy.src.buffer.name} is written in the loop"
    bound = {v.name for each in loop.body for v in _bound(each)}
    for node in walk(copy.src):
        if isinstance(node, Load) and node.buffer.name in written:
            return f"its address reads {node.buffer.name}, which the loop writes"
        if isinstance(node, Var) and node.name in bound:
            return f"its address uses {node.name}, which the loop computes"
    return "" if _fresh_elsewhere(function, loop, name) else f"{name} is used outside the loop too"


def _fresh_elsewhere(at: Node, loop: Pipelined, name: str) -> bool:
    """Whether nothing outside the loop reads what the loop leaves in a buffer.

    So it is when the buffer stands nowhere else, or only in other pipelined loops that fill all
    of it in each iteration before they use it.
    """
    if at is loop or not any(name in _touched(each) for each in walk(at)):
        return True
    if isinstance(at, (Pipelined, Parallel, Copy, Fill, Gemm, Reduce, Store)) or not isinstance(at, Stmt):
        return isinstance(at, Pipelined) and _fills_first(at, name)
    return all(_fresh_elsewhere(each, loop, name) for each in children(at))


def _fills_first(loop: Pipelined, name: str) -> bool:
    for each in loop.body:
        if isinstance(each, (Copy, Fill)) and each.dst.buffer.name == name:
            return each.dst.is_whole and not (isinstance(each, Copy) and each.src.buffer.name == name)
        if any(name in _touched(node) for node in walk(each)):
            return False
    return False


def _bound(stmt: Stmt) -> Iterable[Var]:
    return [each.var for each in walk(stmt) if isinstance(each, Let)]


def _touched(node: Node) -> set[str]:
    return {node.buffer.name} if isinstance(node, (Load, Region, Store)) else set()


def accesses(stmt: Stmt) -> tuple[set[str], set[str]]:
    """The names of buffers that a statement, with all below it, reads and writes."""
    reads: set[str] = set()
    writes: set[str] = set()
    for node in walk(stmt):
        match node:
            case Copy():
                reads.add(node.src.buffer.name)
                writes.add(node.dst.buffer.name)
            case Fill():
                writes.add(node.dst.buffer.name)
            case Gemm():
                reads |= {node.a.buffer.name, node.b.buffer.name, node.c.buffer.name}
                writes.add(node.c.buffer.name)
            case Reduce():
                reads |= {node.src.buffer.name} | (set() if node.clear else {node.dst.buffer.name})
                writes.add(node.dst.buffer.name)
            case Store():
                writes.add(node.buffer.name)
            case Load():
                reads.add(node.buffer.name)
            case _:
                pass
    return reads, writes
