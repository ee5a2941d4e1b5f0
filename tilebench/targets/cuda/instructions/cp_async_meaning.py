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
    if statement.valid is None:
        _issue(lanes, statement, mask, width, [statement.src])
        return
    valid = lanes.wide(lanes.value(statement.valid, mask), np.int64)
    everyone = lanes.full(mask)
    for count in np.unique(valid[everyone]).tolist():
        if not 0 <= count <= width:
            refuse("T.cp_async reads {n} of {width} elements", statement, n=count, width=width)
        sources = [statement.src] if count == width else _singles(statement.src, count)
        _issue(lanes, statement, everyone & (valid == count), width, sources)


def _issue(lanes: Lanes, statement: CpAsync, mask: Mask, width: int, sources: list[Region]) -> None:
    def perform() -> None:
        values: Any = np.zeros((width, lanes.lanes), statement.dst.buffer.dtype.numpy)
        first = 0
        for source in sources:
            count = elements(source)
            values[first : first + count] = lanes.read(source, mask)
            first += count
        lanes.write(statement.dst, values, mask)

    lanes.issue(NAME, statement, mask, perform, reads=sources, writes=[statement.dst])


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
