"""How the threads that hold parts of one result meet: which of an operation's rows reaches across them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from ...errors import LayoutError
from ...language.lowered.decisions import Instr
from ...layout import Digit, Fragment
from ...machine import WHOLE_BLOCK, Instruction, Machine


def partners(layout: Fragment, dim: int) -> list[tuple[int, int]]:
    """(distance, count) of the thread digits along a dimension: who holds parts of one result."""
    return [(d.divisor, d.modulus) for d in layout.thread_digits if d.dim == dim and d.modulus > 1]


@dataclass(frozen=True)
class Exchange:
    """How the threads that hold parts of one result meet.

    `shuffles` are XOR distances in lanes; `across` are the digits of the thread number whose
    partners are met in shared memory, `lanes` those that a shuffle has already made equal.
    """

    shuffles: tuple[int, ...]
    across: tuple[Digit, ...]
    lanes: tuple[Digit, ...]

    @property
    def parts(self) -> int:
        """The partial results of one element that meet in shared memory."""
        return prod(digit.modulus for digit in self.across)


def _power(n: int) -> bool:
    return n & (n - 1) == 0


def exchange_of(layout: Fragment, dim: int, warp: int) -> Exchange:
    """The exchanges that a reduction of `layout` over `dim` takes on warps of `warp` threads."""
    shuffles: list[int] = []
    across: list[Digit] = []
    lanes: list[Digit] = []
    for digit in layout.thread_digits:
        if digit.dim != dim or digit.modulus == 1:
            continue
        divisor, count = digit.divisor, digit.modulus
        inside = warp // divisor if divisor < warp and _power(divisor) else 1
        # What shuffles halve is a power of two: of 352 threads the 32 of each warp, and 11 parts are left.
        inside = min(inside, count & -count)
        if inside > 1:
            lanes.append(Digit(divisor, inside, dim, digit.step))
            step = divisor
            while step < divisor * inside:
                shuffles.append(step)
                step *= 2
            divisor, count = divisor * inside, count // inside
        if count > 1:
            across.append(Digit(divisor, count, dim, digit.step))
    return Exchange(tuple(shuffles), tuple(across), tuple(lanes))


def _reaches(row: Instruction, layout: Fragment, dim: int, warp: int) -> bool:
    digits = partners(layout, dim)
    if row.group == WHOLE_BLOCK or not digits:
        return True
    inside = all(distance * count <= row.group for distance, count in digits)
    powers = all(count & (count - 1) == 0 and distance & (distance - 1) == 0 for distance, count in digits)
    return row.group >= warp and inside and powers


def exchange_row(
    statement: Any, rows: Sequence[Instruction], layout: Fragment, machine: Machine
) -> Instruction:
    """The cheapest row that reaches all partners of a result.

    Raises `LayoutError` at the operation where none does, or the one that was asked for does not.
    """
    dim = statement.dim % len(layout.extents)
    fitting = [row for row in rows if _reaches(row, layout, dim, machine.warp)]
    if fitting:
        return min(fitting, key=lambda row: row.cost)
    raise LayoutError(
        "the threads that hold parts of one result of T.{word} are out of reach of {names}",
        at=statement.place, word=statement.spelling(), names=", ".join(row.name for row in rows),
        layout=layout, found="{layout}",
    )  # fmt: skip


def exchange_instruction(statement: Any, row: Instruction, layout: Fragment) -> Instr:
    """The row as a stage prints it, with the number of threads that meet."""
    dim = statement.dim % len(layout.extents)
    lanes = prod(count for _, count in partners(layout, dim))
    return Instr(row.name) if lanes == 1 else Instr(row.name, lanes=lanes)
