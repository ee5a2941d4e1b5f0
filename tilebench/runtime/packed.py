"""Arguments whose elements share a byte: those of 4 bits.

A kernel works on rows of bytes, two elements each (`ir.packing`). A caller passes either those bytes, as int8
or uint8 (or torch's pairs) of shape (..., ceil(n / 2)), from any library; or a NumPy array of `ml_dtypes`'
own dtype, one a byte, of which a packed copy is used and, where the kernel writes, given back after the call.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from ..errors import ArgumentError, Place
from ..ir.dtypes import DType, dtype_of
from ..ir.packing import pack, packed_shape, unpack
from ..record import ParamRecord
from .dlpack import row_major

# What kernels call the dtypes of arrays that may hold packed elements.
BYTES = frozenset({"int8", "uint8"})


@dataclass(frozen=True)
class PackedCopy:
    """A caller's array with an element a byte, and the packed copy that the kernel works on."""

    given: Any
    packed: Any
    dtype: DType
    written: bool

    def take_up(self) -> None:
        """What the caller's array holds now goes into the packed copy."""
        self.packed[...] = pack(self.given)

    def give_back(self) -> None:
        """What the kernel wrote goes into the caller's array."""
        if self.written:
            self.given[...] = unpack(self.packed, self.given.shape, self.dtype)


def give_back(described: Iterable[Any]) -> None:
    """After a call: results in packed copies go into the callers' arrays."""
    for info in described:
        if isinstance(info.owner, PackedCopy):
            info.owner.give_back()


def take_up(described: Iterable[Any]) -> None:
    """Before another run: what callers' arrays hold now goes into their packed copies."""
    for info in described:
        if isinstance(info.owner, PackedCopy):
            info.owner.take_up()


def packed_bytes(param: ParamRecord) -> int:
    """Bytes of a packed parameter; 0 of one that is not."""
    dtype = dtype_of(param.dtype)
    return math.prod(packed_shape(tuple(param.extents), dtype)) if dtype.per_byte > 1 else 0


def packed_argument(info: Any, param: ParamRecord, place: Place | None) -> Any:
    """What a described array (`ArrayInfo`) is for a packed parameter: an array of bytes.

    Raises `ArgumentError` where it is neither packed bytes nor one element a byte, or not contiguous.
    """
    shape, dtype = tuple(param.extents), dtype_of(param.dtype)
    bytes_shape = packed_shape(shape, dtype)
    owner: object = info.owner
    if info.dtype == dtype and info.shape == shape and isinstance(owner, np.ndarray):
        packed = pack(info.owner)
        pointer = packed.__array_interface__["data"][0]
        if param.written and not info.writable:
            _refuse(info, param, place)
        copied = PackedCopy(info.owner, packed, dtype, param.written)
        return info._replace(
            pointer=pointer, shape=bytes_shape, strides=row_major(bytes_shape), dtype=dtype_of("uint8"),
            writable=True, owner=copied,
        )  # fmt: skip
    fits = info.dtype.name in BYTES and info.shape == bytes_shape
    if not fits or not _in_rows(info) or (param.written and not info.writable):
        _refuse(info, param, place)
    return info


def _in_rows(info: Any) -> bool:
    """Whether the bytes follow each other row by row; strides of extents of 1 do not matter."""
    steps = zip(info.shape, info.strides, row_major(info.shape), strict=True)
    return all(extent == 1 or stride == step for extent, stride, step in steps)


def _refuse(info: Any, param: ParamRecord, place: Place | None) -> NoReturn:
    shape, dtype = tuple(param.extents), dtype_of(param.dtype)
    raise ArgumentError(
        "{name} is not what a parameter of {dtype} takes", at=place, name=param.name, dtype=dtype,
        held=packed_shape(shape, dtype), shape=shape, got=info.shape, kind=info.dtype,
        note="" if _in_rows(info) else ", not contiguous in rows",
        expected="uint8 or int8 of shape {held}, two elements a byte and contiguous in rows, or an ml_dtypes "
        "array of {dtype} of shape {shape}" + (", writable" if param.written else ""),
        found="{kind} of shape {got}{note}",
        hint="the element of even index is the low half of its byte",
    )  # fmt: skip
