"""What is known on entering a function, a launch or a loop, as `Facts`: one place for all who ask."""

from __future__ import annotations

from ..ir import Const, Function, LoopStmt, Stmt
from ..ir.arith import Range
from ..ir.facts import Facts
from .structure import KernelLaunch, Parallel, Pipelined, Serial, Unroll, Vectorized

# The greatest size that a launch lets a name of `T.dynamic` have: 2^31 rounded up to tiles would wrap.
MOST_SIZE = 2**31 - 2**16
# A launch of more blocks than this would wrap, counted in one row.
MOST_BLOCKS = 2**31 - 1


def entry_facts(function: Function) -> Facts:
    """What a launch has checked: the ranges of sizes, and what the function is compiled under.

    `info` of the function has the conditions under `assume`.
    """
    ranges: dict[str, Range] = {var.name: (0, MOST_SIZE) for var in function.dimensions}
    return Facts(ranges).assuming(*function.known("assume", ()))


def entered(stmt: Stmt, facts: Facts) -> Facts:
    """The facts in the body of a launch or loop."""
    match stmt:
        case KernelLaunch():
            sizes = stmt.grid
        case Parallel():
            sizes = stmt.extents
        case Vectorized():
            sizes = (stmt.extent,)
        case Serial() | Unroll():
            return facts.with_loop(stmt.vars[0], stmt.start, stmt.stop, stmt.step)
        case Pipelined():
            return facts.with_loop(stmt.vars[0], stmt.start, stmt.stop)
        case LoopStmt():
            stop = getattr(stmt, "stop", None)
            return (
                facts
                if stop is None
                else facts.with_loop(stmt.vars[0], getattr(stmt, "start", Const(0)), stop)
            )
        case _:
            return facts
    for var, size in zip(stmt.vars, sizes, strict=True):
        facts = facts.with_extent(var, size)
    return facts
