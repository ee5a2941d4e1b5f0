"""The part of a tile that is inside the problem, and the gemms that need nothing of the rest."""

from __future__ import annotations

from ....ir import ZERO, Const, Expr, Region, lift
from ....ir.arith import linear
from ....language.copy import Copy
from ....language.gemm import Gemm
from .buffers import loads_memory
from .ghosts import End, ghosts_are_unread
from .work import Work

# By dimension of a tile: where in the array its copy starts, and where the array ends.
Ends = dict[int, End]


def skips_ghosts(work: Work, copy: Copy) -> bool:
    """Whether a tile needs no zeros outside the problem: every gemm that reads it leaves that out."""
    tile = copy.dst.buffer
    uses = work.plan.uses_of(tile)
    gemms = (*uses.of(Gemm, "a"), *uses.of(Gemm, "b"))
    return work.plan.packed(tile) and all(stays_inside(work, gemm) for gemm in gemms)


def stays_inside(work: Work, gemm: Gemm) -> bool:
    """Whether a gemm may leave out what is outside the problem; the same answer whenever it is asked.

    Its operands must each be filled by one copy that is sure to have run, and leave their arrays together in
    k: a zero of one side takes part where the other has an element, for it times infinity is NaN. Nothing may
    look at the accumulator's ghost elements, which then hold anything.
    """
    if id(gemm) not in work.stays_inside:
        work.stays_inside[id(gemm)] = _stays_inside(work, gemm)
    return work.stays_inside[id(gemm)]


def _stays_inside(work: Work, gemm: Gemm) -> bool:
    a, b = _ends_of(work, gemm, "a"), _ends_of(work, gemm, "b")
    if a is None or b is None:
        return False
    left = _end(gemm.a, a, -2 if gemm.transpose_A else -1)
    right = _end(gemm.b, b, -1 if gemm.transpose_B else -2)
    if not _end_together(left, right):
        return False
    rows = _end(gemm.a, a, -1 if gemm.transpose_A else -2)
    columns = _end(gemm.b, b, -2 if gemm.transpose_B else -1)
    return ghosts_are_unread(work, gemm, (rows, columns))


def _end_together(a: End | None, b: End | None) -> bool:
    """Whether as many elements are inside on both sides."""
    if a is None or b is None:
        return a is b
    return linear((lift(a[1]) - a[0]) - (lift(b[1]) - b[0])).expr() == ZERO


def _ends_of(work: Work, gemm: Gemm, field: str) -> Ends | None:
    """The dimensions in which an operand's tile may be filled short; None where zeros are needed."""
    region: Region = getattr(gemm, field)
    copy = work.plan.sources.get((id(gemm), field))
    writers = [use for use in work.plan.uses_of(region.buffer).all if use.effect.writes]
    if copy is None or len(writers) != 1 or not work.plan.packed(region.buffer):
        return None
    return ends_of_copy(work, copy)


def ends_of_copy(work: Work, copy: Copy) -> Ends | None:
    """Where a copy into a whole tile may end short, by the tile's dimension.

    None where that is not a matter of ends: it starts before the array, is outside as a whole, or
    is cut in a dimension that is none of the matrix.
    """
    rank = copy.dst.buffer.rank
    within = copy.src_within or (None,) * copy.src.buffer.rank
    long_src = [d for d, extent in enumerate(copy.src.extent or ()) if extent != 1]
    long_dst = [d for d, extent in enumerate(copy.dst.extent or ()) if extent != 1]
    ends: Ends = {}
    for d, (start, limit) in enumerate(zip(copy.src.start, within, strict=True)):
        if limit is None:
            continue
        dimension = long_dst[long_src.index(d)] if d in long_src else -1
        if dimension < rank - 2 or work.facts.bounds(start)[0] < 0 or loads_memory(start):
            return None
        ends[dimension] = (start, limit)
    return ends


def _end(region: Region, ends: Ends, dimension: int) -> End | None:
    """Where a region's dimension, counted from the last, starts in the array, and where that ends."""
    d = region.buffer.rank + dimension
    return (ends[d][0] + region.start[d], ends[d][1]) if d in ends else None


def extents_inside(work: Work, gemm: Gemm, field: str) -> tuple[Expr, Expr]:
    """How many rows and columns of an operand's region are inside, in the order of the tile."""
    region: Region = getattr(gemm, field)
    ends = _ends_of(work, gemm, field) or {}
    rows, columns = (region.extent or region.buffer.extents)[-2:]
    return _count(work, _end(region, ends, -2), rows), _count(work, _end(region, ends, -1), columns)


def _count(work: Work, end: End | None, extent: int) -> Expr:
    return Const(extent) if end is None else work.not_negative(work.valid(end[0], extent, end[1]))
