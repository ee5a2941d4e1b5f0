"""Bounds of an integer expression in one walk: they hold, and may be wide."""

from __future__ import annotations

from collections.abc import Mapping

from ...ir import Arith, Const, Expr, Var
from ...ir.arith import INFINITE, Range, bounds


def rough_bounds(expr: Expr, ranges: Mapping[str, Range]) -> Range:
    """Each operator by the bounds of its own operands; 2 us where the exact bounds take 40."""
    if isinstance(expr, Const):
        return expr.value, expr.value
    if isinstance(expr, Var):
        return ranges.get(expr.name, INFINITE)
    if not isinstance(expr, Arith):
        return bounds(expr, ranges)
    parts = [rough_bounds(arg, ranges) for arg in expr.args]
    op = expr.op
    if op == "+":
        return sum(low for low, _ in parts), sum(high for _, high in parts)
    if op == "*" and len(parts) == 2:
        (a, b), (c, d) = parts
        ends = (a * c, a * d, b * c, b * d)
        return min(ends), max(ends)
    # What may have wrapped below may be negative here, whatever its rough bounds say.
    inside = parts[0][0] >= 0 and parts[0][1] <= expr.dtype.most
    if op in ("//", "%") and parts[1][0] == parts[1][1] > 0 and inside:
        by = parts[1][0]
        return (parts[0][0] // by, parts[0][1] // by) if op == "//" else (0, min(parts[0][1], by - 1))
    return bounds(expr, ranges)
