"""Parts of a tile that copies in boxes fill: where they may begin, so that a box lies as its rows say.

A box is laid down row by row from its first byte on, and swizzled by addresses. So a part has to begin at
whole panels of its layout, and at a whole period of the swizzle.
"""

from __future__ import annotations

from ...ir import Region, const_of
from ...layout import SharedLayout


def why_no_part(part: Region, layout: SharedLayout, bits: int, swizzle: int) -> str:
    """Why a part of a tile of that layout cannot be filled in boxes; empty: it can.

    `swizzle` is the width of its atoms in bytes. A start that is no constant is taken for a multiple of the
    part's extent, which whoever makes the code has to prove (`unproved`).
    """
    extent, name = part.extent or (), part.buffer.name
    for dim, (start, size) in enumerate(zip(part.start, extent, strict=True)):
        own, known = layout.dims[dim], const_of(start)
        every = range(0, part.buffer.extents[dim] - size + 1, size)
        for first in every if known is None else (known,):
            base = int(own(first))
            if any(int(own(first + k)) - base != int(own(k)) for k in range(size)):
                return f"the part of {name} that it fills begins within a panel"
            if base * bits // 8 % max(swizzle * 8, 16):
                return f"the part of {name} that it fills begins within the swizzle's {swizzle * 8} bytes"
    return ""


def unproved(part: Region, divisors: tuple[int, ...]) -> int | None:
    """The first dimension whose start is not proved a multiple of the part's extent; None: all are.

    `divisors` are what the starts are known to be multiples of.
    """
    for dim, (start, size) in enumerate(zip(part.start, part.extent or (), strict=True)):
        if size > 1 and const_of(start) is None and divisors[dim] % size:
            return dim
    return None
