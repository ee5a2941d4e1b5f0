"""Whether the turns of two loops may be taken together: one turn of each, then the next of each."""

from __future__ import annotations

from ....ir import AllocStmt, Expr, Let, LoopStmt, Stmt, Var, walk
from ....ir.arith import linear
from ..loops.buffers import reads_var
from .touches import Touch, touches


def independent(first: tuple[Stmt, ...], second: tuple[Stmt, ...], var: Var, *, rows: bool) -> bool:
    """Whether every buffer that one writes and the other touches is touched only at the turn's own row
    (or, for vectors, at one and the same element)."""
    if _stays_whole(first) or _stays_whole(second):
        return False
    one, two = list(touches(first)), list(touches(second))
    bound = _bound(first) | _bound(second)
    written = {touch.buffer for touch in one + two if touch.writes}
    shared = written & {touch.buffer for touch in one} & {touch.buffer for touch in two}
    return all(
        _own([touch for touch in one + two if touch.buffer == name], var, bound, rows) for name in shared
    )


def _own(found: list[Touch], var: Var, bound: set[str], rows: bool) -> bool:
    """Whether all touches of a buffer are at one index, another one in each turn."""
    indices = {touch.index[:1] if rows and touch.index is not None else touch.index for touch in found}
    index = indices.pop()
    if indices or not index or not any(_changes(each, var, bound) for each in index):
        return False
    return rows or not any(reads_var(each, bound) for each in index)


def _changes(index: Expr, var: Var, bound: set[str]) -> bool:
    """Whether another turn has another value of the index."""
    form = linear(index)
    others = (term for term, _ in form.without(var).terms)
    return form.coefficient(var) != 0 and not any(reads_var(term, bound | {var.name}) for term in others)


def _stays_whole(body: tuple[Stmt, ...]) -> bool:
    """Whether a body allocates, or fills boxes of several rows: no turn of that is moved."""
    if any(isinstance(node, AllocStmt) for statement in body for node in walk(statement)):
        return True
    return any(touch.index is None and touch.writes for touch in touches(body))


def _bound(body: tuple[Stmt, ...]) -> set[str]:
    """The variables that statements bring into scope."""
    names: set[str] = set()
    for node in (node for statement in body for node in walk(statement)):
        if isinstance(node, LoopStmt):
            names |= {var.name for var in node.vars}
        elif isinstance(node, Let):
            names.add(node.var.name)
    return names
