"""Statements: the forms of Python that a stage can use.

The room knows forms, not operations: `T.word(...)` as a statement, a loop, a `with`, an
allocation. Which words exist, and the classes behind them, come from the registry.
"""

from __future__ import annotations

from typing import Any, ClassVar

from .expr import Buffer, Expr, Var
from .node import WRITES, Node, attribute, body, node, operand, result


class Stmt(Node):
    """The base of statements."""


class WordStmt(Stmt):
    """A statement spelled `T.word(...)` in one of its forms; `word` names it in the text.

    `stages` are those in which it may stand, by name.
    """

    word: ClassVar[str] = ""
    stages: ClassVar[frozenset[str]] = frozenset()

    def spelling(self) -> str:
        """The word this node prints as; a family of words in one class overrides it."""
        return self.word

    def settled(self) -> frozenset[str]:
        """Fields whose decision follows from the others here, so that they stay None."""
        return frozenset()

    def hidden(self) -> frozenset[str]:
        """Fields that the word itself says, so that they are not printed."""
        return frozenset()


class OpStmt(WordStmt):
    """`T.word(operands, attribute=value)`."""


class LoopStmt(WordStmt):
    """`for i, j in T.word(...):`. Subclasses declare `vars` and `body`."""

    vars: tuple[Var, ...]
    body: tuple[Stmt, ...]


class WithStmt(WordStmt):
    """`with T.word(...) as (x, y):`. Subclasses declare `vars` and `body`."""

    vars: tuple[Var, ...]
    body: tuple[Stmt, ...]


class AllocStmt(WordStmt):
    """`name = T.word(shape, dtype, ...)`. Subclasses declare `buffer`, and `scope`."""

    scope: ClassVar[str] = ""
    buffer: Buffer


@node
class Let(Stmt):
    """`x: T.int32 = value`: a name for a value, bound once."""

    var: Var = result()
    value: Expr = operand()


@node
class Store(Stmt):
    """`buffer[index] = value`; for a `var`, `name = value`."""

    buffer: Buffer = attribute(effect=WRITES)
    index: tuple[Expr, ...] = operand()
    value: Expr = operand()
    version: Expr | None = operand(default=None)


@node
class If(Stmt):
    """`if condition: ... else: ...`."""

    condition: Expr = operand()
    then: tuple[Stmt, ...] = body()
    orelse: tuple[Stmt, ...] = body()


@node
class Function(Stmt):
    """A whole kernel. `params` are its arrays in the order they are passed.

    `info` holds what is known of the function as a whole, printed as decorator arguments.
    """

    name: str = attribute()
    params: tuple[Buffer, ...] = attribute()
    body: tuple[Stmt, ...] = body()
    info: tuple[tuple[str, Any], ...] = attribute(default=())

    def known(self, key: str, default: Any = None) -> Any:
        """The value of a key of `info`."""
        return dict(self.info).get(key, default)
