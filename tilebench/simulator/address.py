"""Where an element lies, in bits: the one place of the simulator that knows how wide elements are stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir import Buffer, DType


def stored_bits(dtype: DType) -> int:
    """The bits that one element of a dtype takes in memory."""
    return dtype.bits


def buffer_bits(buffer: Buffer) -> int:
    """The bits that a whole buffer takes in memory."""
    return buffer.bytes * 8


def first_bit(buffer: Buffer, index: list[Any], base: int = 0) -> Any:
    """The first bit of the element at `index` (an array of one number a lane, a dimension).

    `base` is the buffer's first bit in its memory.
    """
    element: Any = np.int64(0)
    for number, stride in zip(index, buffer.element_strides, strict=True):
        element = element + number * stride
    return element * stored_bits(buffer.dtype) + base


def cells_of(bits: Any, width: int, cell_bits: int) -> Any:
    """(lanes, cells) numbers of the cells that accesses of `width` bits from `bits` on touch.

    Accesses are aligned to their elements, and a cell is no wider than an element.
    """
    first = np.asarray(bits) // cell_bits
    count = max(1, width // cell_bits)
    return first[:, None] if count == 1 else first[:, None] + np.arange(count, dtype=np.int64)
