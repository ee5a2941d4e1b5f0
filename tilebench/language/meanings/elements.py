"""Functions of elements in NumPy: meaning, how errors pass through, and the accuracy asked of targets."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...ir.dtypes import DType
from .inexact import Inexact, inexact, limits, rounded, settled
from .philox import philox
from .rounding import narrowed

Function = Callable[..., Any]


def _erf(x: Any) -> Any:
    return np.asarray(_ERF(np.asarray(x, np.float64)), np.float64)


_ERF: Any = np.frompyfunc(math.erf, 1, 1)


def _rsqrt(x: Any) -> Any:
    return 1 / np.sqrt(x)


def _sigmoid(x: Any) -> Any:
    wide = np.asarray(x)
    return 1 / (1 + np.exp(-wide))


def _exp10(x: Any) -> Any:
    return np.power(np.asarray(x).dtype.type(10), x)


def _half_away(x: Any) -> Any:
    """The nearest whole number, halves away from zero, as C's `round`."""
    wide = np.asarray(x)
    return np.trunc(wide + np.copysign(np.nextafter(wide.dtype.type(0.5), wide.dtype.type(0)), wide))


_where: Any = np.where


def _clamp(x: Any, low: Any, high: Any) -> Any:
    raised = _where(x < low, low, x)
    return _where(raised > high, high, raised)


def _ends(function: Function, x: Inexact, value: Any) -> Any:
    """Of a monotone function: the farther of the two ends of the interval."""
    low, high = function(x.value - x.error), function(x.value + x.error)
    reach = np.maximum(np.abs(low - value), np.abs(high - value))
    return np.where(x.error > 0, reach, 0.0)


def _same(function: Function, x: Inexact, value: Any) -> Any:
    """Of a function that never moves two arguments further apart: the error itself."""
    return x.error


def _wave(function: Function, x: Inexact, value: Any) -> Any:
    """Of sine and cosine: the error itself, at most the distance of their extremes; any, of infinities."""
    return np.where(np.isinf(x.error), np.inf, np.minimum(x.error, 2.0))


def _between_poles(function: Function, x: Inexact, value: Any) -> Any:
    """Of the tangent, monotone from pole to pole: any where the interval may hold a pole."""
    low, high = function(x.value - x.error), function(x.value + x.error)
    rising = (low <= value) & (value <= high) & (x.error < math.pi / 2)
    return np.where(x.error > 0, np.where(rising, np.maximum(value - low, high - value), np.inf), 0.0)


def _remainder(function: Function, x: Inexact, y: Inexact, value: Any) -> Any:
    """Of fmod: the error of x while the quotient stays the same, the divisor where it may not."""
    ends = [np.trunc((x.value + sign * x.error) / y.value) for sign in (-1, 1)]
    carried = np.where(ends[0] == ends[1], x.error, np.abs(y.value) + x.error)
    return np.where(y.error > 0, np.inf, np.where(x.error > 0, carried, 0.0))


def _larger(function: Function, x: Inexact, y: Inexact, *more: Any) -> Any:
    """Of minimum, maximum and clamp: the largest error."""
    error = np.maximum(x.error, y.error)
    return np.maximum(error, more[0].error) if len(more) > 1 else error


def _corners(function: Function, x: Inexact, y: Inexact, value: Any) -> Any:
    """Of x ** y, monotone in each for x >= 0: the farthest corner; NaN corners make it unbounded."""
    farthest: Any = 0.0
    for a in (-1, 1):
        for b in (-1, 1):
            corner = function(x.value + a * x.error, y.value + b * y.error)
            gap = np.where(corner == value, 0.0, np.abs(corner - value))
            farthest = np.maximum(farthest, np.where(np.isnan(gap), np.inf, gap))
    crosses = (x.value - x.error < 0) & (x.error > 0)
    return np.where((x.error > 0) | (y.error > 0), np.where(crosses, np.inf, farthest), 0.0)


def _ones(x: Any) -> Any:
    return np.bitwise_count(np.asarray(x)).astype(np.asarray(x).dtype)


def _bit_length(x: Any) -> Any:
    """Bits up to the highest one, of integers that are not negative."""
    found: Any = np.array(x)
    for shift in (1, 2, 4, 8, 16, 32):
        if shift < 8 * found.dtype.itemsize:
            found |= found >> found.dtype.type(shift)
    return _ones(found)


def _ldexp(x: Any, n: Any) -> Any:
    return np.ldexp(x, np.clip(np.nan_to_num(n), -5000, 5000).astype(np.int32))


def fused(x: Any, y: Any, z: Any) -> Any:
    """x * y + z of float32, rounded once: the sum in float64 is rounded to an odd last bit on its way.

    Of float64, in which bounds are carried, it is the sum as it is.
    """
    single = any(np.asarray(part).dtype == np.float32 for part in (x, y, z))
    wide = [np.asarray(part, np.float64) for part in (x, y, z)]
    product = wide[0] * wide[1]  # exact
    total = np.array(product + wide[2])
    if not single:
        return total
    moved = total - product
    lost = (product - (total - moved)) + (wide[2] - moved)
    bits = total.view(np.int64)
    even = (lost != 0) & np.isfinite(lost) & (bits % 2 == 0)
    bits += np.where(even, np.where((lost > 0) == (total > 0), 1, -1), 0)
    return total.astype(np.float32)


