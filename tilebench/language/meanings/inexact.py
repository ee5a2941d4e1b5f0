"""Values with a bound of their error, and the rounding step that every bound ends with.

A bound here is a running error bound: computed beside the value, from the actual operands, as in
N. J. Higham, Accuracy and Stability of Numerical Algorithms (2nd ed., 2002), section 3.3. The value
is kept in float64 without the roundings of the declared dtype; the bound holds for any target that
evaluates each operation once in the declared dtype (or exactly, or in a wider one), with sums in
any order and with multiplication and addition contracted or not.

Subnormal results are not flushed by the targets (neither `-ftz` nor a flush mode is ever set), so
an underflow costs half the smallest subnormal; `flush=True` of `rounded` adds the smallest normal
instead, for a target that does.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...ir.dtypes import DType

F64 = NDArray[np.float64]
DOUBLE_ROUNDOFF = 2.0**-53


class Inexact:
    """An array of values and of absolute error bounds, of one shape.

    `value` is float64 for floats, the dtype's own for integers and bools. `error` is float64 and not
    negative; infinity says that any value is right. For a bool it is 1 where it may be either.
    """

    __slots__ = ("error", "value")

    def __init__(self, value: Any, error: Any) -> None:
        self.value = np.asarray(value)
        self.error: F64 = np.asarray(error, np.float64)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def ndim(self) -> int:
        return self.value.ndim

    def __getitem__(self, key: Any) -> Inexact:
        return Inexact(self.value[key], self.error[key])

    def __setitem__(self, key: Any, new: Inexact) -> None:
        self.value[key] = new.value
        self.error[key] = new.error

    def reshape(self, shape: tuple[int, ...]) -> Inexact:
        return Inexact(self.value.reshape(shape), self.error.reshape(shape))

    def widened(self) -> Inexact:
        """The same in float64."""
        return Inexact(self.value.astype(np.float64), self.error)

    def transpose(self, axes: tuple[int, ...]) -> Inexact:
        return Inexact(self.value.transpose(axes), self.error.transpose(axes))

    def copy(self) -> Inexact:
        return Inexact(self.value.copy(), self.error.copy())


def exact(value: Any) -> Inexact:
    """A plain value as one without error."""
    array = np.asarray(value)
    return Inexact(array, np.zeros(array.shape))


def inexact(value: Any) -> Inexact:
    """A value as `Inexact`, whichever it was."""
    return value if isinstance(value, Inexact) else exact(value)


@dataclass(frozen=True)
class Limits:
    """What rounding in a dtype depends on: where overflow starts, the smallest normal and subnormal."""

    overflow: float
    normal: float
    subnormal: float
    has_infinity: bool


@cache
def limits(dtype: DType) -> Limits:
    """The limits of a float dtype."""
    finfo: Any = importlib.import_module("ml_dtypes").finfo
    info = finfo(dtype.numpy)
    most, normal = float(info.max), float(info.smallest_normal)
    # From half a step above the greatest value on, rounding to nearest gives infinity.
    u = dtype.unit_roundoff
    overflow = np.inf if dtype.bits == 64 else most * (1.0 + u / (2.0 - 2.0 * u))
    return Limits(overflow, normal, float(info.smallest_subnormal), dtype.has_infinity)


def narrows(source: DType, target: DType) -> bool:
    """Whether a float of `source` may need rounding in `target`."""
    a, b = limits(source), limits(target)
    return source.mantissa > target.mantissa or a.overflow > b.overflow or a.subnormal < b.subnormal


def relative_error(dtype: DType, ulps: float) -> float:
    """The relative error of one operation in a dtype, plus that of the reference in float64.

    `ulps` 0 is correct rounding. An ulp is at most 2u of the result. A function of a dtype narrower
    than float32 is evaluated in float32 and rounded, or natively to one ulp.
    """
    u = dtype.unit_roundoff
    if ulps == 0:
        return u + DOUBLE_ROUNDOFF
    if dtype.bits < 32:
        return 2 * u + 2 * ulps * 2.0**-24
    return 2 * ulps * u + 2 * DOUBLE_ROUNDOFF


def rounded(
    value: Any, carried: Any, dtype: DType, *, ulps: float = 0, absolute: float = 0.0, flush: bool = False
) -> Inexact:
    """The result of one operation in `dtype`: the exact result of inexact operands, then rounded.

    `carried` bounds what the operands' errors make of the result. The computed result lies within
    `|value| + carried`, so the rounding costs at most `relative * (|value| + carried)`, and half the
    smallest subnormal on underflow (Higham, equation 2.8). A correctly rounded operation whose exact
    result is a number of the dtype has no error.
    """
    values = np.asarray(value, np.float64)
    bounds: F64 = np.asarray(carried, np.float64)
    if bounds.shape != values.shape:
        bounds = np.broadcast_to(bounds, values.shape)
    size = np.abs(values)
    lost = limits(dtype).normal if flush else 0.5 * limits(dtype).subnormal
    error: Any = bounds + relative_error(dtype, ulps) * (size + bounds)
    if dtype.bits == 64:
        error = error + (lost + absolute)
    else:
        error = error + np.where((size > 0) | (bounds > 0), lost + absolute, 0.0)
        if ulps == 0 and not flush and not bounds.any():
            error = np.where(values.astype(dtype.numpy).astype(np.float64) == values, 0.0, error)
    return settled(values, error, bounds, dtype)


def settled(value: F64, error: F64, carried: F64, dtype: DType) -> Inexact:
    """Overflow decided: a sure one is infinity without error, a possible one is bounded by nothing.

    Where the value is no finite number, the error is infinite only if the carried one is. A dtype that
    saturates has no overflow: stopping at its ends brings no two values further apart.
    """
    if dtype.saturates:
        if not dtype.has_nan:
            value = np.where(np.isnan(value), dtype.largest, value)
        return _stopped(value, error, carried, dtype.largest)
    edge = limits(dtype).overflow
    if value.size == 0 or max(float(value.max()), -float(value.min())) + float(error.max()) < edge:
        return Inexact(value, error)
    size = np.abs(value)
    top = size + error
    finite = np.isfinite(value)
    elsewhere = np.where(np.isposinf(carried), np.inf, 0.0)
    error = np.where(finite, np.where(np.isnan(error), np.inf, error), elsewhere)
    if np.isfinite(edge):
        sure = finite & (size - error >= edge)
        unsure = finite & ~sure & (top >= edge)
        value = np.where(sure, np.copysign(np.inf, value), value)
        error = np.where(sure, 0.0, np.where(unsure, np.inf, error))
    return Inexact(value, error)


def _stopped(value: F64, error: F64, carried: F64, largest: float) -> Inexact:
    """Values stopped at the ends of a dtype; one that surely lies beyond an end has no error."""
    unbounded = np.isposinf(carried) | (np.isnan(error) & np.isfinite(value))
    sure = (np.abs(value) - carried >= largest) & ~unbounded  # from the end on, rounding gives the end
    kept: Any = np.where(sure | np.isnan(value), 0.0, error)
    return Inexact(np.clip(value, -largest, largest), np.where(unbounded, np.inf, kept))
