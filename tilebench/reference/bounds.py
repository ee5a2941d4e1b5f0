"""Running a kernel with error bounds: what a correct target may return, element by element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ir import Function
from .numbers import Bounded as BoundedNumbers
from .run import Arrays, execute, written_names


@dataclass(frozen=True)
class Bounded:
    """One output: `value` in float64 (integers too; int64 keeps its dtype) and its absolute `error`.

    An error of infinity says that any value is right there: the result depends on rounding without
    limit (an overflow that may or may not happen, a division by what may be zero).
    """

    value: NDArray[Any]
    error: NDArray[np.float64]


def run_bounded(function: Function, arrays: Arrays) -> dict[str, Bounded]:
    """Run a function with a running error bound beside every value; arguments as for `run_reference`.

    `value` is the result without the roundings of the declared dtypes, and every target that rounds
    each operation once (in the declared dtype or a wider one), sums in any order and meets the
    accuracy of `language.meaning.SCALARS` is within `error` of it. Inputs count as exact. The
    formulas are in `language.inexact`, `language.operators` and `language.tile_meaning`, after
    Higham, Accuracy and Stability of Numerical Algorithms, chapters 3 and 4.
    """
    made = execute(function, arrays, BoundedNumbers())
    out: dict[str, Bounded] = {}
    for each in function.params:
        if each.name in written_names(function):
            held = made[each.name]
            out[each.name] = Bounded(held.value, held.error)
    return out
