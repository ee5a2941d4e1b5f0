"""XOR swizzles of offsets in shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import LayoutError


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
