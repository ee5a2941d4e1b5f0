"""Stages that a kernel gives the statements of a pipelined loop, and whether they can be had.

A step of the loop runs what has the last stage for its own iteration, and what has a stage `d` before it for
the iteration `d` later. So a statement sees what others of its iteration left, which is right where they have
an earlier stage and what they fill has a version for each iteration in flight, or the same stage and a place
before it in a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...ir import Let, Load, Stmt, effects_in, names_read_and_written, walk
from ...language.memory import AllocFragment, AllocShared
from ...language.structure import Pipelined, StageGroup


@dataclass(frozen=True)
class Item:
    """What has one stage and one place in a step: a kernel's statement, with what passes put around it."""

    body: tuple[Stmt, ...]
    stage: int
    order: int
    reads: frozenset[str]
    writes: frozenset[str]

    @property
    def touches(self) -> frozenset[str]:
        return self.reads | self.writes


class StageClash(NamedTuple):
    """A statement that cannot have its stage, and why."""

    statement: Stmt
    why: str


def is_staged(loop: Pipelined) -> bool:
    """Whether the kernel gave stages to statements of a loop, other than copies that run ahead."""
    return any(isinstance(statement, StageGroup) for statement in loop.body)


def opened(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """A body without the stages around its statements."""
    inner = (s.body if isinstance(s, StageGroup) else (s,) for s in body)
    return tuple(statement for part in inner for statement in part)


def items_of(loop: Pipelined) -> list[Item]:
    """What has a stage, in the order of the text."""
    items: list[Item] = []
    for group in loop.body:
        if isinstance(group, StageGroup):
            reads, writes = names_read_and_written(group.body)
            items.append(Item(group.body, group.number, group.order, frozenset(reads), frozenset(writes)))
    return items


def versions_of(items: Sequence[Item]) -> dict[str, int]:
    """How many versions each buffer needs that is touched at several stages."""
    stages: dict[str, set[int]] = {}
    for item in items:
        for name in item.touches:
            stages.setdefault(name, set()).add(item.stage)
    written = {name for item in items for name in item.writes}
    return {
        name: max(found) - min(found) + 1
        for name, found in stages.items()
        if len(found) > 1 and name in written
    }


def clash_of(loop: Pipelined, fresh: set[str]) -> StageClash | None:
    """Why stages cannot be had; None where they can. `fresh` are buffers that an iteration fills first."""
    for statement in loop.body:
        if not isinstance(statement, (StageGroup, Let, AllocShared, AllocFragment)):
            return StageClash(statement, "it has no stage, and others of its loop have")
    items = items_of(loop)
    return _of_names(loop, items) or _of_versions(items, fresh, loop) or _of_order(items)


def _of_names(loop: Pipelined, items: Sequence[Item]) -> StageClash | None:
    """A name is worked out again for each iteration, which what the loop writes would change."""
    written = {name for item in items for name in item.writes}
    for statement in loop.body:
        if isinstance(statement, Let):
            for node in walk(statement.value):
                if isinstance(node, Load) and node.buffer.name in written:
                    why = f"{statement.var.name} is read from {node.buffer.name}, which the loop writes"
                    return StageClash(statement, why)
    return None


def _of_versions(items: Sequence[Item], fresh: set[str], loop: Pipelined) -> StageClash | None:
    scopes = {e.buffer.name: e.buffer.scope for s in opened(loop.body) for e in effects_in(s)}
    for name in versions_of(items):
        own = [item for item in items if name in item.touches]
        first = next(item for item in own if name in item.writes)
        for item in own:
            if item.stage == first.stage:
                continue
            if name not in fresh:
                why = f"{name}, which has stage {first.stage} too, keeps what it holds for the next iteration"
            elif scopes[name] != "shared":
                why = f"{name} is touched at stage {first.stage} too, and only shared tiles have versions"
            elif item.stage < first.stage:
                why = f"{name} is filled at stage {first.stage} only"
            else:
                continue
            return StageClash(item.body[0], why)
    return None


def _of_order(items: Sequence[Item]) -> StageClash | None:
    """Within a stage an iteration's statements run in the order of the text where one needs another."""
    for k, later in enumerate(items):
        for earlier in items[:k]:
            if earlier.stage != later.stage or earlier.order < later.order:
                continue
            shared = earlier.writes & later.touches | earlier.touches & later.writes
            if shared:
                why = f"{min(shared)} is used by what stands before it, and order= puts it in front"
                return StageClash(later.body[0], why)
    return None
