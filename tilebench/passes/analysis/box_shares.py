"""How blocks of a cluster share a tile that all of them read: each brings a part of its boxes for all.

The parts of all ranks have the same boxes, in places that move evenly from rank to rank, so that one text
is right for every block.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from .boxes import START, UNIT, Cut

Place = tuple[tuple[int, ...], int]


@dataclass(frozen=True)
class Share:
    """The boxes of rank 0, of extents `box`, and how far those of the next rank lie from them.

    `step` is in the array, by dimension, and `stride` in the tile's memory, in elements.
    """

    box: tuple[int, ...]
    pieces: tuple[Place, ...]
    step: tuple[int, ...]
    stride: int


def shares(cut: Cut, blocks: int, bits: int) -> Share | str:
    """The part of a tile of elements of so many bits that each of some blocks brings; or why they cannot."""
    box, pieces = cut.box, list(cut.pieces)
    if len(pieces) % blocks:
        parted = _parted(cut, blocks, bits)
        if isinstance(parted, str):
            return parted
        box, pieces = parted
    count = len(pieces) // blocks
    of_rank = [pieces[rank * count : (rank + 1) * count] for rank in range(blocks)]
    (where, first), (beside, second) = of_rank[0][0], of_rank[1][0]
    step = tuple(b - a for a, b in zip(where, beside, strict=True))
    stride = second - first
    for rank, own in enumerate(of_rank):
        for (where, first), (there, place) in zip(of_rank[0], own, strict=True):
            moved = tuple(a + rank * by for a, by in zip(where, step, strict=True))
            if (moved, first + rank * stride) != (there, place):
                return f"the parts of {blocks} blocks do not lie evenly in it"
    return Share(box, tuple(of_rank[0]), step, stride)


def _parted(cut: Cut, blocks: int, bits: int) -> tuple[tuple[int, ...], list[Place]] | str:
    """Each box in as many parts as there are blocks; those of one rank follow each other."""
    dim = next((d for d, size in enumerate(cut.box) if size > 1), 0)
    rows = cut.box[dim]
    box = tuple(size // blocks if d == dim else size for d, size in enumerate(cut.box))
    size = prod(box) * bits // 8
    # The pattern of a swizzle begins anew after eight of its rows.
    unit = cut.swizzle * (START // UNIT) if cut.swizzle else START
    if rows % blocks or size % unit or (dim == len(cut.box) - 1 and cut.swizzle):
        return f"a box of {' x '.join(map(str, cut.box))} has no {blocks} parts of whole {unit} bytes"
    pieces = [
        (tuple(n + rank * box[dim] * (d == dim) for d, n in enumerate(where)), first + rank * prod(box))
        for rank in range(blocks)
        for where, first in cut.pieces
    ]
    return box, pieces


__all__ = ["Share", "shares"]
