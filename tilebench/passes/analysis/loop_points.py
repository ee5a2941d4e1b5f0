"""The turns of the loops around a statement, enumerated: indices as arrays, so that expressions broadcast."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np

from ...ir import Arith, Call, Cast, Const, Expr, Node, Var

# More points than this are not enumerated: so many of them, drawn evenly, stand for all. That is a power of
# two, so that what is the same at each point adds up to a whole number.
MOST_POINTS = 2_000_000
DRAWN = 1 << 14
Where = Mapping[str, Any]


@dataclass(frozen=True)
class LoopPoints:
    """The points of some nested loops. Each loop is an axis, in order from the outermost.

    `where` has each variable's values, of a shape that broadcasts to `shape`; `inside` says which points
    are run, as bounds of an inner loop may depend on outer ones. Where there are too many to enumerate,
    `shape` is that of a sample, and `stands` says for how many points each of it stands (None: for itself).
    `exact` is False of a sample, and where a bound is a guess. `doubt` is the first loop or condition of
    which only a run knows how often it is taken; `bounded` says that all of these are conditions, so that
    what is counted is the most that can be.
    """

    where: Where = field(default_factory=dict[str, Any])
    shape: tuple[int, ...] = ()
    inside: Any = True
    stands: Any = None
    loops: int = 0
    exact: bool = True
    doubt: Node | None = None
    bounded: bool = True

    def unsure(self, node: Node | None, *, bounded: bool = False) -> LoopPoints:
        """These points, of which only a run knows how many there are; `bounded`: no more than these."""
        return replace(self, exact=False, doubt=self.doubt or node, bounded=self.bounded and bounded)

    def loop(
        self, name: str, start: Expr | int, stop: Expr | int, step: Expr | int = 1, of: Node | None = None
    ) -> LoopPoints:
        """These points with a loop more inside; `of` is its statement."""
        first, last, by = (value_at(bound, self.where) for bound in (start, stop, step))
        if first is None or last is None or by is None or np.any(by == 0):
            return replace(self, where={**self.where, name: 0}).unsure(of)
        turns = np.maximum((last - first + by - np.sign(by)) // by, 0)
        most = int(np.max(turns, initial=0))
        if self.stands is None and np.prod(self.shape, dtype=float) * most > MOST_POINTS:
            return self._drawn().loop(name, start, stop, step, of)
        if self.stands is not None:
            number = np.asarray(np.floor(_evenly(self.loops) * turns), np.int64)
            where = {**self.where, name: first + by * number}
            return replace(self, where=where, stands=self.stands * turns, loops=self.loops + 1)
        number = np.arange(most)
        where = {key: None if value is None else _deeper(value) for key, value in self.where.items()}
        where[name] = _deeper(first) + _deeper(by) * number
        inside = _deeper(self.inside)
        if np.any(turns != most):  # else no array as large as all points together is needed
            inside = inside & (number < _deeper(turns))
        return replace(self, where=where, shape=(*self.shape, most), inside=inside, loops=self.loops + 1)

    def _drawn(self) -> LoopPoints:
        """A sample of these points: along each axis a place by a sequence of its own."""
        at = tuple(np.asarray(np.floor(_evenly(k) * n), np.int64) for k, n in enumerate(self.shape))
        where = {
            key: None if value is None else np.broadcast_to(value, self.shape)[at]
            for key, value in self.where.items()
        }
        each = np.full(DRAWN, np.prod(self.shape, dtype=float) / DRAWN)
        inside = np.broadcast_to(self.inside, self.shape)[at]
        return replace(self, where=where, shape=(DRAWN,), inside=inside, stands=each, exact=False)

    def let(self, name: str, value: Expr) -> LoopPoints:
        """These points with a name for a value, where it is known before the kernel runs."""
        return replace(self, where={**self.where, name: value_at(value, self.where)})

    def when(self, condition: Expr, *, negated: bool = False, of: Node | None = None) -> LoopPoints:
        """Those of the points at which a condition holds (or does not); all where it is not known before."""
        holds = value_at(condition, self.where)
        if holds is None:
            return self.unsure(of, bounded=True)
        chosen = np.logical_not(holds) if negated else np.asarray(holds, bool)
        return replace(self, inside=np.logical_and(self.inside, chosen))

    def total(self, count: Any) -> float:
        """The sum over all points of a count at each."""
        here = count * self.inside if self.stands is None else count * self.inside * self.stands
        return float(np.sum(np.broadcast_to(here, self.shape)))


def _evenly(axis: int) -> Any:
    """Numbers in [0, 1) for the points of a sample, spread along one axis: multiples of an irrational number.

    Those of a prime's square root (Richtmyer's sequence) are spread over several axes together as well.
    """
    return (np.arange(DRAWN) + 0.5) * _ROOTS[axis % len(_ROOTS)] % 1.0


_ROOTS = np.sqrt([2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0, 19.0, 23.0, 29.0, 31.0, 37.0])


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
