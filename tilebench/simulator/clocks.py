"""Vector clocks: which thread's accesses are ordered before which other's.

The threads of a block are cut into groups of `size`: one group for the block when every barrier of the
kernel is the whole block's, else one a warp. A group's own clock ticks at each barrier that it passes;
an access is stamped with it. `known[b, g, h]` is the greatest stamp of group h whose accesses come
before what group g does now. Of its own group a thread knows what came before the last barrier that all
of the group passed: threads of one warp are not in step (Volta and later), so that two of them are
ordered by `T.sync_warp()` or a wider barrier alone. A shuffle exchanges registers and orders no memory.

What asynchronous copies do that complete on a barrier is done by an engine of the block, a group of its own
that passes no barrier: only who has waited for a copy's own barrier knows what it brought.

Blocks of a cluster know of each other too: `known` has a column for each group of each block of it, those of
the block of rank r from `r * groups` on. Blocks that run together are whole clusters, one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Party:
    """The threads that make one access: arrays of one entry an active lane.

    `agent` numbers the threads of the whole launch from 1 (0 is nobody), `block` the blocks that run
    together, `group` the groups of a block; `first` is the agent number of the block's thread 0. `home` are
    the blocks whose shared memory is touched, where it is not the threads' own.
    """

    agent: Any
    block: Any
    group: Any
    first: Any
    home: Any = None

    @property
    def memory(self) -> Any:
        """The blocks whose shared memory is touched."""
        return self.block if self.home is None else self.home


class Clocks:
    """The clocks of some blocks that run together, `groups` groups of threads each."""

    def __init__(
        self, blocks: int, threads: int, size: int, *, engine: bool = False, cluster: int = 1
    ) -> None:
        self.size, self.engine = size, -(-threads // size)
        self.groups = self.engine + engine
        # The engine's agents have numbers behind those of the threads.
        self.threads = (self.engine + 1) * size if engine else threads
        self.now = np.ones((blocks, self.groups), np.int32)
        self.cluster, self.columns = cluster, cluster * self.groups
        # The column of each block's first group, and of each of its groups.
        self.offset = np.arange(blocks) % cluster * self.groups
        self.own = self.offset[:, None] + np.arange(self.groups)
        self._rows, self._groups = np.arange(blocks)[:, None], np.arange(self.groups)[None, :]
        self.known = np.zeros((blocks, self.groups, self.columns), np.int32)
        # What each group has made known to the engine: the greatest stamp of every group.
        self.fenced = np.zeros_like(self.known)

    def _wide(self, present: Any) -> Any:
        """(blocks, groups) of groups of threads, with the engine, which is never there."""
        return present if present.shape[1] == self.groups else np.pad(present, ((0, 0), (0, 1)))

    def deliver(self, block: int) -> int:
        """The engine of a block hands on what it has done: its stamp."""
        self.now[block, self.engine] += 1
        return int(self.now[block, self.engine]) - 1

    def _joined(self, present: Any) -> Any:
        """What the groups `present` know and have done, together: (blocks, columns) stamps."""
        before = self.known.copy()
        before[self._rows, self._groups, self.own] = self.now
        return np.where(present[:, :, None], before, 0).max(axis=1)

    def meet(self, present: Any, brought: Any = 0) -> None:
        """A barrier of the groups `present` (blocks, groups): what they did is done for all of them.

        `brought` (blocks, columns) are stamps that others left there before.
        """
        present = self._wide(present)
        joined = np.maximum(self._joined(present), brought)
        self.known = np.where(present[:, :, None], joined[:, None, :], self.known)
        self.now = (self.now + present).astype(np.int32)

    def leave(self, present: Any) -> Any:
        """What the groups `present` bring to a barrier and do not wait: what they do next is later."""
        present = self._wide(present)
        brought = self._joined(present)
        self.now = (self.now + present).astype(np.int32)
        return brought

    def bring(self, block: int, groups: Any) -> Any:
        """What some groups of one block leave for others, (columns,) stamps: what they do next is later."""
        known = self.known[block, groups]
        known[np.arange(len(groups)), self.own[block, groups]] = self.now[block, groups]
        self.now[block, groups] += 1
        return known.max(axis=0)

    def fence(self, block: int, groups: Any) -> None:
        """What some groups of one block know, and have done, the engine sees from here on."""
        for group in groups:
            brought = self.bring(block, np.array([group]))
            self.fenced[block, group] = np.maximum(self.fenced[block, group], brought)

    def unfenced(self, party: Party, writers: Any, stamps: Any) -> Any:
        """Which writes the engine may not see: neither who wrote nor who asks has a fence behind them.

        `writers` and `stamps` are (lanes, cells); what the engine itself wrote it sees.
        """
        group, column = self._group_of(writers), self._column_of(writers)
        own = self.fenced[party.memory[:, None], group, column]
        asking = self.fenced[party.block[:, None], party.group[:, None], column]
        return (writers != 0) & (group != self.engine) & (stamps > np.maximum(own, asking))

    def learn(self, block: int, groups: Any, stamps: Any) -> None:
        """Some groups of one block know what others have left."""
        self.known[block, groups] = np.maximum(self.known[block, groups], stamps)

    def knows(self, block: int, groups: Any, stamps: Any) -> bool:
        """Whether each of some groups knows all of what others have left; of itself it does."""
        known = self.known[block, groups]
        known[np.arange(len(groups)), self.own[block, groups]] = np.iinfo(known.dtype).max
        return bool((known >= stamps).all())

    def meet_blocks(self, blocks: Any) -> None:
        """A barrier of all threads of these blocks (a mask or a slice)."""
        if self.groups == 1:
            self.known[self._rows[blocks, 0], 0, self.offset[blocks]] = self.now[blocks, 0]
            self.now[blocks] += 1
            return
        present = np.zeros((len(self.now), self.engine), np.bool_)
        present[blocks] = True
        self.meet(present)

    def meet_groups(self, present: Any) -> None:
        """A barrier of each of these groups for itself (blocks, groups)."""
        present, own = self._wide(present), (self._rows, self._groups, self.own)
        self.known[own] = np.where(present, self.now, self.known[own])
        self.now = self.now + present

    def stamps(self, party: Party) -> Any:
        """The stamp of an access made now, (lanes, 1)."""
        return self.now[party.block, party.group][:, None]

    def known_of_block(self, party: Party) -> Any:
        """The greatest ordered stamp of the own block where it is one group, (lanes, 1)."""
        return self.known[party.block, 0, self.offset[party.block]][:, None]

    def known_of(self, party: Party, agents: Any) -> Any:
        """The greatest ordered stamp of the groups of `agents` (lanes, cells), for each lane."""
        if self.columns == 1:
            return self.known_of_block(party)
        return self.known[party.block[:, None], party.group[:, None], self._column_of(agents)]

    def known_of_groups(self, party: Party) -> Any:
        """The greatest ordered stamp of every group of the block whose memory it is, (lanes, 1, groups)."""
        if self.cluster == 1:
            return self.known[party.block, party.group][:, None, :]
        columns = self.own[party.memory]
        return self.known[party.block[:, None], party.group[:, None], columns][:, None, :]

    def _group_of(self, agents: Any) -> Any:
        return (agents - 1) % self.threads // self.size

    def _column_of(self, agents: Any) -> Any:
        """The columns of agents of the own cluster; its blocks follow each other in the launch."""
        group = self._group_of(agents)
        if self.cluster == 1:
            return group
        return (agents - 1) // self.threads % self.cluster * self.groups + group

    def meet_cluster(self, cluster: int) -> None:
        """A barrier of all threads of a cluster's blocks."""
        blocks = np.arange(cluster * self.cluster, (cluster + 1) * self.cluster)
        groups = np.arange(self.engine)
        brought = np.max([self.bring(block, groups) for block in blocks.tolist()], axis=0)
        for block in blocks.tolist():
            self.learn(block, groups, brought)
