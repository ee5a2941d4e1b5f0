"""Tiles that a producer brings outside of rings: filled once where they stand, and again when they are free.

Of attention's queries, which all steps of a loop read, those of the next block of rows can be on their way
while this one's results are stored. The tile has one version with two barriers, as in a ring of one: those
who compute wait for it where the copy stood, and release it behind the last statement that reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir import Stmt, effects_in
from ...ir.effects import own_effects
from ...ir.stmt import statements
from ...language.copy import Copy
from ...language.structure import KernelLaunch
from .split_roles import has_producer


def last_reader(copy: Copy, path: Sequence[Any]) -> Stmt | None:
    """The statement behind which a tile is free again, if a producer can bring it; `path` is around the copy.

    The tile is filled by nothing else and used by statements behind the copy alone, a loop with a producer
    among them; what is copied and when is known without what others compute.
    """
    launch = next((s for s in path if isinstance(s, KernelLaunch)), None)
    name, source = copy.dst.buffer.name, copy.src.buffer.name
    beside = next((body for body in _bodies(path[-1]) if any(s is copy for s in body)), ())
    behind = beside[next((k for k, s in enumerate(beside) if s is copy), 0) + 1 :]
    users = [s for s in behind if any(effect.buffer.name == name for effect in effects_in(s))]
    if launch is None or not any(has_producer(s) for s in users):
        return None
    inside = {id(node) for s in (copy, *users) for node in statements((s,))}
    for statement in statements(launch.body):
        for effect in own_effects(statement):
            own = id(statement) in inside
            if effect.buffer.name == name and (not own or (effect.writes and statement is not copy)):
                return None
            if effect.buffer.name == source and effect.writes:
                return None
    known = all(
        effect.buffer.scope in ("var", "global")
        for part in (copy, *path[1:])
        for effect in own_effects(part)
        if effect.buffer.name != name
    )
    return users[-1] if known else None


def _bodies(node: Any) -> list[tuple[Stmt, ...]]:
    return [getattr(node, field) for field in node.bodies]
