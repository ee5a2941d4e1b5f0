"""Copies that an instruction carries out in boxes: which it takes, and how a tile is cut into boxes.

Such an instruction brings a box of an array, row by row, to one place in shared memory, and puts zeros in
place of what lies outside of the array. So the array has to be one that it can be told of, the copy's edges
have to be the array's own, and the tile's layout one that boxes laid one behind the other give.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ...ir import Region, lift, show
from ...ir.arith import Linear, linear
from ...ir.facts import Facts
from ...language.copy import Copy, Within
from ...language.lowered.tokens import BY_HAND
from ...layout import SharedLayout, Swizzle
from ...machine import Boxes
from .box_parts import why_no_part

# Units of a swizzle, and what starts of boxes are multiples of, in bytes.
UNIT, START = 16, 128


@dataclass(frozen=True)
class Cut:
    """A tile in boxes of extents `box`, a number a dimension of the array, with a swizzle of so many bytes.

    `pieces` are the boxes: where each starts in the copy's box of the array, and in the tile's memory.
    """

    box: tuple[int, ...]
    swizzle: int
    pieces: tuple[tuple[tuple[int, ...], int], ...]


def sides(copy: Copy) -> tuple[Region, Region]:
    """The array's side of a copy and the tile's: an array is filled from a tile, or a tile from an array."""
    return (copy.dst, copy.src) if copy.dst.buffer.scope == "global" else (copy.src, copy.dst)


def why_no_boxes(
    copy: Copy, boxes: Boxes, arrays: frozenset[str], others: frozenset[str], facts: Facts
) -> str:
    """The rule by which a copy cannot be carried out in boxes, whatever its tile's layout; empty: none.

    `arrays` are the names of those that a caller brings, `others` of those that something of another kind
    writes, or also reads where boxes of them are written: nothing orders the two. `facts` hold at the copy.
    """
    src, dst = copy.src.buffer, copy.dst.buffer
    part, tile = sides(copy)
    bits, name = src.dtype.bits, part.buffer.name
    if {src.scope, dst.scope} != {"global", "shared"}:
        return "it moves no tile between global and shared memory"
    if src.dtype != dst.dtype:
        return f"it makes {dst.dtype.name} of {src.dtype.name}"
    if bits < 8:
        return f"elements of {bits} bits share bytes"
    if not tile.is_whole and copy.token != BY_HAND:
        return f"it moves a part of {tile.buffer.name} only"
    if name not in arrays:
        return f"{name} is no array that a caller brings"
    if name in others:
        return f"{name} is read or written otherwise by the kernel too"
    within = copy.src_within if part is copy.src else copy.dst_within
    return _of_array(part, boxes) or _of_edges(part, within) or _of_start(copy, part, boxes, facts)


def _of_array(region: Region, boxes: Boxes) -> str:
    array = region.buffer
    if array.rank > boxes.rank:
        return f"{array.name} has {array.rank} dimensions, and a box at most {boxes.rank}"
    if array.align % boxes.align:
        return f"{array.name} may start at an address that is no multiple of {boxes.align} bytes"
    strides = array.element_strides
    if strides[-1:] != (1,):
        return f"neighbours along the last dimension of {array.name} do not lie side by side"
    for stride in strides[:-1]:
        if isinstance(stride, int) and stride * array.dtype.bits // 8 % boxes.align:
            size = stride * array.dtype.bits // 8
            return f"a stride of {array.name} is {size} bytes, no multiple of {boxes.align}"
    return ""


def _of_edges(part: Region, within: Within) -> str:
    array, extent = part.buffer, part.extent or ()
    for dim, limit in enumerate(within or ()):
        if limit is not None and limit != array.shape[dim]:
            end = show(lift(array.shape[dim]))
            return f"it ends at {show(lift(limit))} in dimension {dim}, and {array.name} at {end}"
    row = (extent[-1] if extent else 1) * array.dtype.bits // 8
    if row % UNIT:
        return f"its rows have {row} bytes, no multiple of {UNIT}"
    return ""


def _of_start(copy: Copy, part: Region, boxes: Boxes, facts: Facts) -> str:
    """A row of a box starts at whole units of memory, and a box that is stored not in front of the array; the
    card ends the launch else. So that has to be proved.

    Who issues a copy by hand answers for it: it is refused where it is wrong for certain.
    """
    start, unit = part.start[-1], boxes.align * 8 // part.buffer.dtype.bits
    where = f"its rows start at element {show(start)} of {part.buffer.name}'s"
    if not facts.divides(unit, start):
        form = linear(facts.resolved(start))
        certain = form.constant % unit and facts.divisor_of(Linear(form.terms, 0)) % unit == 0
        if copy.token != BY_HAND or certain:
            known = "is not" if certain else "is not known to be"
            return f"{where}, which {known} a multiple of {unit} ({boxes.align} bytes)"
    for dim, first in enumerate(part.start if part is copy.dst else ()):
        certain = facts.bounds(first)[1] < 0
        if not facts.proves(first.compare(">=", 0)) and (copy.token != BY_HAND or certain):
            said = f"it starts at {show(first)} in dimension {dim}, which is"
            return f"{said} {'' if certain else 'not known not to be '}in front of {part.buffer.name}"
    return ""


def cut(region: Region, target: Region, layout: SharedLayout, boxes: Boxes) -> Cut | str:
    """How a tile of that layout, or a part of it, lies beside a region; or why boxes do not give that.

    Pieces say where in the part's memory they begin.
    """
    tile = target.buffer
    extent, bits = region.extent or (), tile.dtype.bits
    dims = [dim for dim, size in enumerate(extent) if size != 1] or [len(extent) - 1]
    sizes = tuple(extent[dim] for dim in dims)
    swizzle = _swizzle_bytes(layout.swizzle, bits, boxes)
    if swizzle is None:
        return f"{tile.name} is swizzled as no box is"
    plain = SharedLayout(layout.shape, layout.strides)
    within = tuple(slice(0, size) for size in target.extent or tile.extents)
    places = plain.all_offsets()[within].reshape(sizes)
    if not target.is_whole and (why := why_no_part(target, plain, bits, swizzle)):
        return why
    own = _box(places, swizzle * 8 // bits, boxes)
    if own is None:
        return f"rows of {tile.name} are no whole panels of {swizzle} bytes"
    size = prod(own)
    starts = [tuple(start) for start in product(*(range(0, n, b) for n, b in zip(sizes, own, strict=True)))]
    # Where boxes hold their rows one behind the other, and nothing else.
    inside = np.arange(size).reshape(own)
    pieces: list[tuple[tuple[int, ...], int]] = []
    unit = START if not swizzle else swizzle * 8
    for start in starts:
        piece = places[tuple(slice(a, a + b) for a, b in zip(start, own, strict=True))]
        first = int(piece.reshape(-1)[0])
        if not np.array_equal(piece, inside + first):
            return f"rows of {tile.name} do not lie one behind the other"
        if first * bits // 8 % START:
            return f"a box would start at byte {first * bits // 8} of {tile.name}, no multiple of {START}"
        where = [0] * len(extent)
        for dim, part in zip(dims, start, strict=True):
            where[dim] = part
        pieces.append((tuple(where), first))
    if layout.cosize * bits // 8 % unit:
        return f"{tile.name} takes {layout.cosize * bits // 8} bytes, no multiple of {unit}"
    if len(pieces) > boxes.pieces:
        return f"it would take {len(pieces)} boxes, and {boxes.pieces} are written out at most"
    box = [1] * len(extent)
    for dim, part in zip(dims, own, strict=True):
        box[dim] = part
    return Cut(tuple(box), swizzle, tuple(pieces))


def _swizzle_bytes(swizzle: Swizzle | None, bits: int, boxes: Boxes) -> int | None:
    """The bytes of a swizzle that boxes have; 0 for none, None for another one."""
    if swizzle is None or not swizzle.bits:
        return 0
    width = UNIT << swizzle.bits
    same = swizzle == Swizzle(swizzle.bits, (UNIT * 8 // bits).bit_length() - 1, 3)
    return width if same and width in boxes.swizzles else None


def _box(places: Any, panel: int, boxes: Boxes) -> tuple[int, ...] | None:
    """The extents of the largest box whose elements follow each other; None: panels do not divide rows."""
    sizes = places.shape
    if panel and sizes[-1] % panel:
        return None
    own = [1] * len(sizes)
    own[-1] = panel or _part(sizes[-1], boxes.extent)
    for dim in range(len(sizes) - 2, -1, -1):
        second = tuple(1 if k == dim else 0 for k in range(len(sizes)))
        step = int(places[second]) - int(places[(0,) * len(sizes)]) if sizes[dim] > 1 else 0
        if step != prod(own):
            break
        own[dim] = _part(sizes[dim], boxes.extent)
        if own[dim] != sizes[dim]:
            break
    return tuple(own)


def _part(size: int, most: int) -> int:
    """The largest divisor of an extent that a box can have."""
    return next(part for part in range(min(size, most), 0, -1) if size % part == 0)


def box_rows(machine: Any) -> Iterator[tuple[str, Boxes]]:
    """The names of a machine's instructions that copy boxes, with what those can be."""
    for row in machine.instructions_for("copy"):
        if row.boxes is not None:
            yield row.name, row.boxes


def boxes_of(copy: Any, machine: Any) -> Boxes | None:
    """What the boxes of a copy's instruction can be; None: it copies in no boxes."""
    if not isinstance(copy, Copy) or copy.by is None:
        return None
    return dict(box_rows(machine)).get(copy.by.name)