def _lost(function: Function, x: Inexact, value: Any) -> Any:
    """Of functions of bits: nothing is known of what may be another integer."""
    return np.where(x.error > 0, np.inf, 0.0)


def _never_inexact(function: Function, *args: Any) -> Any:
    """Of integers that floats have no part in."""
    return np.where(np.max([np.max(arg.error) for arg in args[:-1]]) > 0, np.inf, 0.0) + 0 * args[-1].astype(
        float
    )


def _added(function: Function, x: Inexact, y: Inexact, value: Any) -> Any:
    """Of the distance from the origin: the point's own, at most."""
    return x.error + y.error


def _signed(function: Function, x: Inexact, y: Inexact, value: Any) -> Any:
    """Of a size with a sign: twice the size where the sign is not known, as that of a NaN."""
    sure = (np.abs(y.value) > y.error) | ((y.error == 0) & ~np.isnan(y.value))
    return np.where(sure, x.error, 2 * np.abs(x.value) + x.error)


def _scaled(function: Function, x: Inexact, n: Inexact, value: Any) -> Any:
    return np.where(n.error > 0, np.inf, np.where(x.error > 0, _ldexp(x.error, n.value), 0.0))


def _turned(function: Function, y: Inexact, x: Inexact, value: Any) -> Any:
    """Of an angle: what a disc around the point is seen under; all round where it may lie behind."""
    reach = np.hypot(x.error, y.error)
    seen = np.arcsin(np.minimum(reach / np.hypot(x.value, y.value), 1.0))
    behind = (x.value - x.error <= 0) & (np.abs(y.value) <= y.error)
    return np.where(
        reach > 0,
        np.where(behind | np.isnan(seen), 2 * math.pi, np.where(seen >= math.pi / 2, math.pi, seen)),
        0.0,
    )


def _product_and_sum(function: Function, x: Inexact, y: Inexact, z: Inexact, value: Any) -> Any:
    return np.abs(x.value) * y.error + np.abs(y.value) * x.error + x.error * y.error + z.error


@dataclass(frozen=True)
class ScalarMeaning:
    """One function: `plain` in NumPy, `carry` the propagated error, and the accuracy in ulp.

    `ulps` is what a target must reach in float32 (and below), `double_ulps` in float64; 0 is
    correct rounding, None says that the result is never rounded. `tiny` allows an absolute error of
    the smallest normal beside it.
    """

    plain: Function
    carry: Callable[..., Any]
    ulps: float | None
    double_ulps: float | None = None
    tiny: bool = False


# CUDA's documented maxima and those of the CPU target's own functions are both below these.
SCALARS: Mapping[str, ScalarMeaning] = {
    "exp": ScalarMeaning(np.exp, _ends, 2),
    # The card's own instruction, without steps around it for results below the smallest normal number.
    "exp2": ScalarMeaning(np.exp2, _ends, 2, tiny=True),
    "log": ScalarMeaning(np.log, _ends, 2),
    "log2": ScalarMeaning(np.log2, _ends, 2),
    "sqrt": ScalarMeaning(np.sqrt, _ends, 0),
    "rsqrt": ScalarMeaning(_rsqrt, _ends, 2),
    "tanh": ScalarMeaning(np.tanh, _ends, 4),
    # 1 / (1 + exp(-x)) gives 0 where the result would be subnormal, because exp(-x) overflows.
    "sigmoid": ScalarMeaning(_sigmoid, _ends, 4, tiny=True),
    "erf": ScalarMeaning(_erf, _ends, 4),
    "sin": ScalarMeaning(np.sin, _wave, 2),
    "cos": ScalarMeaning(np.cos, _wave, 2),
    "tan": ScalarMeaning(np.tan, _between_poles, 4),
    "asin": ScalarMeaning(np.arcsin, _ends, 5),
    "acos": ScalarMeaning(np.arccos, _ends, 5),
    "atan": ScalarMeaning(np.arctan, _ends, 3),
    "sinh": ScalarMeaning(np.sinh, _ends, 4, double_ulps=8),
    "cosh": ScalarMeaning(np.cosh, _ends, 4, double_ulps=8),
    "exp10": ScalarMeaning(_exp10, _ends, 2),
    "log10": ScalarMeaning(np.log10, _ends, 3),
    "log1p": ScalarMeaning(np.log1p, _ends, 3),
    "abs": ScalarMeaning(np.abs, _same, None),
    "floor": ScalarMeaning(np.floor, _ends, None),
    "ceil": ScalarMeaning(np.ceil, _ends, None),
    "trunc": ScalarMeaning(np.trunc, _ends, None),
    "round": ScalarMeaning(_half_away, _ends, None),
    "nearbyint": ScalarMeaning(np.rint, _ends, None),
    "fmod": ScalarMeaning(np.fmod, _remainder, None),
    # A NaN loses against a number, as in C's fmin and fmax and in IEEE 754-2019 minimumNumber.
    "min": ScalarMeaning(np.fmin, _larger, None),
    "max": ScalarMeaning(np.fmax, _larger, None),
    # A NaN in x stays: it is below or above no limit.
    "clamp": ScalarMeaning(_clamp, _larger, None),
    "pow": ScalarMeaning(np.power, _corners, 4, double_ulps=1024),
    "asinh": ScalarMeaning(np.arcsinh, _ends, 4),
    "acosh": ScalarMeaning(np.arccosh, _ends, 4),
    "atanh": ScalarMeaning(np.arctanh, _ends, 4),
    "hypot": ScalarMeaning(np.hypot, _added, 3),
    "atan2": ScalarMeaning(np.arctan2, _turned, 5),
    "copysign": ScalarMeaning(np.copysign, _signed, None),
    "ldexp": ScalarMeaning(_ldexp, _scaled, 0),
    "fma": ScalarMeaning(fused, _product_and_sum, 0),
    "popcount": ScalarMeaning(_ones, _lost, None),
    "bit_length": ScalarMeaning(_bit_length, _lost, None),
    "philox": ScalarMeaning(philox, _never_inexact, None),
}


