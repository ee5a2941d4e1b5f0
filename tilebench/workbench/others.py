"""Other implementations of what a bench's kernel computes, timed on the same arrays by the same method."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..profile.positions import Position
from ..record import RunRecord

if TYPE_CHECKING:
    from .picture import Picture


def other_positions(picture: Picture) -> tuple[Position, ...]:
    """The other implementations, each with all its runs."""
    by_name: dict[str, list[RunRecord]] = {}
    for run in picture.others:
        by_name.setdefault(run.kernel, []).append(run)
    return tuple(Position(tuple(runs)) for runs in by_name.values())
