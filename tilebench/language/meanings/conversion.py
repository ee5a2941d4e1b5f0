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
    made = inside.astype(target.numpy)
    made = np.where(wide <= float(low), target.numpy.type(low), made)
    return np.where(wide >= float(high), target.numpy.type(high), made)


def cast_meaning(value: Any, source: DType, target: DType) -> Any:
    """`T.cast`: floats to nearest even; float to integer towards zero; integers keep their low bits.

    What is too large for an 8-bit float gives its largest value. A float outside an integer's range
    gives the end of the range, NaN gives 0; to bool, `value != 0`.
    """
    if source == target:
        return value
    if isinstance(value, (bool, int)) and not target.is_float:
        return bool(value) if target.kind == "bool" else wrap(int(value), target)
    held: Any = value if hasattr(value, "astype") else np.asarray(value, source.numpy)
    if target.kind == "bool":
        return held != 0
    if source.is_float and target.is_integer:
        return _to_integer(held, target)
    # Two steps would round twice: from 32-bit integers and doubles into the 16-bit and 8-bit floats.
    if target.is_float and target.bits < 32 and (source.bits >= 32 and source.name != "float32"):
        return round_to(held.astype(np.float64), target)
    return narrowed(held, target) if target.is_float else _low_bits(held, target)


def _low_bits(held: Any, target: DType) -> Any:
    """Integers in another width. `ml_dtypes` knows no way from one 4-bit type to the other."""
    return (held.astype(np.int8) if target.per_byte > 1 else held).astype(target.numpy)


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
    held = inexact(value)
    if target.is_float:
        if source.is_float and not narrows(source, target):
            return held
        return rounded(held.value, held.error, target)
    if target.kind == "bool":
        unsure = (np.abs(held.value.astype(np.float64)) <= held.error) & (held.error > 0)
        return plain_if_sure(held.value != 0, unsure)
    if source.is_float:
        made = _to_integer(held.value, target)
        ends = [_to_integer(held.value + sign * held.error, target).astype(np.float64) for sign in (-1, 1)]
        return plain_if_sure(made, np.maximum(made - ends[0], ends[1] - made))
    made = _low_bits(held.value, target)
    wide = held.value.astype(np.float64)
    leaves = (wide + held.error > target.most) | (wide - held.error < target.least)
    return plain_if_sure(made, np.where((held.error > 0) & leaves, np.inf, held.error))


def plain_if_sure(value: Any, error: Any) -> Any:
    """An integer or bool array as it is where no error can change it, else with the error."""
    held = np.asarray(error, np.float64)
    return Inexact(value, held) if held.any() else value
