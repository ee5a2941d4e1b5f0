"""What the words of barriers in phases do in the simulator; the barriers themselves are in `phases.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir import Expr
from ..language.lowered.mbarriers import (
    FenceAsyncShared,
    FenceMbarrierInit,
    MbarrierArrive,
    MbarrierExpect,
    MbarrierInit,
    MbarrierInval,
    MbarrierWait,
)
from .lanes import Lanes, Waits
from .phases import Named, PhaseBarrier, PhaseWait
from .refusal import refuse
from .state import Mask

# What a barrier can count (PTX ISA, "Phase of the mbarrier object" and "tx-count").
MOST_ARRIVALS, MOST_BYTES = 2**20 - 1, 2**20 - 1


def mbarrier_init(lanes: Lanes, stmt: MbarrierInit, mask: Mask) -> None:
    """A write to its bytes, which others see as they see any write."""
    counts = _numbers(lanes, stmt, stmt.count, mask, 1, MOST_ARRIVALS, "a barrier counts")
    touch = lanes.phases.touch(lanes, stmt.barrier, mask)
    lanes.watch.write(lanes.shared, touch.cells, touch.party, stmt, stmt.barrier.buffer.name)
    for place, name, rows in lanes.phases.places(touch, stmt.barrier):
        if place in lanes.phases.barriers:
            refuse(
                "{name} is a barrier already", stmt, name=name,
                hint="T.mbarrier_inval comes before it is made anew",
                also=[("it was made here", lanes.phases.barriers[place].made.place)],
            )  # fmt: skip
        brought = np.zeros(lanes.clocks.columns, np.int32)
        maker = int(touch.lanes[rows[0]])
        lanes.phases.barriers[place] = PhaseBarrier(int(counts[rows[0]]), stmt, maker, brought)


def mbarrier_inval(lanes: Lanes, stmt: MbarrierInval, mask: Mask) -> None:
    """A write too, so that nobody may use it afterwards without an order, or before."""
    touch = lanes.phases.touch(lanes, stmt.barrier, mask)
    for named in lanes.phases.used(lanes, stmt, stmt.barrier, touch):
        if named.barrier.announced != named.barrier.came:
            refuse(
                "{name} is given up while bytes are under way to it ({told})", stmt, name=named.name,
                told=named.barrier.told(),
            )  # fmt: skip
    lanes.watch.write(lanes.shared, touch.cells, touch.party, stmt, stmt.barrier.buffer.name)
    for place, _, _ in lanes.phases.places(touch, stmt.barrier):
        del lanes.phases.barriers[place]


def mbarrier_arrive(lanes: Lanes, stmt: MbarrierArrive, mask: Mask) -> None:
    """Bytes are announced before the arrival counts, so that the phase cannot end between."""
    ranks = None
    if stmt.block is not None:
        lanes.clusters.reach(lanes, stmt, lanes.party(mask, lanes.active(mask)).block)
        ranks = lanes.wide(lanes.value(stmt.block, mask), np.int64)[lanes.active(mask)]
    touch = lanes.phases.touch(lanes, stmt.barrier, mask, ranks)
    counts = (
        np.ones(len(touch.lanes), np.int64)
        if stmt.count is None
        else _numbers(lanes, stmt, stmt.count, mask, 1, MOST_ARRIVALS, "a thread arrives")
    )
    used = lanes.phases.used(lanes, stmt, stmt.barrier, touch)
    if stmt.bytes is not None:
        _announce(lanes, stmt, stmt.bytes, mask, used)
    for named in used:
        barrier, count = named.barrier, int(counts[named.rows].sum())
        if barrier.arrived + count > barrier.count:
            refuse(
                "{come} arrivals come to {name}, and its phase takes {left} more of {count}", stmt,
                come=count, name=named.name, left=barrier.count - barrier.arrived, count=barrier.count,
                also=[("it was made here", barrier.made.place)],
            )  # fmt: skip
        barrier.arrived += count
        for block in np.unique(touch.party.block[named.rows]).tolist():
            own = named.rows[touch.party.block[named.rows] == block]
            groups = np.unique(touch.party.group[own])
            barrier.brought = np.maximum(barrier.brought, lanes.clocks.bring(block, groups))
        barrier.settle(lanes, named.block)


def mbarrier_expect(lanes: Lanes, stmt: MbarrierExpect, mask: Mask) -> None:
    """More bytes belong to the phase."""
    touch = lanes.phases.touch(lanes, stmt.barrier, mask)
    used = lanes.phases.used(lanes, stmt, stmt.barrier, touch)
    _announce(lanes, stmt, stmt.bytes, mask, used)
    for named in used:
        named.barrier.settle(lanes, named.block)


def _announce(lanes: Lanes, stmt: Any, bytes: Expr, mask: Mask, used: list[Named]) -> None:
    """Bytes that are still to come, of the phase at hand of each barrier."""
    sizes = _numbers(lanes, stmt, bytes, mask, 0, MOST_BYTES, "a barrier is told of")
    for named in used:
        named.barrier.announced += int(sizes[named.rows].sum())
        if named.barrier.announced - named.barrier.came > MOST_BYTES:
            refuse(
                "{n} bytes are to come to {name}, and a barrier counts to {most}", stmt, name=named.name,
                n=named.barrier.announced - named.barrier.came, most=MOST_BYTES,
            )  # fmt: skip


def mbarrier_wait(lanes: Lanes, stmt: MbarrierWait, mask: Mask) -> Waits:
    """On when the phase is over, with what was done before it ended."""
    parity = lanes.wide(lanes.value(stmt.parity, mask), np.int64)
    found = parity[lanes.active(mask)]
    wrong = found[(found != 0) & (found != 1)]
    if len(wrong):
        refuse("a parity is 0 or 1, not {n}", stmt, n=int(wrong[0]))
    yield PhaseWait(lanes, stmt, mask, parity)


def fence_mbarrier_init(lanes: Lanes, stmt: FenceMbarrierInit, mask: Mask) -> None:
    """Nothing between threads: the engine sees the barriers that these threads have made."""
    active = lanes.full(mask)
    for barrier in lanes.phases.barriers.values():
        barrier.fenced = barrier.fenced or bool(active[barrier.maker])


def fence_async_shared(lanes: Lanes, stmt: FenceAsyncShared, mask: Mask) -> None:
    """Nothing between threads: the engine sees what these threads see."""
    party = lanes.party(mask, lanes.active(mask))
    for block in np.unique(party.block).tolist():
        lanes.clocks.fence(block, np.unique(party.group[party.block == block]))


def _numbers(lanes: Lanes, stmt: Any, expr: Expr, mask: Mask, least: int, most: int, told: str) -> Any:
    """The values of an operand for the active lanes, checked."""
    found = lanes.wide(lanes.value(expr, mask), np.int64)[lanes.active(mask)]
    wrong = found[(found < least) | (found > most)]
    if len(wrong):
        refuse("{told} {least} to {most}, not {n}", stmt, told=told, least=least, most=most, n=int(wrong[0]))
    return found


MEANINGS: dict[type, Any] = {
    MbarrierInit: mbarrier_init,
    MbarrierInval: mbarrier_inval,
    MbarrierArrive: mbarrier_arrive,
    MbarrierExpect: mbarrier_expect,
    MbarrierWait: mbarrier_wait,
    FenceMbarrierInit: fence_mbarrier_init,
    FenceAsyncShared: fence_async_shared,
}
