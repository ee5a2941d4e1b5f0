"""The lanes as the meaning of a word sees them: values, regions, registers, barriers, what is in flight.

A meaning is `meaning(lanes, statement, mask)`: it does what the statement does for the lanes of the mask
(None: all). A plain function; or a generator that yields a `Meeting` or an `Until` where its threads wait for
others.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

import numpy as np

from ..errors import InternalError
from ..ir import Region, Stmt, effects_of
from .address import first_bit, stored_bits
from .asynchrony import Hold, Operation
from .barriers import Meeting, Until
from .clusters import Clusters
from .expressions import OWN
from .launch import Launch
from .memory import check_around
from .phases import Phases
from .proxies import LaneProxies
from .refusal import refuse
from .state import Mask

Waits = Generator["Meeting | Until", None, None]
Meaning = Callable[["Lanes", Any, Mask], "Waits | None"]


class Lanes(LaneProxies):
    """Some blocks of a launch, with the meanings of the words that their threads run."""

    def __init__(
        self,
        launch: Launch,
        blocks: list[tuple[int, int, int]],
        meanings: Mapping[type, Meaning],
        functions: Mapping[str, Callable[..., Any]],
    ) -> None:
        super().__init__(launch, blocks)
        self.meanings, self.functions = meanings, functions
        # How often a clock was read: what the clocks of the simulator say.
        self.clock_reads = 0
        self.phases = Phases()
        self.clusters = Clusters(self.blocks // launch.cluster)
        # What words of a target keep from statement to statement, by their names.
        self.kept: dict[str, Any] = {}

    def run(self, stmt: Stmt, mask: Mask) -> Waits | None:
        """Do a statement that is a word; what it waits for, where it does."""
        meaning = self.meanings.get(type(stmt))
        if meaning is None:
            raise unknown(stmt)
        if self.launch.counters is not None:
            self.launch.counters.at(stmt)
            self.launch.counters.ran(self.active(mask), self.threads, self.warp)
        return meaning(self, stmt, mask)

    # -- regions
    def read(self, region: Region, mask: Mask, *, counts: bool = True) -> Any:
        """(elements, lanes) of a region of any memory; it lies along the last dimension.

        Without `counts` no counter sees it: `count_firsts` and `count_pieces` count what takes
        several calls.
        """
        buffer, count = region.buffer, elements(region)
        if buffer.scope in OWN:
            number = self.register_of(buffer, region.start, mask, region, count)
            return self.get(buffer, number, count, mask, region)
        index = [self.value(e, mask) for e in region.start]
        return self.fetch(region, buffer, index, count, mask, counts=counts)

    def write(self, region: Region, values: Any, mask: Mask) -> None:
        """Store (elements, lanes) into a region of any memory."""
        buffer = region.buffer
        if buffer.scope in OWN:
            number = self.register_of(buffer, region.start, mask, region, len(values))
            self.put(buffer, number, values, mask, region)
        else:
            self.keep(region, buffer, [self.value(e, mask) for e in region.start], values, mask)

    def count_firsts(self, region: Region, counts: Any, mask: Mask) -> None:
        """One instruction of each warp reads as many of a region's first elements as each lane's count."""
        counters, buffer = self.launch.counters, region.buffer
        some = self.full(mask) & (counts > 0)
        if counters is None or not some.any():
            return
        lanes = self.active(some)
        index = [self.wide(self.value(number, some), np.int64)[lanes] for number in region.start]
        widths = -(-counts[lanes] * stored_bits(buffer.dtype) // 8)
        counters.count_global(first_bit(buffer, index) // 8, widths, lanes, self.threads, self.warp)

    def count_pieces(self, region: Region, mask: Mask) -> None:
        """Two instructions of each warp: the aligned pieces where a region's first and last element lie."""
        counters, buffer, lanes = self.launch.counters, region.buffer, self.active(mask)
        if counters is None or not len(lanes):
            return
        index = [self.wide(self.value(number, mask), np.int64)[lanes] for number in region.start]
        first: Any = first_bit(buffer, index) // 8
        width = buffer.dtype.bytes_of((region.extent or (1,))[-1])
        for start, again in ((first, False), (first + width - 1, True)):
            place = start // width * width
            counters.count_global(place, width, lanes, self.threads, self.warp, again=again)

    def past_aligned(self, region: Region, mask: Mask) -> Any:
        """How many elements past a multiple of its size an access from any address starts, a number a lane.

        Refuses it where the aligned pieces around it are not inside the buffer.
        """
        lanes, count = self.active(mask), elements(region)
        past = np.zeros(self.lanes, np.int64)
        if len(lanes):
            numbers = [self.wide(self.value(e, mask), np.int64)[lanes] for e in region.start]
            past[lanes] = check_around(region.buffer, numbers, count, region)
        return past

    # -- what is asynchronous
    def issue(
        self,
        token: str,
        statement: Stmt,
        mask: Mask,
        perform: Callable[[], None],
        *,
        reads: Iterable[Region] | None = None,
        writes: Iterable[Region] | None = None,
    ) -> None:
        """Start an asynchronous operation of the active lanes.

        `perform` does its work through `read` and `write`, with their checks, as the issuing threads;
        its targets are in flight from then on, and its sources are still being read, until the lane has
        waited for the group of `token` that it commits this to. `reads` and `writes` are the regions;
        left out, they are those that the statement's fields are marked with.
        """
        effects = [effect for effect in effects_of(statement) if effect.region is not None]
        sources = [e.region for e in effects if e.reads] if reads is None else list(reads)
        targets = [e.region for e in effects if e.writes] if writes is None else list(writes)
        perform()
        lanes = self.active(mask)
        row = self.full(mask).cumsum() - 1
        holds: list[Hold] = []
        for region, target in [(r, False) for r in sources] + [(r, True) for r in targets]:
            if region is not None and (hold := self._hold(region, lanes, mask, writes=target)) is not None:
                hold.memory.flight.start(hold.cells, statement, writes=target)
                holds.append(hold)
        self.tokens.issue(token, Operation(statement, row, tuple(holds)), self.full(mask).copy())

    def _hold(self, region: Region, lanes: Any, mask: Mask, *, writes: bool) -> Hold | None:
        buffer, count = region.buffer, elements(region)
        if buffer.scope in OWN:
            number = self.register_of(buffer, region.start, mask, region, count)
            return Hold(self.own(buffer, region), self.register_cells(number, count)[lanes], writes)
        index = [self.value(e, mask) for e in region.start]
        touch = self.touch(region, buffer, index, count, mask, counts=False)
        return None if touch.cells is None else Hold(touch.memory, touch.cells, writes)

    def commit(self, token: str, mask: Mask) -> None:
        """Close a group of each active lane: what it issued to the token since its last commit."""
        self.tokens.commit(token, self.full(mask))

    def wait(self, token: str, pending: int, statement: Stmt, mask: Mask) -> None:
        """All but the `pending` youngest groups of each active lane are complete.

        Other threads may touch what they wrote after a barrier that follows.
        """
        if pending < 0:
            refuse("a wait cannot leave {n} groups in flight", statement, n=pending)
        for part in self.tokens.wait(token, pending, self.full(mask), statement):
            lanes = self.active(part.lanes)
            party = self.party(part.lanes, lanes)
            rows = part.operation.row[lanes]
            for hold in part.operation.holds:
                hold.memory.flight.end(hold.cells[rows], writes=hold.writes)
                history = getattr(hold.memory, "history", None)
                if history is not None:
                    site = self.launch.sites.number(part.operation.statement)
                    history.complete(hold.cells[rows], party, self.clocks, site, writes=hold.writes)


def elements(region: Region) -> int:
    """The elements of a region that a thread names: all along its last dimension."""
    extent = region.extent or (1,)
    if any(e != 1 for e in extent[:-1]):
        refuse("a thread names elements along the last dimension only", region, found=extent)
    return extent[-1]


def singles(region: Region) -> list[Region]:
    """The elements that a thread names, each by itself."""
    one = (1,) * len(region.start)
    return [
        region.but(start=(*region.start[:-1], region.start[-1] + k), extent=one)
        for k in range(elements(region))
    ]


def unknown(stmt: Stmt) -> InternalError:
    """The error for a word without a meaning."""
    return InternalError(
        "the simulator has no meaning of {name}", at=stmt.place, name=type(stmt).__name__,
        hint="add a row to the meanings that it is run with: the class of the statement, and a function",
    )  # fmt: skip
