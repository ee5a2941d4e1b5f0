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
    """A barrier that a thread comes to: its number, and the threads that it counts (0: the whole block).

    With `wait=False` the thread counts and goes on at once, as with `bar.arrive`. `last` promises that
    the word does nothing more behind it, so that blocks which have met there may go on without others.
    """

    barrier: int = 0
    threads: int = 0
    wait: bool = True
    last: bool = False


class Until:
    """What threads wait for that others bring about, without being counted there themselves.

    The word that yields it does nothing more behind it.
    """

    def open(self, waiting: Any) -> Any:
        """Which of the waiting lanes (a mask) may go on now."""
        raise NotImplementedError

    def told(self, waiting: Any) -> str:
        """What these lanes wait for, and how much of it is there."""
        raise NotImplementedError


class _Barrier:
    """One barrier in each of `blocks` blocks of `warps` warps."""

    def __init__(self, blocks: int, warps: int, columns: int, stmt: Stmt) -> None:
        self.present = np.zeros((blocks, warps), np.bool_)
        self.waiting = np.zeros((blocks, warps), np.bool_)
        self.count = np.zeros(blocks, np.int64)  # threads that it counts; 0 where nobody has come
        self.brought = np.zeros((blocks, columns), np.int32)  # stamps of those who did not wait
        self.stmt = stmt

    def close(self, blocks: Any) -> None:
        """It has opened in these blocks: all is as before the first one came."""
        self.present[blocks] = False
        self.waiting[blocks] = False
        self.count[blocks] = 0
        self.brought[blocks] = 0


class Barriers:
    """The barriers of the blocks that run together."""

    def __init__(self, lanes: LaneState) -> None:
        self.lanes = lanes
        self.barriers: dict[int, _Barrier] = {}
        warps = -(-lanes.threads // lanes.warp)
        self.sizes = np.minimum(lanes.warp, lanes.threads - np.arange(warps) * lanes.warp)

    def arrive(self, meeting: Meeting, mask: Mask, node: Stmt) -> Any:
        """Threads come to a barrier: the lanes (a mask) that waited there and may go on; None: nobody."""
        clocks = self.lanes.clocks
        if mask is None and meeting.wait and not (meeting.barrier or meeting.threads or self.barriers):
            clocks.meet_blocks(slice(None))
            return self.lanes.full(None)
        coming = self._warps(meeting, mask, node)
        barrier = self._barrier(meeting, coming, node)
        barrier.present |= coming
        if meeting.wait:
            barrier.waiting |= coming
        else:
            barrier.brought = np.maximum(barrier.brought, clocks.leave(coming))
        there = (barrier.present * self.sizes).sum(axis=1)
        if ((there > barrier.count) & (barrier.count > 0)).any():
            refuse(
                "more threads come to barrier {n} than it counts", node, n=meeting.barrier,
                expected=f"{int(barrier.count.max())} threads", found=f"{int(there.max())}",
            )  # fmt: skip
        full = (there == barrier.count) & (barrier.count > 0)
        if not full.any():
            return None
        opened = barrier.waiting & full[:, None]
        if clocks.groups == 1:
            clocks.meet_blocks(full)
        else:
            clocks.meet(opened, np.where(full[:, None], barrier.brought, 0))
        barrier.close(full)
        return self._lanes_of(opened)

    def _warps(self, meeting: Meeting, mask: Mask, node: Stmt) -> Any:
        warps = self.lanes.whole_warps(mask)
        if warps is None:
            refuse(
                "not all threads of a warp reach this barrier", node,
                hint="a warp comes to a barrier as one: branch on conditions that its threads share",
            )  # fmt: skip
        if meeting.threads % self.lanes.warp and meeting.threads != self.lanes.threads:
            refuse(
                "a barrier counts whole warps of {warp} threads, not {n} threads", node,
                warp=self.lanes.warp, n=meeting.threads,
            )  # fmt: skip
        return warps

    def _barrier(self, meeting: Meeting, coming: Any, node: Stmt) -> _Barrier:
        number, count = meeting.barrier, meeting.threads or self.lanes.threads
        if number not in self.barriers:
            blocks, warps = coming.shape
            self.barriers[number] = _Barrier(blocks, warps, self.lanes.clocks.columns, node)
        barrier = self.barriers[number]
        if (barrier.present & coming).any():
            refuse("a warp comes to barrier {n} twice before it opens", node, n=number)
        rows = coming.any(axis=1)
        counted = barrier.count[rows]
        if ((counted != 0) & (counted != count)).any():
            refuse(
                "barrier {n} counts {a} threads here, and {b} where others wait", node, n=number,
                a=count, b=int(counted.max()), also=[("they wait here", barrier.stmt.place)],
            )  # fmt: skip
        barrier.count[rows] = count
        barrier.stmt = node
        return barrier

    def _lanes_of(self, warps: Any) -> Any:
        wide = np.repeat(warps, self.lanes.warp, axis=1)
        return wide[:, : self.lanes.threads].reshape(-1)

    def told(self, meeting: Meeting, block: int) -> str:
        """What is waited for at a barrier in a block, and how much of it is there."""
        barrier = self.barriers[meeting.barrier]
        there = int((barrier.present[block] * self.sizes).sum())
        return f"barrier {meeting.barrier} ({there} of {int(barrier.count[block])} threads are there)"
