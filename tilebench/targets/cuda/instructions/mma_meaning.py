"""What the words of the tensor cores do in the simulator.

Sums of 16-bit floats are formed as the card forms them (`tensor_sums`): products exact, aligned to the
largest exponent and cut off, the total cut off to float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir import Stmt
from ....layout import Fragment
from ....simulator.lanes import elements
from ....simulator.refusal import refuse
from ..tensor_cores import shape_named
from .mma import LoadMatrix, Mma
from .tensor_sums import product_sums

_ROWS, _ROW_BYTES, _LANES = 8, 16, 4


def load_matrix(lanes: Any, statement: LoadMatrix, mask: Any) -> None:
    """Each thread's row read, and its 4 bytes of each matrix written."""
    _whole_warps(lanes, statement, mask)
    bits = statement.dst.buffer.dtype.bits
    inner = 32 // bits
    chunk, matrices = _ROW_BYTES * 8 // bits, elements(statement.dst) // inner
    if elements(statement.src) != chunk or matrices not in (1, 2, 4) or (statement.turned and bits != 16):
        refuse("T.ldmatrix brings 1, 2 or 4 matrices of rows of 16 bytes", statement)
    # (elements, threads) to (warps, matrices, rows, elements of a row)
    rows = lanes.read(statement.src, mask).T.reshape(-1, 4, _ROWS, chunk)[:, :matrices]
    if statement.turned:
        rows = rows.swapaxes(2, 3)
    parts = rows.reshape(-1, matrices, _ROWS, _LANES, inner).transpose(0, 2, 3, 1, 4)
    lanes.write(statement.dst, parts.reshape(-1, matrices * inner).T, mask)


def mma(lanes: Any, statement: Mma, mask: Any) -> None:
    """The product of each warp."""
    _whole_warps(lanes, statement, mask)
    shape = shape_named(statement.shape, statement.a.buffer.dtype.bits)
    a = _gathered(lanes.read(statement.a, mask), shape.a)
    b = _gathered(lanes.read(statement.b, mask), shape.b)
    c = _gathered(lanes.read(statement.c, mask), shape.c)
    dtype = statement.a.buffer.dtype
    result = product_sums(a, b, c, dtype)
    lanes.write(statement.c, _scattered(result, shape.c), mask)


def _whole_warps(lanes: Any, statement: Stmt, mask: Any) -> None:
    if lanes.threads % lanes.warp or lanes.whole_warps(mask) is None:
        refuse(
            "not all threads of a warp take part in T.{word}", statement, word=getattr(statement, "word", "")
        )


def _gathered(values: Any, fragment: Fragment) -> Any:
    """(values, threads) to (warps, rows, columns)."""
    by_warp = values.T.reshape(-1, fragment.threads, fragment.values)
    tile = np.empty((len(by_warp), *fragment.extents), values.dtype)
    tile[(slice(None), *fragment.all_coordinates)] = by_warp
    return tile


def _scattered(tile: Any, fragment: Fragment) -> Any:
    """The way back."""
    return tile[(slice(None), *fragment.all_coordinates)].reshape(-1, fragment.values).T
