"""What a layout leaves out, and layouts that lead back from offsets to indices."""

from __future__ import annotations

from ..errors import LayoutError
from .algebra import Layout, Mode, coalesce, from_modes, merge


def gaps_of(layout: Layout) -> tuple[list[Mode], int]:
    """The modes between those of `layout`, and the frontier behind its last."""
    frontier = 1
    gaps: list[Mode] = []
    for stride, extent in sorted((d, n) for n, d in layout.modes if n > 1 and d > 0):
        if stride % frontier:
            raise LayoutError(
                "{layout} has no complement: the stride {stride} is not a multiple of {frontier}",
                layout=layout, stride=stride, frontier=frontier,
            )  # fmt: skip
        gaps.append((stride // frontier, frontier))
        frontier = stride * extent
    return gaps, frontier


def complement(layout: Layout, size: int | None = None) -> Layout:
    """The layout of what `layout` leaves out of `size` offsets: together they meet each once.

    Without `size` only the gaps between its modes. Stride-0 modes count once. Raises
    `LayoutError` when strides do not divide or `size` is not a multiple of the layout's span.
    """
    gaps, frontier = gaps_of(layout)
    if size is not None:
        if size % frontier:
            raise LayoutError(
                "{layout} has no complement in {size}: it spans {frontier}, which does not divide {size}",
                layout=layout, size=size, frontier=frontier,
            )  # fmt: skip
        gaps.append((size // frontier, frontier))
    return coalesce(from_modes(gaps))


def right_inverse(layout: Layout) -> Layout:
    """R with `layout(R(i)) == i` for the run of offsets from 0 that modes reach, taken by stride."""
    frontier, index, ordered = 1, 1, list[tuple[int, int, int]]()
    for extent, stride in layout.modes:
        ordered.append((stride, extent, index))
        index *= extent
    modes: list[Mode] = []
    for stride, extent, unit in sorted(ordered):
        if stride < frontier:
            continue  # a mode inside the run so far: its digit stays 0
        if stride > frontier:
            break
        modes.append((extent, unit))
        frontier *= extent
    return coalesce(from_modes(modes))


def left_inverse(layout: Layout) -> Layout:
    """An R with `R(layout(i)) == i`; of a stride-0 mode it gives digit 0, the owner.

    Raises `LayoutError` when offsets overlap or a stride does not divide the next.
    """
    index, ordered = 1, list[tuple[int, int, int]]()
    for extent, stride in merge(layout.modes):
        if stride:
            ordered.append((stride, extent, index))
        index *= extent
    ordered.sort()
    modes: list[Mode] = [(ordered[0][0], 0)] if ordered else []
    for k, (stride, extent, unit) in enumerate(ordered):
        if k + 1 == len(ordered):
            modes.append((extent, unit))
            continue
        following = ordered[k + 1][0]
        if following % stride or following < stride * extent:
            raise LayoutError(
                "{layout} has no left inverse: strides {low} and {high} overlap or do not divide",
                layout=layout, low=stride, high=following,
            )  # fmt: skip
        modes.append((following // stride, unit))
    return coalesce(from_modes(modes))
