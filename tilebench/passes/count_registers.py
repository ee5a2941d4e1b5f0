"""Fragments that do not fit the registers of a thread: they work, out of memory, and people should know."""

from __future__ import annotations

from ..ir import Function
from ..language.memory import AllocFragment
from .analysis.lives import Lives, Span
from .check_tiles import refuse_too_many
from .context import Context

NAME = "count_registers"


def count_registers(function: Function, context: Context) -> Function:
    """The function as it is, with a remark where its fragments take more registers than a thread has.

    Raises `ResourceError` where a thread cannot have what its layout gives it.
    """
    spans = list(Lives(AllocFragment, Span[AllocFragment]).of(function).values())
    taken: list[tuple[int, Span[AllocFragment]]] = []
    for span in spans:
        alloc = span.alloc
        if alloc.layout is not None:
            values = alloc.layout.values * alloc.versions
            refuse_too_many(alloc, values, context)
            # Of 4 bytes; an element narrower than a byte is a byte of its own.
            taken.append((-(-max(1, alloc.buffer.dtype.bits // 8) * values // 4), span))
    # Most are taken where some fragment begins; what two such hold is not there at the same time elsewhere.
    total = max((sum(n for n, other in taken if _holds(other, span.first)) for _, span in taken), default=0)
    most = context.machine.sm.max_registers_per_thread
    if total > most:
        count, largest = max(taken, key=lambda each: each[0])
        message = f"the fragments of a thread fill {total} registers and it has {most}: what does not fit "
        message += f"lies in memory; {largest.alloc.buffer.name} takes {count}"
        context.remark(NAME, "missed", message, largest.alloc, registers=total)
    return function


def _holds(span: Span[AllocFragment], statement: int) -> bool:
    return span.first <= statement <= span.last
