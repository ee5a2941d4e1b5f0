"""Loops over rows that follow each other become one, so that a row stays in the nearest cache.

`for i in T.serial(16): X[i, ...] = ...` then `for i__2 in T.serial(16): s[i__2] = ... X[i__2, ...]` ->
one loop with both bodies, when each turn touches, of what either writes, only a row of its own.
Loops over vectors inside are joined the same way, element for element.
"""

from __future__ import annotations

from typing import Any

from ....ir import (
    Call,
    Const,
    Expr,
    Function,
    If,
    Let,
    LoopStmt,
    Stmt,
    Var,
    WithStmt,
    const_of,
    rewrite,
    substitute,
)
from ....ir.names import Names
from ....language.structure import Serial
from ....passes.context import Context
from ..loops.vectors import vectors_of_joined
from ..loops.words import AllocScratch, Vectors
from .fold_rows import fold_into
from .independent import independent
from .prefetch_rows import prefetched
from .reach import as_rows, joins_behind

NAME = "fuse_rows"
# Statements of a body that takes no more: what a row needs has left the registers and the nearest cache by
# then, and each joining looks at all of it.
LONGEST = 32


def fuse_rows(function: Function, context: Context) -> Function:
    """The function with adjacent loops joined where that keeps every result."""
    fuser = _Fuser(Names(function))
    fused = function.but(body=fuser.body(function.body))
    if fuser.joined:
        message = f"{fuser.joined} loops joined with the one before"
        context.remark(NAME, "applied", message, function, joined=fuser.joined)
    return fused


class _Fuser:
    def __init__(self, names: Names) -> None:
        self.names = names
        self.joined = 0

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Joined from the outside in: rows first, then what lies in a row."""
        fused: list[Stmt] = [statement for statement in body if isinstance(statement, AllocScratch)]
        for statement in body:
            if isinstance(statement, AllocScratch):
                continue
            if joins_behind(fused, statement, self.join):
                self.joined += 1
            else:
                fused.append(statement)
        return tuple(self.inside(statement) for statement in fused)

    def join(self, first: Stmt, second: Stmt) -> Stmt | None:
        """The two loops as one, None where that is not possible or not known to be right."""
        if isinstance(first, LoopStmt) and len(first.body) >= LONGEST:
            return None
        if isinstance(first, Serial) and isinstance(second, Vectors):
            second = as_rows(first, second) or second
        if isinstance(first, Serial) and isinstance(second, Serial):
            return _join_rows(first, self.own_names(first, second))
        if isinstance(first, Vectors) and isinstance(second, Vectors):
            return _join_vectors(first, self.own_names(first, second))
        return fold_into(first, second)

    def own_names(self, first: LoopStmt, second: Any) -> Any:
        """The second loop, where both bind one name with another one of its own."""
        bound = {statement.var.name for statement in first.body if isinstance(statement, Let)}
        new: dict[str, Expr] = {}
        for statement in second.body:
            if isinstance(statement, Let) and statement.var.name in bound:
                fresh = self.names.fresh(statement.var.name)
                new[statement.var.name] = statement.var.but(name=fresh)

        def renamed(node: Any) -> Any:
            again = isinstance(node, Let) and node.var.name in new
            return node.but(var=new[node.var.name]) if again else node

        if not new:
            return second
        return second.but(body=tuple(rewrite(substitute(each, new), renamed) for each in second.body))

    def inside(self, statement: Stmt) -> Stmt:
        """The statement with its own body joined."""
        if isinstance(statement, Serial) and statement.condition is None:
            statement = prefetched(statement)
        if isinstance(statement, (LoopStmt, WithStmt)):
            return statement.but(body=self.body(statement.body))
        if isinstance(statement, If):
            return statement.but(then=self.body(statement.then), orelse=self.body(statement.orelse))
        return statement


def _join_rows(first: Serial, second: Serial) -> Serial | None:
    limits = _limits(first.stop, second.stop)
    if limits is None or not (_counts_up(first) and _counts_up(second)):
        return None
    row, body = first.vars[0], _renamed(second, first.vars[0])
    if not independent(first.body, body, row, rows=True):
        return None
    stop = first.stop if const_of(first.stop) is not None else second.stop
    return first.but(stop=stop, body=(*_guarded(first.body, limits[0], row), *_guarded(body, limits[1], row)))


def _join_vectors(first: Vectors, second: Vectors) -> Vectors | None:
    same = (first.stop, first.start, first.lanes) == (second.stop, second.start, second.lanes)
    body = _renamed(second, first.vars[0])
    if not same or not independent(first.body, body, first.vars[0], rows=False):
        return None
    return first.but(
        body=(*first.body, *body), unroll=vectors_of_joined((first, second)),
        overrun=first.overrun and second.overrun, streaming=first.streaming or second.streaming,
    )  # fmt: skip


def _counts_up(loop: Serial) -> bool:
    return loop.condition is None and const_of(loop.start) == 0 and const_of(loop.step) == 1


def _limits(first: Expr, second: Expr) -> tuple[Expr | None, Expr | None] | None:
    """What cuts the body of either loop in a loop of both; None where they have other turns.

    Nothing where their ends are equal; where one ends at the tile and one at the array, the array's end
    cuts that one.
    """
    if first == second:
        return None, None
    if _ends_at(second, first):
        return None, second.args[0]  # type: ignore[attr-defined]
    return (first.args[0], None) if _ends_at(first, second) else None  # type: ignore[attr-defined]


def _ends_at(cut: Expr, tile: Expr) -> bool:
    """Whether `cut` is `T.min(room, tile)`."""
    size = const_of(tile)
    return size is not None and isinstance(cut, Call) and cut.word == "min" and cut.args[1] == Const(size)


def _guarded(body: tuple[Stmt, ...], limit: Expr | None, var: Var) -> tuple[Stmt, ...]:
    if limit is None:
        return body
    return (If(var.compare("<", limit), body, (), place=body[0].place),)


def _renamed(loop: Any, var: Var) -> tuple[Stmt, ...]:
    return tuple(substitute(statement, {loop.vars[0].name: var}) for statement in loop.body)
