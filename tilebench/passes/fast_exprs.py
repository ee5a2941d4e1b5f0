"""Walks over statements, and loops of one turn: what many passes of the lowering share."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir import ZERO, Const, If, LoopStmt, Stmt, Var, WithStmt, substitute
from ..ir.expr_walks import mentions, parts_of, replaced
from ..language.structure import Serial, Unroll

__all__ = ["looped", "mentions", "parts_of", "replaced", "statements"]


def statements(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Every statement of a body and of the bodies inside, parents first; no expressions."""
    for each in body:
        yield each
        if isinstance(each, If):
            yield from statements(each.then)
            yield from statements(each.orelse)
        elif isinstance(each, (LoopStmt, WithStmt)):
            yield from statements(each.body)


def looped(word: type[Serial] | type[Unroll], var: Var, count: int, body: list[Stmt]) -> list[Stmt]:
    """A loop over `count` steps; the body itself, at step 0, when there is one step only."""
    if count == 1:
        return [substitute(each, {var.name: ZERO}) for each in body]
    return [word(Const(count), (var,), tuple(body))]
