"""Whether a large result lies within its bounds, with what a run's record says of that, and no more.

`check.compare_output` finds the worst elements, the map and the patches too, in a dozen arrays as large as
the result. Of a hundred configurations ninety-nine are right, and of those nobody asks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..ir import DType
from .bounds import Bounded
from .check import OutputReport
from .chunks import in_chunks


class _Chunk(NamedTuple):
    """Of one chunk: whether all lies within, the largest error with its bound, the worst ratio, no bounds."""

    ok: bool
    error: float = 0.0
    bound: float = 0.0
    ratio: float = 0.0
    unbounded: int = 0


_OUTSIDE = _Chunk(False)


def report_within(
    got: NDArray[Any], bounded: Bounded, dtype: DType, name: str, *, fresh: bool = False
) -> OutputReport | None:
    """The report of an output that is right everywhere, without worst elements, map and patches.

    None where something is wrong, or where that takes more than a look at each element by itself.
    """
    alone = bounded.known is None and bounded.either is None
    alone = alone and (bounded.stored is None or bool(bounded.stored.all()))
    if not alone or not got.size or got.shape != bounded.value.shape or got.dtype != dtype.numpy:
        return None
    flat: Any = np.ascontiguousarray(got).reshape(-1)
    values: Any = np.ascontiguousarray(bounded.value).reshape(-1)
    limits: Any = np.ascontiguousarray(bounded.error).reshape(-1)
    look = _look_at_floats if dtype.is_float else _look_at_whole
    found = in_chunks(flat.size, lambda part: look(flat[part], values[part], limits[part]))
    if not all(one.ok for one in found):
        return None
    largest = max(found, key=lambda one: one.error)
    return OutputReport(
        name, dtype.name, tuple(got.shape), int(got.size), int(got.size), 0, 0,
        sum(one.unbounded for one in found), largest.error, largest.bound, max(one.ratio for one in found),
    )  # fmt: skip


def _look_at_floats(got: Any, values: Any, limits: Any) -> _Chunk:
    a, b = got.astype(np.float64), values.astype(np.float64, copy=False)
    with np.errstate(all="ignore"):
        error: Any = np.abs(a - b)
        if not np.isfinite(error).all():  # NaN for NaN and infinity for infinity are right
            error[(a == b) | (np.isnan(a) & np.isnan(b))] = 0.0
    return _measured(error, limits)


def _look_at_whole(got: Any, values: Any, limits: Any) -> _Chunk:
    if not bool((got == values).all()):  # as such: doubles near 2**63 fall together
        return _OUTSIDE
    free: Any = limits == np.inf
    return _Chunk(True, 0.0, float(limits[0]), 0.0, int(np.count_nonzero(free)))


def _measured(error: Any, limits: Any) -> _Chunk:
    with np.errstate(all="ignore"):
        # NaN compares as false, and is outside too
        if not bool((error <= limits).all()):
            return _OUTSIDE
        free: Any = limits == np.inf
        unbounded = int(np.count_nonzero(free))
        if unbounded:
            error = np.where(free, 0.0, error)
        ratio: Any = error / limits
    top = int(np.argmax(error))
    # 0 / 0 is no number: nothing is allowed there, and nothing is off
    worst = float(np.fmax.reduce(ratio, initial=0.0))
    return _Chunk(True, float(error[top]), float(limits[top]), worst, unbounded)
