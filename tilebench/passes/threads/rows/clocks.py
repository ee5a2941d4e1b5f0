"""Clocks: `T.note_clock` keeps a row of times, by the first lane of each warp, as far as there is room."""

from __future__ import annotations

from ....ir import Buffer, Cast, Const, Expr, If, Load, Stmt, Store, all_of
from ....ir.dtypes import int64
from ....language.lowered.clocks import NoteClock, ReadClock
from ...threaded.insert_clocks import BEGAN, ENDED, FIRST, SINCE, UNIT
from ..addresses import lower_expr
from ..emitter import Emitter
from ..lowering import Lowering
from ..tiles import NOWHERE


def _read(emitter: Emitter, statement: ReadClock) -> list[Stmt]:
    return [statement]


def _note(emitter: Emitter, statement: NoteClock) -> list[Stmt]:
    events, ticks, count = (region.buffer for region in (statement.events, statement.ticks, statement.count))
    before: list[Stmt] = []
    row = lower_expr(emitter, statement.row, NOWHERE, before)
    turn = lower_expr(emitter, statement.turn, NOWHERE, before)
    warp = (emitter.tid + emitter.threads.first) // emitter.machine.warp
    kept: Expr = Load(count, (Const(0),))
    numbers: list[Expr]
    if statement.site == 0:
        # The block itself: the first row of the warp, written when all others are.
        place, numbers = Const(0), [_of(ticks, part) for part in (UNIT, SINCE, FIRST, ENDED)]
    else:
        site, iteration = Const(statement.site, type=int64), Cast(turn, type=int64)
        place, numbers = kept, [site, iteration, _of(ticks, BEGAN), _of(ticks, ENDED)]
    tests = [(emitter.tid % emitter.machine.warp).compare("==", 0), row.compare("<", events.extents[0])]
    if statement.site:
        tests.append(kept.compare("<", events.extents[2]))
    stores = tuple(Store(events, (row, warp, place, Const(k)), each) for k, each in enumerate(numbers))
    lowered: list[Stmt] = [*before, If(all_of(tests), stores, ())]
    if statement.site:
        lowered.append(Store(count, (Const(0),), kept + 1))
    return lowered


def _of(ticks: Buffer, part: int) -> Expr:
    return Load(ticks, (Const(part),))


LOWERINGS = (Lowering(ReadClock, "", _read), Lowering(NoteClock, "", _note))
