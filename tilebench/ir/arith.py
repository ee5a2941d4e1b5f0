"""Index arithmetic: ranges, divisibility and linear forms of integer expressions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, NamedTuple

from .expr import ZERO, Arith, Call, Cast, Const, Expr, Var, add, const_of, floordiv, mod, mul

Range = tuple[int, int]
INFINITE: Range = (-(2**62), 2**62)
NO_DIVISORS: Mapping[str, int] = {}


class Linear(NamedTuple):
    """`sum(coefficient * term) + constant`; a term is any expression that is not a sum."""

    terms: tuple[tuple[Expr, int], ...]
    constant: int

    def coefficient(self, term: Expr) -> int:
        """The factor of a term, 0 when it is absent."""
        for other, factor in self.terms:
            if other == term:
                return factor
        return 0

    def without(self, term: Expr) -> Linear:
        return Linear(tuple((t, c) for t, c in self.terms if t != term), self.constant)

    def times(self, factor: int) -> Linear:
        """The form multiplied by a number other than 0."""
        return Linear(tuple((t, c * factor) for t, c in self.terms), self.constant * factor)

    def plus(self, other: Linear, factor: int = 1, constant: int = 0) -> Linear:
        """`self + factor * other + constant`."""
        terms = dict(self.terms)
        for term, by in other.terms:
            terms[term] = terms.get(term, 0) + factor * by
        kept = tuple((term, by) for term, by in terms.items() if by)
        return Linear(kept, self.constant + factor * other.constant + constant)

    def divisor(self, divisors: Mapping[str, int] = NO_DIVISORS) -> int:
        """What `divisor` says of the expression, which need not be built for it.

        `x - x % 8` is a multiple of 8: a remainder counts as what it is taken of, up to its modulus.
        """
        found = math.gcd(self.constant, *[factor * divisor(term, divisors) for term, factor in self.terms])
        for term, factor in self.terms:
            by = const_of(term.args[1]) if type(term) is Arith and term.op == "%" else None
            if by and by > 0 and not by & (by - 1) and isinstance(term, Arith):
                without = self.without(term).plus(linear(term.args[0]), factor)
                found = max(found, math.gcd(factor * by, without.divisor(divisors)))
        return found

    def expr(self) -> Expr:
        """The expression again, terms in order, constant last."""
        total: Expr = ZERO
        for term, factor in self.terms:
            product = term if factor == 1 else mul(term, Const(factor, type=term.dtype))
            total = product if total is ZERO else add(total, product)
        return add(total, Const(self.constant, type=total.dtype)) if self.constant else total


def linear(expr: Expr) -> Linear:
    """The linear form of an integer expression; what is not linear in it becomes a term."""
    known: Linear | None = expr.__dict__.get("_linear")
    if known is None:
        known = expr.__dict__["_linear"] = _linear(expr)
    return known


def _linear(expr: Expr) -> Linear:
    if type(expr) is Var:
        return Linear(((expr, 1),), 0)
    terms: dict[Expr, int] = {}
    constant = 0
    stack: list[tuple[Expr, int]] = [(expr, 1)]
    while stack:
        part, factor = stack.pop()
        if type(part) is Arith:
            op, args = part.op, part.args
            if op == "+":
                stack.extend([(term, factor) for term in reversed(args)])
                continue
            if op == "-":
                first = factor if len(args) == 2 else -factor
                stack.extend([(term, first if k == 0 else -factor) for k, term in enumerate(args)])
                continue
            by = const_of(args[-1]) if op == "*" else None
            if by is not None:
                rest = args[:-1]
                stack.append((rest[0] if len(rest) == 1 else Arith("*", rest), factor * by))
                continue
        elif type(part) is Const:
            constant += part.value * factor
            continue
        terms[part] = terms.get(part, 0) + factor
    return Linear(tuple([term for term in terms.items() if term[1]]), constant)


def evaluate(expr: Expr, values: Mapping[str, Any]) -> Any:
    """An index with numbers or integer arrays for its variables.

    A variable without a value counts as zero, and so does what is no arithmetic, or divided by such: the
    caller looks at how an index moves, not at where it starts.
    """
    match expr:
        case Const():
            return expr.value
        case Var():
            return values.get(expr.name, 0)
        case Arith() if expr.op in _APPLY:
            parts = [evaluate(each, values) for each in expr.args]
            if expr.op in ("//", "%") and any(isinstance(by, int) and by == 0 for by in parts[1:]):
                return 0
            return reduce(_APPLY[expr.op], parts) if len(parts) > 1 else -parts[0] - (expr.op == "~")
        case _:
            return 0


_python: Any = operator  # its operators are typed as taking anything
_APPLY: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": _python.add, "-": _python.sub, "*": _python.mul, "//": _python.floordiv, "%": _python.mod,
    "^": _python.xor, "&": _python.and_, "|": _python.or_, "<<": _python.lshift, ">>": _python.rshift,
    "~": _python.invert,
}  # fmt: skip


def bounds(expr: Expr, ranges: Mapping[str, Range]) -> Range:
    """The least and greatest value, inclusive, given the inclusive ranges of variables by name.

    What may leave its dtype may be anything, since it wraps; so may what is no integer.
    """
    if type(expr) is Var:
        return ranges.get(expr.name, INFINITE)
    value = const_of(expr)
    if value is not None:
        return value, value
    dtype = expr.dtype
    if not dtype.is_integer:
        return INFINITE
    low, high = _bounds(expr, ranges)
    return (low, high) if dtype.least <= low and high <= dtype.most else INFINITE


def _bounds(expr: Expr, ranges: Mapping[str, Range]) -> Range:
    """As `bounds`, as if integers had no end."""
    if isinstance(expr, Arith) and expr.op in ("+", "-", "*"):
        form = linear(expr)
        if len(form.terms) != 1 or form.terms[0][0] != expr:
            return linear_bounds(form, ranges)
    if isinstance(expr, Arith) and len(expr.args) == 2:
        return _binary_bounds(expr, ranges)
    if isinstance(expr, Arith) and expr.op == "~" and expr.dtype.kind == "int":
        low, high = bounds(expr.args[0], ranges)
        return (-1 - high, -1 - low) if (low, high) != INFINITE else INFINITE
    if isinstance(expr, Call) and expr.word in ("min", "max") and len(expr.args) == 2:
        (a, b), (c, d) = bounds(expr.args[0], ranges), bounds(expr.args[1], ranges)
        return (min(a, c), min(b, d)) if expr.word == "min" else (max(a, c), max(b, d))
    if isinstance(expr, Call) and expr.word == "shfl":
        return bounds(expr.args[0], ranges)  # that of another lane
    if isinstance(expr, Call) and expr.word == "abs":
        low, high = bounds(expr.args[0], ranges)
        return (max(0, low, -high), max(-low, high)) if (low, high) != INFINITE else INFINITE
    if isinstance(expr, Call) and expr.word == "if_then_else":
        (a, b), (c, d) = bounds(expr.args[1], ranges), bounds(expr.args[2], ranges)
        return min(a, c), max(b, d)
    if isinstance(expr, Cast) and expr.value.dtype.is_integer:
        return bounds(expr.value, ranges)
    return INFINITE


def linear_bounds(form: Linear, ranges: Mapping[str, Range]) -> Range:
    """The least and greatest value of a linear form, as if integers had no end."""
    low = high = form.constant
    for term, factor in form.terms:
        a, b = bounds(term, ranges)
        low += factor * (a if factor > 0 else b)
        high += factor * (b if factor > 0 else a)
    return low, high


def _binary_bounds(expr: Arith, ranges: Mapping[str, Range]) -> Range:
    (a, b), (c, d) = bounds(expr.args[0], ranges), bounds(expr.args[1], ranges)
    if expr.op == "*":
        products = (a * c, a * d, b * c, b * d)
        return min(products), max(products)
    if c == d and c > 0:
        if expr.op == "%":
            return (a % c, b % c) if a // c == b // c and b - a < c else (0, c - 1)
        if expr.op == "^" and a >= 0:
            top = max(b, d)
            return 0, (1 << top.bit_length()) - 1
    if c > 0 and expr.op == "//":
        return min(a // c, a // d), max(b // c, b // d)
    if c > 0 and expr.op == "%":
        return 0, min(b, d - 1) if a >= 0 else d - 1
    if expr.op in ("^", "|") and a >= 0 and c >= 0:
        return max(a, c) if expr.op == "|" else 0, (1 << max(b, d).bit_length()) - 1
    if expr.op == "&" and c >= 0:
        return 0, d
    if expr.op in ("<<", ">>") and 0 <= c == d < expr.dtype.bits and (a, b) != INFINITE:
        return (a << c, b << c) if expr.op == "<<" else (a >> c, b >> c)
    return INFINITE


def divisor(expr: Expr, divisors: Mapping[str, int] = NO_DIVISORS) -> int:
    """The greatest number known to divide the expression whatever its variables are (0 for 0).

    `divisors` are of variables, by name. Wrapping is left out: it keeps powers of two only.
    """
    value = const_of(expr)
    if value is not None:
        return abs(value)
    if isinstance(expr, Var):
        return divisors.get(expr.name, 1)
    if isinstance(expr, Arith):
        if expr.op in ("+", "-"):
            return math.gcd(*(divisor(part, divisors) for part in expr.args))
        if expr.op == "*":
            return math.prod(divisor(part, divisors) for part in expr.args)
        if expr.op == "%" and (by := const_of(expr.args[1])):
            return math.gcd(divisor(expr.args[0], divisors), by)
        if expr.op == "//" and (by := const_of(expr.args[1])):
            found = divisor(expr.args[0], divisors)
            return found // abs(by) if found % by == 0 else 1
    if isinstance(expr, Call) and expr.word in ("min", "max", "if_then_else"):
        parts = expr.args[1:] if expr.word == "if_then_else" else expr.args
        return math.gcd(*(divisor(part, divisors) for part in parts))
    if isinstance(expr, Cast) and expr.value.dtype.is_integer and expr.type.bits >= expr.value.dtype.bits:
        return divisor(expr.value, divisors)
    return 1


def simplify_floordiv(expr: Expr, n: int, ranges: Mapping[str, Range]) -> Expr:
    """`expr // n`, with multiples of `n` taken out of the division where the rest stays in [0, n)."""
    form = linear(expr)
    out: Expr = Const(form.constant // n)
    rest: Expr = Const(form.constant % n)
    for term, factor in form.terms:
        if factor % n == 0:
            out = add(out, mul(term, Const(factor // n)))
        else:
            rest = add(rest, mul(term, Const(factor)))
    low, high = bounds(rest, ranges)
    if low // n == high // n:
        return add(out, Const(low // n))
    return add(out, floordiv(rest, Const(n)))


def simplify_mod(expr: Expr, n: int, ranges: Mapping[str, Range]) -> Expr:
    """`expr % n`, with multiples of `n` dropped, and no operation where the rest is in [0, n)."""
    form = linear(expr)
    rest: Expr = Const(form.constant % n)
    for term, factor in form.terms:
        if factor % n:
            rest = add(rest, mul(term, Const(factor)))
    low, high = bounds(rest, ranges)
    return rest if low >= 0 and high < n else mod(rest, Const(n))
