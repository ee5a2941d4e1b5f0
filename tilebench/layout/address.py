"""Offsets in a layout as expressions of the tree: what a thread computes to find an element."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import Arith, Const, Expr
from ..ir.facts import Facts
from .algebra import Layout
from .shared import SharedLayout
from .swizzle import Swizzle


def offset_expr(layout: SharedLayout, index: Sequence[Expr], facts: Facts) -> Expr:
    """The element offset of a coordinate before the swizzle, an int32 expression.

    A dimension of several modes takes digits of its coordinate by `//` and `%`; where the facts prove a
    digit constant, or the coordinate within a mode, they are left out.
    """
    total: Expr = Const(0)
    for coordinate, dim in zip(index, layout.dims, strict=True):
        total = total + _along(dim, coordinate, facts)
    return total


def _along(dim: Layout, coordinate: Expr, facts: Facts) -> Expr:
    """What one dimension adds to the offset."""
    if len(dim.modes) == 1:
        return coordinate * dim.modes[0][1]
    total: Expr = Const(0)
    unit = 1
    for number, (extent, step) in enumerate(dim.modes):
        last = number == len(dim.modes) - 1
        total = total + digit(coordinate, unit, None if last else extent, facts) * step
        unit *= extent
    return total


def digit(coordinate: Expr, unit: int, count: int | None, facts: Facts) -> Expr:
    """`coordinate // unit % count` (no remainder where `count` is None), short where it is proved so.

    The digits of a name stay spelled with it, unless what the name stands for needs no division.
    """
    seen = facts.resolved(coordinate)
    quotient = facts.floordiv(seen, unit) if unit > 1 else seen
    proved = quotient if count is None else facts.mod(quotient, count)
    if seen is coordinate or not _divides(proved):
        return coordinate if proved == seen else proved
    short = coordinate // unit
    if count is None:
        return short
    low, high = facts.bounds(quotient)
    if low >= 0 and high < count:
        return short
    return short % count


def _divides(expr: Expr) -> bool:
    """Whether an expression holds a `//` or `%`."""
    if not isinstance(expr, Arith):
        return False
    return expr.op in ("//", "%") or any(_divides(part) for part in expr.args)


def swizzle_expr(swizzle: Swizzle, offset: Expr) -> Expr:
    """The swizzled offset, of an expression short enough to be said twice (a name or a constant)."""
    if isinstance(offset, Const):
        return Const(int(swizzle(offset.value)))
    high = Arith(">>", (Arith("&", (offset, Const(swizzle.mask))), Const(swizzle.shift)))
    return Arith("^", (offset, high))
