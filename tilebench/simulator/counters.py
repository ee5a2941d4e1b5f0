"""Counters of a simulated launch, as a card has them: passes over the banks of shared memory, global sectors.

They are kept by buffer, and by the line of the statement that runs, of the text a function was parsed from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..ir import Stmt
from ..layout import bank_conflicts, coalescing


@dataclass
class Passes:
    """Accesses of warps to a shared buffer: instructions, their wavefronts, and the fewest there could be."""

    instructions: int = 0
    wavefronts: int = 0
    ideal: int = 0

    @property
    def excess(self) -> int:
        """Wavefronts that conflicts in the banks made necessary."""
        return self.wavefronts - self.ideal


@dataclass
class Sectors:
    """Accesses of warps to global memory: requests, the sectors they move, and the fewest that could do."""

    requests: int = 0
    moved: int = 0
    ideal: int = 0

    @property
    def excess(self) -> int:
        """Sectors beyond the fewest."""
        return self.moved - self.ideal


@dataclass
class LineTally:
    """What the statements of one line did. `runs` counts warps: each that has an active lane, each time."""

    runs: int = 0
    shared: Passes = field(default_factory=Passes)
    sectors: Sectors = field(default_factory=Sectors)


@dataclass
class Counters:
    """What a launch did to shared and global memory, for a machine. Give one to `run_threaded`."""

    banks: int
    bank_bytes: int
    sector_bytes: int = 32
    shared: dict[str, Passes] = field(default_factory=dict[str, Passes])
    lines: dict[int, LineTally] = field(default_factory=dict[int, LineTally])
    _now: LineTally = field(default_factory=LineTally)

    def at(self, stmt: Stmt) -> None:
        """This statement is at work: what is counted is its line's."""
        line = stmt.place.line if stmt.place is not None else 0
        self._now = self.lines.setdefault(line, LineTally())

    def ran(self, lanes: Any, threads: int, warp: int) -> None:
        """The statement at work is run by these lanes."""
        block, thread = np.divmod(lanes, threads)
        self._now.runs += len(np.unique(block * -(-threads // warp) + thread // warp))

    def count(self, name: str, first_bytes: Any, width: int, lanes: Any, threads: int, warp: int) -> None:
        """One instruction of each warp: `width` bytes from `first_bytes` on, for each of `lanes`.

        Lanes are numbered through the blocks of `threads` threads.
        """
        addresses, active = _by_warp(first_bytes, lanes, threads, warp)
        found = bank_conflicts(addresses, max(1, width), self.banks, self.bank_bytes, active)
        for passes in (self.shared.setdefault(name, Passes()), self._now.shared):
            passes.instructions += len(addresses)
            passes.wavefronts += found.total
            passes.ideal += int(found.ideal.sum())

    def count_global(
        self, first_bytes: Any, width: Any, lanes: Any, threads: int, warp: int, *, again: bool = False
    ) -> None:
        """The same for global memory, where an array begins at a multiple of a sector.

        `width` may be one of each lane's own. What is read `again`, for the part of it that the instruction
        before has not got, is nothing that had to be asked for.
        """
        addresses, active = _by_warp(first_bytes, lanes, threads, warp)
        wide = max(1, width) if isinstance(width, int) else _by_warp(width, lanes, threads, warp)[0]
        found = coalescing(addresses, wide, self.sector_bytes, active)
        sectors = self._now.sectors
        sectors.requests += len(addresses)
        sectors.moved += int(found.sectors.sum())
        sectors.ideal += 0 if again else int(found.ideal.sum())

    def count_box(self, first_bytes: Any, width: int) -> None:
        """One copy of a box of an array, whose elements of `width` bytes begin at `first_bytes`."""
        sectors = self._now.sectors
        sectors.requests += 1
        sectors.moved += len(np.unique(first_bytes // self.sector_bytes))
        sectors.ideal += -(-len(first_bytes) * width // self.sector_bytes)


def _by_warp(values: Any, lanes: Any, threads: int, warp: int) -> tuple[Any, Any]:
    """Numbers of lanes as (warps, lanes of a warp), 0 in those that are not there, and which are."""
    block, thread = np.divmod(lanes, threads)
    warps, row = np.unique(block * -(-threads // warp) + thread // warp, return_inverse=True)
    found = np.zeros((len(warps), warp), np.int64)
    active = np.zeros(found.shape, np.bool_)
    found[row, thread % warp] = values
    active[row, thread % warp] = True
    return found, active
