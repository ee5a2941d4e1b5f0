"""Loops that do not count up by a constant: down, or by a step that the running kernel reads.

They become loops over the number of their iterations, in which the kernel's variable is computed.
"""

from __future__ import annotations

from collections.abc import Callable

from ..errors import ShapeError
from ..ir import Const, Expr, Let, LoopStmt, Stmt, Var, int32
from ..ir.dtypes import int64
from .elementwise import if_then_else, max
from .tracing.builder import inside_kernel
from .tracing.expressions import Value
from .tracing.promote import convert

Loop = Callable[[Expr, tuple[Var, ...], tuple[Stmt, ...]], LoopStmt]


def counts_up(step: Expr, word: str) -> bool:
    """Whether a loop counts up by a constant. `ShapeError` for a step that is zero, as in Python."""
    if isinstance(step, Const) and step.value == 0:
        raise ShapeError("the step of {word} is 0", word=word, expected="any other whole number")
    return isinstance(step, Const) and step.value > 0


def iterations(first: Expr, last: Expr, step: Expr) -> Expr:
    """How many there are, as Python's `range` counts them; none for a step that turns out to be zero."""
    if isinstance(step, Const):
        down = -int(step.value)
        return (first - last + (down - 1)) // down
    # In 64 bits: the distance of two numbers of 32 bits has 33.
    start, stop, by = (Value(convert(each, int64)) for each in (first, last, step))
    up = (stop - start + by - 1) // max(by, 1)
    down = (start - stop - by - 1) // max(-by, 1)
    count = if_then_else(by > 0, up, if_then_else(by < 0, down, 0))
    return convert(max(count, 0).expr, int32)


def by_count(
    word: str, first: Expr, last: Expr, step: Expr, loop: Loop
) -> Callable[[tuple[Var, ...], tuple[Stmt, ...]], LoopStmt]:
    """The loop of a variable that starts at `first` and changes by `step`. Its bounds are read once, now."""
    builder = inside_kernel(word)

    def once(expr: Expr, name: str) -> Expr:
        if isinstance(expr, (Const, Var)):
            return expr
        var = Var(builder.unique(name), type=expr.dtype, place=builder.place)
        builder.emit(Let(var, expr, place=builder.place))
        return var

    start, by = once(first, "start"), once(step, "step")
    count = once(iterations(start, once(last, "stop"), by), "count")

    def build(vars: tuple[Var, ...], body: tuple[Stmt, ...]) -> LoopStmt:
        (var,) = vars
        turn = Var(builder.unique(f"{var.name}_turn"), place=var.place)
        value = Let(var, start + turn * by, place=builder.place)
        return loop(count, (turn,), (value, *body))

    return build
