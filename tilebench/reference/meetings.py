"""Where roles of a block meet: barriers in phases, barriers of a number, and what they do together."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

from ..errors import LanguageError, Place
from ..ir import Stmt
from ..language.mbarriers import AllocBarrier


@dataclass(frozen=True)
class Halt:
    """What a role waits for: whether it is over, and what it is."""

    is_over: Callable[[], bool]
    what: Callable[[], str]
    place: Place | None


@dataclass(eq=False)
class _Phases:
    """A barrier that counts `arrived` of `count` arrivals of a phase; `phase` of them have ended."""

    name: str
    count: int
    place: Place | None
    arrived: int = 0
    phase: int = 0


@dataclass(eq=False)
class _Numbered:
    """A barrier by number: threads that have come, of those it counts, and how often it has opened."""

    count: int = 0
    come: int = 0
    opened: int = 0


@dataclass(eq=False)
class Meetings:
    """The roles of one block, and where they meet."""

    threads: int
    roles: list[Any] = field(default_factory=list[Any])
    barriers: dict[str, list[_Phases]] = field(default_factory=dict[str, "list[_Phases]"])
    numbered: dict[int, _Numbered] = field(default_factory=dict[int, _Numbered])
    # Those who have come to what they do together, by the statement, and how often it was done.
    there: dict[int, list[Any]] = field(default_factory=dict[int, "list[Any]"])
    done: dict[int, int] = field(default_factory=dict[int, int])

    # -- barriers in phases
    def make(self, stmt: AllocBarrier) -> Generator[Halt, None, None]:
        """The barriers of an allocation, by whoever comes first."""
        name = stmt.buffer.name
        if name not in self.barriers:
            one = len(stmt.arrivals) == 1
            self.barriers[name] = [
                _Phases(name if one else f"{name}[{k}]", count, stmt.place)
                for k, count in enumerate(stmt.arrivals)
            ]
        yield from ()

    def _barrier(self, stmt: Stmt, name: str, number: int) -> _Phases:
        barriers = self.barriers[name]
        if not 0 <= number < len(barriers):
            raise LanguageError(
                "{name} has no barrier {n}", at=stmt.place, name=name, n=number, most=len(barriers),
                expected="a number below {most}",
            )  # fmt: skip
        return barriers[number]

    def arrive(self, stmt: Stmt, name: str, number: int, arrivals: int) -> Generator[Halt, None, None]:
        """So many arrivals come; the last of a phase ends it."""
        barrier = self._barrier(stmt, name, number)
        if barrier.arrived + arrivals > barrier.count:
            raise LanguageError(
                "{n} arrivals come to {name}, and its phase takes {left} more of {count}", at=stmt.place,
                n=arrivals, name=barrier.name, left=barrier.count - barrier.arrived, count=barrier.count,
                also=[("it is made here", barrier.place)],
                hint="each thread of the group arrives: a group of one is `if tx == 0:`",
            )  # fmt: skip
        barrier.arrived += arrivals
        if barrier.arrived == barrier.count:
            barrier.arrived, barrier.phase = 0, barrier.phase + 1
        yield from ()

    def wait(self, stmt: Stmt, name: str, number: int, parity: int) -> Generator[Halt, None, None]:
        """On when the phase at hand is of the other parity."""
        barrier = self._barrier(stmt, name, number)
        if parity not in (0, 1):
            raise LanguageError("a parity is 0 or 1, not {n}", at=stmt.place, n=parity)

        def is_over() -> bool:
            return barrier.phase % 2 != parity

        def what() -> str:
            return (
                f"phase {barrier.phase} of {barrier.name}, of parity {parity} "
                f"({barrier.arrived} of {barrier.count} arrivals have come)"
            )

        if not is_over():
            yield Halt(is_over, what, stmt.place)

    # -- barriers by number
    def named(
        self, come: int, number: int, count: int, stmt: Stmt, *, waits: bool
    ) -> Generator[Halt, None, None]:
        """So many threads come to a barrier of `count`, and wait there unless they are only counted."""
        barrier = self.numbered.setdefault(number, _Numbered())
        if barrier.come and barrier.count != count:
            raise LanguageError(
                "barrier {n} counts {a} threads here, and {b} where others wait", at=stmt.place, n=number,
                a=count, b=barrier.count,
            )  # fmt: skip
        barrier.count, barrier.come = count, barrier.come + come
        if barrier.come > count:
            raise LanguageError(
                "more threads come to barrier {n} than it counts", at=stmt.place, n=number, come=barrier.come,
                count=count, expected="{count} threads", found="{come}",
            )  # fmt: skip
        opened = barrier.opened
        if barrier.come == count:
            barrier.come, barrier.opened = 0, opened + 1
        elif waits:
            yield Halt(
                lambda: barrier.opened > opened,
                lambda: f"barrier {number} ({barrier.come} of {count} threads are there)", stmt.place,
            )  # fmt: skip

    # -- what they do together
    def among(self, first: int, end: int) -> list[Any]:
        """The roles of the threads from `first` to before `end`."""
        return [role for role in self.roles if first <= role.first < end]

    def is_last(self, stmt: Stmt, role: Any, roles: list[Any]) -> bool:
        """A role comes: whether all are there now, so that it is done."""
        there = self.there.setdefault(id(stmt), [])
        there.append(role)
        if len(there) < len(roles):
            return False
        self.there[id(stmt)] = []
        self.done[id(stmt)] = self.done.get(id(stmt), 0) + 1
        return True

    def until_done(self, stmt: Stmt, roles: list[Any]) -> Halt:
        """The others come, and do it."""
        done = self.done.get(id(stmt), 0)
        return Halt(
            lambda: self.done.get(id(stmt), 0) > done,
            lambda: f"the others of {sum(role.count for role in roles)} threads, who do this together",
            stmt.place,
        )
