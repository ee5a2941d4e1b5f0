"""Waiting for what a kernel has issued itself, all but the youngest of it."""

from __future__ import annotations

from ..errors import LanguageError
from .lowered.decisions import Instr
from .lowered.tokens import BY_HAND, Wait
from .tracing.builder import for_tiles
from .tracing.operands import whole_number

# More than kernels keep in flight; `warpgroup_wait` of CUTLASS takes no more.
MOST = 7


def wait_by_hand(word: str, count: int, what: str, by: Instr) -> None:
    """Wait for the groups of an instruction but the `count` youngest; `LanguageError` for no such number."""
    builder = for_tiles(word)
    pending = whole_number(count, word, f"how many {what} may go on")
    if not 0 <= pending <= MOST:
        raise LanguageError(
            "{word} leaves {n} {what} in flight", word=word, n=pending, what=what, most=MOST,
            expected="a number from 0 to {most}",
        )  # fmt: skip
    builder.emit(Wait(BY_HAND, pending=pending, by=by, place=builder.place))
