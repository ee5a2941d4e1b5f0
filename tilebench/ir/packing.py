"""Elements of 4 bits as memory has them: two a byte, rows of whole bytes.

The element of even index lies in the low half of its byte. In NumPy they are one a byte (`ml_dtypes`), and
torch has no such dtype: there a packed array is one of bytes, (..., ceil(n / 2)) for n elements a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .dtypes import DType


def packed_shape(shape: tuple[int, ...], dtype: DType) -> tuple[int, ...]:
    """The shape of the bytes that hold an array of packed elements."""
    return (*shape[:-1], -(-shape[-1] // dtype.per_byte)) if shape else (1,)


def pack(values: Any) -> NDArray[np.uint8]:
    """An array of elements of 4 bits, (..., n) one a byte, as (..., ceil(n / 2)) bytes."""
    nibbles: NDArray[np.uint8] = np.asarray(values).view(np.uint8) & np.uint8(15)
    nibbles = nibbles.reshape(1) if nibbles.ndim == 0 else nibbles
    if nibbles.shape[-1] % 2:
        nibbles = np.concatenate([nibbles, np.zeros((*nibbles.shape[:-1], 1), np.uint8)], axis=-1)
    return nibbles[..., 0::2] | (nibbles[..., 1::2] << np.uint8(4))


def unpack(stored: Any, shape: tuple[int, ...], dtype: DType) -> Any:
    """The array of `shape` that bytes of `packed_shape` hold, one element a byte."""
    raw = np.asarray(stored).view(np.uint8)
    both = np.stack([raw & 15, raw >> 4], axis=-1).reshape(*raw.shape[:-1], -1)
    return of_codes(both[..., : shape[-1] if shape else 1], dtype).reshape(shape)


def of_codes(codes: Any, dtype: DType) -> Any:
    """Elements of 4 bits, one a byte, of bytes with the numbers that their bits are."""
    # In NumPy the byte of an integer has its sign, that of a float its four bits.
    return codes.view(dtype.numpy) if dtype.is_float else codes.astype(np.int8).astype(dtype.numpy)
