"""Loops in which warps meet and which they leave at different times: turns of the block, with conditions.

while T.any_sync(x > 5):   ->   while again:                  # some thread of the block goes on
    x = x - 3                       turn = T.any_sync(x > 5)
                                    if turn: x = x - 3
                                    again = T.syncthreads_or(T.any_sync(x > 5))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from ...errors import LanguageError
from ...ir import (
    TRUE,
    AllocStmt,
    Buffer,
    Call,
    Const,
    Let,
    Load,
    LoopStmt,
    Store,
    Var,
    all_of,
    boolean,
    int32,
    zero_of,
)
from ...ir.stmt import statements
from ..lowered.threads import SyncThreads
from ..memory import AllocFragment, AllocVar
from ..votes import WarpVote
from .differing import heads, on_tiles
from .over_block import over_block

if TYPE_CHECKING:
    from .split import Splitter


def may_take_turns(splitter: Splitter, loop: LoopStmt) -> bool:
    """Whether only its condition sends threads different ways, and none has to wait for the whole block."""
    bounds = [part for part in heads(loop) if part is not loop.condition]
    inner = list(statements(loop.body))
    return (
        loop.condition is not None
        and not any(map(splitter.differing, bounds))
        and not any(isinstance(each, SyncThreads) or on_tiles(each) for each in inner)
    )


def take_turns(splitter: Splitter, loop: LoopStmt, guard: Any) -> None:
    """The loop for as long as some thread goes on; `guard` makes a condition around statements."""
    fresh, place, condition = splitter.fresh, loop.place, loop.condition
    splitter.flush()
    again = Buffer(fresh("again"), (), boolean, "var")
    splitter.out.append(AllocVar(again, init=TRUE, place=place))
    outer, splitter.out = splitter.out, []
    turn = Var(fresh("turn"), type=boolean, place=place)
    splitter.differing.names.add(turn.name)
    if splitter.warps(condition):
        splitter.warps.names.add(turn.name)
    splitter.each(Let(turn, condition, place=place))
    splitter.under(guard(turn, place), loop.body)
    _ask_again(splitter, loop, again)
    inner, splitter.out = tuple(splitter.out), outer
    splitter.out.append(loop.but(condition=Load(again, ()), body=inner))


def vote(splitter: Splitter, asked: WarpVote) -> None:
    """A vote of all warps: those that a condition leaves out change what nobody reads."""
    for guard in splitter.guards:
        splitter.exchange(asked, guard)
    splitter.flush()
    splitter.out.append(asked)


def say_nothing(splitter: Splitter, told: AllocStmt) -> None:
    """What threads that a condition leaves out tell for a vote: all threads are asked."""
    around, splitter.guards = splitter.guards, ()
    nothing = zero_of(told.buffer.dtype)
    splitter.each(Store(told.buffer, splitter.coordinates, nothing, place=told.place))
    splitter.guards = around


def _ask_again(splitter: Splitter, loop: LoopStmt, again: Buffer) -> None:
    """Whether any thread wants another turn, known to all of the block."""
    place, around = loop.place, splitter.guards
    splitter.flush()
    found = Buffer(splitter.fresh("voted"), splitter.block.extents, int32, "fragment")
    splitter.out.append(AllocFragment(found, place=place))
    wanted = all_of([*(each.condition for each in around), loop.condition])
    value = Call("if_then_else", (wanted, Const(1), Const(0)), type=int32, place=place)
    splitter.guards = ()
    splitter.each(Store(found, splitter.coordinates, value, place=place))
    splitter.guards = around
    splitter.flush()
    reductions, told = over_block(found, "max", splitter.fresh, place)
    splitter.out += reductions
    any_ = Load(told, (Const(0),), place=place).compare("!=", 0)
    splitter.out.append(Store(again, (), any_, place=place))


def refuse_loop(splitter: Splitter, loop: LoopStmt, culprit: str) -> NoReturn:
    """Refuse a loop that threads run differently and meet in."""
    inner = next(
        (
            each
            for each in statements(loop.body)
            if isinstance(each, (SyncThreads, WarpVote)) or on_tiles(each)
        ),
        None,
    )
    name = splitter.touches.inside(loop)
    what = f"they have to meet for {name}" if inner is None else "all of them have to take part inside"
    if name in splitter.block.kept and inner is None:
        what = "threads of a warp exchange values inside"
    by = "its condition" if loop.condition is not None and splitter.differing(loop.condition) else culprit
    raise LanguageError(
        "threads run this loop differently (by {culprit}), and {what}", culprit=by, what=what,
        at=loop.place, also=[] if inner is None else [("here", inner.place)],
        expected="the same turns in every thread around a barrier or an operation on tiles",
        hint="let all threads run the most turns, with a condition inside",
    )  # fmt: skip


__all__ = ["may_take_turns", "refuse_loop", "say_nothing", "take_turns", "vote"]
