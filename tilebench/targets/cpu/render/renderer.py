"""One kernel on its way into LLVM: the function being written, and the table of words it goes by.

Each word of `loops` has a row, in a module of `words/` or from a package of its own. What has none is
refused at its line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from ....errors import InternalError, TargetError
from ....ir import Expr, Stmt, Store, Var, While, WordStmt
from ..llvm import Module, Value
from ..loops.lowering import word_of
from .expressions import Expressions
from .state import State

# Instructions in a row before the cancel word is looked at. That ends a basic block: LLVM's time goes with
# the square of a block's length: 1,000 stores took 1.9 s, and 0.2 s in such pieces.
LONGEST_BLOCK = 512


@dataclass(frozen=True)
class Rendering:
    """One row: the class of a statement of `loops`, and `render(renderer, statement)`, which writes it."""

    statement: type[Stmt]
    render: Callable[[Any, Any], None]


class RenderingTable:
    """Renderings by class. Raises `InternalError` where two are for the same."""

    def __init__(self, rows: Iterable[Rendering]) -> None:
        self.rows: dict[type[Stmt], Rendering] = {}
        for row in rows:
            if row.statement in self.rows:
                raise InternalError("{statement} has two renderings", statement=row.statement.__name__)
            self.rows[row.statement] = row

    def row_of(self, statement: Stmt) -> Rendering:
        """The row for a statement. Raises `TargetError` at its line where there is none."""
        row = self.rows.get(type(statement))
        if row is None:
            known = sorted(
                {f"T.{cls.word}" for cls in self.rows if issubclass(cls, WordStmt) and cls is not While}
            )
            raise TargetError(
                "cpu has no LLVM text for {word}", word=word_of(statement), at=statement.place,
                hint="it writes " + ", ".join(known) + "; a package's word needs a Rendering of its own",
            )  # fmt: skip
        return row


class Renderer:
    """Writes the statements of one kernel into the function `f`.

    `stopped` is the block that leaves the kernel, `scratch` the worker's scratch memory.
    """

    def __init__(self, module: Module, entry: str, lines: dict[int, int], table: RenderingTable) -> None:
        names = [("args", "ptr"), ("cancel", "ptr"), ("begin", "i64"), ("end", "i64"), ("scratch", "ptr")]
        self.f = module.function(entry, names)
        self.args, self.cancel, self.begin, self.end, self.scratch = self.f.arguments
        self.stopped = self.f.block()
        self.state = State(self.f)
        self.expr = Expressions(self.state)
        self.lines = lines
        self.table = table
        # The store of the open loop whose vectors are aligned and go past the caches, and those of the open
        # turn, with their addresses.
        self.streamed: Store | None = None
        self.stream: list[tuple[Value, Value]] = []
        # The sums of the open loop over vectors, by the statement that adds to them.
        self.sums: dict[int, Value] = {}
        # For each that is stored on its way the value that changes nothing, in all lanes.
        self.nothing: dict[int, Value] = {}

    def body(self, statements: Sequence[Stmt]) -> None:
        """Statements one after the other, each by its row."""
        for statement in statements:
            if self.f.in_block > LONGEST_BLOCK:
                self.poll()
            self.came_from(statement)
            with statement.place or nullcontext():
                self.table.row_of(statement).render(self, statement)

    def came_from(self, statement: Stmt) -> None:
        """What is written next comes from this statement's line."""
        self.f.origin = self.lines.get(id(statement), self.f.origin)

    def poll(self) -> None:
        """Leave the kernel when the cancel word is set."""
        f = self.f
        word = f.load(self.cancel, "i32", volatile=True)
        go_on = f.block()
        f.branch_if(f.compare("eq", word, 0), go_on, self.stopped)
        f.open_block(go_on)

    def count(self, var: Var, value: Value) -> None:
        """A variable that counts, and its value (an i64)."""
        self.state.values[var.name] = value
        self.state.counters.add(var.name)

    def index(self, expr: Expr) -> Value:
        """An integer expression that is the same in all lanes, as an i64."""
        return self.expr.index(expr)
