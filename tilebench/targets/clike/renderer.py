"""Statements of one thread in C: one a line, each with the statement that it came from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...errors import TargetError
from ...ir import DType, Expr, Extern, Function, Region, Stmt, children, walk
from ...ir.expr_walks import seen
from ...ir.facts import Facts
from ...ir.node import operands
from ...ir.stmt import statements
from ...language.extern import ExternCall
from ...machine import Machine
from ...passes.analysis.launches import launch_of
from .dialect import Dialect
from .expressions import Expressions
from .names import names_in_c
from .rough_bounds import counters_of

INDENT = "  "
# A row: writes the lines of one statement with the renderer's `line` and `block`.
StatementText = Callable[[Any, Any], None]


def _own_calls(function: Function) -> Iterator[Extern | ExternCall]:
    """The calls of functions that are no words."""
    for statement in statements(function.body):
        if isinstance(statement, ExternCall):
            yield statement
        for operand in operands(statement):
            for part in children(operand) if isinstance(operand, Region) else (operand,):
                if isinstance(part, Expr) and seen(part).calls_own:
                    yield from (inner for inner in walk(part) if isinstance(inner, Extern))


class Renderer:
    """Writes one function. `rows` has the text of each statement by its class, and there is no default."""

    def __init__(
        self, function: Function, machine: Machine, dialect: Dialect, rows: Mapping[type, StatementText]
    ) -> None:
        self.dialect = dialect
        self.machine = machine
        self.rows = rows
        self.launch = launch_of(function)
        # A variable would hide a function of the kernel's own text.
        called = {part.name.split("::")[0] for part in _own_calls(function)}
        self.names = names_in_c(function, dialect.reserved | called, dialect.reserved_starts)
        self.expressions = Expressions(dialect, self.names, machine.name)
        self.expressions.rough.counters = counters_of(function)
        # Names of parameters that a target adds, by what each stands for.
        self.further: dict[Any, str] = {}
        self.own_text = "".join(function.known("sources", ()))
        self.lines: list[str] = []
        self.sources: list[Stmt | Function | None] = []
        self.depth = 0

    # -- lines
    def line(self, text: str, source: Stmt | Function | None) -> None:
        """A line that came from `source` (None: from nothing in the stage before)."""
        self.lines.append(INDENT * self.depth + text)
        self.sources.append(source)

    def block(
        self,
        head: str,
        source: Stmt,
        body: tuple[Stmt, ...],
        tail: str = "}",
        facts: Facts | None = None,
    ) -> None:
        """A head, the statements of a body one step in, and a tail."""
        self.line(head, source)
        self.depth += 1
        self.body(body, facts)
        self.depth -= 1
        self.line(tail, None)

    # -- statements
    def body(self, body: tuple[Stmt, ...], facts: Facts | None = None) -> None:
        """The statements of a body where `facts` hold (None: those of here); what it names ends with it."""
        rough = self.expressions.rough
        outside = rough.facts
        rough.know(outside if facts is None else facts)
        for statement in body:
            self.statement(statement)
        rough.know(outside)

    def statement(self, statement: Stmt) -> None:
        """The lines of a statement. Raises `TargetError` at its line where the target has no code."""
        write = self.rows.get(type(statement))
        if write is None:
            raise self._refusal(statement)
        try:
            write(self, statement)
        except TargetError as error:
            error.place = error.place or statement.place
            raise

    def _refusal(self, statement: Stmt) -> TargetError:
        spelled = [word for cls in self.rows if (word := getattr(cls, "word", ""))]
        return TargetError(
            "T.{word} has no code for {target}",
            at=statement.place,
            word=getattr(statement, "word", type(statement).__name__),
            target=self.machine.name,
            known=", ".join(sorted(spelled)),
            hint="it has {known}",
        )

    # -- what rows ask for
    def text(self, expr: Expr) -> str:
        """The text of an expression."""
        return self.expressions.text(expr)

    def address(self, region: Region) -> str:
        """A pointer to the first element of a region."""
        return self.expressions.address(region.buffer, region.start)

    def pointee(self, dtype: DType) -> str:
        """The type behind a pointer for the kernel's own text: the language's own where the text knows it."""
        mark, own = self.dialect.own_types.get(dtype.name, ("", ""))
        return own if own and mark in self.own_text else self.dialect.memory_type(dtype)

    def type_of(self, dtype: DType) -> str:
        return self.dialect.type_of(dtype)
