"""Tiling layouts: division and product, from composition and complement."""

from __future__ import annotations

from .algebra import Layout, coalesce, from_modes, join, product
from .composition import Tiler, check_rank, compose
from .inverses import complement, gaps_of


def logical_divide(layout: Layout, tiler: Tiler) -> Layout:
    """(tile, rest): `layout` walked tile by tile. A tuple divides mode by mode.

    Raises `LayoutError` when the tile does not divide the layout; it never rounds.
    """
    if isinstance(tiler, tuple):
        check_rank(layout, tiler)
        divided = [logical_divide(layout.mode(k), each) for k, each in enumerate(tiler)]
        return join(*divided, *(layout.mode(k) for k in range(len(tiler), layout.rank)))
    tile = Layout(tiler, 1) if isinstance(tiler, int) else tiler
    return compose(layout, join(tile, complement(tile, layout.size)))


def zipped_divide(layout: Layout, tiler: Tiler) -> Layout:
    """((tiles of each mode), (rests of each mode)): like `logical_divide` with like gathered."""
    if not isinstance(tiler, tuple):
        return logical_divide(layout, tiler)
    divided = logical_divide(layout, tiler)
    parts = [divided.mode(k) for k in range(divided.rank)]
    tiles = join(*(each.mode(0) for each in parts[: len(tiler)]))
    rests = join(*(each.mode(1) for each in parts[: len(tiler)]), *parts[len(tiler) :])
    return join(tiles, rests)


def logical_product(a: Layout, b: Layout) -> Layout:
    """(a, copies): `a` repeated at non-overlapping places in the order that `b` gives."""
    gaps, frontier = gaps_of(a)
    # The copies take the gaps first; behind the last, as many whole spans as `b` can reach.
    inside = product(tuple(n for n, _ in gaps))
    gaps.append((-(-b.cosize // inside), frontier))
    return join(a, compose(coalesce(from_modes(gaps)), b))
