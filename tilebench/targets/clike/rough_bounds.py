"""Bounds of an integer expression in one walk: they hold, and may be wide.

The exact bounds gather terms, 40 us a sum; these settle nearly all addresses in 2. Sums and products are
right modulo the size of their type whatever wrapped below, so a range inside the type is that of the
value. For other operators the operands must not have wrapped.
"""

from __future__ import annotations

from ...ir import Arith, Call, Const, Expr, Function, Load, Store, Var, const_of
from ...ir.arith import INFINITE, Range
from ...ir.facts import NOTHING, Facts
from ...ir.stmt import statements
from ...language.memory import AllocVar


class RoughBounds:
    """Bounds by the bounds of operands, kept until something else is known: `facts` is set, never changed."""

    def __init__(self, facts: Facts = NOTHING) -> None:
        self.facts = facts
        # The values of scalars that only count up and wrap.
        self.counters: dict[str, Range] = {}
        # The expression is kept beside its range, so that nothing else gets its identity.
        self._known: dict[int, tuple[Expr, Range]] = {}

    def know(self, facts: Facts) -> None:
        """From here on these facts hold, and no others."""
        if facts is not self.facts:
            self.facts = facts
            self._known.clear()

    def of(self, expr: Expr) -> Range:
        """The least and the greatest value."""
        if type(expr) is Const:
            return expr.value, expr.value
        if type(expr) is Var:
            return self.facts.ranges.get(expr.name, INFINITE)
        if type(expr) is Load and expr.buffer.name in self.counters:
            return self.counters[expr.buffer.name]
        known = self._known.get(id(expr))
        if known is None:
            found = self._operator(expr) if type(expr) is Arith else self.facts.bounds(expr)
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
            least, most = 0, 0
            for arg in expr.args:
                low, high = self.of(arg)
                least, most = least + low, most + high
            return least, most
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


def counters_of(function: Function) -> dict[str, Range]:
    """The ranges of scalars that start from a number and are counted to a number alone, then from 0 again."""
    firsts: dict[str, int] = {}
    ends: dict[str, set[int | None]] = {}
    for statement in statements(function.body):
        if isinstance(statement, AllocVar):
            first = None if statement.init is None else const_of(statement.init)
            firsts[statement.buffer.name] = -1 if first is None else first
        elif isinstance(statement, Store) and statement.buffer.scope == "var":
            ends.setdefault(statement.buffer.name, set()).add(_counted_to(statement))
    return {
        name: (0, last)
        for name, (last,) in ((name, found) for name, found in ends.items() if len(found) == 1)
        if last is not None and 0 <= firsts.get(name, -1) <= last
    }


def _counted_to(store: Store) -> int | None:
    """The number after which a scalar is 0 again: `x = 0 if x == n else x + 1`; None for another value."""
    value, now = store.value, Load(store.buffer, ())
    if not isinstance(value, Call) or value.word != "if_then_else" or value.args[1:] != (Const(0), now + 1):
        return None
    test = value.args[0]
    if not isinstance(test, Arith) or test.op != "==" or test.args[0] != now:
        return None
    return const_of(test.args[1])
