"""Clocks of a kernel: an array that each call brings along, in which blocks leave when they did what.

`T.Kernel(..., clocks=clock_events)` asks for it; which statements are timed is the matter of a pass,
`insert_clocks`. A row of events is a site, an iteration, and two times in cycles; the first row of a warp is
its multiprocessor, when it began in nanoseconds of the card's clock, and its own first and last cycle.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ...errors import LanguageError
from ...ir import Buffer, Function, map_bodies, whole
from ...ir.dtypes import int64
from ...ir.names import Names
from ..structure import KernelLaunch
from .printed_rows import Speech

NAME = "clock_events"
# Blocks whose times are kept, the first ones, and events of each of their warps.
MOST_BLOCKS, MOST_EVENTS, FIELDS = 32, 1024, 4
# Threads are decided later, and no block has more warps.
WARPS = 32


def with_clocks(function: Function, printed: Speech | None) -> tuple[Function, Speech]:
    """The kernel with the array as its last parameter, for which its launch asks.

    Raises `LanguageError` for a function of several launches, whose blocks would share a row.
    """
    launches = [each for each in function.body if isinstance(each, KernelLaunch)]
    if len(launches) != 1:
        raise LanguageError(
            "{name} has {count} launches, and clocks are of one", at=function.place, name=function.name,
            count=len(launches), hint="time each in a function of its own",
        )  # fmt: skip
    (launch,) = launches
    known = [count for count in launch.grid if isinstance(count, int)]
    blocks = prod(known) if len(known) == len(launch.grid) else MOST_BLOCKS
    shape = (max(1, min(blocks, MOST_BLOCKS)), WARPS, MOST_EVENTS, FIELDS)
    events = Buffer(Names(function).fresh(NAME), shape, int64, "global")
    marked = map_bodies(function, lambda node: node.but(clocks=whole(events)) if node is launch else node)
    said = printed or Speech((), (), None)
    return marked.but(params=(*function.params, events)), replace(said, clocks=events)
