"""A strand: threads that follow one way through the kernel together, and where they are in it.

Where a branch or a loop with a barrier inside sends the threads different ways, a strand becomes two.
They meet again behind the branch, when all of them have come there (`Join`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..ir import Stmt
from .barriers import Meeting
from .lanes import Waits
from .state import Mask, Value

_where: Any = np.where


@dataclass
class Turns:
    """The turns of a loop: its variable's name and value, and how to go on."""

    name: str
    value: Value
    stop: Value
    step: Value


@dataclass
class Frame:
    """A body and the statement of it that comes next; `join` is where others wait behind it."""

    body: tuple[Stmt, ...]
    next: int = 0
    turns: Turns | None = None
    join: Join | None = None

    def copy(self) -> Frame:
        """The same place, with turns of its own."""
        turns = None if self.turns is None else replace(self.turns)
        return Frame(self.body, self.next, turns, self.join)


@dataclass(eq=False)
class Join:
    """The place behind a branch or loop: `mask` has the lanes that went in, `waiting` who has come out."""

    mask: Mask
    lanes: int
    waiting: list[Strand] = field(default_factory=list["Strand"])
    come: int = 0


@dataclass(eq=False)
class Strand:
    """The lanes of `mask`, at one place: the bodies that they are in, outermost first.

    `meaning` is the word they are in the middle of, `stmt` that statement; `waits` are the lanes that the
    barrier of `meeting` still holds back.
    """

    mask: Mask
    values: dict[str, Value]
    frames: list[Frame]
    meaning: Waits | None = None
    stmt: Stmt | None = None
    meeting: Meeting | None = None
    waits: Any = None

    def part(self, mask: Mask) -> Strand:
        """Some of the lanes, at the same place."""
        return Strand(mask, dict(self.values), [frame.copy() for frame in self.frames])


def merged(parts: list[Strand], mask: Mask, wide: Callable[[Value, Any], Any]) -> Strand:
    """Strands at one place as one, with `mask` for all of them."""
    first = parts[0]
    for other in parts[1:]:
        for name, value in other.values.items():
            if name in first.values:
                first.values[name] = _either(first.values[name], value, other.mask, wide)
        for mine, theirs in zip(first.frames, other.frames, strict=True):
            if mine.turns is not None and theirs.turns is not None:
                for part in ("value", "stop", "step"):
                    both = _either(getattr(mine.turns, part), getattr(theirs.turns, part), other.mask, wide)
                    setattr(mine.turns, part, both)
    first.mask = mask
    return first


def _either(mine: Any, theirs: Any, mask: Any, wide: Callable[[Value, Any], Any]) -> Value:
    if mine is theirs or (isinstance(mine, int) and isinstance(theirs, int) and mine == theirs):
        return mine
    kind: Any = np.result_type(np.asarray(mine).dtype, np.asarray(theirs).dtype)
    return _where(mask, wide(theirs, kind), wide(mine, kind))
