"""Shared-memory layouts: a CuTe layout a dimension, and an XOR swizzle of the offsets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import gcd, prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import LayoutError
from .algebra import IntTuple, Layout, Mode, coalesce
from .swizzle import Swizzle

IntArray: TypeAlias = npt.NDArray[np.int64]
# Past every vector: what a layout without a swizzle keeps together.
_UNBOUNDED = 1 << 30


@dataclass(frozen=True)
class SharedLayout:
    """Where each element of a shared buffer lies, in elements from its start.

    `shape` and `strides` have an entry a dimension: an integer, or a nested tuple where the offset
    is not linear in the coordinate. `((128, (64, 2)), (64, (1, 8192)))` is a tile of 128 x 128 in two
    panels of 64 columns: column j adds `j % 64 + j // 64 * 8192` (the first mode is the fastest, as
    in the algebra). A dimension may reach past the buffer's extent; the offsets there stay unused.
    The swizzle acts on the sum. Raises `LayoutError` when the profiles differ, an extent or stride is
    below 1, or two elements share an offset.
    """

    shape: tuple[IntTuple, ...]
    strides: tuple[IntTuple, ...]
    swizzle: Swizzle | None = None

    def __post_init__(self) -> None:
        rising, apart = _checked(self.shape, self.strides)
        if not rising:
            raise LayoutError(
                "a shared layout needs a stride of at least 1 for each extent",
                found="shape {shape}, strides {strides}", shape=self.shape, strides=self.strides,
            )  # fmt: skip
        if not apart:
            raise LayoutError(
                "two elements of {layout} share an offset", layout=self,
                hint="each stride has to step past what the smaller ones reach",
            )  # fmt: skip

    def __repr__(self) -> str:
        tail = "" if self.swizzle is None else f", swizzle={self.swizzle!r}"
        return f"T.SharedLayout({self.shape!r}, {self.strides!r}{tail})"

    def named_after(self, field: str) -> str:
        """What a stage's text calls it behind the name of its buffer; one without a swizzle is short."""
        if self.swizzle is not None:
            return "swizzle"
        return "" if all(isinstance(extent, int) for extent in self.shape) else "panels"

    @staticmethod
    def ordered(
        shape: tuple[int, ...],
        order: tuple[int, ...] | None = None,
        pad: int = 0,
        swizzle: Swizzle | None = None,
    ) -> SharedLayout:
        """The layout with dimensions from slowest to fastest in `order` (default: row-major).

        `pad` elements are added behind each run of the fastest dimension.
        """
        walk = tuple(range(len(shape))) if order is None else order
        if sorted(walk) != list(range(len(shape))):
            raise LayoutError("{order} is not an order of {rank} dimensions", order=walk, rank=len(shape))
        strides, step = [1] * len(shape), 1
        for rank, dim in enumerate(reversed(walk)):
            strides[dim] = step
            step *= shape[dim]
            if rank == 0 and len(shape) > 1:
                step += pad
        return SharedLayout(shape, tuple(strides), swizzle)

    @staticmethod
    def rows(shape: tuple[int, ...], per_byte: int = 1) -> SharedLayout:
        """Row-major in rows of whole bytes, `per_byte` elements a byte: where nothing else is chosen."""
        return SharedLayout.ordered(shape, pad=-shape[-1] % per_byte if shape else 0)

    @cached_property
    def dims(self) -> tuple[Layout, ...]:
        """Each dimension as a layout of the fewest modes."""
        return _dims(self.shape, self.strides)

    @cached_property
    def modes(self) -> tuple[Mode, ...]:
        """The (extent, stride) pairs longer than 1 of all dimensions."""
        return tuple(mode for dim in self.dims for mode in dim.modes if mode[0] > 1)

    @property
    def extents(self) -> tuple[int, ...]:
        """The coordinates that each dimension has."""
        return tuple(dim.size for dim in self.dims)

    @property
    def order(self) -> tuple[int, ...]:
        """The dimensions from slowest to fastest, by the least stride of each."""
        least = [min(d for _, d in Layout(n, d).modes) for n, d in zip(self.shape, self.strides, strict=True)]
        return tuple(sorted(range(len(self.shape)), key=lambda d: (-least[d], d)))

    @property
    def size(self) -> int:
        return prod(self.extents)

    def run(self, dim: int) -> int:
        """How many neighbours along a dimension lie side by side: 1 where its first stride is not 1."""
        extent, step = self.dims[dim].modes[0]
        return extent if step == 1 else 1

    @cached_property
    def contiguous_dim(self) -> int | None:
        """The dimension whose neighbours lie side by side, None if there is none."""
        best = max(range(len(self.shape)), key=lambda d: (self.run(d), d), default=None)
        return best if best is not None and self.run(best) > 1 else None

    @cached_property
    def vector(self) -> int:
        """The elements along the fastest dimension that lie together and aligned, in any row."""
        fast = self.contiguous_dim
        if fast is None:
            return 1
        width = 1 << self.swizzle.base if self.swizzle is not None and self.swizzle.bits else _UNBOUNDED
        steps = (extent if step == 1 else step for extent, step in self.modes)
        return gcd(width, *steps)

    @cached_property
    def cosize(self) -> int:
        """The elements the buffer occupies, rounded up to what the swizzle permutes."""
        plain = 1 + sum((n - 1) * d for n, d in self.modes)
        unit = self.swizzle.granule if self.swizzle is not None else 1
        return -(-plain // unit) * unit

    def offset(self, index: Sequence[Any]) -> Any:
        """The element offset at an index a dimension (integers, or arrays that broadcast)."""
        total: Any = 0
        for coordinate, dim in zip(index, self.dims, strict=True):
            total = total + dim(coordinate)
        return total if self.swizzle is None else self.swizzle(total)

    def all_offsets(self) -> IntArray:
        """The offsets of all elements, an int64 array of the buffer's shape."""
        return np.asarray(self.offset(np.indices(self.extents, dtype=np.int64, sparse=True)), np.int64)

    def is_injective(self) -> bool:
        """Whether no two elements share an offset, found by enumeration."""
        return bool(np.bincount(self.all_offsets().ravel()).max() == 1)


# The candidates for one buffer differ in the swizzle alone: what shape and strides say is found once.
@lru_cache(maxsize=256)
def _dims(shape: tuple[IntTuple, ...], strides: tuple[IntTuple, ...]) -> tuple[Layout, ...]:
    return tuple(coalesce(Layout(n, d)) for n, d in zip(shape, strides, strict=True))


@lru_cache(maxsize=256)
def _checked(shape: tuple[IntTuple, ...], strides: tuple[IntTuple, ...]) -> tuple[bool, bool]:
    """Whether every stride is at least 1, and then whether no two elements share an offset."""
    whole = Layout(shape, strides)
    rising = min((step for _, step in whole.modes), default=1) >= 1
    return rising, rising and _apart(whole)


def _apart(layout: Layout) -> bool:
    """Whether no two coordinates share an offset: told by strides where each steps past the smaller ones."""
    reach = 0
    for step, extent in sorted((d, n) for n, d in layout.modes if n > 1):
        if step <= reach:
            return bool(np.bincount(layout(np.arange(layout.size, dtype=np.int64))).max() == 1)
        reach += (extent - 1) * step
    return True


def atom_layout(
    shape: tuple[int, ...], bits: int, atom_bytes: int = 128, order: tuple[int, ...] | None = None
) -> SharedLayout:
    """The canonical swizzled layout of tensor memory accelerators and warp-group products.

    The fastest dimension of `order` (default: the last) is cut into panels of `atom_bytes` (128, 64
    or 32); a panel holds its rows one after the other, padded to the 8 rows of an atom, and panels
    follow each other. Within an atom 16-byte units change places by XOR with the number of the
    128-byte line: `Swizzle<3|2|1, 4, 3>` of byte addresses (PTX ISA, "Asynchronous warpgroup-level
    matrix shared memory layout"). `bits` is the size of an element.

    Raises `LayoutError` for another atom, or where the fastest dimension is no whole atom wide.
    """
    swizzle_bits = {128: 3, 64: 2, 32: 1}.get(atom_bytes)
    if swizzle_bits is None or bits > 128 or 128 % bits:
        raise LayoutError(
            "there is no swizzle atom of {bytes} bytes for elements of {bits} bits",
            bytes=atom_bytes, bits=bits, expected="128, 64 or 32 bytes",
        )  # fmt: skip
    walk = tuple(range(len(shape))) if order is None else order
    width, extent = atom_bytes * 8 // bits, shape[walk[-1]]
    if extent < width or len(shape) < 2:
        raise LayoutError(
            "a tile of {shape} is narrower than a swizzle atom of {bytes} bytes", shape=shape,
            bytes=atom_bytes, width=width,
            expected="two dimensions, the fastest of at least {width} elements",
        )  # fmt: skip
    fast, slow = walk[-1], walk[-2]
    rows, panels = -(-shape[slow] // 8) * 8, -(-extent // width)
    modes: list[IntTuple] = list(shape)
    strides: list[IntTuple] = [1] * len(shape)
    strides[slow] = width
    if panels > 1:
        modes[fast], strides[fast] = (width, panels), (1, rows * width)
    step = panels * rows * width
    for dim in reversed(walk[:-2]):
        strides[dim] = step
        step *= shape[dim]
    base = (128 // bits).bit_length() - 1
    return SharedLayout(tuple(modes), tuple(strides), Swizzle(swizzle_bits, base, 3))
