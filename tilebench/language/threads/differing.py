"""What differs from thread to thread in a kernel: names and memory, by name."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir import (
    AllocStmt,
    Expr,
    If,
    Let,
    Load,
    LoopStmt,
    Node,
    Region,
    Stmt,
    Store,
    Var,
    WithStmt,
    children,
    walk,
)
from ...ir.effects import effects_of
from ...ir.stmt import statements
from ..extern import ExternCall
from ..lowered.threads import SyncThreads, SyncWarp
from ..promises import Assume
from ..structure import Parallel, ThreadGroup
from ..votes import WarpVote

OWN = ("var", "local")


class Differing:
    """`names` are those of variables, and of memory of a thread's own, that differ from thread to thread."""

    def __init__(self, body: Sequence[Stmt], numbers: Sequence[str], kept: Sequence[str]) -> None:
        self.numbers = frozenset(numbers)
        self.names = {*numbers, *kept}
        # Those for what a thread's own atomic finds: it is read behind that, and nowhere else.
        self.found: set[str] = set()
        known = -1
        while known != len(self.names):
            known = len(self.names)
            self._body(body, frozenset())

    def __call__(self, node: Node) -> bool:
        """Whether an expression, or anything in a statement, differs."""
        return self.culprit(node) is not None

    def culprit(self, node: Node) -> str | None:
        """The first name in a node that differs."""
        for part in walk(node):
            if isinstance(part, Var):
                name = part.name
            elif isinstance(part, (Load, Store, Region, AllocStmt)):
                name = part.buffer.name
            else:
                continue
            if name in self.names:
                return name
            if isinstance(part, Store) and part.found is not None and part.found.name in self.names:
                return part.found.name
        return None

    def _body(self, body: Sequence[Stmt], made: frozenset[str] | None) -> None:
        """`made` are a thread's own that threads inside all have alike; None where each goes its way."""
        for statement in body:
            match statement:
                case Let():
                    if self(statement.value):
                        self.names.add(statement.var.name)
                case Store() if (own := statement.own) is not None:
                    alike = made is not None and (not made or own.name in made)
                    if not alike or any(map(self, (*statement.index, statement.value))):
                        self.names.add(own.name)
                        self.found |= {own.name} if own is statement.found else set()
                case AllocStmt():
                    if any(self(part) for part in children(statement)):
                        self.names.add(statement.buffer.name)
                case If():
                    inner = made
                    if self(statement.condition):
                        inner = _made(statement) if with_tiles(statement) and made is not None else None
                    self._body(statement.then, inner)
                    self._body(statement.orelse, inner)
                case Parallel():
                    pass
                case LoopStmt():
                    differs = any(map(self, heads(statement)))
                    if differs:
                        self.names.update(var.name for var in statement.vars)
                    self._body(statement.body, None if differs else made)
                case WithStmt():
                    self._body(
                        statement.body, _made(statement) if isinstance(statement, ThreadGroup) else made
                    )
                case _:
                    if any(map(self, heads(statement))):
                        written = [e.buffer for e in effects_of(statement) if e.writes]
                        self.names.update(buffer.name for buffer in written if buffer.scope in OWN)


def _made(statement: Stmt) -> frozenset[str]:
    """What is made inside a group of threads; a name that none has where nothing is."""
    return frozenset(["", *(s.buffer.name for s in statements((statement,)) if isinstance(s, AllocStmt))])


def heads(statement: Stmt) -> list[Expr]:
    """The expressions of a statement itself, not of the statements inside."""
    return [part for part in children(statement) if isinstance(part, (Expr, Region))]  # type: ignore[misc]


def on_tiles(statement: Stmt) -> bool:
    """Whether a statement is done by all threads together."""
    if isinstance(statement, (Parallel, ThreadGroup)):
        return True
    single = (Let, Store, If, LoopStmt, SyncThreads, SyncWarp, ExternCall, WarpVote, Assume)
    return not isinstance(statement, (*single, AllocStmt))


def with_tiles(branch: If) -> bool:
    """Whether a branch holds what threads do together."""
    return any(on_tiles(inner) for inner in statements((*branch.then, *branch.orelse)))


def pure(expr: Expr) -> bool:
    """Whether an expression reads no memory."""
    return not any(isinstance(part, Load) for part in walk(expr))
