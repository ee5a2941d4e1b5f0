"""Who touched each cell of a memory: enough of it to find every race at the later access.

Of a cell it keeps the last write, as all earlier ones are ordered before it or were refused, and for
each group of threads the last read with two readers of that time: a write must come after all reads, and
whether one reader or several read since the last barrier decides whether the reader itself may write.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .clocks import Clocks, Party

NOBODY = 0
MANY_BLOCKS = -1


@dataclass(frozen=True)
class Clash:
    """Two threads on one cell without an order: the lane of this access, and the agent of the other.

    `wrote` says what the other did, `site` the number of its statement (-1: it is not known), and
    `together` that both write in this very access.
    """

    lane: int
    other: int
    wrote: bool
    site: int
    together: bool = False


class Touched:
    """For each row an agent, and the number of the statement in which it made its access."""

    def __init__(self, rows: int) -> None:
        self.agent = np.zeros(rows, np.int32)
        self.site = np.zeros(rows, np.int32)

    def note(self, rows: Any, agent: Any, site: int) -> None:
        """These agents were there, by statement `site`."""
        self.agent[rows] = agent
        self.site[rows] = site


def _clash(wrong: Any, agents: Any, rows: Any, touched: Touched, *, wrote: bool) -> Clash | None:
    """The first wrong one of (lanes, cells), if there is any."""
    if not wrong.any():
        return None
    first = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    other = int(agents[first])
    return Clash(int(first[0]), other, wrote, -1 if other == NOBODY else int(touched.site[rows[first]]))


class History:
    """The accesses to `cells` cells. `across_blocks`: other blocks touch them too, in no order at all."""

    def __init__(self, cells: int, groups: int, *, across_blocks: bool) -> None:
        self.groups, self.across_blocks = groups, across_blocks
        self.writer = Touched(cells)
        self.write_stamp = np.zeros(cells, np.int32)
        self.reader, self.second_reader = Touched(cells * groups), Touched(cells * groups)
        self.read_stamp = np.zeros(cells * groups, np.int32)
        # The atomic accesses, as its readers; None as long as there was none.
        self.atomics: History | None = None
        # The cells that an atomic store has written; None likewise.
        self.stored: Any = None
        self.reading_block = np.zeros(cells if across_blocks else 0, np.int32)

    def unwritten(self, cells: Any) -> bool:
        """Whether nobody has ever written one of the cells."""
        return bool(self.is_fresh(cells).any())

    def is_fresh(self, cells: Any) -> Any:
        """For each cell whether nobody has ever written it."""
        fresh: Any = self.writer.agent[cells] == NOBODY
        return fresh if self.stored is None else fresh & ~self.stored[cells]

    def combine(
        self, cells: Any, party: Party, clocks: Clocks, site: int, *, stores: bool = False
    ) -> Clash | None:
        """Note an atomic access by statement `site`, or say with which other access it races.

        Those before it are kept as the readers of a history of their own: nothing else may come near them
        without an order, as a write may not near reads.
        """
        clash = self._after_write(cells, party, clocks) or self._after_reads(cells, party, clocks)
        if clash is None:
            if self.atomics is None:
                self.atomics = History(len(self.write_stamp), self.groups, across_blocks=self.across_blocks)
            self.atomics._note_read(cells, party, clocks, site)
            if stores:
                self.stored = (
                    np.zeros(len(self.write_stamp), np.bool_) if self.stored is None else self.stored
                )
                self.stored[cells] = True
        return clash

    def _after_atomics(self, cells: Any, party: Party, clocks: Clocks) -> Clash | None:
        clash = None if self.atomics is None else self.atomics._after_reads(cells, party, clocks)
        return None if clash is None else replace(clash, wrote=True)

    def read(
        self, cells: Any, party: Party, clocks: Clocks, site: int, *, notes: bool = True
    ) -> Clash | None:
        """Note a read of (lanes, cells) by statement `site`, or say with which write it races."""
        clash = self._after_write(cells, party, clocks) or self._after_atomics(cells, party, clocks)
        if clash is None and notes:
            self._note_read(cells, party, clocks, site)
        return clash

    def write(self, cells: Any, party: Party, clocks: Clocks, site: int) -> Clash | None:
        """Note a write of (lanes, cells) by statement `site`, or say with which access it races."""
        clash = self._after_write(cells, party, clocks) or self._after_reads(cells, party, clocks)
        clash = clash or self._after_atomics(cells, party, clocks)
        if clash is not None:
            return clash
        agent = self._note_write(cells, party, clocks, site)
        last = self.writer.agent[cells]
        clash = _clash(last != agent, last, cells, self.writer, wrote=True)
        return None if clash is None else replace(clash, together=True)

    def complete(self, cells: Any, party: Party, clocks: Clocks, site: int, *, writes: bool) -> None:
        """An asynchronous access of these threads ends now: it counts as theirs, made at this time."""
        if writes:
            self._note_write(cells, party, clocks, site)
        else:
            self._note_read(cells, party, clocks, site)

    # -- notes
    def _note_write(self, cells: Any, party: Party, clocks: Clocks, site: int) -> Any:
        agent = np.broadcast_to(party.agent[:, None], cells.shape)
        self.writer.note(cells, agent, site)
        self.write_stamp[cells] = np.broadcast_to(clocks.stamps(party), cells.shape)
        return agent

    def _note_read(self, cells: Any, party: Party, clocks: Clocks, site: int) -> None:
        rows = cells if self.groups == 1 else cells * self.groups + party.group[:, None]
        agent = np.broadcast_to(party.agent[:, None], cells.shape)
        stamps = np.broadcast_to(clocks.stamps(party), cells.shape)
        earlier = self.read_stamp[rows] != stamps
        if earlier.any():
            fresh, agents = (rows, agent) if earlier.all() else (rows[earlier], agent[earlier])
            self.reader.note(fresh, agents, site)
            self.second_reader.agent[fresh] = NOBODY
            self.read_stamp[rows] = stamps
        second = self.reader.agent[rows] != agent
        if second.any():
            self.second_reader.note(rows[second], agent[second], site)
        if self.across_blocks:
            self._note_block(cells, party)

    def _note_block(self, cells: Any, party: Party) -> None:
        first = np.broadcast_to(party.first[:, None], cells.shape)
        before = self.reading_block[cells]
        alone = (before == NOBODY) | (before == first)
        self.reading_block[cells] = np.where(alone, first, MANY_BLOCKS)
        several = self.reading_block[cells] != first
        if several.any():
            self.reading_block[cells[several]] = MANY_BLOCKS

    # -- checks
    def _after_write(self, cells: Any, party: Party, clocks: Clocks) -> Clash | None:
        stamps = self.write_stamp[cells]
        if self.groups == 1 and not self.across_blocks:
            # What every load of a kernel with block barriers comes to: most find nothing late.
            late = stamps > clocks.known_of_block(party)
            if not late.any():
                return None
            writer = self.writer.agent[cells]
        else:
            writer = self.writer.agent[cells]
            if not writer.any():
                return None
            late = stamps > clocks.known_of(party, writer)
        wrong = late & (writer != party.agent[:, None])
        if self.across_blocks:
            wrong |= _of_other_block(writer, party, clocks)
        return _clash(wrong, writer, cells, self.writer, wrote=True)

    def _after_reads(self, cells: Any, party: Party, clocks: Clocks) -> Clash | None:
        if self.across_blocks:
            block = self.reading_block[cells]
            if not block.any():
                return None
            clash = self._read_elsewhere(cells, block, party, clocks)
            if clash is not None:
                return clash
        if self.groups == 1:
            rows, known = cells, clocks.known_of_block(party)
            agent = party.agent[:, None]
        else:
            rows, known = self._rows(cells), clocks.known_of_groups(party)
            agent = party.agent[:, None, None]
        late = self.read_stamp[rows] > known
        if not late.any():
            return None
        for touched in (self.reader, self.second_reader):
            reader = touched.agent[rows]
            wrong = late & (reader != agent) & (reader != NOBODY)
            clash = _clash(wrong, reader, rows, touched, wrote=False)
            if clash is not None:
                return clash
        return None

    def _rows(self, cells: Any) -> Any:
        """(lanes, cells, groups) rows of all groups that may have read the cells."""
        return cells[:, :, None] * self.groups + np.arange(self.groups)

    def _read_elsewhere(self, cells: Any, block: Any, party: Party, clocks: Clocks) -> Clash | None:
        """A write to what another block has read: there is no order between blocks."""
        wrong = (block != NOBODY) & (block != party.first[:, None])
        if not wrong.any():
            return None
        rows = self._rows(cells)
        readers = self.reader.agent[rows]
        foreign = _of_other_block(readers, party, clocks)
        seen = _clash(foreign & wrong[:, :, None], readers, rows, self.reader, wrote=False)
        # Where blocks have read in turn, the ones before the last are known no more.
        return seen or _clash(wrong, np.zeros_like(block), cells, self.reader, wrote=False)


def _of_other_block(agents: Any, party: Party, clocks: Clocks) -> Any:
    first = party.first.reshape(-1, *[1] * (agents.ndim - 1))
    return (agents != NOBODY) & ((agents < first) | (agents >= first + clocks.threads))
