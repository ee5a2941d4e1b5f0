"""Barriers in shared memory that count arrivals and bytes in phases (`language/lowered/mbarriers.py`).

A phase that ends hands on what those knew who arrived, to those who wait for it. A wait is right only if
it would end with the same phase whenever the thread came: the parity of a phase is also that of the second
phase before it, so who waits must know by then that the phase in between had come to its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir import Node, Region, Stmt
from .asynchrony import Hold
from .barriers import Until
from .refusal import refuse
from .state import Mask

if TYPE_CHECKING:
    from .access import Touch
    from .clocks import Party
    from .lanes import Lanes

BITS = 64


@dataclass
class PhaseBarrier:
    """One barrier of one block: what its phase takes, and what has come of it.

    `brought` are stamps of those who have arrived in this phase, `ended` those of the last phases that are
    over, the youngest last. `maker` is the lane that made it, and it is `fenced` when that has told
    the engine of it. `copies` are what is under way in this phase, `unseen` those of phases that are
    over and that nobody has waited for.
    """

    count: int
    made: Stmt
    maker: int
    brought: Any
    arrived: int = 0
    announced: int = 0
    came: int = 0
    phase: int = 0
    ended: list[Any] = field(default_factory=list[Any])
    copies: list[tuple[Node, Hold, Party]] = field(default_factory=list["tuple[Node, Hold, Party]"])
    unseen: list[Node] = field(default_factory=list[Node])
    fenced: bool = False

    def settle(self, lanes: Lanes, block: int) -> None:
        """End the phase if it is over: what was under way is there, and the next one begins."""
        if self.arrived < self.count or self.announced != self.came:
            return
        for statement, hold, engine in self.copies:
            hold.memory.flight.end(hold.cells, writes=hold.writes)
            site = lanes.launch.sites.number(statement)
            hold.memory.history.complete(hold.cells, engine, lanes.clocks, site, writes=hold.writes)
        if self.copies:
            self.brought[lanes.clocks.offset[block] + lanes.clocks.engine] = lanes.clocks.deliver(block)
        self.unseen += [statement for statement, _, _ in self.copies]
        self.copies = []
        self.ended = [*self.ended[-1:], self.brought]
        self.brought = np.zeros_like(self.brought)
        self.arrived = self.announced = self.came = 0
        self.phase += 1

    def told(self) -> str:
        """How far the phase at hand is, in words."""
        parts = [f"{self.arrived} of {self.count} arrivals"]
        if self.announced or self.came:
            parts.append(f"{self.came} of {self.announced} bytes")
        return " and ".join(parts) + " have come"


@dataclass(frozen=True)
class Named:
    """A barrier that some lanes name: how it is called, its block, and their rows among the active lanes."""

    name: str
    barrier: PhaseBarrier
    block: int
    rows: Any


class Phases:
    """The barriers of the blocks that run together, by block and by where they lie."""

    def __init__(self) -> None:
        self.barriers: dict[tuple[int, int], PhaseBarrier] = {}

    def touch(self, lanes: Lanes, region: Region, mask: Mask, ranks: Any = None) -> Touch:
        """The barriers that the active lanes name: elements of 64 bits in shared memory.

        With `ranks`, one an active lane, they are those of other blocks of the cluster, at the same place.
        """
        buffer = region.buffer
        if buffer.scope != "shared" or buffer.dtype.bits != BITS:
            refuse(
                "{name} is no barrier: barriers are uint64 in shared memory", region, name=buffer.name,
                found=f"{buffer.dtype.name} in {buffer.scope} memory",
            )  # fmt: skip
        index = [lanes.value(number, mask) for number in region.start]
        touch = lanes.touch(region, buffer, index, 1, mask, counts=False)
        return touch if ranks is None else lanes.elsewhere(touch, ranks, region)

    def places(self, touch: Touch, region: Region) -> Iterator[tuple[tuple[int, int], str, Any]]:
        """Each barrier once: block and place, its name in the text, the rows of the lanes that name it."""
        slots = touch.bits // BITS
        blocks = touch.party.memory
        keys = blocks * (int(slots.max()) + 1) + slots if len(slots) else slots
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        for number, row in enumerate(first.tolist()):
            index = ", ".join(str(int(part[row])) for part in touch.index)
            name = f"{region.buffer.name}[{index}]" if index else region.buffer.name
            place = int(blocks[row]), int(slots[row])
            yield place, name, np.flatnonzero(inverse.reshape(-1) == number)

    def check_end(self) -> None:
        """Refuse copies that nobody has waited for when the kernel ends."""
        for barrier in self.barriers.values():
            for statement in (*(s for s, _, _ in barrier.copies), *barrier.unseen):
                refuse(
                    "this may still be in flight when the kernel ends: nobody waits for the barrier that it"
                    " completes on", statement,
                )  # fmt: skip

    def used(self, lanes: Lanes, stmt: Stmt, region: Region, touch: Touch) -> list[Named]:
        """The barriers that lanes use, seen by them and whole, or a refusal."""
        lanes.watch.read(
            lanes.shared, touch.cells, touch.party, region, region.buffer.name, notes=touch.party.home is None
        )
        found: list[Named] = []
        for place, name, rows in self.places(touch, region):
            barrier = self.barriers.get(place)
            if barrier is None:
                refuse("{name} is used before T.mbarrier_init has made it a barrier", stmt, name=name)
            site = lanes.shared.history.writer.site[touch.cells[rows]]
            if (site != lanes.launch.sites.number(barrier.made)).any():
                refuse(
                    "{name} is no barrier any more: something else was written to its bytes", stmt, name=name,
                    also=[("it was made here", barrier.made.place)],
                )  # fmt: skip
            found.append(Named(name, barrier, place[0], rows))
        return found


class PhaseWait(Until):
    """Lanes that wait for phases by their parity."""

    def __init__(self, lanes: Lanes, stmt: Any, mask: Mask, parity: Any) -> None:
        self.lanes, self.stmt = lanes, stmt
        touch = lanes.phases.touch(lanes, stmt.barrier, mask)
        active = lanes.active(mask)
        self.parts = [
            (named, active[named.rows], odd)
            for named, odd in _by_parity(lanes.phases.used(lanes, stmt, stmt.barrier, touch), parity[active])
        ]

    def open(self, waiting: Any) -> Any:
        """The lanes, of those that wait, whose phase is over; they know what it hands on from here."""
        out = np.zeros(self.lanes.lanes, np.bool_)
        for named, numbers, odd in self.parts:
            mine = numbers[waiting[numbers]]
            if len(mine) and named.barrier.phase % 2 != odd:
                self._pass(named, mine, odd)
                out[mine] = True
        return out

    def _pass(self, named: Named, mine: Any, odd: int) -> None:
        clocks, barrier = self.lanes.clocks, named.barrier
        groups = np.unique(self.lanes.party(None, mine).group[mine])
        if len(barrier.ended) == 2 and not clocks.knows(named.block, groups, barrier.ended[0]):
            refuse(
                "this wait with parity {odd} ends with phase {phase} of {name}, and would have ended at once"
                " while phase {before} went on: the thread has not waited for that one",
                self.stmt, odd=odd, phase=barrier.phase - 1, before=barrier.phase - 2, name=named.name,
                hint="wait for each phase in turn: parities 0, 1, 0, 1",
            )  # fmt: skip
        barrier.unseen = []
        if barrier.ended:
            clocks.learn(named.block, groups, barrier.ended[-1])

    def told(self, waiting: Any) -> str:
        """What the first of these lanes waits for."""
        for named, numbers, odd in self.parts:
            if waiting[numbers].any():
                barrier = named.barrier
                return f"phase {barrier.phase} of {named.name}, of parity {odd} ({barrier.told()})"
        return "nothing"


def _by_parity(found: list[Named], parity: Any) -> Iterator[tuple[Named, int]]:
    for named in found:
        for odd in np.unique(parity[named.rows]).tolist():
            rows = named.rows[parity[named.rows] == odd]
            yield Named(named.name, named.barrier, named.block, rows), int(odd)
