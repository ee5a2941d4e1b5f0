"""Registers that warp groups hand to each other: `T.set_max_nreg(24, 0)`, `T.set_max_nreg(240, 1)`.

A block begins with the same number of registers in each of its threads. A warp group may give some back to
the block, and another one take them: where none are there yet, it waits. Values do not change.
"""

from __future__ import annotations

from ..errors import LanguageError
from ..ir import OpStmt, Word, attribute, node
from .notes import note
from .stages import EVERY
from .tracing.builder import for_tiles, inside_kernel
from .tracing.operands import whole_number

__all__ = [
    "annotate_consumer_reg_alloc",
    "annotate_producer_reg_dealloc",
    "dec_max_nreg",
    "disable_warp_group_reg_alloc",
    "inc_max_nreg",
    "no_set_max_nreg",
    "set_max_nreg",
]

# What a thread can have by the instruction: multiples of 8 (PTX ISA, `setmaxnreg`).
FEWEST, MOST, STEP = 24, 256, 8


@node
class SetMaxNreg(OpStmt):
    """`T.set_max_nreg(240, increase=True)`: the threads here have so many registers each from now on.

    All warps of a warp group do it. An increase waits until the block has as many to give.
    """

    word = "set_max_nreg"
    stages = EVERY
    registers: int = attribute()
    increase: bool = attribute()


WORDS = ((SetMaxNreg.word, Word(SetMaxNreg)),)


def set_max_nreg(reg_count: int, is_inc: int) -> None:
    """Have `reg_count` registers in each thread of the warp group from here on: `T.set_max_nreg(240, 1)`.

    With `is_inc` 1 the group takes what another one has given back, and waits for it; with 0 it gives back.
    It stands in whole warp groups of 128 threads: `with T.ws(0):`. Values do not change. Raises
    `LanguageError` for a number that is no multiple of 8 in 24 to 256; what all groups have together is
    checked where the kernel is compiled.
    """
    _set("T.set_max_nreg", reg_count, is_inc)


def inc_max_nreg(reg_count: int) -> None:
    """`T.set_max_nreg(reg_count, 1)`."""
    _set("T.inc_max_nreg", reg_count, 1)


def dec_max_nreg(reg_count: int) -> None:
    """`T.set_max_nreg(reg_count, 0)`."""
    _set("T.dec_max_nreg", reg_count, 0)


def _set(word: str, reg_count: int, is_inc: int) -> None:
    builder = for_tiles(word)
    count = whole_number(reg_count, word, "the number of registers")
    if count % STEP or not FEWEST <= count <= MOST:
        raise LanguageError(
            "{word} gives a thread {count} registers", word=word, count=count, found="{count}",
            step=STEP, fewest=FEWEST, most=MOST, expected="a multiple of {step} from {fewest} to {most}",
        )  # fmt: skip
    if is_inc not in (0, 1):
        raise LanguageError("{word} takes 1 to take registers and 0 to give them", word=word)
    builder.emit(SetMaxNreg(count, bool(is_inc), place=builder.place))


def no_set_max_nreg() -> None:
    """Leave the registers of warp groups as they are: none is handed over but by `T.set_max_nreg`."""
    inside_kernel("T.no_set_max_nreg")


def disable_warp_group_reg_alloc() -> None:
    """`T.no_set_max_nreg()` by its other name."""
    inside_kernel("T.disable_warp_group_reg_alloc")


def annotate_producer_reg_dealloc(reg_count: int = 24) -> None:
    """Registers that a group of loading warps hands over where the compiler makes one; a remark tells."""
    note(f"T.annotate_producer_reg_dealloc({reg_count}) chooses nothing here: T.set_max_nreg hands over")


def annotate_consumer_reg_alloc(reg_count: int = 240) -> None:
    """Registers that a group of computing warps takes where the compiler makes one; a remark tells."""
    note(f"T.annotate_consumer_reg_alloc({reg_count}) chooses nothing here: T.set_max_nreg hands over")
