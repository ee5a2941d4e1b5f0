"""Counters of a simulated launch: passes over the banks of shared memory, by buffer, as a card has them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..layout import bank_conflicts


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
class Counters:
    """What a launch did to shared memory, for a machine's banks. Give one to `run_threaded`."""

    banks: int
    bank_bytes: int
    shared: dict[str, Passes] = field(default_factory=dict[str, Passes])

    def count(self, name: str, first_bytes: Any, width: int, lanes: Any, threads: int, warp: int) -> None:
        """One instruction of each warp: `width` bytes from `first_bytes` on, for each of `lanes`.

        Lanes are numbered through the blocks of `threads` threads.
        """
        block, thread = np.divmod(lanes, threads)
        warps, row = np.unique(block * -(-threads // warp) + thread // warp, return_inverse=True)
        addresses = np.zeros((len(warps), warp), np.int64)
        active = np.zeros(addresses.shape, np.bool_)
        addresses[row, thread % warp] = first_bytes
        active[row, thread % warp] = True
        found = bank_conflicts(addresses, max(1, width), self.banks, self.bank_bytes, active)
        passes = self.shared.setdefault(name, Passes())
        passes.instructions += len(warps)
        passes.wavefronts += found.total
        passes.ideal += int(found.ideal.sum())
