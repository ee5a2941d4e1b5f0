"""Where the errors of a result are: a coarse map of how much of its bound each place uses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

CELLS = 32

HeatMap = tuple[tuple[float, ...], ...]


def heat_map(part: NDArray[np.float64]) -> tuple[HeatMap, tuple[int, int]]:
    """The greatest value in each of at most 32 by 32 patches, and how many elements a patch has a side.

    `part` holds each element's error as a part of its bound; leading axes are folded into rows.
    """
    if part.size == 0:
        return (), (1, 1)
    flat: Any = part.reshape(-1, part.shape[-1]) if part.ndim > 1 else part.reshape(1, -1)
    rows, cols = int(flat.shape[0]), int(flat.shape[1])
    step = (math.ceil(rows / CELLS), math.ceil(cols / CELLS))
    by_rows: Any = np.maximum.reduceat(flat, np.arange(0, rows, step[0]), axis=0)
    patches: Any = np.maximum.reduceat(by_rows, np.arange(0, cols, step[1]), axis=1)
    return tuple(tuple(float(v) for v in row) for row in patches), step
