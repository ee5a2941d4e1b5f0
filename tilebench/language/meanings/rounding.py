"""Rounding into the float dtypes: once, to nearest even; 8 and 4 bits stop at their greatest value."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.dtypes import DType


def narrowed(value: Any, dtype: DType) -> Any:
    """An array of floats or integers in a float dtype, by one conversion of NumPy or `ml_dtypes`.

    A value past the ends of a float of 8 or 4 bits, infinities too, gives the end (`DType.saturates`); NaN
    stays NaN, and is the greatest value where there is none (as with the cards' instruction). Sources that
    need two roundings in `ml_dtypes` (doubles, wide integers) go by `round_to`.
    """
    given = np.asarray(value)
    if not dtype.saturates:
        return given.astype(dtype.numpy)
    wide = given if given.dtype.itemsize >= 4 else given.astype(np.float32)
    with np.errstate(invalid="ignore"):  # `ml_dtypes` warns of every NaN
        inside = np.clip(wide, -dtype.largest, dtype.largest)
        if not dtype.has_nan:
            inside = np.where(np.isnan(inside), np.asarray(dtype.largest, inside.dtype), inside)
        return inside.astype(dtype.numpy)


def round_to(value: Any, dtype: DType) -> Any:
    """A float64 array rounded once, to nearest even, to a float dtype.

    `ml_dtypes` converts float64 by way of float32, which can round twice; the first step is made a
    rounding to odd, after which the second is right (Boldo and Melquiond, 2008).
    """
    wide = np.asarray(value, np.float64)
    if dtype.bits >= 32 or dtype.name == "float16":
        return wide.astype(dtype.numpy)
    middle = np.asarray(wide.astype(np.float32))
    inexact_ = np.isfinite(middle) & (middle.astype(np.float64) != wide)
    if inexact_.any():
        bits = middle.view(np.int32)
        step = np.where(np.abs(middle.astype(np.float64)) > np.abs(wide), -1, 1)
        middle = np.where(inexact_ & (bits & 1 == 0), bits + step, bits).astype(np.int32).view(np.float32)
    return narrowed(middle, dtype)


def number_in(value: float, dtype: DType) -> Any:
    """A literal of a float dtype, a NumPy scalar; the infinity of a dtype that has one is a value of it."""
    if dtype.has_infinity and np.isinf(value):
        return dtype.numpy.type(value)
    with np.errstate(over="ignore"):
        return round_to(value, dtype)[()]
