"""Tensor maps: what a card is told of an array of which boxes are copied by the tensor memory accelerator.

A map follows from the copies of a kernel: the array, the box that one copy moves, how the box lies in shared
memory. The launch encodes it from the array's address, sizes and strides, and passes it by value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import ArgumentError
from ...ir import Buffer, Expr, Function, Stmt, lift
from ...ir.show import show
from ...ir.sizes import Number, size_value
from ...ir.stmt import statements
from .instructions.tma import TmaLoad, TmaStore

# CUtensorMapDataType, CUtensorMapSwizzle and CUtensorMapL2promotion of cuda.h. Elements are only moved, so
# that those without a number there go as bytes.
ELEMENTS = {
    "float16": 6, "float32": 7, "float64": 8, "bfloat16": 9, "int32": 3, "uint32": 2, "int64": 5, "uint64": 4,
    "int16": 1, "uint16": 1,
}  # fmt: skip
BYTES = 0
SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
PROMOTION_256 = 3
# Limits of an encoding (CUDA driver API, cuTensorMapEncodeTiled); coordinates have 32 bits and a sign.
MOST_RANK, MOST_BOX, UNIT = 5, 256, 16
MOST_EXTENT, MOST_STRIDE = 1 << 31, 1 << 40


@dataclass(frozen=True)
class TensorMap:
    """One map: boxes of extents `box`, by the array's dimensions, with a swizzle of so many bytes."""

    array: Buffer
    box: tuple[int, ...]
    swizzle: int = 0

    @property
    def told(self) -> str:
        """What it says, in a line."""
        array = self.array
        shape = ", ".join(show(lift(extent)) for extent in array.shape)
        strides = ", ".join(show(lift(stride)) for stride in array.element_strides)
        box = " x ".join(map(str, self.box))
        swizzle = f"swizzle of {self.swizzle} bytes" if self.swizzle else "no swizzle"
        return (
            f"{array.name}: {array.dtype.name} ({shape}), strides ({strides}), boxes of {box}, {swizzle},"
            " zeros outside, 256 bytes to L2"
        )


@dataclass(frozen=True)
class Encoding:
    """What `cuTensorMapEncodeTiled` gets besides the address: innermost dimension first, strides in bytes."""

    element: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int


def map_of(statement: Stmt) -> TensorMap | None:
    """The map that a statement of a thread needs; None: it needs none."""
    if isinstance(statement, TmaLoad):
        return TensorMap(statement.src.buffer, tuple(statement.src.extent or ()), statement.swizzle)
    if isinstance(statement, TmaStore):
        return TensorMap(statement.dst.buffer, tuple(statement.dst.extent or ()), statement.swizzle)
    return None


def tensor_maps(function: Function) -> tuple[TensorMap, ...]:
    """The maps that a launch needs, each once, in the order in which its statements name them."""
    found = [map_of(statement) for statement in statements(function.body)]
    return tuple(dict.fromkeys(each for each in found if each is not None))


def encoding_of(map: TensorMap, sizes: Mapping[str, Number]) -> Encoding:
    """How a map is encoded for the sizes of a call. Raises `ArgumentError` for an array that has none."""
    array = map.array
    extents = [_value(extent, sizes) for extent in array.shape]
    width = array.dtype.bits // 8
    strides = [_value(stride, sizes) * width for stride in array.element_strides]
    for dim, (extent, stride) in enumerate(zip(extents, strides, strict=True)):
        if dim < array.rank - 1 and extent > 1 and (stride % UNIT or stride >= MOST_STRIDE):
            raise ArgumentError(
                "{name} has a stride of {stride} bytes in dimension {dim}, and copies by tma need a multiple"
                " of 16", name=array.name, stride=stride, dim=dim,
                hint="pad its rows, or compile this kernel without instruction=\"tma\" for its copies",
            )  # fmt: skip
        if extent > MOST_EXTENT:
            raise ArgumentError(
                "{name} has {extent} elements in dimension {dim}, and copies by tma reach {most}",
                name=array.name, extent=extent, dim=dim, most=MOST_EXTENT,
            )  # fmt: skip
    # The stride of a single element is of no account, but has to be one that can be said.
    outer = [
        stride if extent > 1 else UNIT for extent, stride in zip(extents[:-1], strides[:-1], strict=True)
    ]
    return Encoding(
        ELEMENTS.get(array.dtype.name, BYTES), tuple(extents[::-1]), tuple(outer[::-1]), map.box[::-1],
        SWIZZLES[map.swizzle],
    )  # fmt: skip


def _value(size: int | Expr, sizes: Mapping[str, Any]) -> int:
    return size if isinstance(size, int) else int(size_value(size, sizes))
