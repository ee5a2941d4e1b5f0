"""The same accesses to a tile in shared memory, if it lay otherwise: without its swizzle, or with one.

Nothing is compiled for it: an address in the layout that was chosen is led back to the element, and from
there to its place in the other layout. An access wider than what that one keeps together becomes several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

import numpy as np

from ..ir import Function, walk
from ..language.memory import AllocShared
from ..layout import SharedLayout, bank_conflicts
from ..layout.choose import candidates
from ..machine import Machine
from .warp_accesses import Counted, WarpAccess, joined


@dataclass(frozen=True)
class OtherLayout:
    """What accesses through one line take of the banks in the other layout that `words` describes.

    `lanes`, `passes`, `least`, `worst` and `worst_least` as of `WarpAccess`, `width` of the pieces that an
    access becomes.
    """

    words: str
    width: int
    lanes: tuple[int | None, ...]
    passes: int
    least: int
    worst: int
    worst_least: int


@dataclass(frozen=True)
class _Tile:
    """A tile as code addresses it: its layout, the bits of an element, and its first byte."""

    layout: SharedLayout
    bits: int
    first: int


def tiles_of(laid_out: Function, threaded: Function) -> dict[str, _Tile]:
    """The tiles in shared memory by name: their layouts from one stage, their places from the other."""
    places = {n.buffer.name: n.offset or 0 for n in walk(threaded) if isinstance(n, AllocShared)}
    return {
        node.buffer.name: _Tile(node.layout, node.buffer.dtype.bits, places[node.buffer.name])
        for node in walk(laid_out)
        if isinstance(node, AllocShared) and node.layout is not None and node.buffer.name in places
    }


def in_other_layouts(
    groups: Sequence[list[Counted]], tiles: Mapping[str, _Tile], machine: Machine
) -> dict[int, OtherLayout]:
    """By the number of a group of accesses, the same in the other layout of its tile, where there is one.

    Of a swizzled tile that is the layout without the swizzle; of one whose accesses conflict the swizzled
    candidate with the fewest passes, if it has fewer.
    """
    found: dict[int, OtherLayout] = {}
    for name, tile in tiles.items():
        numbers = [
            k for k, group in enumerate(groups) if group[0].touch.buffer.name == name and _counts(group)
        ]
        if not numbers:
            continue
        layout = tile.layout
        if layout.swizzle is not None and layout.swizzle.bits:
            others = [(SharedLayout(layout.shape, layout.strides), "without its swizzle")]
        elif any(int(one.cost.sum()) > int(one.least.sum()) for k in numbers for one in groups[k]):
            others = [(each, _said(each)) for each in _swizzled(tile, machine)]
        else:
            continue
        tried = [[_moved(groups[k], tile, other, words, machine) for k in numbers] for other, words in others]
        best = min(tried, key=lambda of: sum(one.passes for one in of)) if tried else []
        now = sum(joined(groups[k]).passes for k in numbers)
        if layout.swizzle is not None or sum(one.passes for one in best) < now:
            found |= dict(zip(numbers, best, strict=False))
    return found


def _counts(group: list[Counted]) -> bool:
    return any(len(one.weights) for one in group)


def _swizzled(tile: _Tile, machine: Machine) -> list[SharedLayout]:
    extents = tile.layout.extents
    options = candidates(extents, tile.bits, max(machine.vector_bytes))
    return [layout for layout in options if layout.swizzle is not None]


def _said(layout: SharedLayout) -> str:
    assert layout.swizzle is not None
    return f"with {layout.swizzle!r}".replace("T.", "")


def _moved(
    group: list[Counted], tile: _Tile, other: SharedLayout, words: str, machine: Machine
) -> OtherLayout:
    table = _table(tile.layout, other)
    moved = [_counted(one, tile, other, table, machine) for one in group]
    whole: WarpAccess = joined(moved)
    return OtherLayout(
        words, moved[0].width, whole.lanes, whole.passes, whole.least, whole.worst, whole.worst_least
    )


def _table(layout: SharedLayout, other: SharedLayout) -> Any:
    """For each offset in one layout the offset of the same element in the other."""
    table = np.zeros(layout.cosize, np.int64)
    table[layout.all_offsets().ravel()] = other.all_offsets().ravel()
    return table


def _counted(one: Counted, tile: _Tile, other: SharedLayout, table: Any, machine: Machine) -> Counted:
    """The instructions of a touch in the other layout, each in as many pieces as it takes there."""
    level, elements = machine.shared, one.touch.count
    piece = max(1, gcd(elements, other.vector))
    version, offset = np.divmod((one.addresses - tile.first) * 8 // tile.bits, tile.layout.cosize)
    start = version * other.cosize * tile.bits // 8 + tile.first
    width = max(1, piece * tile.bits // 8)
    parts = [
        start + table[np.minimum(offset + k, tile.layout.cosize - 1)] * tile.bits // 8
        for k in range(0, elements, piece)
    ]
    costs = [bank_conflicts(part, width, level.banks, level.bank_bytes, one.active) for part in parts]
    worst = max(range(len(parts)), key=lambda k: int(costs[k].wavefronts.sum()))
    if len(parts) == 1:
        return replace(one, addresses=parts[0], cost=costs[0].wavefronts, least=costs[0].ideal, width=width)
    # Of several pieces the worst stands for what one instruction looks like; counts are of all.
    ahead = [worst, *[k for k in range(len(parts)) if k != worst]]
    return replace(
        one, width=width, addresses=np.concatenate([parts[k] for k in ahead]),
        active=np.concatenate([one.active] * len(parts)), weights=np.tile(one.weights, len(parts)),
        cost=np.concatenate([costs[k].wavefronts for k in ahead]),
        least=np.concatenate([costs[k].ideal for k in ahead]),
    )  # fmt: skip
