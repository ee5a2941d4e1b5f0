"""Walks over statements, and loops of one turn: what many passes of the lowering share."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir import If, LoopStmt, Stmt, WithStmt
from ..ir.expr_walks import mentions, parts_of, replaced

__all__ = ["mentions", "parts_of", "replaced", "statements"]


def statements(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Every statement of a body and of the bodies inside, parents first; no expressions."""
    for statement in body:
        yield statement
        if isinstance(statement, If):
            yield from statements(statement.then)
            yield from statements(statement.orelse)
        elif isinstance(statement, (LoopStmt, WithStmt)):
            yield from statements(statement.body)
