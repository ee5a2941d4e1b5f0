"""How often a statement of a block has been carried out before, as an expression of the loops around it."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir import ZERO, Arith, Call, Const, Expr, If, Let, Stmt, Var, const_of, int32
from ...ir.arith import linear
from ...ir.expr_walks import mentions, seen
from ...ir.stmt import statements
from ...language.structure import KernelLaunch, Pipelined, Serial, ThreadGroup, Unroll

COUNTED = (Serial, Unroll, Pipelined)


def turns_before(path: Sequence[Stmt], inner: Expr) -> Expr | None:
    """The turns that the loops of `path` (outermost first) have taken before this one.

    None where that is no matter of their variables: under a condition, but for one that holds in the first
    turns of the one loop around it, in a loop that may be left, in steps of another width, or where a length,
    that of what is `inner` too, is not the same in each turn.
    """
    total: Expr = ZERO
    outer: list[str] = []
    loop: Stmt | None = None
    for statement in path:
        if isinstance(statement, (KernelLaunch, ThreadGroup)):
            continue
        if isinstance(statement, If) and len(outer) == 1 and _ends(statement, loop):
            continue
        if not isinstance(statement, COUNTED) or statement.condition is not None:
            return None
        if isinstance(statement, (Serial, Unroll)) and const_of(statement.step) != 1:
            return None
        length = length_of(statement)
        if not all(_same_throughout(part, outer) for part in (length, statement.start)):
            return None
        (variable,) = statement.vars
        total = total * length + (variable - statement.start)
        outer.append(variable.name)
        loop = statement
    return total if _same_throughout(inner, outer) else None


def _ends(statement: If, loop: Stmt | None) -> bool:
    """Whether a condition that once fails in a loop stays false behind: `wave * 132 + worker < 512`."""
    test = statement.condition
    if statement.orelse or not isinstance(loop, COUNTED) or not isinstance(test, Arith) or test.op != "<":
        return False
    variable, known = loop.vars[0].name, seen(test)
    inside = {s.var.name for s in statements(loop.body) if isinstance(s, Let)}
    steps = [(term, by) for term, by in linear(test.args[0]).terms if mentions(term, variable)]
    grows = all(isinstance(term, Var) and by > 0 for term, by in steps)
    return grows and not mentions(test.args[1], variable) and not known.loads and not known.names & inside


def _same_throughout(expr: Expr, variables: Sequence[str]) -> bool:
    """Whether an expression is the same in all turns of the loops of these variables."""
    return not seen(expr).loads and not any(mentions(expr, name) for name in variables)


def length_of(loop: Serial | Unroll | Pipelined) -> Expr:
    """The turns that a loop in steps of one takes."""
    length = loop.stop - loop.start
    known = const_of(length)
    if known is not None:
        return Const(max(0, known))
    return Call("max", (length, ZERO), type=int32)
