"""What is in flight: asynchronous operations, the groups they are committed in, and the cells they hold.

An operation is issued by threads, committed by them into a group of the token, and complete for a thread
when that thread has waited for the group. Until then its targets may be neither read nor written, by
anyone, and its sources may not be written. A wait leaves the `pending` youngest groups of the thread in
flight, as `cp.async.wait_group` does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..ir import Node, WordStmt
from .refusal import refuse


def told(operation: Node) -> str:
    """An operation by its word and line."""
    word = operation.word if isinstance(operation, WordStmt) else type(operation).__name__
    return f"T.{word}" if operation.place is None else f"T.{word} of line {operation.place.line}"


class InFlight:
    """For each cell of a memory the operation that writes it now, and how many read it."""

    def __init__(self, cells: int) -> None:
        self.cells = cells
        self.operations: list[Node] = []
        self.writing: Any = None
        self.writers: Any = None
        self.reading: Any = None
        self.readers: Any = None

    def check_read(self, cells: Any, node: Node, name: str) -> None:
        """Refuse a read of a target in flight."""
        if self.operations:
            self._refuse(self._written_by(cells), node, "{name} is read while {by} still writes it", name)

    def check_write(self, cells: Any, node: Node, name: str) -> None:
        """Refuse a write to a target or to a source in flight."""
        if self.operations:
            self._refuse(self._written_by(cells), node, "{name} is written while {by} still writes it", name)
            self._refuse(self._read_by(cells), node, "{name} is written while {by} still reads it", name)

    def is_written(self, cells: Any) -> Any:
        """For each cell whether something is still at work on it."""
        return self.writers[cells] > 0 if self.operations else np.zeros(np.shape(cells), np.bool_)

    def holders(self, cells: Any) -> list[Node]:
        """The operations that are still at work on some of the cells."""
        if not self.operations:
            return []
        return self._named(self._written_by(cells))

    def users(self, cells: Any) -> list[Node]:
        """The operations that still read some of the cells."""
        return self._named(self._read_by(cells)) if self.operations else []

    def _named(self, numbers: Any) -> list[Node]:
        return [self.operations[int(number) - 1] for number in np.unique(numbers) if number]

    def _written_by(self, cells: Any) -> Any:
        return np.where(self.writers[cells] > 0, self.writing[cells], 0)

    def _read_by(self, cells: Any) -> Any:
        return np.where(self.readers[cells] > 0, self.reading[cells], 0)

    def _refuse(self, numbers: Any, node: Node, what: str, name: str) -> None:
        if numbers.any():
            refuse(
                what, node, name=name, by=told(self.operations[int(numbers.max()) - 1]),
                hint="wait for its token first, then let a barrier tell the other threads",
            )  # fmt: skip

    def _number(self, operation: Node) -> int:
        if not self.operations:
            self.writing, self.writers, self.reading, self.readers = (
                np.zeros(self.cells, np.int32) for _ in range(4)
            )
        if not self.operations or self.operations[-1] is not operation:
            self.operations.append(operation)
        return len(self.operations)

    def start(self, cells: Any, operation: Node, *, writes: bool) -> None:
        """An operation takes hold of cells, as a target or as a source."""
        number = self._number(operation)
        if writes:
            self.writing[cells] = number
            self.writers[cells] += 1
        else:
            self.reading[cells] = number
            np.add.at(self.readers, cells, 1)

    def end(self, cells: Any, *, writes: bool) -> None:
        """An operation lets go of cells."""
        if writes:
            self.writers[cells] -= 1
        else:
            np.subtract.at(self.readers, cells, 1)


@dataclass(frozen=True)
class Hold:
    """The cells (issuing lanes, cells) of one memory that an operation has hold of.

    `memory` is whatever the cells are numbered in: it has a `flight`, and a `history` unless it is a
    thread's own.
    """

    memory: Any
    cells: Any
    writes: bool


@dataclass(frozen=True)
class Operation:
    """An asynchronous operation: `row` gives the row of a lane in the cells of its holds."""

    statement: Node
    row: Any
    holds: tuple[Hold, ...]


@dataclass
class Part:
    """An operation, for some of the lanes that issued it (a mask)."""

    operation: Operation
    lanes: Any


@dataclass
class Group:
    """What some lanes committed together; `number` counts the groups of a lane and token from 1."""

    parts: list[Part]
    lanes: Any
    number: Any


@dataclass
class _Token:
    committed: Any
    open: list[Part] = field(default_factory=list[Part])
    groups: list[Group] = field(default_factory=list[Group])


class Tokens:
    """The tokens of one launch by name, each with groups a thread."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.tokens: dict[str, _Token] = {}

    def _token(self, name: str) -> _Token:
        if name not in self.tokens:
            self.tokens[name] = _Token(np.zeros(self.lanes, np.int32))
        return self.tokens[name]

    def issue(self, name: str, operation: Operation, lanes: Any) -> None:
        """An operation of the lanes (a mask) that no group holds yet."""
        self._token(name).open.append(Part(operation, lanes))

    def commit(self, name: str, lanes: Any) -> None:
        """Close a group of each lane: what it has issued since its last one, which may be nothing."""
        token = self._token(name)
        token.committed[lanes] += 1
        parts = [Part(part.operation, part.lanes & lanes) for part in token.open]
        parts = [part for part in parts if part.lanes.any()]
        for part in token.open:
            part.lanes = part.lanes & ~lanes
        token.open = [part for part in token.open if part.lanes.any()]
        if parts:
            token.groups.append(Group(parts, lanes.copy(), token.committed.copy()))

    def wait(self, name: str, pending: int, lanes: Any, node: Node) -> list[Part]:
        """The parts that are complete once these lanes have waited for all but `pending` groups."""
        token = self.tokens.get(name)
        if token is None or (token.committed[lanes] == 0).any():
            refuse(
                "the token {name} is waited for, and nothing was committed to it by the waiting threads",
                node, name=name, hint="commit what was issued first; each thread waits for its own groups",
            )  # fmt: skip
        done: list[Part] = []
        for group in token.groups:
            ready = group.lanes & lanes & (group.number <= token.committed - pending)
            if not ready.any():
                continue
            done += [Part(part.operation, part.lanes & ready) for part in group.parts]
            group.lanes = group.lanes & ~ready
        token.groups = [group for group in token.groups if group.lanes.any()]
        return [part for part in done if part.lanes.any()]

    def check_end(self) -> None:
        """Refuse work that is still in flight when the kernel ends."""
        for name, token in self.tokens.items():
            if token.open:
                statement = token.open[0].operation.statement
                refuse("this is issued to the token {name}, and never committed", statement, name=name)
            left = [p for group in token.groups for p in group.parts if (p.lanes & group.lanes).any()]
            if left:
                refuse(
                    "this is still in flight when the kernel ends: nobody waits for the token {name}",
                    left[0].operation.statement, name=name,
                )  # fmt: skip
