"""An operator's result beside its reference: every element, within a bound of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernel.calls.host_arrays import host_copy
from .binding import bind
from .calls import call
from .definition import Operator, Problem
from .near import allowed, overflowed


@dataclass(frozen=True)
class Found:
    """What a comparison found: the largest error as a part of what is allowed, with error and bound there,
    and the error of the whole as a part of the result, by the norm."""

    ratio: float
    error: float
    bound: float
    relative: float

    @property
    def ok(self) -> bool:
        return self.ratio <= 1.0

    def __str__(self) -> str:
        verdict = "all within bounds" if self.ok else "WRONG"
        return f"{verdict}: the largest error is {self.error:.3g} where {self.bound:.3g} is allowed"


def compared(
    xp: Any,
    wide: Callable[[Any], Any],
    operator: Operator,
    problem: Problem,
    arrays: Mapping[str, Any],
    got: Any,
) -> Found:
    """A result beside what is right, every element of it. `wide` gives an array of `xp` in float64.

    NaN is right where it is expected, an infinity there too and where the result's dtype has no such number.
    """
    ratio = error = bound = squares = whole = 0.0
    for index, taken, part in operator.parts(problem):
        given = {name: wide(array[taken.get(name, ...)]) for name, array in arrays.items()}
        exact = operator.reference(xp, given, part)
        dtype = operator.result_dtype(problem)
        found, right, limit = wide(got[index]), exact.value, allowed(exact, dtype)
        same = (found == right) | (xp.isnan(found) & xp.isnan(right + 0.0))
        same = same | overflowed(xp, found, exact, dtype)
        off = xp.where(same, 0.0, abs(found - right))
        parts = xp.where(same, 0.0, xp.where(xp.isfinite(off), off / limit, xp.inf))
        place = int(xp.argmax(parts))
        largest = float(parts.reshape(-1)[place])
        if largest >= ratio:
            limits = limit + xp.zeros_like(off)
            ratio, error, bound = largest, float(off.reshape(-1)[place]), float(limits.reshape(-1)[place])
        squares += float((off * off).sum())
        whole += float((right * right).sum())
    return Found(ratio, error, bound, (squares / whole) ** 0.5 if whole else 0.0)


def check(operator: Operator, *arrays: Any, **options: Any) -> Found:
    """Call an operator on arrays and compare every element with its reference, in NumPy on the host.

    Raises what a call raises. Arrays and result are widened to float64 and stay in memory.
    """
    bound = bind(operator, arrays, options)
    result = call(operator, *arrays, **options)
    names = [argument.name for argument in operator.arguments]
    given = {name: host_copy(a) for name, a in zip(names, arrays, strict=False) if a is not None}
    flat = bound.problem
    with np.errstate(all="ignore"):
        return compared(np, lambda a: np.asarray(a, np.float64), operator, flat, given, host_copy(result))


__all__ = ["Found", "check", "compared"]
