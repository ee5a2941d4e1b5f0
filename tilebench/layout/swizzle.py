"""Shared-memory layouts: strides of a buffer, possibly padded, and an XOR swizzle of its offsets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import LayoutError

IntArray: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Swizzle:
    """CuTe's XOR swizzle of an element offset: `offset ^ ((offset & mask) >> shift)`.

    `bits` bits of the offset, `shift` above the bits from `base` on, are exclusive-ored onto
    those; 2**base elements in a row stay together. Its own inverse. Raises `LayoutError` when the
    two groups of bits overlap.
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        if self.bits < 0 or self.base < 0 or self.shift < self.bits:
            raise LayoutError(
                "Swizzle({bits}, {base}, {shift}) is not a permutation",
                bits=self.bits, base=self.base, shift=self.shift,
                expected="bits and base of at least 0, and a shift of at least bits",
            )  # fmt: skip

    def __repr__(self) -> str:
        return f"T.Swizzle({self.bits}, {self.base}, {self.shift})"

    @property
    def mask(self) -> int:
        """The offset bits that are read."""
        return ((1 << self.bits) - 1) << (self.base + self.shift)

    @property
    def granule(self) -> int:
        """The block of elements within which offsets are permuted: what a buffer is rounded up to."""
        return 1 << (self.base + self.bits)

    @property
    def period(self) -> int:
        """The elements after which the pattern repeats; a buffer's start must be aligned to it."""
        return 1 << (self.base + self.shift + self.bits)

    def __call__(self, offset: Any) -> Any:
        """The swizzled offset, of an integer or an integer array."""
        return offset ^ ((offset & self.mask) >> self.shift)


@dataclass(frozen=True)
class SharedLayout:
    """Where each element of a shared buffer lies, in elements from its start.

    `strides` is one a dimension (row-major or any order, padded or not); the swizzle acts on the
    sum. Raises `LayoutError` when strides and shape differ in rank or are not positive.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    swizzle: Swizzle | None = None

    def __post_init__(self) -> None:
        if len(self.shape) != len(self.strides) or min((*self.shape, *self.strides), default=1) < 1:
            raise LayoutError(
                "a shared layout needs an extent and a stride of at least 1 for each dimension",
                found="shape {shape}, strides {strides}",
                shape=self.shape,
                strides=self.strides,
            )

    def __repr__(self) -> str:
        tail = "" if self.swizzle is None else f", swizzle={self.swizzle!r}"
        return f"T.SharedLayout({self.shape!r}, {self.strides!r}{tail})"

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

    @property
    def order(self) -> tuple[int, ...]:
        """The dimensions from slowest to fastest."""
        return tuple(sorted(range(len(self.shape)), key=lambda d: (-self.strides[d], d)))

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def contiguous_dim(self) -> int | None:
        """The dimension of stride 1, None if there is none; the longest where extents of 1 tie."""
        found = [d for d, step in enumerate(self.strides) if step == 1]
        return max(found, key=lambda d: (self.shape[d], d)) if found else None

    @property
    def vector(self) -> int:
        """The elements along the fastest dimension that lie together and aligned, in any row."""
        fast = self.contiguous_dim
        if fast is None:
            return 1
        width = 1 << (self.swizzle.base if self.swizzle is not None and self.swizzle.bits else 30)
        for dim, (extent, step) in enumerate(zip(self.shape, self.strides, strict=True)):
            aligned = self.shape[fast] if dim == fast else step
            if extent > 1 or dim == fast:
                width = np.gcd(width, aligned)
        return int(width)

    @cached_property
    def cosize(self) -> int:
        """The elements the buffer occupies, rounded up to what the swizzle permutes."""
        plain = 1 + sum((n - 1) * d for n, d in zip(self.shape, self.strides, strict=True))
        unit = self.swizzle.granule if self.swizzle is not None else 1
        return -(-plain // unit) * unit

    def offset(self, index: Sequence[Any]) -> Any:
        """The element offset at an index a dimension (integers, or arrays that broadcast)."""
        total: Any = 0
        for at, step in zip(index, self.strides, strict=True):
            total = total + at * step
        return total if self.swizzle is None else self.swizzle(total)

    def all_offsets(self) -> IntArray:
        """The offsets of all elements, an int64 array of the buffer's shape."""
        return np.asarray(self.offset(np.indices(self.shape, dtype=np.int64, sparse=True)), np.int64)

    def is_injective(self) -> bool:
        """Whether no two elements share an offset, found by enumeration."""
        return bool(np.bincount(self.all_offsets().ravel()).max() == 1)
