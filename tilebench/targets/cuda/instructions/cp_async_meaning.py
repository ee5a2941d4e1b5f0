"""What the words of `cp.async` do in the simulator: all groups of a thread stand in one queue."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir import Region
from ....simulator.lanes import Lanes, elements
from ....simulator.refusal import refuse
from ....simulator.state import Mask
from .cp_async import NAME, CpAsync, CpAsyncCommit, CpAsyncWait


def cp_async(lanes: Lanes, statement: CpAsync, mask: Mask) -> None:
    """A write that is in flight until its group has been waited for; threads read as much as is valid."""
    width = elements(statement.src)
    values: Any = np.zeros((width, lanes.lanes), statement.dst.buffer.dtype.numpy)
    if statement.valid is None:
        _read(lanes, statement, mask, [statement.src], values)
    else:
        valid = lanes.wide(lanes.value(statement.valid, mask), np.int64)
        everyone = lanes.full(mask)
        for count in np.unique(valid[everyone]).tolist():
            if not 0 <= count <= width:
                refuse("T.cp_async reads {n} of {width} elements", statement, n=count, width=width)
            sources = [statement.src] if count == width else _singles(statement.src, count)
            _read(lanes, statement, everyone & (valid == count), sources, values)
        lanes.count_firsts(statement.src, valid, mask)
    # One instruction, however much each thread reads.
    lanes.issue(
        NAME, statement, mask, lambda: lanes.write(statement.dst, values, mask), reads=[],
        writes=[statement.dst],
    )  # fmt: skip


def _read(lanes: Lanes, statement: CpAsync, mask: Mask, sources: list[Region], values: Any) -> None:
    """The sources of the lanes of a mask into the rows of `values`; they are being read until the wait."""

    def perform() -> None:
        first = 0
        for source in sources:
            count = elements(source)
            found = lanes.read(source, mask, counts=statement.valid is None)
            rows = values[first : first + count]
            values[first : first + count] = found if mask is None else np.where(mask, found, rows)
            first += count

    lanes.issue(NAME, statement, mask, perform, reads=sources, writes=[])


def _singles(region: Region, count: int) -> list[Region]:
    """The first elements of a region, each on its own: of what lies behind them nothing is read."""
    *lead, first = region.start
    return [
        region.but(start=(*lead, first + number), extent=(1,) * len(region.start)) for number in range(count)
    ]


def cp_async_commit(lanes: Lanes, statement: CpAsyncCommit, mask: Mask) -> None:
    """The threads' groups are closed."""
    lanes.commit(NAME, mask)


def cp_async_wait(lanes: Lanes, statement: CpAsyncWait, mask: Mask) -> None:
    """The threads wait for their own groups."""
    lanes.wait(NAME, statement.pending, statement, mask)
