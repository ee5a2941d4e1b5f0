"""Accesses of warps to memory as the code of a thread makes them: banks, sectors, and how wide each is.

`warp_accesses` forms the addresses of one block (`lane_walk`) and counts them with the functions that chose
the layouts (`layout.analysis`): passes over the banks of shared memory as the simulator and a card count
them, and sectors of global memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir import Function, Stmt, Store
from ..layout import bank_conflicts, coalescing
from ..machine import Machine
from .lane_walk import LaneWalk, MemoryTouch, TouchSite
from .tile_layouts import line_of


@dataclass(frozen=True)
class WarpAccess:
    """One access of a line of the kernel to one buffer, by the warps of the first block.

    `width` is bytes of a thread's access, `lanes` the first byte of each lane's in that instruction of those
    looked at that takes most passes or sectors (None: the lane takes no part), from the start of the buffer's
    memory: of shared memory its first byte, of global memory the lowest of them. `instructions` are those of
    a block. `passes` and `least` are over the banks where `scope` is `shared` (wavefronts, and the fewest
    possible), else sectors moved and the fewest that hold what is asked for; `worst` and `worst_least` are
    those of that one instruction. With `about` a long loop was not counted turn by turn, `by_data` says that
    data decide some address, or who takes part: then counts are as if all lanes did.
    """

    buffer: str
    scope: str
    written: bool
    word: str
    line: int
    dtype: str
    width: int
    lanes: tuple[int | None, ...]
    instructions: int
    passes: int
    least: int
    worst: int
    worst_least: int
    about: bool = False
    by_data: bool = False

    @property
    def ways(self) -> float:
        """Passes or sectors for each that is needed, over all instructions: 1 is best."""
        return self.passes / self.least if self.least else 1.0


@dataclass(frozen=True)
class Counted:
    """Instructions of warps at one touch, a row each: first bytes, active lanes, weights; what they cost."""

    touch: MemoryTouch
    width: int
    word: str
    line: int
    about: bool
    by_data: bool
    addresses: Any
    active: Any
    weights: Any
    cost: Any
    least: Any


def warp_accesses(
    function: Function, machine: Machine, *, block: tuple[int, int, int] = (0, 0, 0), whole: bool = False,
    sizes: Mapping[str, int] | None = None,
) -> tuple[WarpAccess, ...]:  # fmt: skip
    """The accesses of one launch in the stage `threaded` (`parts_of` takes several apart), in order.

    `whole` counts every turn of every loop. `sizes` are the values of sizes and scalars that a launch brings;
    one that is not there counts as 4096. Loads that go through the same line, buffer and instruction are one.
    """
    return tuple(joined(group) for group in counted_groups(function, machine, block, whole, sizes))


def counted_groups(
    function: Function, machine: Machine, block: tuple[int, int, int] = (0, 0, 0), whole: bool = False,
    sizes: Mapping[str, int] | None = None,
) -> list[list[Counted]]:  # fmt: skip
    """What is counted, grouped into accesses of one line, buffer, way and width."""
    walk = LaneWalk(function, block, whole=whole, sizes=sizes)
    groups: dict[tuple[Any, ...], list[Counted]] = {}
    for site in walk.run():
        found = _count(site, machine, walk.launch.threads)
        key = (found.line, found.touch.buffer.name, found.touch.written, found.word, found.width)
        groups.setdefault(key, []).append(found)
    return [group for group in groups.values() if any(len(one.weights) for one in group) or group[0].by_data]


def word_of(statement: Stmt, touch: MemoryTouch) -> str:
    """What an access is called: the statement's word, or load and store of one element."""
    if isinstance(statement, Store):
        if touch.node is statement and statement.atomic:
            return f"atomic {statement.atomic}"
        return "store" if touch.written else "load"
    return str(getattr(statement, "word", "load")) if touch.node is statement else "load"


def _count(site: TouchSite, machine: Machine, threads: int) -> Counted:
    touch = site.touch
    bits = touch.buffer.dtype.bits
    width = max(1, touch.count * bits // 8)
    addresses, active, weights, counts = _warps(site.rows, threads, machine.warp)
    if not len(weights):
        cost = least = np.zeros(0, np.int64)
    elif touch.buffer.scope == "shared":
        level = machine.shared
        found = bank_conflicts(addresses, width, level.banks, level.bank_bytes, active)
        cost, least = found.wavefronts, found.ideal
    else:
        wide = width if touch.first is None else -(-counts * bits // 8)
        moved = coalescing(addresses, wide, machine.transaction_bytes, active)
        cost, least = moved.sectors, moved.ideal * (touch.piece != 1)
    word, line = word_of(site.statement, touch), line_of(site.statement)
    return Counted(
        touch, width, word, line, site.about, site.by_data, addresses, active, weights, cost, least
    )


def _warps(rows: Iterable[tuple[Any, ...]], threads: int, warp: int) -> tuple[Any, Any, Any, Any]:
    """(instructions, lanes) of first bytes and of who takes part, what each row stands for, and elements."""
    warps = -(-threads // warp)
    found: list[tuple[Any, ...]] = []
    for first, mask, weight, count in rows:
        shape = np.broadcast_shapes(*map(np.shape, (first, mask, weight, count)), (threads,))
        parts = [np.broadcast_to(part, shape) for part in (first, np.logical_and(mask, count), count)]
        if threads % warp:
            pad = [(0, 0)] * (len(shape) - 1) + [(0, warps * warp - threads)]
            parts = [np.pad(part, pad) for part in parts]
        lanes, active, counts = (part.reshape(-1, warp) for part in parts)
        weights = np.broadcast_to(weight, (*shape[:-1], 1)).reshape(-1)
        found.append((lanes, active, np.repeat(weights, warps), counts))
    if not found:
        nobody = np.zeros((0, warp), np.int64)
        return nobody, nobody.astype(np.bool_), np.zeros(0), nobody
    addresses, active, weights, counts = (np.concatenate(parts) for parts in zip(*found, strict=True))
    some = active.any(axis=1)
    return addresses[some], active[some], weights[some], counts[some]


def joined(group: list[Counted]) -> WarpAccess:
    """The counts of a group together, with the worst instruction of it."""
    first = group[0]
    shared = first.touch.buffer.scope == "shared"
    worst = max((one for one in group), key=lambda one: int(one.cost.max(initial=0)))
    lanes: tuple[int | None, ...] = ()
    cost = least = 0
    if len(worst.cost):
        row = int(worst.cost.argmax())
        cost, least = int(worst.cost[row]), int(worst.least[row])
        places, active = worst.addresses[row], worst.active[row]
        low = 0 if shared else int(places[active].min()) // LINE * LINE
        lanes = tuple(int(p) - low if on else None for p, on in zip(places, active, strict=True))
    return WarpAccess(
        first.touch.buffer.name, first.touch.buffer.scope, first.touch.written, first.word, first.line,
        first.touch.buffer.dtype.name, first.width, lanes,
        *_sums(group), cost, least,
        any(one.about for one in group), any(one.by_data for one in group),
    )  # fmt: skip


# Addresses in global memory are told from the line in which the lowest of a warp lies.
LINE = 128


def _sums(group: list[Counted]) -> tuple[int, int, int]:
    """Instructions, their passes or sectors, and the fewest there could be."""
    total = [0.0, 0.0, 0.0]
    for one in group:
        for k, cost in enumerate((1, one.cost, one.least)):
            total[k] += float((one.weights * cost).sum())
    instructions, passes, least = (round(each) for each in total)
    return instructions, passes, least
