"""Bounds of an integer expression in one walk: they hold, and may be wide.

The exact bounds gather terms, 40 us a sum; these settle nearly all addresses in 2. Sums and products are
right modulo the size of their type whatever wrapped below, so a range inside the type is that of the
value. For other operators the operands must not have wrapped.
"""

from __future__ import annotations

from ...ir import Arith, Const, Expr, Var
from ...ir.arith import INFINITE, Range
from ...ir.facts import NOTHING, Facts


class RoughBounds:
    """Bounds by the bounds of operands, kept until something else is known: `facts` is set, never changed."""

    def __init__(self, facts: Facts = NOTHING) -> None:
        self.facts = facts
        # The expression is kept beside its range, so that nothing else gets its identity.
        self._known: dict[int, tuple[Expr, Range]] = {}

    def know(self, facts: Facts) -> None:
        """From here on these facts hold, and no others."""
        self.facts = facts
        self._known.clear()

    def of(self, expr: Expr) -> Range:
        """The least and the greatest value."""
        if isinstance(expr, Const):
            return expr.value, expr.value
        if isinstance(expr, Var):
            return self.facts.ranges.get(expr.name, INFINITE)
        known = self._known.get(id(expr))
        if known is None:
            found = self._operator(expr) if isinstance(expr, Arith) else self.facts.bounds(expr)
            known = self._known[id(expr)] = expr, found
        return known[1]

    def fits(self, expr: Expr) -> bool:
        """Whether the value is in the range of its type, however it is computed."""
        low, high = self.of(expr)
        dtype = expr.dtype
        return dtype.least <= low and high <= dtype.most

    def is_natural(self, expr: Expr) -> bool:
        """Whether the value is not negative, by these bounds or by the exact ones."""
        return (self.of(expr)[0] >= 0 and self.fits(expr)) or self.facts.bounds(expr)[0] >= 0

    def _operator(self, expr: Arith) -> Range:
        op = expr.op
        if op == "+":
            parts = [self.of(arg) for arg in expr.args]
            return sum([low for low, _ in parts]), sum([high for _, high in parts])
        if op == "*" and len(expr.args) == 2:
            (a, b), (c, d) = self.of(expr.args[0]), self.of(expr.args[1])
            if a >= 0 and c >= 0:
                return a * c, b * d
            ends = (a * c, a * d, b * c, b * d)
            return min(ends), max(ends)
        if op in ("//", "%"):
            (low, high), (by, same) = self.of(expr.args[0]), self.of(expr.args[1])
            # What may have wrapped below may be negative here, whatever its rough bounds say.
            if by == same > 0 <= low and high <= expr.dtype.most:
                return (low // by, high // by) if op == "//" else (0, min(high, by - 1))
        return self.facts.bounds(expr)
