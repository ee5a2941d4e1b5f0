"""The plan of each pipelined loop: stages, and which of its copies run ahead.

`for k in T.Pipelined(n, num_stages=3)` -> `T.Pipelined(n, plan=T.Plan(3))` with `at_stage=T.Stage(0)` on
some copies. A copy into shared memory runs ahead when nothing it needs is computed in the loop and its
tile is this loop's alone; when none can, or the machine has no use for stages, the loop stays serial and
a remark says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...errors import IRError, ScheduleError
from ...ir import (
    WRITES,
    Function,
    Let,
    Load,
    Node,
    Stmt,
    Store,
    Var,
    WithStmt,
    children,
    const_of,
    effects_in,
    effects_of,
    map_bodies,
    names_read_and_written,
    walk,
)
from ...ir.stmt import statements
from ...language.copy import Copy
from ...language.lowered.decisions import Plan, Stage
from ...language.structure import Parallel, Pipelined, StageGroup
from ..analysis.filled_in_parts import filling_with
from ..analysis.hand_barriers import is_ordered_by_hand
from ..analysis.sites import plain_dims
from ..analysis.stages import Item, StageClash, clash_of, is_staged, items_of, opened, versions_of
from ..context import Context

NAME = "plan_pipeline"
_BY_HAND = "no stages are made: the loop has barriers or waits of the kernel's own, which say what runs ahead"
_LEFT = "the loop may be left before its end, with copies in flight that nobody waits for"


def plan_pipeline(function: Function, context: Context) -> Function:
    """The function with a plan on each pipelined loop."""

    elsewhere = Elsewhere(function)

    def step(node: Any) -> Any:
        if isinstance(node, Pipelined):
            return _plan(map_bodies(node, step), elsewhere, context)
        return map_bodies(node, step)

    planned = step(function)
    wishes = any(isinstance(node, Copy) and node.sync for node in statements(function.body))
    return _without_hints(planned) if wishes else planned


def _without_hints(node: Any) -> Any:
    """The function without the wishes of copies, which the plan has taken."""
    if isinstance(node, Copy) and node.sync:
        return node.but(sync=False)
    return map_bodies(node, _without_hints)


def _plan(loop: Pipelined, elsewhere: Elsewhere, context: Context) -> Pipelined:
    if is_staged(loop):
        return _in_stages(loop, elsewhere, context)
    if by_hand(loop):
        return _as_told(loop, elsewhere, context)
    if loop.num_stages < 1:
        return loop.but(plan=Plan(1), num_stages=None)
    if is_ordered_by_hand(loop):
        context.remark(NAME, "note", _BY_HAND, loop)
        return loop.but(plan=Plan(1), num_stages=None)
    unused = context.machine.why_unused("num_stages")
    if unused:
        context.remark(NAME, "note", f"num_stages={loop.num_stages} is {unused}", loop)
        return loop.but(plan=Plan(1), num_stages=None)
    if loop.condition is not None:
        _no_effect(loop, _LEFT, context)
        return loop.but(plan=Plan(1), num_stages=None)
    ahead = _copies_ahead(loop, elsewhere, context)
    if not ahead:
        return loop.but(plan=Plan(1), num_stages=None)
    stages = _most_useful(loop, context)
    if stages == 1:
        return loop.but(plan=Plan(1), num_stages=None)
    context.remark(
        NAME, "applied", f"{stages} stages, {len(ahead)} copies run ahead", loop,
        stages=stages, bytes_per_stage=sum({s.dst.buffer.name: s.dst.buffer.bytes for s in ahead}.values()),
    )  # fmt: skip
    body: list[Stmt] = []
    for statement in loop.body:
        if isinstance(statement, Copy) and any(statement is copy for copy in ahead):
            statement = statement.but(at_stage=Stage(0, can_be_async=_may_go_on(statement, context)))
        body.append(statement)
    return loop.but(body=tuple(body), plan=Plan(stages), num_stages=None)


def _may_go_on(copy: Copy, context: Context) -> bool:
    """Whether a copy may go on by itself: what does changes no dtype, and a kernel may want none."""
    a, b = copy.src.buffer.dtype, copy.dst.buffer.dtype
    if a != b:
        context.remark(
            NAME, "note", f"the copy into {copy.dst.buffer.name} makes {b} of {a}, in registers", copy
        )
    return a == b and not copy.sync


def by_hand(loop: Pipelined) -> bool:
    """Whether the kernel itself says which copies of a loop run ahead."""
    return any(isinstance(statement, Copy) and statement.at_stage is not None for statement in loop.body)


def _as_told(loop: Pipelined, elsewhere: Elsewhere, context: Context) -> Pipelined:
    """The plan that the kernel wrote. Raises `ScheduleError` at a copy that cannot run ahead."""
    unused = context.machine.why_unused("num_stages")
    if unused:
        context.remark(NAME, "note", f"stages and order are {unused}", loop)
    idle, traffic = bool(unused) or loop.num_stages < 2, LoopTraffic(loop)
    body: list[Stmt] = []
    ahead: list[Copy] = []
    for statement in loop.body:
        if isinstance(statement, Copy) and statement.at_stage is not None:
            stage = statement.at_stage
            why = "" if stage.number or idle else _no_ring(statement, traffic, elsewhere)
            if why:
                raise ScheduleError(
                    "the copy into {name} cannot run ahead, as stage 0 says: {why}", at=statement.place,
                    name=statement.dst.buffer.name, why=why, hint="give it the stage of what uses it",
                )  # fmt: skip
            runs = not stage.number and not idle
            same = not runs or _may_go_on(statement, context)
            statement = statement.but(at_stage=replace(stage, can_be_async=same) if runs else None)
            ahead += [statement] if runs else []
        body.append(statement)
    stages = _most_useful(loop, context) if ahead else 1
    if stages > 1:
        message = f"{stages} stages, {len(ahead)} copies run ahead, as the kernel says"
        context.remark(NAME, "applied", message, loop, stages=stages)
    told = tuple(s.but(at_stage=None) if stages == 1 and isinstance(s, Copy) else s for s in body)
    return loop.but(body=told, plan=Plan(stages), num_stages=None)


def _in_stages(loop: Pipelined, elsewhere: Elsewhere, context: Context) -> Pipelined:
    """The plan of a loop whose statements have stages. Raises `ScheduleError` at one that cannot have its."""
    items = items_of(loop)
    stages = max(item.stage for item in items) + 1
    unused = context.machine.why_unused("num_stages")
    if unused or stages < 2:
        if unused:
            context.remark(NAME, "note", f"stages and order are {unused}", loop)
        return loop.but(body=opened(loop.body), plan=Plan(1), num_stages=None)
    clash = _clash(loop, elsewhere)
    if clash is not None:
        raise ScheduleError(
            "this statement cannot have its stage: {why}", at=clash.statement.place, why=clash.why,
            hint="give statements that share it one stage, or leave stage= and order= out",
        )  # fmt: skip
    versions = versions_of(items)
    body = tuple(_may_be_async(s, items) if isinstance(s, StageGroup) else s for s in loop.body)
    context.remark(
        NAME, "applied", f"{stages} stages, as the kernel says", loop, stages=stages,
        **{f"versions_of_{name}": count for name, count in sorted(versions.items())},
    )  # fmt: skip
    return loop.but(body=body, plan=Plan(stages), num_stages=None)


def _clash(loop: Pipelined, elsewhere: Elsewhere) -> StageClash | None:
    if loop.condition is not None:
        return StageClash(loop, _LEFT)
    return clash_of(loop, {name for name in filled_first(loop) if not elsewhere.reads(loop, name)})


def _may_be_async(group: StageGroup, items: Sequence[Item]) -> StageGroup:
    """A copy from global to shared memory may go on by itself where what reads it has a later stage."""
    (statement, *more) = group.body
    if more or not isinstance(statement, Copy) or statement.sync:
        return group
    if statement.src.buffer.dtype != statement.dst.buffer.dtype:
        return group
    dst, scopes = statement.dst, (statement.src.buffer.scope, statement.dst.buffer.scope)
    others = [i.stage for i in items if dst.buffer.name in i.touches and i.body != group.body]
    if scopes != ("global", "shared") or not dst.is_whole or min(others, default=0) <= group.number:
        return group
    return group.but(body=(statement.but(at_stage=Stage(group.number, can_be_async=True)),))


def _copies_ahead(loop: Pipelined, elsewhere: Elsewhere, context: Context) -> list[Copy]:
    """The copies of a loop that can run ahead, with a remark at each that cannot, and where none can."""
    ahead: list[Copy] = []
    missed: list[str] = []
    traffic = LoopTraffic(loop)
    for copy in [statement for statement in loop.body if isinstance(statement, Copy)]:
        name = copy.dst.buffer.name
        if copy.dst.buffer.scope != "shared" or copy.src.buffer.scope != "global":
            continue
        why = traffic.why_not_ahead(copy, elsewhere)
        if why:
            missed.append(f"{name}: {why}")
            context.remark(NAME, "missed", f"the copy into {name} cannot run ahead: {why}", copy)
        else:
            ahead.append(copy)
    if not ahead:
        why = "; ".join(missed) or "no statement of its body copies from global to shared memory"
        _no_effect(loop, why, context)
    return ahead


def _no_effect(loop: Pipelined, why: str, context: Context) -> None:
    """Say that stages cannot be had. Raises `ScheduleError` where it is a schedule that asks for them."""
    if loop.num_stages > 1 and ("num_stages", loop.place) in context.asked:
        raise ScheduleError(
            "num_stages={n} of the schedule has no effect on this loop: {why}", at=loop.place,
            n=loop.num_stages, why=why, hint="leave it out of the schedule",
        )  # fmt: skip
    context.remark(NAME, "missed", f"num_stages={loop.num_stages} has no effect: {why}", loop)


def check_plans(function: Function) -> None:
    """Raises `IRError` at a copy that is told to run ahead where it cannot, as a person may have written."""
    nodes = list(statements(function.body))
    loops = [node for node in nodes if isinstance(node, Pipelined)]
    in_stages = [loop for loop in loops if is_staged(loop)]
    if in_stages:
        _check_stages(in_stages, Elsewhere(function))
        staged = {id(s) for loop in in_stages for s in opened(loop.body)}
        nodes = [node for node in nodes if id(node) not in staged]
    inside = {id(statement): loop for loop in loops for statement in loop.body}
    planned = [node for node in nodes if isinstance(node, Copy) and node.at_stage is not None]
    traffic = {id(loop): LoopTraffic(loop) for copy in planned if (loop := inside.get(id(copy))) is not None}
    elsewhere = Elsewhere(function)
    for copy in planned:
        loop = inside.get(id(copy))
        stage = copy.at_stage.number if copy.at_stage is not None else 0
        why = f"a copy runs ahead at stage 0 or not at all, found T.Stage({stage})" if stage else ""
        if not why:
            none = "it stands in no pipelined loop"
            why = none if loop is None else _no_ring(copy, traffic[id(loop)], elsewhere)
        if why:
            name = copy.dst.buffer.name
            raise IRError(
                "the copy into {name} cannot run ahead: {why}", at=copy.place, name=name, why=why,
                hint="leave at_stage= out",
            )  # fmt: skip


def _check_stages(loops: Sequence[Pipelined], elsewhere: Elsewhere) -> None:
    for loop in loops:
        stages = max(item.stage for item in items_of(loop)) + 1
        clash = _clash(loop, elsewhere)
        if clash is None and loop.plan is not None and loop.plan.stages != stages:
            clash = StageClash(loop, f"its statements have {stages} stages, and its plan {loop.plan.stages}")
        if clash is not None:
            raise IRError("this cannot have its stage: {why}", at=clash.statement.place, why=clash.why)
        for item in items_of(loop):
            for copy in item.body:
                if isinstance(copy, Copy) and copy.at_stage is not None:
                    _check_ahead(copy, item, items_of(loop))


def _check_ahead(copy: Copy, item: Item, items: Sequence[Item]) -> None:
    """A copy that may go on by itself stands at its own stage, and before what uses its tile."""
    others = [other.stage for other in items if copy.dst.buffer.name in other.touches and other != item]
    own = copy.at_stage is not None and copy.at_stage.number == item.stage
    if not own or min(others, default=0) <= item.stage:
        raise IRError(
            "the copy into {name} cannot go on by itself here", at=copy.place, name=copy.dst.buffer.name,
            hint="leave at_stage= out",
        )  # fmt: skip


def _no_ring(copy: Copy, traffic: LoopTraffic, elsewhere: Elsewhere) -> str:
    if copy.dst.buffer.scope != "shared" or copy.src.buffer.scope != "global":
        return "it does not bring a tile from global to shared memory"
    if traffic.loop.condition is not None:
        return _LEFT
    return traffic.why_not_ahead(copy, elsewhere)


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


class Elsewhere:
    """Who uses each buffer of a function without filling it first, and so reads what a loop left there.

    A pipelined loop that fills all of a buffer in each iteration before it uses it reads nothing left.
    """

    def __init__(self, function: Function) -> None:
        self.users: dict[str, list[Node]] = {}
        stack: list[Node] = [function]
        while stack:
            node = stack.pop()
            whole = isinstance(node, (Pipelined, Parallel)) or not isinstance(node, Stmt) or effects_of(node)
            # A launch has memory of its own, and its statements are looked at one by one all the same.
            if not whole or isinstance(node, WithStmt):
                stack.extend(children(node))
                continue
            names = {effect.buffer.name for effect in effects_in(node)}
            for name in names - (filled_first(node) if isinstance(node, Pipelined) else set[str]()):
                self.users.setdefault(name, []).append(node)

    def reads(self, loop: Pipelined, name: str) -> bool:
        """Whether something outside the loop reads what it leaves in a buffer."""
        return any(user is not loop for user in self.users.get(name, ()))


def filled_first(loop: Pipelined) -> set[str]:
    """The buffers all of which an iteration fills before it uses them."""
    seen: set[str] = set()
    fresh: set[str] = set()
    for statement in opened(loop.body):
        own: dict[str, bool] = {}
        for each in effects_of(statement):
            fills = each.kind == WRITES and each.region is not None and each.region.is_whole
            own[each.buffer.name] = fills and own.get(each.buffer.name, True)
        if isinstance(statement, Parallel):
            own = dict.fromkeys(_filled_by_elements(statement), True)
        if not isinstance(statement, Store):
            fresh |= {name for name, fills in own.items() if fills and name not in seen}
        seen |= {effect.buffer.name for effect in effects_in(statement)}
    return fresh


def _filled_by_elements(loop: Parallel) -> set[str]:
    """The buffers each element of which a parallel loop stores, and none of which it reads."""
    reads, _ = names_read_and_written([loop])
    names = tuple(var.name for var in loop.vars)
    found: set[str] = set()
    for store in loop.body:
        if isinstance(store, Store) and not store.atomic and store.buffer.name not in reads:
            dims = plain_dims(store.buffer, store.index, names)
            own = [1 if dim is None else loop.extents[dim] for dim in dims or ()]
            found |= {store.buffer.name} if dims is not None and own == list(store.buffer.shape) else set()
    return found


class LoopTraffic:
    """Where in a loop's body each buffer is read and written, and the names that the body gives."""

    def __init__(self, loop: Pipelined) -> None:
        self.loop = loop
        self.readers: dict[str, list[int]] = {}
        self.writers: dict[str, list[int]] = {}
        for k, statement in enumerate(loop.body):
            reads, writes = names_read_and_written([statement])
            for names, places in ((reads, self.readers), (writes, self.writers)):
                for name in names:
                    places.setdefault(name, []).append(k)
        self.bound = {node.var.name for node in statements(loop.body) if isinstance(node, Let)}
        self.ordered = any(
            isinstance(node, Store) and node.order != "relaxed" for node in statements(loop.body)
        )

    def why_not_ahead(self, copy: Copy, elsewhere: Elsewhere) -> str:
        """Why a copy must stay where it is; empty when it can run ahead."""
        name = copy.dst.buffer.name
        parts = filling_with(self.loop, copy)
        if not parts:
            return "it fills a part of the tile only"
        if self.ordered:
            return "an atomic in the loop orders memory"
        position = max(parts)
        other = min((k for k in self.writers.get(name, ()) if k not in parts), default=len(self.loop.body))
        early = min(self.readers.get(name, ()), default=position)
        if other < len(self.loop.body) and other <= early:
            return f"{name} is written by another statement of the loop"
        if early < position:
            return f"{name} is read before it is filled"
        if other < len(self.loop.body):
            return f"{name} is written by another statement of the loop"
        if copy.src.buffer.name in self.writers:
            return f"{copy.src.buffer.name} is written in the loop"
        for node in walk(copy.src):
            if isinstance(node, Load) and node.buffer.name in self.writers:
                return f"its address reads {node.buffer.name}, which the loop writes"
            if isinstance(node, Var) and node.name in self.bound:
                return f"its address uses {node.name}, which the loop computes"
        return f"{name} is used outside the loop too" if elsewhere.reads(self.loop, name) else ""
