"""Who touched each cell of a memory: enough of it to find every race at the later access.

Of a cell it keeps the last write, as all earlier ones are ordered before it or were refused, and for
each group of threads the last read with two readers of that time: a write must come after all reads, and
whether one reader or several read since the last barrier decides whether the reader itself may write.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .clocks import Clocks, Party

NOBODY = 0
MANY_BLOCKS = -1
SAME_STATEMENT = "writes"


@dataclass(frozen=True)
class Clash:
    """Two threads on one cell without an order: the lane of this access, the other agent, what it did."""

    lane: int
    other: int
    did: str


def _clash(wrong: Any, others: Any, did: str) -> Clash | None:
    if not wrong.any():
        return None
    lane, column = divmod(int(np.argmax(wrong)), wrong.shape[1])
    return Clash(lane, int(others[lane, column]), did)


class History:
    """The accesses to `cells` cells. `across_blocks`: other blocks touch them too, in no order at all."""

    def __init__(self, cells: int, groups: int, *, across_blocks: bool) -> None:
        self.groups, self.across_blocks = groups, across_blocks
        self.writer = np.zeros(cells, np.int32)
        self.write_stamp = np.zeros(cells, np.int32)
        self.reader = np.zeros(cells * groups, np.int32)
        self.second_reader = np.zeros(cells * groups, np.int32)
        self.read_stamp = np.zeros(cells * groups, np.int32)
        self.reading_block = np.zeros(cells if across_blocks else 0, np.int32)

    def read(self, cells: Any, party: Party, clocks: Clocks) -> Clash | None:
        """Note a read of (lanes, cells), or say with which write it races."""
        clash = self._after_write(cells, party, clocks)
        if clash is None:
            self._note_read(cells, party, clocks)
        return clash

    def _note_read(self, cells: Any, party: Party, clocks: Clocks) -> None:
        rows = cells if self.groups == 1 else cells * self.groups + party.group[:, None]
        agent = np.broadcast_to(party.agent[:, None], cells.shape)
        stamps = np.broadcast_to(clocks.stamps(party), cells.shape)
        earlier = self.read_stamp[rows] != stamps
        if earlier.all():
            self.reader[rows] = agent
            self.second_reader[rows] = NOBODY
            self.read_stamp[rows] = stamps
        elif earlier.any():
            fresh = rows[earlier]
            self.reader[fresh] = agent[earlier]
            self.second_reader[fresh] = NOBODY
            self.read_stamp[fresh] = stamps[earlier]
        second = self.reader[rows] != agent
        if second.any():
            self.second_reader[rows[second]] = agent[second]
        if self.across_blocks:
            self._note_block(cells, party)

    def _note_block(self, cells: Any, party: Party) -> None:
        first = np.broadcast_to(party.first[:, None], cells.shape).astype(np.int32)
        before = self.reading_block[cells]
        alone = (before == NOBODY) | (before == first)
        self.reading_block[cells] = np.where(alone, first, MANY_BLOCKS)
        several = self.reading_block[cells] != first
        if several.any():
            self.reading_block[cells[several]] = MANY_BLOCKS

    def write(self, cells: Any, party: Party, clocks: Clocks) -> Clash | None:
        """Note a write of (lanes, cells), or say with which access it races."""
        clash = self._after_write(cells, party, clocks) or self._after_reads(cells, party, clocks)
        if clash is not None:
            return clash
        agent = np.broadcast_to(party.agent[:, None], cells.shape)
        self.writer[cells] = agent
        self.write_stamp[cells] = np.broadcast_to(clocks.stamps(party), cells.shape)
        last = self.writer[cells]
        return _clash(last != agent, last, SAME_STATEMENT)

    def _after_write(self, cells: Any, party: Party, clocks: Clocks) -> Clash | None:
        stamps = self.write_stamp[cells]
        if not self.across_blocks and self.groups == 1:
            late = stamps > clocks.known_of(party, cells)
            if not late.any():
                return None
            writer = self.writer[cells]
        else:
            writer = self.writer[cells]
            if not writer.any():
                return None
            late = stamps > clocks.known_of(party, writer)
        wrong = late & (writer != party.agent[:, None])
        if self.across_blocks:
            wrong |= self._of_other_block(writer, party, clocks)
        return _clash(wrong, writer, "wrote")

    def _of_other_block(self, agents: Any, party: Party, clocks: Clocks) -> Any:
        first = party.first[:, None]
        return (agents != NOBODY) & ((agents < first) | (agents >= first + clocks.threads))

    def _after_reads(self, cells: Any, party: Party, clocks: Clocks) -> Clash | None:
        agent = party.agent[:, None]
        if self.across_blocks:
            block = self.reading_block[cells]
            if not block.any():
                return None
            clash = self._read_elsewhere(cells, block, party, clocks)
            if clash is not None:
                return clash
        if self.groups == 1:
            late = self.read_stamp[cells] > clocks.known_of(party, cells)
            if not late.any():
                return None
            readers = (self.reader[cells], self.second_reader[cells])
            for reader in readers:
                clash = _clash(late & (reader != agent) & (reader != NOBODY), reader, "read")
                if clash is not None:
                    return clash
            return None
        rows = cells[:, :, None] * self.groups + np.arange(self.groups)
        late = self.read_stamp[rows] > clocks.known_groups(party)
        for table in (self.reader, self.second_reader):
            reader = table[rows]
            wrong = late & (reader != agent[:, :, None]) & (reader != NOBODY)
            flat = (len(cells), cells.shape[1] * self.groups)
            clash = _clash(wrong.reshape(flat), reader.reshape(flat), "read")
            if clash is not None:
                return clash
        return None

    def _read_elsewhere(self, cells: Any, block: Any, party: Party, clocks: Clocks) -> Clash | None:
        """A write to what another block has read: there is no order between blocks."""
        wrong = (block != NOBODY) & (block != party.first[:, None])
        if not wrong.any():
            return None
        rows = cells[:, :, None] * self.groups + np.arange(self.groups)
        readers = self.reader[rows].max(axis=2)
        foreign = self._of_other_block(readers, party, clocks)
        return _clash(wrong, np.where(foreign, readers, NOBODY), "read")

    def stamp(self, cells: Any, party: Party, clocks: Clocks, *, writes: bool) -> None:
        """An asynchronous access of these threads ends now: it counts as theirs, made at this time."""
        agent = np.broadcast_to(party.agent[:, None], cells.shape)
        if not writes:
            self._note_read(cells, party, clocks)
            return
        self.writer[cells] = agent
        self.write_stamp[cells] = np.broadcast_to(clocks.stamps(party), cells.shape)
