"""Where an element lies, in bits: the one place of the simulator that knows how wide elements are stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir import Buffer, DType
from ..ir.packing import of_codes

_where: Any = np.where


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


def byte_numbers(buffer: Buffer, index: list[Any], count: int) -> Any:
    """(lanes, bytes) numbers of the bytes of an array that `count` packed elements from `index` on touch."""
    return cells_of(first_bit(buffer, index), count * stored_bits(buffer.dtype), 8)


def halves(raw: Any, bits: Any, count: int, dtype: DType) -> Any:
    """(lanes, count) packed elements of (lanes, bytes): of one element the half that `bits` says."""
    both = np.stack([raw & 15, raw >> 4], axis=-1).reshape(len(raw), -1)
    chosen = both if count > 1 else np.take_along_axis(both, _half(bits), axis=1)
    return of_codes(chosen, dtype)


def merged(raw: Any, bits: Any, values: Any) -> Any:
    """(lanes, bytes) with (lanes, count) packed elements put in; of one element the other half stays."""
    nibbles = np.ascontiguousarray(values).view(np.uint8) & 15
    if nibbles.shape[1] > 1:
        return nibbles[:, 0::2] | (nibbles[:, 1::2] << 4)
    first_half: Any = (raw & 0xF0) | nibbles
    second_half: Any = (raw & 15) | (nibbles << 4)
    return _where(_half(bits) == 0, first_half, second_half)


def _half(bits: Any) -> Any:
    return (np.asarray(bits, np.int64) // 4 % 2)[:, None]


def cells_of(bits: Any, width: int, cell_bits: int) -> Any:
    """(lanes, cells) numbers of the cells that accesses of `width` bits from `bits` on touch.

    Accesses are aligned to their elements, and a cell is no wider than an element.
    """
    first = np.asarray(bits) // cell_bits
    count = max(1, width // cell_bits)
    return first[:, None] if count == 1 else first[:, None] + np.arange(count, dtype=np.int64)
