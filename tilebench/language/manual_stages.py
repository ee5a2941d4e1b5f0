"""Stages and order of a pipelined loop that a kernel gives: `T.Pipelined(n, order=[...], stage=[...])`.

A number each for the statements of its body, names and allocations left out. Where the first stage has copies
from global to shared memory alone and the last one all else, in the order in which it is written, the copies
get their stage. Any other stages and orders are written around the statements, for the plan to look at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ..errors import ScheduleError
from ..ir import AllocStmt, Let, Stmt
from .copy import Copy
from .lowered.decisions import Stage
from .notes import Note
from .promises import Assume
from .structure import StageGroup
from .tracing.operands import whole_number

# What takes no time of its own in a step, and has no number.
_UNCOUNTED = (Let, AllocStmt, Note, Assume)


def whole_numbers(given: object, name: str) -> tuple[int, ...] | None:
    """A list of whole numbers as a tuple; None where nothing is given."""
    if given is None or given == []:
        return None
    if not isinstance(given, (list, tuple)):
        raise ScheduleError("{name}= of T.Pipelined is a list of whole numbers", name=name)
    numbers = cast("Sequence[object]", given)
    return tuple(whole_number(number, "T.Pipelined", f"an entry of {name}") for number in numbers)


def staged(
    body: tuple[Stmt, ...], stage: tuple[int, ...] | None, order: tuple[int, ...] | None
) -> tuple[tuple[Stmt, ...], int]:
    """The body with a stage on its copies, and the number of stages. Raises `ScheduleError`."""
    if stage is None:
        raise ScheduleError(
            "order= of T.Pipelined says nothing without stage=", hint="stage=[...], a number a statement"
        )
    counted = [statement for statement in body if not isinstance(statement, _UNCOUNTED)]
    order = tuple(range(len(counted))) if order is None else order
    for name, given in (("stage", stage), ("order", order)):
        if len(given) != len(counted):
            raise ScheduleError(
                "{name}= of T.Pipelined has {given} entries, and the body {count} statements", name=name,
                given=len(given), count=len(counted), hint="names and allocations have no number",
            )  # fmt: skip
    if sorted(order) != list(range(len(counted))):
        raise ScheduleError(
            "order= of T.Pipelined is {order}", order=list(order), count=len(counted),
            expected="each number from 0 to {count} - 1 once",
        )  # fmt: skip
    stages = max(stage) + 1
    late = _last(counted, stage, order)
    if late is None:
        return _grouped(body, counted, stage, order), stages
    numbers = {id(statement): number for statement, number in zip(counted, stage, strict=True)}
    return tuple(
        statement.but(at_stage=Stage(numbers[id(statement)], last=id(statement) in late))
        if isinstance(statement, Copy)
        else statement
        for statement in body
    ), stages


def _grouped(
    body: tuple[Stmt, ...], counted: Sequence[Stmt], stage: Sequence[int], order: Sequence[int]
) -> tuple[Stmt, ...]:
    """The body with its stage and order around each statement."""
    if min(stage) < 0:
        raise ScheduleError(
            "a stage of T.Pipelined is {number}", number=min(stage), expected="0 or more",
            hint="stages count from 0; what comes first has the least",
        )  # fmt: skip
    numbers = {id(counted[k]): {"number": stage[k], "order": order[k]} for k in range(len(counted))}
    return tuple(
        StageGroup(**numbers[id(statement)], vars=(), body=(statement,), place=statement.place)
        if id(statement) in numbers
        else statement
        for statement in body
    )


def _moves_in(statement: Stmt) -> bool:
    if not isinstance(statement, Copy):
        return False
    return statement.src.buffer.scope == "global" and statement.dst.buffer.scope == "shared"


def _last(counted: Sequence[Stmt], stage: Sequence[int], order: Sequence[int]) -> set[int] | None:
    """The copies, by identity, that the order issues behind the rest of a step; None of another pipeline."""
    last = max(stage)
    if any(n != last and not (n == 0 and _moves_in(s)) for s, n in zip(counted, stage, strict=True)):
        return None
    by_place = sorted(range(len(counted)), key=lambda number: order[number])
    ahead = [number for number in by_place if stage[number] == 0 and _moves_in(counted[number])]
    rest = [number for number in by_place if number not in ahead]
    first = [number for number in ahead if not rest or order[number] < order[rest[0]]]
    late = [number for number in ahead if rest and order[number] > order[rest[-1]]]
    in_turn = all(part == sorted(part) for part in (first, late, rest))
    if not in_turn or len(first) + len(late) != len(ahead):
        return None
    return {id(counted[number]) for number in late if last > 0}
