"""The turns of the loops around a statement, enumerated: indices as arrays, so that expressions broadcast."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np

from ...ir import Arith, Call, Cast, Const, Expr, Node, Var

# More points than this are not enumerated: loops then count as their most turns, at index 0.
MOST_POINTS = 2_000_000
Where = Mapping[str, Any]


@dataclass(frozen=True)
class LoopPoints:
    """The points of some nested loops. Each loop is an axis, in order from the outermost.

    `where` has each variable's values, of a shape that broadcasts to `shape`; `inside` says which points
    are run, as bounds of an inner loop may depend on outer ones; `repeats` is how often all of them are
    run again by loops that are not enumerated. `exact` is False where `repeats` or a bound is a guess.
    `doubt` is the first loop or condition of which only a run knows how often it is taken.
    """

    where: Where = field(default_factory=dict[str, Any])
    shape: tuple[int, ...] = ()
    inside: Any = True
    repeats: int = 1
    exact: bool = True
    doubt: Node | None = None

    def unsure(self, node: Node | None) -> LoopPoints:
        """These points, of which nobody knows before a run how many there are."""
        return replace(self, exact=False, doubt=self.doubt or node)

    def loop(
        self, name: str, start: Expr | int, stop: Expr | int, step: Expr | int = 1, of: Node | None = None
    ) -> LoopPoints:
        """These points with a loop more inside; `of` is its statement."""
        first, last, by = (value_at(bound, self.where) for bound in (start, stop, step))
        if first is None or last is None or by is None or np.any(by == 0):
            return replace(self, where={**self.where, name: 0}).unsure(of)
        turns = np.maximum((last - first + by - np.sign(by)) // by, 0)
        most = int(np.max(turns, initial=0))
        if np.prod(self.shape, dtype=float) * most > MOST_POINTS:
            where = {**self.where, name: first}
            return replace(self, where=where, repeats=self.repeats * most, exact=False)
        number = np.arange(most)
        where = {key: None if value is None else _deeper(value) for key, value in self.where.items()}
        where[name] = _deeper(first) + _deeper(by) * number
        inside = _deeper(self.inside)
        if np.any(turns != most):  # else no array as large as all points together is needed
            inside = inside & (number < _deeper(turns))
        return replace(self, where=where, shape=(*self.shape, most), inside=inside)

    def let(self, name: str, value: Expr) -> LoopPoints:
        """These points with a name for a value, where it is known before the kernel runs."""
        return replace(self, where={**self.where, name: value_at(value, self.where)})

    def when(self, condition: Expr, *, negated: bool = False, of: Node | None = None) -> LoopPoints:
        """Those of the points at which a condition holds (or does not); all where it is not known before."""
        holds = value_at(condition, self.where)
        if holds is None:
            return self.unsure(of)
        chosen = np.logical_not(holds) if negated else np.asarray(holds, bool)
        return replace(self, inside=np.logical_and(self.inside, chosen))

    def total(self, count: Any) -> float:
        """The sum over all points of a count at each."""
        return float(np.sum(np.broadcast_to(count * self.inside, self.shape))) * self.repeats


def _deeper(values: Any) -> Any:
    return np.asarray(values)[..., np.newaxis]


def value_at(expr: Expr | int, where: Where) -> Any:
    """An index with arrays for its variables; None where it is not known before the kernel runs.

    A name that `where` has as None is a value that a run makes.
    """
    match expr:
        case int():
            return expr
        case Const():
            return expr.value
        case Var():
            return where.get(expr.name)
        case Cast() if expr.value.dtype.is_integer:
            return value_at(expr.value, where)
        case Arith() | Call():
            parts = [value_at(part, where) for part in expr.args]
            return None if any(part is None for part in parts) else _applied(expr, parts)
        case _:
            return None


def _applied(expr: Arith | Call, parts: list[Any]) -> Any:
    if isinstance(expr, Call):
        call = _CALLS.get(expr.word)
        return None if call is None else call(*parts)
    if len(parts) == 1:
        turned: Any = {"-": np.negative, "not": np.logical_not}.get(expr.op)
        return None if turned is None else turned(parts[0])
    if expr.op in ("//", "%") and np.any(np.asarray(parts[1]) == 0):
        return None
    apply: Any = _APPLY.get(expr.op)
    return None if apply is None else reduce(apply, parts)


_python: Any = operator  # its operators are typed as taking anything
_APPLY: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": _python.add, "-": _python.sub, "*": _python.mul, "//": _python.floordiv, "%": _python.mod,
    "^": _python.xor, "&": _python.and_, "|": _python.or_, "<<": _python.lshift, ">>": _python.rshift,
    "<": _python.lt, "<=": _python.le, ">": _python.gt, ">=": _python.ge, "==": _python.eq, "!=": _python.ne,
    "and": np.logical_and, "or": np.logical_or,
}  # fmt: skip
_CALLS: Mapping[str, Callable[..., Any]] = {
    "if_then_else": np.where,
    "min": lambda *parts: reduce(np.minimum, parts),
    "max": lambda *parts: reduce(np.maximum, parts),
}
