"""What a card's clocks say inside a kernel: reading one, and keeping when a statement began and ended."""

from __future__ import annotations

from ...ir import Expr, OpStmt, Region, Word, attribute, node, operand, reads, writes
from ..stages import THREAD


@node
class ReadClock(OpStmt):
    """`T.read_clock(now, counter="cycles")`: a clock, in one register of 64 bits.

    `counter` is `cycles`, `nanoseconds` (one clock for the whole card) or `unit` (which multiprocessor).
    """

    word = "read_clock"
    stages = THREAD
    dst: Region = writes()
    counter: str = attribute(default="cycles")


@node
class NoteClock(OpStmt):
    """`T.note_clock(events, ticks, count, row, turn, site=3)`: a row of times.

    The first lane of each warp keeps it. `events` are (blocks, warps, events, 4) numbers, `ticks` when it
    began and ended, `count` how many a warp has kept. A site of 0 is the block itself.
    """

    word = "note_clock"
    stages = THREAD
    events: Region = writes()
    ticks: Region = reads()
    count: Region = writes()
    row: Expr = operand()
    turn: Expr = operand()
    site: int = attribute(default=0)


WORDS = tuple((each.word, Word(each)) for each in (ReadClock, NoteClock))
