"""What is known of the variables at a place in a kernel, and what follows from it.

One base of facts for all who ask: inclusive ranges of variables, numbers that divide them, names that
stand for values (lets), and conditions that hold there (`i < n`, `n <= m`, `m % 8 == 0`). A `Facts` is a
value: `with_range`, `with_let`, `with_loop` and `assuming` give a new one, so a scope ends by
going back to the old one. Names are those of the function, each bound once; one that is bound again
(two loops that do not nest) loses what was known of it.

Answers are about the machine's numbers: what may leave its dtype wraps, and then nothing is proved of
it. Symbolic conditions are proved by linear elimination: `d >= 0` follows from `f >= 0` when
`a * d - b * f >= 0` does, for a, b > 0, and `c * (x // c)` lies in `[x - c + 1, x]`. Three steps of it
suffice for edges of tiles (a block, a step and an element below an extent).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from . import arith
from .arith import INFINITE, Linear, Range, linear, linear_bounds
from .expr import COMPARE, TRUE, Arith, Call, Const, Expr, Var, const_of
from .expr_walks import mentions, replaced, seen

# A name is seen through when its value has fewer nodes than this. A hash or random number names a value
# and uses it twice, twenty times over: written out it would have 2^20 nodes.
MOST_NODES = 64
_DEEPEST = 3
_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


class Facts:
    """An immutable base of facts. `ranges` are inclusive and by name; so are `divisors` and `lets`."""

    __slots__ = ("_conditions", "divisors", "lets", "ranges")

    def __init__(
        self,
        ranges: Mapping[str, Range] | None = None,
        divisors: Mapping[str, int] | None = None,
        lets: Mapping[str, Expr] | None = None,
        _conditions: tuple[_Condition, ...] = (),
    ) -> None:
        self.ranges: Mapping[str, Range] = {} if ranges is None else ranges
        self.divisors: Mapping[str, int] = {} if divisors is None else divisors
        self.lets: Mapping[str, Expr] = {} if lets is None else lets
        self._conditions = _conditions

    @property
    def conditions(self) -> tuple[Expr, ...]:
        """The conditions that hold, as they were given."""
        return tuple(known.condition for known in self._conditions)

    # -- what is known more
    def with_range(self, name: str, low: int, high: int, *, multiple_of: int = 1) -> Facts:
        """The facts with a variable in [low, high], a multiple of `multiple_of`.

        What was known of that name before is forgotten.
        """
        known = self._without(name) if name in self.ranges or name in self.lets else self
        divisors = {**known.divisors, name: multiple_of} if multiple_of != 1 else known.divisors
        return Facts({**known.ranges, name: (low, high)}, divisors, known.lets, known._conditions)

    def with_ranges(self, ranges: Mapping[str, Range]) -> Facts:
        """The same for several variables, none of them known yet."""
        return Facts({**self.ranges, **ranges}, self.divisors, self.lets, self._conditions)

    def with_extent(self, var: Var, extent: int | Expr) -> Facts:
        """The facts under a loop or grid of `extent` steps from 0."""
        if isinstance(extent, int):
            return self.with_range(var.name, 0, max(extent - 1, 0))
        return self.with_loop(var, Const(0), extent)

    def with_loop(self, var: Var, start: Expr, stop: Expr, step: Expr | int = 1) -> Facts:
        """The facts in the body of `for var in range(start, stop, step)`, which may be empty."""
        (first, last_start), (first_stop, last) = self.bounds(start), self.bounds(stop)
        by = step if isinstance(step, int) else const_of(step)
        if by is None:
            return self.with_range(var.name, min(first, first_stop), max(last_start, last))
        if by < 0:
            return self.with_range(var.name, min(last_start, first_stop + 1), last_start)
        known = self.with_range(var.name, first, max(first, last - 1))
        if by > 1:
            multiple = math.gcd(by, self.divisor(start))
            known = Facts(known.ranges, {**known.divisors, var.name: multiple}, known.lets, known._conditions)
        # Ends that are numbers are in the range already.
        ends = [start.compare("<=", var)] if const_of(start) is None else []
        return known.assuming(*ends, *([] if const_of(stop) is not None else [var.compare("<", stop)]))

    def with_let(self, var: Var, value: Expr) -> Facts:
        """The facts after `var = value`; a short value is seen through from then on."""
        value = self.resolved(value)
        known = self._without(var.name) if var.name in self.ranges or var.name in self.lets else self
        ranges, lets = known.ranges, known.lets
        if var.type.is_integer:
            ranges = {**ranges, var.name: known.bounds(value)}
        if _may_stand_for(value, var.name):
            lets = {**lets, var.name: value}
        return Facts(ranges, known.divisors, lets, known._conditions)

    def assuming(self, *conditions: Expr) -> Facts:
        """The facts where these conditions hold: the body of an `if`, what a launch has checked."""
        parts = [part for each in conditions for part in conjuncts(each) if part != TRUE]
        if not parts:
            return self
        ranges, divisors = dict(self.ranges), dict(self.divisors)
        known = Facts(ranges, divisors, self.lets, self._conditions)
        for part in parts:
            known._narrow(self.resolved(part), ranges, divisors)
        more = tuple(_Condition(part, known) for part in parts)
        return Facts(ranges, divisors, self.lets, (*self._conditions, *more))

    def _narrow(self, condition: Expr, ranges: dict[str, Range], divisors: dict[str, int]) -> None:
        """Put what a condition says of a single variable into its range or its divisor."""
        if not isinstance(condition, Arith) or len(condition.args) != 2:
            return
        a, b = condition.args
        value = const_of(b)
        if condition.op == "==" and value == 0 and isinstance(a, Arith) and a.op == "%":
            by, form = const_of(a.args[1]), linear(a.args[0])
            if by and len(form.terms) == 1 and form.constant == 0 and isinstance(form.terms[0][0], Var):
                var, factor = form.terms[0]
                if by & (by - 1) and not self.is_exact(a.args[0]):
                    return
                multiple = by // math.gcd(by, factor)
                divisors[var.name] = math.lcm(divisors.get(var.name, 1), multiple)  # type: ignore[attr-defined]
            return
        if condition.op not in COMPARE[:5]:
            return
        for x, y, op in ((a, b, condition.op), (b, a, _SWAPPED[condition.op])):
            if not isinstance(x, Var) or not x.type.is_integer:
                continue
            (low, high), (least, most) = ranges.get(x.name, INFINITE), self.bounds(y)
            if op in ("<", "<=", "=="):
                high = min(high, most - (op == "<"))
            if op in (">", ">=", "=="):
                low = max(low, least + (op == ">"))
            if low <= high:  # else the place is never reached
                ranges[x.name] = low, high

    def _without(self, name: str) -> Facts:
        """The facts without a name that is bound again."""
        gone = {n: v for n, v in self.lets.items() if n != name and not mentions(v, name)}
        divisors = {n: d for n, d in self.divisors.items() if n != name}
        kept = tuple(c for c in self._conditions if not mentions(c.resolved, name))
        return Facts({n: r for n, r in self.ranges.items() if n != name}, divisors, gone, kept)

    # -- questions
    def resolved(self, expr: Expr) -> Expr:
        """The expression with let-bound names replaced by what they stand for."""
        return replaced(expr, self.lets) if self.lets else expr

    def bounds(self, expr: Expr) -> Range:
        """The least and greatest value, inclusive; `INFINITE` where it may wrap or is no integer."""
        return arith.bounds(self.resolved(expr), self.ranges)

    def divisor(self, expr: Expr) -> int:
        """The greatest number known to divide the expression (0 for 0).

        Where the expression may wrap only powers of two still divide it.
        """
        expr = self.resolved(expr)
        found = arith.divisor(expr, self.divisors)
        if found & (found - 1) and not self.is_exact(expr):
            return found & -found
        return found

    def divisor_of(self, form: Linear) -> int:
        """The same of a linear form, whose expression is built only where it matters that it may wrap."""
        resolved = [(self.resolved(term), factor) for term, factor in form.terms]
        known = Linear(tuple(resolved), form.constant)
        if any(_is_remainder(term) for term, _ in resolved):
            # What a remainder is taken of may stand beside it: both are written in the same terms.
            known = Linear((), form.constant)
            for term, factor in resolved:
                known = known.plus(linear(term), factor)
        found = known.divisor(self.divisors)
        if found & (found - 1) and not self.is_exact(self.resolved(form.expr())):
            return found & -found
        return found

    def divides(self, n: int, expr: Expr) -> bool:
        """Whether `n` is known to divide the expression."""
        return self.divisor(expr) % n == 0

    def floordiv(self, expr: Expr, n: int) -> Expr:
        """`expr // n`, with multiples of `n` taken out of the division where that is proved right."""
        return arith.simplify_floordiv(self.resolved(expr), n, self.ranges)

    def mod(self, expr: Expr, n: int) -> Expr:
        """`expr % n`, with multiples of `n` dropped where that is proved right."""
        return arith.simplify_mod(self.resolved(expr), n, self.ranges)

    def proves(self, condition: Expr) -> bool:
        """Whether a condition holds whenever the facts do. False says nothing."""
        return self._proves(self.resolved(condition))

    def _proves(self, condition: Expr) -> bool:
        if isinstance(condition, Const):
            return bool(condition.value)
        if any(condition == known.resolved for known in self._conditions):
            return True
        if not isinstance(condition, Arith):
            return False
        op, args = condition.op, condition.args
        if op == "and":
            return all(self._proves(part) for part in args)
        if op == "or":
            return any(self._proves(part) for part in args)
        if op == "not":
            return isinstance(args[0], Arith) and args[0].op in _NEGATED and self._proves(_negated(args[0]))
        if op not in COMPARE or not args[0].dtype.is_integer:
            return False
        return self._proves_comparison(op, *args)

    def _proves_comparison(self, op: str, a: Expr, b: Expr) -> bool:
        if op in (">", ">="):
            op, a, b = _SWAPPED[op], b, a
        range_a, range_b = arith.bounds(a, self.ranges), arith.bounds(b, self.ranges)
        (least_a, most_a), (least_b, most_b) = range_a, range_b
        match op:
            case "<" | "<=":
                if most_a + (op == "<") <= least_b:
                    return True
                if least_a + (op == "<") > most_b:
                    return False
                if (range_a == INFINITE and not self.is_exact(a)) or (
                    range_b == INFINITE and not self.is_exact(b)
                ):
                    return False
                return self._not_negative(linear(b).plus(linear(a), -1, -(op == "<")))
            case "==":
                if const_of(b) == 0 and isinstance(a, Arith) and a.op == "%" and (by := const_of(a.args[1])):
                    return self.divides(by, a.args[0])
                return self._proves_comparison("<=", a, b) and self._proves_comparison("<=", b, a)
            case _:
                if most_a < least_b or most_b < least_a:
                    return True
                return self._proves_comparison("<", a, b) or self._proves_comparison("<", b, a)

    def is_exact(self, expr: Expr) -> bool:
        """Whether an integer is what its linear form says: it cannot leave its dtype."""
        if isinstance(expr, (Var, Const)):
            return True
        form = linear(expr)
        if form.constant == 0 and len(form.terms) == 1 and form.terms[0][1] == 1:
            return True
        return arith.bounds(expr, self.ranges) != INFINITE

    def _not_negative(self, form: Linear) -> bool:
        """Whether a linear form is never below zero."""
        if not self._conditions and not any(isinstance(term, (Arith, Call)) for term, _ in form.terms):
            return len(form.terms) != 1 and linear_bounds(form, self.ranges)[0] >= 0
        known = [f for condition in self._conditions for f in condition.forms()]
        return self._follows(form, known, _DEEPEST)

    def _follows(self, form: Linear, known: Sequence[Linear], steps: int) -> bool:
        """`form >= 0` from forms that are not negative, by taking multiples of them away."""
        if linear_bounds(form, self.ranges)[0] >= 0:
            return True
        if not steps:
            return False
        for term, factor in form.terms:
            for fact in (*known, *_about(term, self)):
                other = fact.coefficient(term)
                if other * factor <= 0:
                    continue
                common = math.gcd(other, factor)
                # Whole numbers: `d >= 0` where `a * d + a - 1 >= 0`.
                by = abs(other) // common
                rest = form.times(by).plus(fact, -(abs(factor) // common), by - 1)
                if self._follows(rest, known, steps - 1):
                    return True
        return False


class _Condition:
    """A condition that holds, and its linear forms that are not negative, made when they are wanted."""

    __slots__ = ("_facts", "_forms", "condition", "resolved")

    def __init__(self, condition: Expr, facts: Facts) -> None:
        self.condition = condition
        self.resolved = facts.resolved(condition)
        self._facts = facts
        self._forms: tuple[Linear, ...] | None = None

    def forms(self) -> tuple[Linear, ...]:
        if self._forms is None:
            self._forms = tuple(_forms(self.resolved, self._facts))
        return self._forms


def _forms(condition: Expr, facts: Facts) -> list[Linear]:
    """What a condition says, as linear forms that are not negative: its own, and those without divisions."""
    if not isinstance(condition, Arith) or condition.op not in COMPARE[:5]:
        return []
    a, b = condition.args
    if not a.dtype.is_integer or not (facts.is_exact(a) and facts.is_exact(b)):
        return []
    if condition.op in (">", ">="):
        a, b = b, a
    strict = condition.op in ("<", ">")
    out = [linear(b).plus(linear(a), -1, -strict)]
    if condition.op == "==":
        out.append(linear(a).plus(linear(b), -1))
    for form in list(out):
        for term, factor in form.terms:
            for fact in _about(term, facts):
                other = fact.coefficient(term)
                if other * factor < 0:
                    # Both are not negative, so is their sum in which the division drops out.
                    out.append(form.times(abs(other)).plus(fact, abs(factor)))
    return [_tightened(form, facts) for form in out]


def _tightened(form: Linear, facts: Facts) -> Linear:
    """The form with its constant rounded down to what divides its terms: `8 * a - 3 >= 0` is `8 * a - 8`."""
    common = math.gcd(*(factor * arith.divisor(term, facts.divisors) for term, factor in form.terms))
    return Linear(form.terms, form.constant // common * common) if common > 1 else form


def _is_remainder(term: Expr) -> bool:
    return isinstance(term, Arith) and any(
        isinstance(part, Arith) and part.op == "%" for part in (term, *term.args)
    )


def _division(term: Expr) -> tuple[Expr, int] | None:
    """`(x, c)` of a term `x // c` with a positive constant c."""
    if isinstance(term, Arith) and term.op == "//":
        by = const_of(term.args[1])
        if by is not None and by > 0:
            return term.args[0], by
    return None


def _about(term: Expr, facts: Facts) -> tuple[Linear, ...]:
    """What holds of a term by itself, as linear forms that are not negative.

    `x - c * (x // c)` and `c * (x // c) - x + c - 1`; `x - min(x, y)`; `max(x, y) - x`.
    """
    own = Linear(((term, 1),), 0)
    found = _division(term)
    if found is not None:
        x, c = found
        if not facts.is_exact(x):
            return ()
        down = linear(x).plus(own, -c)
        return down, down.times(-1).plus(Linear((), c - 1))
    if isinstance(term, Call) and term.word in ("min", "max"):
        sign = 1 if term.word == "min" else -1
        exact = [arg for arg in term.args if arg.dtype.is_integer and facts.is_exact(arg)]
        return tuple(linear(arg).plus(own, -1).times(sign) for arg in exact)
    return ()


_SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def _negated(condition: Expr) -> Expr:
    """The condition that holds where this one fails."""
    if isinstance(condition, Arith) and condition.op in _NEGATED:
        return Arith(_NEGATED[condition.op], condition.args)
    if isinstance(condition, Arith) and condition.op in ("and", "or"):
        op = "or" if condition.op == "and" else "and"
        return Arith(op, tuple(_negated(part) for part in condition.args))
    return Arith("not", (condition,))


def conjuncts(condition: Expr) -> tuple[Expr, ...]:
    """The parts of a conjunction."""
    if isinstance(condition, Arith) and condition.op == "and":
        return tuple(part for each in condition.args for part in conjuncts(each))
    return (condition,)


def _may_stand_for(value: Expr, name: str) -> bool:
    """Whether a value may stand in place of its name: it is small and pure, and does not say the name."""
    found = seen(value)
    return found.size <= MOST_NODES and not found.loads and name not in found.names


def is_small(expr: Expr) -> bool:
    """Whether an expression may stand in place of its name."""
    return seen(expr).size <= MOST_NODES


def is_pure(expr: Expr) -> bool:
    """Whether an expression reads no memory, so that it stays what it was."""
    return not seen(expr).loads


NOTHING = Facts()

__all__ = ["NOTHING", "Facts", "conjuncts", "is_pure", "is_small"]
