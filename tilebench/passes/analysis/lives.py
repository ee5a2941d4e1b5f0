"""When buffers hold something: the first and the last statement, by number, between which they are used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ...ir import AllocStmt, Function, If, Load, LoopStmt, Node, Region, Stmt, Store, WithStmt, children
from ...language.lowered.tokens import BY_HAND, Wait

Alloc = TypeVar("Alloc", bound=AllocStmt)


@dataclass
class Span(Generic[Alloc]):
    """A buffer by its allocation, and between which statements it holds something."""

    alloc: Alloc
    first: int = -1
    last: int = -1

    def meets(self, other: Span[Alloc]) -> bool:
        return self.first <= other.last and other.first <= self.last


Kind = TypeVar("Kind", bound="Span[Any]")


class Lives(Generic[Alloc, Kind]):
    """One walk over a function in order: where each buffer of a kind of allocation is first and last used.

    What an operation with a token reads or writes it may still read or write until that has been waited for.
    """

    def __init__(self, kind: type[Alloc], make: Callable[[Alloc], Kind]) -> None:
        self.kind, self.make = kind, make
        self.lives: dict[str, Kind] = {}
        self.loops: list[tuple[int, set[str], set[str]]] = []
        self.flights: dict[str, set[str]] = {}
        self.now = 0

    def of(self, function: Function) -> dict[str, Kind]:
        """The spans by the names of buffers; what nothing uses lives at the start alone."""
        self.body(function.body)
        for life in self.lives.values():
            if life.first < 0:
                life.first = life.last = 0
        return self.lives

    def body(self, body: tuple[Stmt, ...]) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, stmt: Stmt) -> None:
        self.now += 1
        if isinstance(stmt, self.kind):
            self.lives[stmt.buffer.name] = self.make(stmt)
            for _, allocated, _ in self.loops:
                allocated.add(stmt.buffer.name)
        elif isinstance(stmt, LoopStmt):
            self._loop(stmt)
        elif isinstance(stmt, If):
            self.uses(stmt.condition)
            self.body(stmt.then)
            self.body(stmt.orelse)
        elif isinstance(stmt, WithStmt):
            self.body(stmt.body)
        elif isinstance(stmt, Wait):
            for name in self.flights.get(stmt.token, ()):
                self._use(name)
        elif not isinstance(stmt, AllocStmt):
            self.uses(stmt, getattr(stmt, "token", ""))

    def _loop(self, stmt: LoopStmt) -> None:
        start = self.now
        for part in children(stmt):
            if not isinstance(part, Stmt):
                self.uses(part)
        self.loops.append((start, set(), set()))
        self.body(stmt.body)
        _, allocated, used = self.loops.pop()
        self.now += 1
        # What a loop uses and does not allocate may be read by its next step: it lives through all of it.
        for name in used - allocated:
            life = self.lives[name]
            life.first, life.last = min(life.first, start), max(life.last, self.now)
        for _, outer_allocated, outer_used in self.loops:
            outer_allocated |= allocated
            outer_used |= used

    def uses(self, node: Node, token: str = "") -> None:
        flight = self.flights.setdefault(token, set()) if token not in ("", BY_HAND) else set[str]()
        stack: list[Node] = [node]
        while stack:
            part = stack.pop()
            if isinstance(part, (Load, Region, Store)) and part.buffer.name in self.lives:
                self._use(part.buffer.name)
                flight.add(part.buffer.name)
            stack.extend(children(part))

    def _use(self, name: str) -> None:
        life = self.lives[name]
        life.first = self.now if life.first < 0 else life.first
        life.last = self.now
        for _, _, used in self.loops:
            used.add(name)
