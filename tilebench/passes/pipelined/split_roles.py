"""What a producer does of a block's work: the loops whose tiles it brings, and what stands around them.

The group that computes keeps its statements; the producer's are those with which the loops are reached: loops
and conditions around them, and the scalars that these and the copies are made of. Both count the same turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...errors import ScheduleError
from ...ir import AllocStmt, If, Let, Load, Stmt, Store, While
from ...ir.effects import names_used, own_effects
from ...language.copy import Copy
from ...language.lowered.decisions import PRODUCER
from ...language.structure import KernelLaunch, Pipelined, Serial, ThreadGroup, Unroll

# Puts statements in place of a loop, or of a copy outside of loops; none of a copy that others issue.
Bring = Callable[[Any], tuple[Stmt, ...]]


def has_producer(loop: Stmt) -> bool:
    """Whether the tiles of a loop are brought by a producer."""
    return isinstance(loop, Pipelined) and loop.plan is not None and loop.plan.roles == PRODUCER


def producer_part(body: tuple[Stmt, ...], bring: Bring) -> tuple[Stmt, ...]:
    """The statements of `body` that the producer does. Raises `ScheduleError` for what it cannot know."""
    needed: set[str] = set()
    while True:
        known = len(needed)
        kept = _kept(body, bring, needed)
        # What a loop changes behind its use is needed in its next turn.
        if len(needed) == known:
            return kept


def with_producer(
    launch: KernelLaunch, body: tuple[Stmt, ...], brought: Mapping[str | int, tuple[Stmt, ...]]
) -> tuple[Stmt, ...]:
    """A launch's new body, in whose last group one thread brings tiles.

    `brought` is what it does, by the loop's variable and the identity of copies outside of loops.
    """
    groups = [s for s in launch.body if isinstance(s, ThreadGroup)]
    if not brought or len(groups) < 2:
        return body
    *others, last = body

    def bring(node: Any) -> tuple[Stmt, ...]:
        return brought.get(id(node), ()) if isinstance(node, Copy) else brought[node.vars[0].name]

    part = producer_part(groups[0].body, bring)
    one = ThreadGroup(groups[-1].first, 1, vars=(), body=part, place=launch.place)
    return (*others, last.but(body=(*last.body, one)))  # type: ignore[attr-defined]


def _kept(body: Iterable[Stmt], bring: Bring, needed: set[str]) -> tuple[Stmt, ...]:
    kept: list[Stmt] = []
    for statement in reversed(tuple(body)):
        found = _own(statement, bring, needed)
        for part in found:
            needed |= names_used([part])
            _check(part)
        kept += reversed(found)
    return tuple(reversed(kept))


def _own(statement: Any, bring: Bring, needed: set[str]) -> tuple[Stmt, ...]:
    """What of a statement is the producer's."""
    if isinstance(statement, Copy) or (isinstance(statement, Pipelined) and has_producer(statement)):
        return bring(statement)
    if isinstance(statement, If):
        then, orelse = (_kept(part, bring, needed) for part in (statement.then, statement.orelse))
        return (statement.but(then=then, orelse=orelse),) if then or orelse else ()
    if isinstance(statement, Pipelined):
        inside = _kept(statement.body, bring, needed)
        loop = Serial(
            statement.stop, statement.vars, inside, start=statement.start, condition=statement.condition,
            place=statement.place,
        )  # fmt: skip
        return (loop,) if inside else ()
    if isinstance(statement, (Serial, Unroll, While)):
        inside = _kept(statement.body, bring, needed)
        return (statement.but(body=inside),) if inside else ()
    if isinstance(statement, Let):
        return (statement,) if statement.var.name in needed else ()
    if isinstance(statement, (AllocStmt, Store)) and statement.buffer.scope == "var":
        return (statement,) if statement.buffer.name in needed else ()
    return ()


def _check(part: Stmt) -> None:
    """Refuse a condition, bound or scalar that only those who compute know."""
    if isinstance(part, (If, Serial, Unroll, While, Let, Store)):
        for effect in own_effects(part):
            if isinstance(effect.node, Load) and effect.buffer.scope not in ("var", "global"):
                raise ScheduleError(
                    "what the producer brings depends on {name}, which other threads compute", at=part.place,
                    name=effect.buffer.name, hint="leave warp_specialize out",
                )  # fmt: skip
