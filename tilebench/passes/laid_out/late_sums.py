"""Sums of rows that only a loop's end needs are added up between lanes there, and not in each step.

Four lanes of a warp have parts of a row of scores. Attention adds the row up in each step and scales what it
had before; both can be done with the parts, since a sum of scaled parts is the scaled sum:

    for k: T.reduce_sum(s, part, by=shfl)        for k: T.reduce_sum(s, part, by=thread, parted=True)
           total[i] = total[i] * f[i] + part[i]         total[i] = total[i] * f[i] + part[i]
                                                 T.add_lanes(total, distances=(1, 2))

The sum starts at zero, which is each part's too, and nothing else in the loop looks at it. The order of its
terms is another, as it is for every reduction that threads share out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...ir import Arith, Const, Expr, Function, Load, Region, Stmt, Store, effects_in, map_bodies
from ...ir.effects import own_effects
from ...ir.stmt import statements
from ...language.copy import Fill
from ...language.lowered.decisions import Instr
from ...language.lowered.lanes import AddLanes
from ...language.memory import AllocFragment
from ...language.reduce import Reduce
from ...language.structure import Parallel, Pipelined, Serial
from ...layout import Fragment
from ..analysis.exchanges import exchange_of
from ..context import Context

NAME = "late_sums"


class _Late(NamedTuple):
    """A reduction of a loop's step, the sum that it goes into, and the lanes that have parts of it."""

    reduction: Reduce
    total: Region
    distances: tuple[int, ...]


def late_sums(function: Function, context: Context) -> Function:
    """The function whose loops leave sums in parts that lanes add up behind them."""
    if not any(isinstance(s, Reduce) and s.kind == "sum" for s in statements(function.body)):
        return function
    layouts = {
        s.buffer.name: s.layout
        for s in statements(function.body)
        if isinstance(s, AllocFragment) and isinstance(s.layout, Fragment)
    }

    def step(node: Any) -> Any:
        below = map_bodies(node, step)
        changed: dict[str, Any] = {}
        for name in below.bodies:
            body = getattr(below, name)
            new = _behind_loops(body, function, layouts, context)
            if new is not None:
                changed[name] = new
        return below.but(**changed) if changed else below

    return step(function)


def _behind_loops(
    body: tuple[Stmt, ...], function: Function, layouts: dict[str, Fragment], context: Context
) -> tuple[Stmt, ...] | None:
    """A body whose loops leave parts, with what adds them up behind; None where none does."""
    out: list[Stmt] = []
    for number, loop in enumerate(body):
        if not isinstance(loop, (Pipelined, Serial)) or loop.condition is not None:
            out.append(loop)
            continue
        late = [
            found
            for statement in loop.body
            if isinstance(statement, Reduce)
            and (found := _late(statement, loop, body[:number], function, layouts, context)) is not None
        ]
        parted = {id(found.reduction) for found in late}
        inside = tuple(
            s.but(by=Instr("thread"), parted=True) if id(s) in parted and isinstance(s, Reduce) else s
            for s in loop.body
        )
        out.append(loop.but(body=inside) if late else loop)
        for found in late:
            name = found.total.buffer.name
            message = f"lanes add {name} up behind the loop, and not in each step"
            context.remark(NAME, "applied", message, found.reduction)
            out.append(AddLanes(found.total, distances=found.distances, place=found.reduction.place))
    return tuple(out) if len(out) != len(body) else None


def _late(
    reduction: Reduce, loop: Pipelined | Serial, before: Sequence[Stmt], function: Function,
    layouts: dict[str, Fragment], context: Context,
) -> _Late | None:  # fmt: skip
    """What a reduction is where lanes need not meet in a step."""
    part, source = reduction.dst.buffer, layouts.get(reduction.src.buffer.name)
    if reduction.kind != "sum" or not reduction.clear or source is None or not reduction.dst.is_whole:
        return None
    dim = reduction.dim % len(source.extents)
    exchange = exchange_of(source, dim, context.machine.warp)
    users = [s for s in loop.body if s is not reduction and _touches(s, part.name)]
    if exchange.across or not exchange.shuffles or len(users) != 1 or not isinstance(users[0], Parallel):
        return None
    everywhere = [
        s for s in statements(function.body) if any(e.buffer.name == part.name for e in own_effects(s))
    ]
    inside = {id(s) for s in statements((reduction, users[0]))}
    total = _added_to(users[0], part.name)
    if total is None or any(id(s) not in inside and not isinstance(s, AllocFragment) for s in everywhere):
        return None
    alike = {layouts.get(name) for name in _factors(users[0]) | {part.name, total.buffer.name}}
    others = [s for s in loop.body if s is not users[0] and _touches(s, total.buffer.name)]
    if len(alike) != 1 or others or part.dtype != total.buffer.dtype or not _is_zero(before, total):
        return None
    return _Late(reduction, total, exchange.shuffles)


def _touches(statement: Stmt, name: str) -> bool:
    return any(effect.buffer.name == name for effect in effects_in(statement))


def _added_to(loop: Parallel, part: str) -> Region | None:
    """The sum that a loop adds parts to, where it does that alone: t = t + p, or t * f + p."""
    if len(loop.body) != 1 or not isinstance(loop.body[0], Store) or not loop.body[0].plain:
        return None
    store = loop.body[0]
    value, buffer = store.value, store.buffer
    if buffer.scope != "fragment" or store.index != loop.vars:
        return None
    own = [term for term in _parts(value, "+") if not _is_load(term, part, loop)]
    if len(own) != 1 or own[0] is value:
        return None
    factors = _parts(own[0], "*")
    old = [factor for factor in factors if _is_load(factor, buffer.name, loop)]
    rest = [factor for factor in factors if not _is_load(factor, buffer.name, loop)]
    if len(old) != 1 or not all(isinstance(f, Load) and f.index == loop.vars for f in rest):
        return None
    return Region(buffer, (Const(0),) * buffer.rank, extent=buffer.extents)


def _factors(loop: Parallel) -> set[str]:
    return {effect.buffer.name for effect in effects_in(loop)}


def _parts(value: Expr, op: str) -> tuple[Expr, ...]:
    """The two that an operator makes a value of; else the value."""
    return value.args if isinstance(value, Arith) and value.op == op and len(value.args) == 2 else (value,)


def _is_load(value: Expr, name: str, loop: Parallel) -> bool:
    return isinstance(value, Load) and value.buffer.name == name and value.index == loop.vars


def _is_zero(before: Sequence[Stmt], total: Region) -> bool:
    """Whether a sum was set to zero in front of the loop, and used by nothing since."""
    last = next((s for s in reversed(before) if _touches(s, total.buffer.name)), None)
    zero = isinstance(last, Fill) and isinstance(last.value, Const) and not last.value.value
    return isinstance(last, Fill) and zero and last.dst.is_whole
