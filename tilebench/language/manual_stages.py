"""Stages and order of a pipelined loop that a kernel gives: `T.Pipelined(n, order=[...], stage=[...])`.

A number each for the statements of its body, names and allocations left out. What a ring of buffers can do
is: copies from global to shared memory at stage 0, which run ahead, and all else at the last stage, in the
order in which it is written; a copy that runs ahead is issued in front of the rest of a step or behind it.
Any other stages and orders are refused, with what would work: none is lost.
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
    _check_stages(counted, stage, stages)
    late = _last(counted, stage, order)
    numbers = {id(statement): number for statement, number in zip(counted, stage, strict=True)}
    return tuple(
        statement.but(at_stage=Stage(numbers[id(statement)], last=id(statement) in late))
        if isinstance(statement, Copy)
        else statement
        for statement in body
    ), stages


def _moves_in(statement: Stmt) -> bool:
    if not isinstance(statement, Copy):
        return False
    return statement.src.buffer.scope == "global" and statement.dst.buffer.scope == "shared"


def _check_stages(counted: Sequence[Stmt], stage: Sequence[int], stages: int) -> None:
    for statement, number in zip(counted, stage, strict=True):
        if number == stages - 1 or (number == 0 and _moves_in(statement)):
            continue
        raise ScheduleError(
            "a statement at stage {number} of {stages} is more than this version has", at=statement.place,
            number=number, stages=stages, most=stages - 1,
            expected="stage 0 for copies from global to shared memory, {most} for everything else",
            hint="num_stages={stages} has the stages found",
        )  # fmt: skip


def _last(counted: Sequence[Stmt], stage: Sequence[int], order: Sequence[int]) -> set[int]:
    """The copies, by identity, that the order issues behind the rest of a step."""
    by_place = sorted(range(len(counted)), key=lambda number: order[number])
    ahead = [number for number in by_place if stage[number] == 0 and _moves_in(counted[number])]
    rest = [number for number in by_place if number not in ahead]
    first = [number for number in ahead if not rest or order[number] < order[rest[0]]]
    last = [number for number in ahead if rest and order[number] > order[rest[-1]]]
    in_turn = all(part == sorted(part) for part in (first, last, rest))
    if not in_turn or len(first) + len(last) != len(ahead):
        raise ScheduleError(
            "T.Pipelined cannot issue the statements of a step in the order {order}", order=list(order),
            expected="copies at stage 0 in front of the others or behind them, each in the order of the text",
            hint="leave order= out",
        )  # fmt: skip
    return {id(counted[number]) for number in last if max(stage) > 0}