def scalar_meaning(word: str, dtype: DType) -> Function | None:
    """The function over arrays of `dtype`, with one rounding into it; None for an unknown word.

    In dtypes narrower than float32 it is evaluated in float32 and rounded.
    """
    row = SCALARS.get(word)
    if row is None:
        return None
    kind = dtype.numpy
    middle: Any = np.float32 if dtype.is_float and dtype.bits < 32 else kind
    # Minimum and the like are exact and have no need of the way through float32, apart from ml_dtypes.
    direct = not dtype.is_float or dtype.bits >= 32

    def apply(*args: Any) -> Any:
        arrays = [np.asarray(each, kind) for each in args]
        if word == "pow" and not dtype.is_float:
            return _integer_power(arrays[0], arrays[1])
        result = row.plain(*(arrays if direct else [each.astype(middle) for each in arrays]))
        return narrowed(result, dtype) if dtype.is_float else np.asarray(result).astype(kind)

    return apply


def _integer_power(base: Any, exponent: Any) -> Any:
    """Integer power modulo 2**bits; a negative exponent gives 0, apart from bases 1 and -1."""
    some = np.power(base, np.maximum(exponent, 0))
    units = np.where(base == 1, 1, np.where(base == -1, np.where(exponent % 2 == 0, 1, -1), 0))
    return np.where(exponent < 0, units, some).astype(base.dtype)


def _known(carried: Any, value: Any, args: list[Inexact], plain: Function) -> Any:
    """The carried error where it is no NaN. It is one where ends of an interval are infinite or outside the
    function's domain: then any value is right, unless the result is no number wherever the arguments lie."""
    anything = np.isfinite(value)
    for arg in args:
        anything = anything | np.isposinf(arg.error) | (np.isnan(value) & (arg.error > 0))
    if len(args) == 1:
        (arg,) = args
        ends = [plain(arg.value - arg.error), plain(arg.value + arg.error)]
        anything = anything & ~(
            np.isnan(value) & np.isnan(ends[0]) & np.isnan(ends[1]) & ~np.isposinf(arg.error)
        )
    return np.where(np.isnan(carried), np.where(anything, np.inf, 0.0), carried)


def scalar_bound(word: str, dtype: DType) -> Function | None:
    """The function over inexact arguments of `dtype`; None for an unknown word."""
    row = SCALARS.get(word)
    plain = scalar_meaning(word, dtype)
    if row is None or plain is None:
        return None
    ulps = row.double_ulps if dtype.bits == 64 and row.double_ulps is not None else row.ulps
    absolute = limits(dtype).normal if row.tiny and dtype.is_float else 0.0

    def apply(*args: Any) -> Any:
        if not any(isinstance(each, Inexact) for each in args):
            return plain(*args)
        bounded = [inexact(each) for each in args]
        if not dtype.is_float:
            result = plain(*(each.value for each in bounded))
            carried = row.carry(row.plain, *bounded, result)
            return Inexact(result, np.where(word == "pow", np.inf, carried) if np.any(carried) else carried)
        value = np.asarray(row.plain(*(each.value for each in bounded)), np.float64)
        carried = _known(
            np.asarray(row.carry(row.plain, *bounded, value), np.float64), value, bounded, row.plain
        )
        if ulps is None:
            return settled(value, carried, carried, dtype) if dtype.saturates else Inexact(value, carried)
        return rounded(value, carried, dtype, ulps=ulps, absolute=absolute)

    return apply
