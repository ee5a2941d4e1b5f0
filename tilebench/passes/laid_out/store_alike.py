"""Elements that several iterations of a loop store become atomic stores: all of them store the same.

`if A[i] > 0: s[0] = 1` in a T.Parallel is done by many threads at one place. What they store is the same, or
the reference refuses the kernel, so whoever comes last makes no difference; but two plain stores to one place
without an order are a race by any model of memory, and whoever looks for races could not tell this one from a
mistake. An atomic store says that it is meant.
"""

from __future__ import annotations

from typing import Any

from ...ir import Arith, Expr, Function, If, Let, LoopStmt, Stmt, Store, map_bodies
from ...ir.expr_walks import replaced
from ...ir.facts import conjuncts
from ...language.checks.iterations import Iterations
from ...language.structure import Parallel
from ..context import Context

NAME = "store_alike"
MEMORY = ("shared", "global")


def store_alike(function: Function, context: Context) -> Function:
    """The function with atomic stores where iterations of a parallel loop surely meet."""

    def step(node: Any) -> Any:
        return _Loop(node, context).loop() if isinstance(node, Parallel) else map_bodies(node, step)

    return step(function)


class _Loop(Iterations):
    def __init__(self, loop: Parallel, context: Context) -> None:
        super().__init__(loop)
        self.node, self.context = loop, context

    def loop(self) -> Parallel:
        body = self.body(self.node.body, ())
        same = all(new is old for new, old in zip(body, self.node.body, strict=True))
        return self.node if same else self.node.but(body=body)

    def body(self, body: tuple[Stmt, ...], tests: tuple[Expr, ...]) -> tuple[Stmt, ...]:
        """The statements of a body; `tests` are what the numbers of an iteration decide around it."""
        out: list[Stmt] = []
        for statement in body:
            new: Stmt = statement
            match statement:
                case Let():
                    self.name(statement)
                case Store() if statement.plain and statement.buffer.scope in MEMORY:
                    new = self.store(statement, tests)
                case If():
                    test = replaced(statement.condition, self.short)
                    then = self.body(statement.then, (*tests, *filter(self.decides, conjuncts(test))))
                    other = Arith("not", (test,))
                    orelse = self.body(statement.orelse, (*tests, *filter(self.decides, (other,))))
                    new = _with(statement, then=then, orelse=orelse)
                case LoopStmt():
                    new = _with(statement, body=self.body(statement.body, tests))
                case _:
                    pass
            out.append(new)
        return tuple(out)

    def store(self, store: Store, tests: tuple[Expr, ...]) -> Store:
        # Elements that share a byte have no store of their own.
        if store.buffer.dtype.per_byte > 1:
            return store
        index = tuple(replaced(each, self.short) for each in store.index)
        if self.one_each(index) or not self.meet(index, tests):
            return store
        message = (
            f"several iterations store one element of {store.buffer.name}: the same, or the kernel is wrong"
        )
        self.context.remark(NAME, "applied", message, store)
        return store.but(atomic="store")


def _with(statement: Any, **bodies: tuple[Stmt, ...]) -> Any:
    """The statement with these bodies; itself where they are its own."""
    own = [getattr(statement, name) for name in bodies]
    same = all(
        a is b for old, new in zip(own, bodies.values(), strict=True) for a, b in zip(old, new, strict=True)
    )
    return statement if same else statement.but(**bodies)
