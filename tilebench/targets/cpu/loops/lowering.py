"""The table of lowerings: how a statement of `bounded` becomes statements of `loops`.

A row stands in a module of `lowerings/`, or comes with a package of its own through `to_loops_with`.
There is no row for everything else: what has none is refused at its line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from ....errors import InternalError, TargetError, nearest
from ....ir import Node, OpStmt, Stmt, WordStmt
from ....language.extensions import rows_for

# The road to this target, for which packages bring rows.
ROAD = "loops"


@dataclass(frozen=True)
class Lowering:
    """One row: the class of a statement and what it becomes.

    `lower(work, statement)` gives statements of `loops`; `work` is a `Work`. `instruction` is the name
    that `by=T.Instr(...)` must give for the row to be taken; empty: where none is given. `packable` are
    the fields whose tile may lie in panels and hold wider elements than the user's, because `lower`
    asks the plan how it lies.
    """

    statement: type[Stmt]
    lower: Callable[[Any, Any], list[Stmt]]
    instruction: str = ""
    packable: tuple[str, ...] = ()


class LoweringTable:
    """Rows by class and instruction. Raises `InternalError` where two rows are for the same."""

    def __init__(self, rows: Iterable[Lowering]) -> None:
        self.rows: dict[type[Stmt], dict[str, Lowering]] = {}
        for row in rows:
            named = self.rows.setdefault(row.statement, {})
            if row.instruction in named:
                raise InternalError(
                    "{statement} has two lowerings for {instruction!r}",
                    statement=row.statement.__name__, instruction=row.instruction,
                )  # fmt: skip
            named[row.instruction] = row

    def row_of(self, statement: Stmt, target: str) -> Lowering:
        """The row for a statement. Raises `TargetError` at its line where there is none."""
        named = self.rows.get(type(statement)) or _of_packages(type(statement))
        if not named:
            raise self._unknown(statement, target)
        instruction = getattr(getattr(statement, "by", None), "name", "")
        row = named.get(instruction)
        if row is None:
            raise TargetError(
                "{target} has no instruction {instruction!r} for {word}",
                target=target, instruction=instruction, word=word_of(statement), at=statement.place,
                hint=_instructions_of(named),
            )  # fmt: skip
        return row

    def may_pack(self, node: Node, field: str) -> bool:
        """Whether the tile that a field of a node names may lie in panels."""
        if not isinstance(node, Stmt):
            return False
        return any(field in row.packable for row in self.rows.get(type(node), {}).values())

    def operations(self) -> list[str]:
        """The operations on tiles that have a row, as a kernel writes them."""
        words = {cls: cls.word for cls in self.rows if issubclass(cls, OpStmt)}
        families = {cls for cls in words if cls.spelling is not OpStmt.spelling}
        return sorted(f"T.{word}_*" if cls in families else f"T.{word}" for cls, word in words.items())

    def _unknown(self, statement: Stmt, target: str) -> TargetError:
        word, known = word_of(statement), self.operations()
        close = nearest(word, known)
        return TargetError(
            "{target} has no lowering of {word}", target=target, word=word, at=statement.place,
            hint=(f"did you mean {close[0]}? " if close else "") + "it lowers " + ", ".join(known)
            + "; loops over elements (T.Parallel, T.serial) can say other things",
        )  # fmt: skip


@cache
def _of_packages(cls: type[Stmt]) -> dict[str, Lowering]:
    """The rows of the package that brings a class of statements, by instruction."""
    return {row.instruction: row for row in rows_for(ROAD, cls)} if issubclass(cls, WordStmt) else {}


def word_of(statement: Stmt) -> str:
    """What a statement is called in an error: `T.copy`, or the kind of a statement without a word."""
    return f"T.{statement.spelling()}" if isinstance(statement, WordStmt) else type(statement).__name__


def _instructions_of(named: dict[str, Lowering]) -> str:
    names = sorted(name for name in named if name)
    if not names:
        return "leave by= out: it has one way to do it, without a name"
    return "it has " + ", ".join(names) + ("; or leave by= out" if "" in named else "")
