"""What `T.cast` means in NumPy, and its error bound."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.dtypes import DType
from .inexact import Inexact, inexact, narrows, rounded
from .rounding import narrowed, round_to


def _to_integer(value: Any, target: DType) -> Any:
    """Towards zero; values outside the range give the nearest end and NaN gives 0, as on the targets."""
    wide = np.trunc(np.asarray(value, np.float64))
    low, high = int(target.least), int(target.most)
    # The ends of 64-bit ranges are no doubles: what reaches 2**63 is set after the conversion.
    inside = np.where((wide > float(low)) & (wide < float(high)), wide, 0.0)
    integers = inside.astype(target.numpy)
    integers = np.where(wide <= float(low), target.numpy.type(low), integers)
    return np.where(wide >= float(high), target.numpy.type(high), integers)


def cast_meaning(value: Any, source: DType, target: DType) -> Any:
    """`T.cast`: floats to nearest even; float to integer towards zero; integers keep their low bits.

    What is too large for an 8-bit float gives its largest value. A float outside an integer's range
    gives the end of the range, NaN gives 0; to bool, `value != 0`.
    """
    if source == target:
        return value
    if isinstance(value, (bool, int)) and not target.is_float:
        return bool(value) if target.kind == "bool" else wrap(int(value), target)
    array: Any = value if hasattr(value, "astype") else np.asarray(value, source.numpy)
    if target.kind == "bool":
        return array != 0
    if source.is_float and target.is_integer:
        return _to_integer(array, target)
    # Two steps would round twice: from 32-bit integers and doubles into the 16-bit and 8-bit floats.
    if target.is_float and target.bits < 32 and (source.bits >= 32 and source.name != "float32"):
        return round_to(array.astype(np.float64), target)
    return narrowed(array, target) if target.is_float else _low_bits(array, target)


def _low_bits(array: Any, target: DType) -> Any:
    """Integers in another width. `ml_dtypes` knows no way from one 4-bit type to the other."""
    return (array.astype(np.int8) if target.per_byte > 1 else array).astype(target.numpy)


def wrap(value: int, dtype: DType) -> int:
    """A Python integer brought into the range of an integer dtype, modulo 2**bits."""
    if dtype.least <= value <= dtype.most:
        return value
    low = value & ((1 << dtype.bits) - 1)
    return low - (1 << dtype.bits) if dtype.kind == "int" and low >> (dtype.bits - 1) else low


def cast_bound(value: Any, source: DType, target: DType) -> Any:
    """The same with bounds: a narrowing to a float adds one rounding; to an integer, the steps crossed.

    Returns a plain array when the result is an integer that the error cannot change.
    """
    if source == target:
        return value
    if not isinstance(value, Inexact) and not target.is_float:
        return cast_meaning(value, source, target)
    bounded = inexact(value)
    if target.is_float:
        if source.is_float and not narrows(source, target):
            return bounded
        if source.is_integer and source.bits <= target.mantissa + 1:  # each of its values is one of the float
            return Inexact(bounded.value.astype(np.float64), bounded.error)
        return rounded(bounded.value, bounded.error, target)
    if target.kind == "bool":
        unsure = (np.abs(bounded.value.astype(np.float64)) <= bounded.error) & (bounded.error > 0)
        return plain_if_sure(bounded.value != 0, unsure)
    if source.is_float:
        result = _to_integer(bounded.value, target)
        ends = [
            _to_integer(bounded.value + sign * bounded.error, target).astype(np.float64) for sign in (-1, 1)
        ]
        return plain_if_sure(result, np.maximum(result - ends[0], ends[1] - result))
    result = _low_bits(bounded.value, target)
    wide = bounded.value.astype(np.float64)
    leaves = (wide + bounded.error > target.most) | (wide - bounded.error < target.least)
    return plain_if_sure(result, np.where((bounded.error > 0) & leaves, np.inf, bounded.error))


def plain_if_sure(value: Any, error: Any) -> Any:
    """An integer or bool array as it is where no error can change it, else with the error."""
    errors = np.asarray(error, np.float64)
    return Inexact(value, errors) if errors.any() else value


def bits_meaning(value: Any, source: DType, target: DType) -> Any:
    """`T.reinterpret`: the same bits in another dtype of that width."""
    return np.asarray(value, source.numpy).view(target.numpy)


def bits_bound(value: Any, source: DType, target: DType) -> Any:
    """The same with bounds: of what is not known exactly, and of a NaN, the bits can be anything."""
    known = inexact(value)
    found = bits_meaning(known.value, source, target)
    unsure = np.asarray(known.error) > 0
    if source.is_float:
        unsure = unsure | np.isnan(np.asarray(known.value))  # what its payload is, each processor decides
    error = np.where(unsure, np.inf, 0.0)
    return Inexact(found.astype(np.float64), error) if target.is_float else plain_if_sure(found, error)
