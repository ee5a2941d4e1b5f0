"""Which thread does what where a fragment meets global memory: as it lies, or in another layout.

What a product leaves in a thread are pairs of a row, which fill half of a sector of memory with each store.
Three ways are compared by their price: accesses as the fragment lies; lanes that exchange what they have,
so that each has a vector of its own row; and whole rows side by side, for which the tile goes through shared
memory. The mapping that is chosen is written on the statement, and conversions follow from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...ir import DType, Function
from ...ir.stmt import statements
from ...language.copy import Copy
from ...language.memory import AllocShared
from ...language.structure import Parallel
from ...layout import Fragment
from ...layout.in_warp import with_vectors
from ...machine import Machine
from ..analysis.conversions import SHARED, cheapest_way, register_bits
from ..analysis.site_costs import site_cycles
from ..analysis.sites import FragmentUse, Site, project
from ..context import Context
from ..threads.registers import value_strides

NAME = "infer_layouts"
# What another way has to gain before it is taken: prices are counted, and how they overlap is not.
GAIN = 0.8


SAID = {
    "as_it_lies": "as its fragments lie",
    "exchanged": "in vectors that lanes have exchanged",
    "rows": "in whole rows",
}
# Stages that a ring of the tiles may have.
RING = 4


class Settled(NamedTuple):
    """What is known where a mapping is chosen: layouts by name, what divides sizes, bytes for a tile."""

    layouts: Mapping[str, Fragment]
    divisors: Mapping[str, int]
    room: int


def room_of(function: Function, machine: Machine) -> int:
    """Bytes that a tile may take on its way: what is left, or one that takes the place of what is there."""
    taken = sum(node.buffer.bytes for node in statements(function.body) if isinstance(node, AllocShared))
    return max(taken, machine.shared.per_block - RING * taken)


def cheapest_map(
    site: Site, box: Fragment, rows: Fragment, vector: int, known: Settled, context: Context
) -> Fragment:
    """The cheapest of three mappings: `box`, as fragments lie, exchanged in warps, or `rows`."""
    if not _may_gain(site, known):
        return box
    machine = context.machine
    costs = {"as_it_lies": site_cycles(site, box, machine, known.divisors)}
    maps = {"as_it_lies": box}
    # Where a row of the fragment has too few for whole vectors, halves of them fill its sectors still.
    exchanged = with_vectors(box, vector, machine.warp) or with_vectors(box, vector // 2, machine.warp)
    candidates = {"exchanged": exchanged, "rows": rows}
    for name, candidate in candidates.items():
        if candidate is None:
            continue
        accesses = site_cycles(site, candidate, machine, known.divisors)
        if accesses >= GAIN * costs["as_it_lies"]:
            continue
        conversions = _conversions(site, candidate, known, machine)
        if conversions is not None:
            maps[name], costs[name] = candidate, accesses + conversions
    best = min(costs, key=lambda name: costs[name])
    if costs[best] > GAIN * costs["as_it_lies"]:
        best = "as_it_lies"
    if len(costs) > 1:
        said = {f"cycles_{name}": round(cost, 1) for name, cost in costs.items()}
        message = f"this {_word(site)} reaches global memory {SAID[best]}"
        context.remark(NAME, "applied", message, site.node, **said)
    return maps[best]


def _word(site: Site) -> str:
    return "copy" if isinstance(site.node, Copy) else "loop"


def _may_gain(site: Site, known: Settled) -> bool:
    """Whether a site reaches global memory, and all that it touches has its place already."""
    # A width that was asked for is one of the accesses as they are.
    if not isinstance(site.node, (Copy, Parallel)) or site.node.coalesced_width:
        return False
    if not any(access.buffer.scope == "global" for access in site.accesses):
        return False
    names = {(touch.buffer.name, touch.dims) for touch in site.touches}
    alone = len({name for name, _ in names}) == len(names)
    return alone and all(touch.buffer.name in known.layouts for touch in site.touches)


def _conversions(site: Site, box: Fragment, known: Settled, machine: Machine) -> float | None:
    """What it costs to bring the fragments of a site to a mapping, and back; None where there is no room."""
    total = 0.0
    for touch in site.touches:
        layout = known.layouts[touch.buffer.name]
        if value_strides(box, layout, touch.dims) is not None:
            continue
        needed = project(box, touch.dims, touch.buffer.extents)
        dtype = _travelling(site, touch)
        way = cheapest_way(layout, needed, dtype, machine)
        if way is None or (way.by.name == SHARED and touch.buffer.size * dtype.bits // 8 > known.room):
            return None
        # A loop may leave some elements as they are, so what it writes comes and goes.
        total += way.cycles * (2 if touch.written and isinstance(site.node, Parallel) else 1)
    return total


def _travelling(site: Site, touch: FragmentUse) -> DType:
    """The dtype in which elements change places: in a copy the narrower of both."""
    own = touch.buffer.dtype
    if not isinstance(site.node, Copy):
        return own
    sides = (site.node.src.buffer.dtype, site.node.dst.buffer.dtype)
    return min(own, *sides, key=register_bits)
