"""Choosing a shared-memory layout by its computed bank conflicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd

import numpy as np
import numpy.typing as npt

from .analysis import bank_conflicts
from .shared import SharedLayout, atom_layout
from .swizzle import Swizzle

# Swizzle atoms in bytes, widest first, and what moves as one within them.
ATOMS, ATOM_UNIT = (128, 64, 32), 16


@dataclass(frozen=True, eq=False)
class AccessPattern:
    """A way a buffer is read or written: for each instruction and lane, the first element's index.

    `index` holds an array a dimension, of shape (instructions, lanes) or what broadcasts to it;
    each lane takes `elements` along the fastest dimension. `weight` is how often it happens,
    against the other accesses.
    """

    index: tuple[npt.NDArray[np.int64], ...]
    elements: int = 1
    weight: float = 1.0
    active: npt.NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class PricedLayout:
    """A layout with its price: weighted wavefronts, the ideal, and the bytes of the buffer."""

    layout: SharedLayout
    wavefronts: float
    ideal: float
    bytes: int


def candidates(
    shape: tuple[int, ...], element_bits: int, vector_bytes: int, order: tuple[int, ...] | None = None
) -> tuple[SharedLayout, ...]:
    """Plain, swizzled, in panels of an atom, and padded by one vector, in order of preference.

    The swizzles over 32, 64 and 128 bytes exclusive-or vectors with the number of the 128-byte line, or
    of the row where rows are a longer power of two, or of every second or fourth row, or of as many rows as a
    vector has elements: lanes that put vectors of columns together read that many rows apart. Swizzles that
    would tear a vector or a row are left out. Rows of several atoms are cut into panels of the widest atom
    that divides them.
    """
    per_byte = max(1, 8 // element_bits)
    plain = SharedLayout.rows(shape, per_byte) if order is None else SharedLayout.ordered(shape, order)
    vector = max(1, vector_bytes * 8 // element_bits)
    if len(shape) < 2 or plain.vector % vector:
        return (plain,)
    fast = plain.order[-1]
    row = shape[fast] * element_bits // 8
    base = vector.bit_length() - 1
    layouts, later = [plain], list[SharedLayout]()
    if 1 << base == vector:
        own = (row // vector_bytes).bit_length() - 1 if row & (row - 1) == 0 else 3
        for bits in (1, 2, 3):
            if row % (vector_bytes << bits):
                continue
            for shift in sorted(each for each in {3, own} if each >= bits):
                layouts.append(SharedLayout.ordered(shape, order, swizzle=Swizzle(bits, base, shift)))
            # Lanes that go down in steps of 2 or 4 rows: what tells their rows apart lies higher.
            for shift in sorted({own + 1, own + 2, own + base}):
                if shift >= bits and plain.size >> (base + shift):
                    later.append(SharedLayout.ordered(shape, order, swizzle=Swizzle(bits, base, shift)))
    atom = next((size for size in ATOMS if row % size == 0), row)
    if row > atom and vector_bytes <= ATOM_UNIT:
        layouts.append(atom_layout(shape, element_bits, atom, order))
    layouts.append(SharedLayout.ordered(shape, order, pad=vector))
    # Atoms that rows do not fill: what is left empty is memory, of which a quarter of a row is borne.
    wider = [size for size in ATOMS if atom < size < row and -(-row // size) * size * 4 <= row * 5]
    if vector_bytes <= ATOM_UNIT:
        later += [atom_layout(shape, element_bits, size, order) for size in wider]
    return tuple(dict.fromkeys([*layouts, *later]))


def price(
    layout: SharedLayout, element_bits: int, accesses: Sequence[AccessPattern], banks: int, bank_bytes: int
) -> PricedLayout:
    """The weighted wavefronts of `accesses` on one layout.

    An access wider than the vectors that the layout keeps together costs an instruction a piece.
    """
    total = ideal = 0.0
    for access in accesses:
        wavefronts, least = _wavefronts(layout, element_bits, access, banks, bank_bytes)
        total += access.weight * wavefronts
        ideal += access.weight * least
    return PricedLayout(layout, total, ideal, -(-layout.cosize * element_bits // 8))


@lru_cache(maxsize=8192)
def _wavefronts(
    layout: SharedLayout, element_bits: int, access: AccessPattern, banks: int, bank_bytes: int
) -> tuple[int, int]:
    """The wavefronts of one access, and the least possible. Kept: buffers of one shape are read alike."""
    total = ideal = 0
    piece = gcd(access.elements, layout.vector)
    fast = layout.order[-1] if layout.contiguous_dim is None else layout.contiguous_dim
    width = max(1, piece * element_bits // 8)
    for k in range(0, access.elements, piece):
        index = [position + k if dim == fast else position for dim, position in enumerate(access.index)]
        first_byte = np.asarray(layout.offset(index)) * element_bits // 8
        conflicts = bank_conflicts(first_byte, width, banks, bank_bytes, access.active)
        total += conflicts.total
        ideal += int(conflicts.ideal.sum())
    return total, ideal


def best_swizzle(
    shape: tuple[int, ...],
    element_bits: int,
    vector_bytes: int,
    accesses: Sequence[AccessPattern],
    banks: int,
    bank_bytes: int,
    order: tuple[int, ...] | None = None,
) -> PricedLayout:
    """The candidate with the fewest wavefronts; then the smaller buffer, then the simpler one."""
    priced = [
        price(layout, element_bits, accesses, banks, bank_bytes)
        for layout in candidates(shape, element_bits, vector_bytes, order)
    ]
    return min(priced, key=lambda choice: (choice.wavefronts, choice.bytes))
