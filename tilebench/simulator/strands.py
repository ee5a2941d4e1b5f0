"""A strand: threads that follow one way through the kernel together, and where they are in it.

Where a branch or a loop with a barrier inside sends the threads different ways, a strand becomes two.
They meet again behind the branch, when all of them have come there (`Join`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ..ir import Stmt
from .barriers import Meeting, Until
from .lanes import Waits
from .state import Mask, Value


@dataclass
class Turns:
    """The turns of a loop: the value of its variable, if it has one, and how to go on.

    `taken` counts the turns of a loop that a condition ends.
    """

    stmt: Any
    value: Value
    stop: Value
    step: Value
    taken: int = 0

    def bind(self, values: dict[str, Value]) -> None:
        """Give the loop's variable its value of this turn."""
        for var in self.stmt.vars:
            values[var.name] = self.value


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
    meeting: Meeting | Until | None = None
    waits: Any = None

    def part(self, mask: Mask) -> Strand:
        """Some of the lanes, at the same place."""
        return Strand(mask, dict(self.values), [frame.copy() for frame in self.frames])
