"""The table of lowerings: which code an operation becomes, by its class and the name of its instruction.

A row is all that the road down to one thread has to know of an operation: how it is lowered, and what
memory of the block it works in. Built-in rows stand in the folder `rows/`, a module each, under the
name `LOWERINGS`; a target adds rows of its own. There is no default: an operation or an instruction
without a row is refused at the user's line, with those that there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple, cast

from ...errors import TargetError
from ...ir import DType, Stmt, WordStmt
from ...ir.gather import gathered
from ...language.extensions import rows_for
from ...layout import Fragment
from ...machine import Machine
from .emitter import Emitter

# The road of targets with warps, for which packages bring rows.
ROAD = "threads"


class Workspace(NamedTuple):
    """Shared memory that an operation works in: `elements` of `dtype`, called after `base`."""

    base: str
    elements: int
    dtype: DType


@dataclass(frozen=True)
class Lowering:
    """One row. `instruction` is the name in `by=`, empty for an operation that names none.

    `lower(emitter, statement)` gives the statements of one thread. `workspace(statement, layouts,
    machine)` gives the shared memory that the operation needs, from the layouts of fragments by
    name, or None; its region is put into the field that is marked `works`.
    """

    operation: type[WordStmt]
    instruction: str
    lower: Callable[[Emitter, Any], list[Stmt]]
    workspace: Callable[[Any, Mapping[str, Fragment], Machine], Workspace | None] | None = None


@dataclass(frozen=True)
class Lowerings:
    """All rows of a road, by operation and instruction."""

    rows: Mapping[tuple[type[WordStmt], str], Lowering]

    @staticmethod
    def of(rows: Iterable[Lowering]) -> Lowerings:
        """The table. Raises `TargetError` for two rows of one operation and instruction."""
        table: dict[tuple[type[WordStmt], str], Lowering] = {}
        for row in rows:
            key = row.operation, row.instruction
            if key in table:
                raise TargetError(
                    "T.{word} by {name!r} has two lowerings: {a} and {b}", word=row.operation.word,
                    name=row.instruction, a=table[key].lower.__module__, b=row.lower.__module__,
                )  # fmt: skip
            table[key] = row
        return Lowerings(table)

    @cached_property
    def operations(self) -> frozenset[type[WordStmt]]:
        """The operations that have a row."""
        return frozenset(operation for operation, _ in self.rows)

    def has(self, statement: Stmt) -> bool:
        """Whether an operation is lowered by a row at all."""
        return type(statement) in self.operations

    def find(self, statement: Any, machine: Machine) -> Lowering:
        """The row of a statement. Raises `TargetError` at its line where there is none."""
        name: str = getattr(getattr(statement, "by", None), "name", "")
        operation = cast("type[WordStmt]", type(statement))
        table = self.rows if self.has(statement) else _of_packages(operation)
        row = table.get((operation, name))
        if row is not None:
            return row
        word = statement.spelling() if isinstance(statement, WordStmt) else type(statement).__name__
        names = sorted(instruction for operation, instruction in self.rows if operation is type(statement))
        if not names:
            known = sorted({row.operation.word for row in self.rows.values()})
            raise TargetError(
                "T.{word} has no code for {machine}", at=statement.place, word=word, machine=machine.name,
                hint="what has: " + ", ".join(f"T.{name}" for name in known),
            )  # fmt: skip
        raise TargetError(
            "T.{word} has no code by the instruction {name!r} for {machine}", at=statement.place, word=word,
            name=name, machine=machine.name,
            hint="it has by " + ", ".join(each or "no instruction" for each in names),
        )  # fmt: skip


@cache
def _of_packages(cls: type[WordStmt]) -> Mapping[tuple[type[WordStmt], str], Lowering]:
    """The rows of the package that brings a class of statements, if one does."""
    return Lowerings.of(rows_for(ROAD, cls)).rows


@cache
def built_in() -> Lowerings:
    """The rows of the folder `rows/`. Raises `InternalError` for a module there without any."""
    from . import rows

    return Lowerings.of(gathered(rows.__name__, rows.__path__, "LOWERINGS", Lowering))


def with_rows(extra: Iterable[Lowering]) -> Lowerings:
    """The built-in rows and those that a target adds."""
    return Lowerings.of((*built_in().rows.values(), *extra))
