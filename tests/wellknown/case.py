"""A well-known kernel with its arrays and what is right for them: a row of the table that tests and cards
share.

An oracle is the algorithm in float64, written from its formula and not from the kernel, for NumPy or torch
(`xp`). It says of each output what is right, and how far float32's work on the way may be off: the standard
bounds of sums and products (Higham, Accuracy and Stability of Numerical Algorithms, chapters 3 and 4), with
a factor of two where a card's matrix instruction truncates. The rounding to the output's dtype is added
here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tilebench.library.near import SINGLE, UNIT, Exact

Arrays = dict[str, Any]


def numpy_dtype(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


@dataclass
class Draw:
    """Arrays from a seed. Outputs hold what no kernel writes."""

    random: np.random.Generator

    def floats(self, *shape: int, dtype: str, low: float = -1.0, high: float = 1.0) -> NDArray[Any]:
        drawn = self.random.random(shape, np.float32) * (high - low) + low
        return drawn.astype(numpy_dtype(dtype))

    def integers(self, *shape: int, dtype: str = "int32", low: int = 0, high: int = 8) -> NDArray[Any]:
        """From `low` up to and without `high`."""
        return self.random.integers(low, high, shape).astype(numpy_dtype(dtype))

    def output(self, *shape: int, dtype: str) -> NDArray[Any]:
        kind = numpy_dtype(dtype)
        return np.full(shape, -77, kind) if kind.kind in "iu" else np.full(shape, np.nan).astype(kind)


@dataclass(frozen=True)
class Case:
    """A kernel function, its parameters, `arrays(draw)` by the names of the kernel's, and the oracle.

    `oracle(xp, arrays, parameters)` gets the arrays wide, as they were before the call, and gives an
    `Exact` for each output. `native(torch, arrays)` is the same by torch's own operation. `large` is for
    cards alone.
    """

    name: str
    kernel: Any
    parameters: Mapping[str, Any]
    arrays: Callable[[Draw], Arrays]
    oracle: Callable[[Any, Arrays, Mapping[str, Any]], Mapping[str, Exact]]
    native: Callable[[Any, Arrays], Callable[[], Any]] | None = None
    large: bool = False
    archs: tuple[str, ...] = field(default=("sm_80", "sm_90a"))

    def drawn(self, seed: int = 0) -> Arrays:
        return self.arrays(Draw(np.random.default_rng(seed)))


def widened(arrays: Arrays) -> Arrays:
    """Host arrays as oracles get them."""
    return {
        name: a.astype(np.int64 if a.dtype.name not in UNIT else np.float64) for name, a in arrays.items()
    }


def sum_error(terms: int, magnitude: Any, unit: float = SINGLE) -> Any:
    """The error of a sum of products, whose terms have `magnitude` together."""
    return (2 * terms + 4) * unit * magnitude
