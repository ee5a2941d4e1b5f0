"""Branches and loops of code that waits for nobody: both ways one after the other, under masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir import If, Stmt, While
from ..language.structure import Serial, Unroll
from .expressions import uniform
from .lanes import Lanes
from .refusal import refuse
from .state import Mask
from .strands import Turns

Loop = Serial | Unroll | While
LOOPS = (Serial, Unroll, While)
# Turns of a loop with a condition: more than any kernel that ends takes in a simulation that does.
MOST_TURNS = 1 << 22
_where: Any = np.where


def run_body(lanes: Lanes, body: tuple[Stmt, ...], mask: Mask) -> None:
    """Run statements for the lanes of a mask; none of them waits."""
    for stmt in body:
        if isinstance(stmt, If):
            _run_branch(lanes, stmt, mask)
        elif isinstance(stmt, LOOPS):
            _run_loop(lanes, stmt, mask)
        else:
            lanes.run(stmt, mask)


def sides_of(condition: Any, mask: Mask) -> tuple[Mask, Mask]:
    """The lanes for which a condition holds and those for which it does not.

    None stands for all lanes, False for no lane.
    """
    if uniform(condition):
        return (mask, False) if condition else (False, mask)
    sides: list[Any] = []
    for side in (condition, ~condition):
        chosen = side if mask is None else side & mask
        sides.append(False if not chosen.any() else None if chosen.all() else chosen)
    return sides[0], sides[1]


def _run_branch(lanes: Lanes, stmt: If, mask: Mask) -> None:
    sides = sides_of(lanes.value(stmt.condition, mask), mask)
    for body, side in zip((stmt.then, stmt.orelse), sides, strict=True):
        if body and side is not False:
            run_body(lanes, body, side)


def turns_of(lanes: Lanes, stmt: Loop, mask: Mask) -> Turns:
    """The turns of a loop before the first: numbers that all lanes share, or one a lane."""
    if isinstance(stmt, While):
        return Turns(stmt, 0, 1, 0)
    start, stop, step = (lanes.value(bound, mask) for bound in (stmt.start, stmt.stop, stmt.step))
    if not all(isinstance(bound, int) for bound in (start, stop, step)):
        start, stop, step = (lanes.wide(bound, np.int64) for bound in (start, stop, step))
    return Turns(stmt, start, stop, step)


def going(lanes: Lanes, turns: Turns, mask: Mask) -> tuple[Mask, Mask]:
    """The lanes that take the turn at hand, and those that are done with the loop."""
    stmt, value, stop, step = turns.stmt, turns.value, turns.stop, turns.step
    inside: Any = True
    if not isinstance(stmt, While):
        shared = isinstance(value, int)
        if shared:
            inside = value < stop if step > 0 else value > stop
        else:
            inside = _where(step > 0, value < stop, value > stop)
    if stmt.condition is not None:
        goes_on = lanes.value(stmt.condition, mask)
        inside = inside and goes_on if uniform(inside) else inside & goes_on
        _refuse_endless(turns)
    return sides_of(inside, mask)


def _refuse_endless(turns: Turns) -> None:
    """Refuse a loop that goes on and on: on a card it would have to be killed."""
    turns.taken += 1
    if turns.taken > MOST_TURNS:
        refuse("this loop has taken {count} turns and has no end in sight", turns.stmt, count=MOST_TURNS)


def _run_loop(lanes: Lanes, stmt: Loop, mask: Mask) -> None:
    turns = turns_of(lanes, stmt, mask)
    if isinstance(turns.value, int) and isinstance(stmt, (Serial, Unroll)) and stmt.condition is None:
        for number in range(turns.value, turns.stop, turns.step):
            lanes.values[stmt.vars[0].name] = number
            run_body(lanes, stmt.body, mask)
        return
    while True:
        inside, _ = going(lanes, turns, mask)
        if inside is False:
            return
        # Whoever is done stays done.
        mask = inside
        turns.bind(lanes.values)
        run_body(lanes, stmt.body, mask)
        turns.value = turns.value + turns.step
