"""What all threads of a warp have alike and those of others have not: votes, and what comes of them."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir import AllocStmt, Expr, If, Let, Load, LoopStmt, Stmt, Store, Var, WithStmt, children, walk
from ..votes import WarpVote
from .differing import Differing, heads


class SameInWarps:
    """Of the names that differ from thread to thread, those that are the same in all threads of each warp.

    A name is until something gives it a value that is not, or under a condition that is not.
    """

    def __init__(self, body: Sequence[Stmt], differing: Differing) -> None:
        self.differing = differing
        self.names = differing.names - differing.numbers - differing.found
        self.votes: set[str] = set()
        # What threads tell for a vote or match.
        self.told: set[str] = set()
        self._find_votes(body)
        known = -1
        while known != len(self.names):
            known = len(self.names)
            self._body(body, alike=True)

    def __call__(self, expr: Expr) -> bool:
        """Whether an expression is the same in all threads of a warp."""
        if isinstance(expr, Load):
            if expr.buffer.name in self.votes:
                return True  # each thread asks for its own part, and all of them are the same
            if expr.buffer.scope not in ("var", "local"):
                return not self.differing(expr)
            return self._alike(expr.buffer.name) and all(map(self, expr.index))
        if isinstance(expr, Var):
            return self._alike(expr.name)
        return all(self(part) for part in children(expr) if isinstance(part, Expr))

    def _alike(self, name: str) -> bool:
        return name not in self.differing.names or name in self.names

    def _find_votes(self, body: Sequence[Stmt]) -> None:
        for statement in body:
            for node in walk(statement):
                if isinstance(node, WarpVote):
                    self.told.add(node.src.buffer.name)
                    self.votes |= {node.dst.buffer.name} if node.kind == "ballot" else set()

    def _body(self, body: Sequence[Stmt], *, alike: bool) -> None:
        """`alike` says whether all threads of a warp are here together."""
        for statement in body:
            match statement:
                case Let() if not self(statement.value):
                    self.names.discard(statement.var.name)
                case Store() if (own := statement.own) is not None:
                    parts = (*statement.index, statement.value)
                    if not alike or own is statement.found or not all(map(self, parts)):
                        self.names.discard(own.name)
                case AllocStmt() if not all(self(p) for p in children(statement) if isinstance(p, Expr)):
                    self.names.discard(statement.buffer.name)
                case If():
                    inner = alike and self(statement.condition)
                    self._body(statement.then, alike=inner)
                    self._body(statement.orelse, alike=inner)
                case LoopStmt():
                    inner = alike and all(self(part) for part in heads(statement))
                    if not inner:
                        self.names -= {var.name for var in statement.vars}
                    self._body(statement.body, alike=inner)
                case WithStmt():
                    self._body(statement.body, alike=alike)
                case _:
                    pass
