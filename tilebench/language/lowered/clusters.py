"""Blocks that run together as a cluster: what their threads have in common.

A cluster's blocks follow each other along the first axis of the grid, and run at the same time. A block has a
rank in its cluster, its number there modulo the cluster's size. Barriers in phases of another block are
named by its rank (`T.mbarrier_arrive(empty[i], block=r)`), and a copy in boxes can go to several blocks.
"""

from __future__ import annotations

from ...ir import Word, attribute, node
from ..stages import EVERY
from .threads import SyncThreads


@node
class SyncCluster(SyncThreads):
    """`T.sync_cluster()`: every thread of every block of the cluster waits for all others.

    What was done before it is done for all of them. A `relaxed` one lets barriers that were made be seen, and
    hands on nothing else.
    """

    word = "sync_cluster"
    stages = EVERY
    why: str = attribute(default="")
    barrier: int = attribute(default=0)
    threads: int = attribute(default=0)
    relaxed: bool = attribute(default=False)


WORDS = ((SyncCluster.word, Word(SyncCluster)),)
