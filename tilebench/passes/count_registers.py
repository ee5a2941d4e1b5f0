"""Fragments that do not fit the registers of a thread: they work, out of memory, and people should know."""

from __future__ import annotations

from ..ir import Function
from ..ir.stmt import statements
from ..language.memory import AllocFragment
from .check_tiles import refuse_too_many
from .context import Context

NAME = "count_registers"


def count_registers(function: Function, context: Context) -> Function:
    """The function as it is, with a remark where its fragments take more registers than a thread has.

    Raises `ResourceError` where a thread cannot have what its layout gives it.
    """
    taken: dict[str, tuple[int, AllocFragment]] = {}
    for alloc in statements(function.body):
        if isinstance(alloc, AllocFragment) and alloc.layout is not None:
            values = alloc.layout.values * alloc.versions
            refuse_too_many(alloc, values, context)
            # Of 4 bytes; an element narrower than a byte is a byte of its own.
            taken[alloc.buffer.name] = -(-max(1, alloc.buffer.dtype.bits // 8) * values // 4), alloc
    total, most = sum(count for count, _ in taken.values()), context.machine.sm.max_registers_per_thread
    if total > most:
        name, (count, largest) = max(taken.items(), key=lambda each: each[1][0])
        message = f"the fragments of a thread fill {total} registers and it has {most}: what does not fit "
        message += f"lies in memory; {name} takes {count}"
        context.remark(NAME, "missed", message, largest, registers=total)
    return function
