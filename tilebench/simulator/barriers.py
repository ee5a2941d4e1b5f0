"""Barriers: each has a number in its block, and opens when the threads that it counts have come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir import Stmt
from .refusal import refuse
from .state import LaneState, Mask


@dataclass(frozen=True)
class Meeting:
    """What a thread waits for: `threads` threads (0: all of the block) at the barrier of that number."""

    barrier: int = 0
    threads: int = 0


@dataclass
class _Barrier:
    """The threads that stand at one barrier in each block, and for how many they wait."""

    present: Any  # (blocks, warps) bools
    count: Any  # (blocks,) threads that are waited for, 0 where nobody waits
    at: Stmt


class Barriers:
    """The barriers of the blocks that run together."""

    def __init__(self, lanes: LaneState) -> None:
        self.lanes = lanes
        self.barriers: dict[int, _Barrier] = {}
        warps = -(-lanes.threads // lanes.warp)
        self.sizes = np.minimum(lanes.warp, lanes.threads - np.arange(warps) * lanes.warp)

    def arrive(self, meeting: Meeting, mask: Mask, at: Stmt) -> Any:
        """Threads come to a barrier: a mask of the lanes that may go on, or None when nobody may yet."""
        if mask is None and meeting.threads in (0, self.lanes.threads):
            self.lanes.clocks.meet_blocks(slice(None))
            return self.lanes.full(None)
        coming = self._warps(meeting, mask, at)
        barrier = self._barrier(meeting, coming, at)
        barrier.present |= coming
        there = (barrier.present * self.sizes).sum(axis=1)
        if ((there > barrier.count) & (barrier.count > 0)).any():
            refuse(
                "more threads come to barrier {n} than it counts", at, n=meeting.barrier,
                expected=f"{int(barrier.count.max())} threads", found=f"{int(there.max())}",
            )  # fmt: skip
        full = (there == barrier.count) & (barrier.count > 0)
        if not full.any():
            return None
        opened = barrier.present & full[:, None]
        self._meet(opened, full)
        barrier.present &= ~full[:, None]
        barrier.count[full] = 0
        return self._lanes_of(opened)

    def _warps(self, meeting: Meeting, mask: Mask, at: Stmt) -> Any:
        warps = self.lanes.whole_warps(mask)
        if warps is None:
            refuse(
                "not all threads of a warp reach this barrier", at,
                hint="a warp comes to a barrier as one: branch on conditions that its threads share",
            )  # fmt: skip
        if meeting.threads % self.lanes.warp and meeting.threads != self.lanes.threads:
            refuse(
                "a barrier counts whole warps of {warp} threads, not {n} threads", at,
                warp=self.lanes.warp, n=meeting.threads,
            )  # fmt: skip
        return warps

    def _barrier(self, meeting: Meeting, coming: Any, at: Stmt) -> _Barrier:
        blocks, warps = coming.shape
        if meeting.barrier not in self.barriers:
            self.barriers[meeting.barrier] = _Barrier(
                np.zeros((blocks, warps), np.bool_), np.zeros(blocks, np.int64), at
            )
        barrier = self.barriers[meeting.barrier]
        count = meeting.threads or self.lanes.threads
        rows = coming.any(axis=1)
        waited = barrier.count[rows]
        if ((waited != 0) & (waited != count)).any():
            refuse(
                "barrier {n} counts {a} threads here, and {b} where others wait", at, n=meeting.barrier,
                a=count, b=int(waited.max()), also=[("they wait here", barrier.at.place)],
            )  # fmt: skip
        barrier.count[rows] = count
        barrier.at = at
        return barrier

    def _meet(self, opened: Any, full: Any) -> None:
        clocks = self.lanes.clocks
        if clocks.groups == 1:
            clocks.meet_blocks(full)
        else:
            clocks.meet(opened)

    def _lanes_of(self, warps: Any) -> Any:
        wide = np.repeat(warps, self.lanes.warp, axis=1)
        return wide[:, : self.lanes.threads].reshape(-1)

    def told(self, meeting: Meeting, block: int) -> str:
        """What is waited for at a barrier in a block, and how much of it is there."""
        barrier = self.barriers[meeting.barrier]
        there = int((barrier.present[block] * self.sizes).sum())
        return f"barrier {meeting.barrier} ({there} of {int(barrier.count[block])} threads are there)"
