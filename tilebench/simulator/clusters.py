"""The barrier of a cluster: opens when all threads of all its blocks have come.

What one block does to the memory of another comes before such a barrier: without it the other may have
ended by then, and its memory be that of the next one. A relaxed one does not wait for what is under way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir import Stmt
from ..language.lowered.clusters import SyncCluster
from .barriers import Until
from .refusal import refuse
from .state import Mask

if TYPE_CHECKING:
    from collections.abc import Generator

    from .lanes import Lanes


class Clusters:
    """Of each cluster that runs: how many threads have come to its barrier, and how often that has opened.

    `reached` are the statements that have touched another block's memory since, by cluster.
    """

    def __init__(self, clusters: int) -> None:
        self.come = np.zeros(clusters, np.int64)
        self.phase = np.zeros(clusters, np.int64)
        self.reached: dict[int, Stmt] = {}

    def reach(self, lanes: Lanes, stmt: Stmt, blocks: Any) -> None:
        """These blocks touch the memory of others of their clusters."""
        for number in np.unique(blocks // lanes.launch.cluster).tolist():
            self.reached[number] = stmt

    def check_end(self) -> None:
        """Refuse what may come to a block that has ended."""
        for stmt in self.reached.values():
            refuse(
                "this may come to a block of the cluster that has ended: no T.sync_cluster() follows it",
                stmt, hint="blocks wait for each other at the end: T.sync_cluster()",
            )  # fmt: skip


class ClusterWait(Until):
    """Lanes that have come to the barrier of their cluster."""

    def __init__(self, lanes: Lanes, stmt: SyncCluster, mask: Mask) -> None:
        self.lanes, self.size = lanes, lanes.launch.cluster * lanes.threads
        if lanes.whole_warps(mask) is None:
            refuse("not all threads of a warp reach this barrier", stmt)
        self.barrier = lanes.clusters
        self.cluster = np.arange(lanes.lanes) // self.size
        self.phase = self.barrier.phase.copy()
        self.barrier.come += np.bincount(self.cluster[lanes.active(mask)], minlength=len(self.barrier.come))
        for number in np.flatnonzero(self.barrier.come >= self.size).tolist():
            lanes.clocks.meet_cluster(number)
            self.barrier.come[number] = 0
            self.barrier.phase[number] += 1
            if not stmt.relaxed:
                self.barrier.reached.pop(number, None)

    def open(self, waiting: Any) -> Any:
        """The lanes of clusters whose barrier has opened since."""
        return waiting & (self.barrier.phase > self.phase)[self.cluster]

    def told(self, waiting: Any) -> str:
        """How many threads are there."""
        number = int(self.cluster[np.argmax(waiting)])
        return (
            f"the barrier of the cluster ({int(self.barrier.come[number])} of {self.size} threads are there)"
        )


def sync_cluster(lanes: Lanes, stmt: SyncCluster, mask: Mask) -> Generator[Until, None, None]:
    """`T.sync_cluster()`"""
    yield ClusterWait(lanes, stmt, mask)


MEANINGS: dict[type, Any] = {SyncCluster: sync_cluster}
