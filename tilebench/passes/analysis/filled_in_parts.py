"""Copies of a loop that fill a tile together, each a slice of it: as one that fills all of it."""

from __future__ import annotations

from ...ir import Region, const_of
from ...language.copy import Copy
from ...language.structure import Pipelined


def filling_with(loop: Pipelined, copy: Copy) -> tuple[int, ...]:
    """The positions in a loop's body of the copies that fill a copy's tile, itself among them.

    None where they leave some of it or fill some twice. Slices are of one dimension, and the others whole.
    """
    if copy.dst.is_whole:
        return (next(k for k, statement in enumerate(loop.body) if statement is copy),)
    buffer = copy.dst.buffer
    found = [
        (k, s.dst)
        for k, s in enumerate(loop.body)
        if isinstance(s, Copy) and s.dst.buffer.name == buffer.name
    ]
    for dim in range(buffer.rank):
        slices = sorted(slice_ for _, part in found if (slice_ := _slice(part, dim)) is not None)
        ends = [0, *(stop for _, stop in slices)]
        in_turn = all(start == before for (start, _), before in zip(slices, ends, strict=False))
        if len(slices) == len(found) and in_turn and ends[-1] == buffer.extents[dim]:
            return tuple(k for k, _ in found)
    return ()


def _slice(part: Region, dim: int) -> tuple[int, int] | None:
    """From where to where a region goes along a dimension; None where it is no slice along it."""
    extent = part.extent or ()
    start = const_of(part.start[dim])
    others = [k for k in range(len(extent)) if k != dim]
    if start is None or any(
        extent[k] != part.buffer.shape[k] or const_of(part.start[k]) != 0 for k in others
    ):
        return None
    return start, start + extent[dim]


__all__ = ["filling_with"]
