"""What is known on entering a function, a launch or a loop, as `Facts`: one place for all passes."""

from __future__ import annotations

from ..ir import Function
from ..ir.arith import Range
from ..ir.facts import Facts
from ..language.scopes import MOST_SIZE, entered

# A launch of more blocks than this would wrap, counted in one row.
MOST_BLOCKS = 2**31 - 1


def entry_facts(function: Function) -> Facts:
    """What a launch has checked: the ranges of sizes, and what the function is compiled under.

    `info` of the function has the conditions under `assume`.
    """
    ranges: dict[str, Range] = {var.name: (0, MOST_SIZE) for var in function.dimensions}
    return Facts(ranges).assuming(*function.known("assume", ()))


__all__ = ["MOST_BLOCKS", "MOST_SIZE", "entered", "entry_facts"]
