"""How the threads that hold parts of one result meet: which of an operation's rows reaches across them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ..errors import LayoutError
from ..language.lowered.decisions import Instr
from ..layout import Fragment
from ..machine import WHOLE_BLOCK, Instruction, Machine


def partners(layout: Fragment, dim: int) -> list[tuple[int, int]]:
    """(distance, count) of the thread digits along a dimension: who holds parts of one result."""
    return [(d.divisor, d.modulus) for d in layout.thread_digits if d.dim == dim and d.modulus > 1]


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
