"""Elements that iterations of `T.Parallel` change for each other: `s[0] = s[0] + A[i]`.

What an iteration makes of the old value is lost where another one does the same at the same time. It is
refused where it is certain: an index that several iterations share, and no condition that could leave
only one of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import LanguageError
from ...ir import Arith, Expr, Function, If, Let, Load, LoopStmt, Stmt, Store
from ...ir.expr_walks import replaced
from ...ir.facts import conjuncts
from ...ir.stmt import statements
from ..structure import Parallel
from .iterations import Iterations


def refuse_shared_sums(function: Function) -> None:
    """Raise `LanguageError` at a store that changes an element which other iterations change too."""
    for loop in statements(function.body):
        if isinstance(loop, Parallel):
            _Loop(loop).body(loop.body, ())


class _Loop(Iterations):
    """One parallel loop, and what its iterations store."""

    def body(self, body: Sequence[Stmt], tests: tuple[Expr, ...]) -> None:
        """`tests` are what holds where the body runs."""
        for statement in body:
            match statement:
                case Let():
                    self.name(statement)
                case Store() if statement.buffer.scope not in ("var", "local") and statement.plain:
                    self.store(statement, tests)
                case If():
                    test = replaced(statement.condition, self.short)
                    self.body(statement.then, (*tests, *conjuncts(test)))
                    self.body(statement.orelse, (*tests, Arith("not", (test,))))
                case LoopStmt():
                    self.body(statement.body, tests)
                case _:
                    pass

    def store(self, store: Store, tests: Sequence[Expr]) -> None:
        old = Load(store.buffer, tuple(replaced(each, self.short) for each in store.index))
        if old in self.read(store.value) and not self.one_each(old.index) and self.meet(old.index, tests):
            raise LanguageError(
                "iterations of T.Parallel change one element of {name} together: they run in no order, and "
                "would lose each other's changes",
                name=store.buffer.name, at=store.place,
                expected="an element of its own for each iteration",
                hint="T.reduce_sum (or T.reduce_max, ...) adds up a tile; or take the shared axis in order, "
                "with T.serial inside T.Parallel",
            )  # fmt: skip
