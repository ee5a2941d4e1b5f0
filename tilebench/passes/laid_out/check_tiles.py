"""Tiles that cannot fit, whatever a pass makes of them: refused before layouts are thought about."""

from __future__ import annotations

from ...errors import ResourceError
from ...ir import AllocStmt, Function
from ...ir.stmt import statements
from ...language.memory import AllocFragment, AllocLocal, AllocShared
from ..analysis.launches import launch_of
from ..context import Context


def check_tiles(function: Function, context: Context) -> Function:
    """The function as it is. Raises `ResourceError` at the allocation that is too large by itself."""
    threads = launch_of(function).threads
    for statement in statements(function.body):
        if isinstance(statement, AllocShared):
            _fits_a_block(statement, context)
        elif isinstance(statement, AllocFragment):
            refuse_too_many(statement, -(-statement.buffer.size // threads), context)
        elif isinstance(statement, AllocLocal):
            refuse_too_many(statement, statement.buffer.size, context)
    return function


def _fits_a_block(alloc: AllocStmt, context: Context) -> None:
    size, most = alloc.buffer.bytes, context.machine.shared.per_block
    if most and size > most:
        raise ResourceError(
            "the shared tile {name} is larger than the shared memory of a block on {machine}",
            at=alloc.place, name=alloc.buffer.name, machine=context.machine.name, size=size, most=most,
            expected="at most {most} bytes for all tiles of a block", found="{size} bytes",
            hint="make the tile smaller: a block works on a part of the arrays",
        )  # fmt: skip


def refuse_too_many(alloc: AllocStmt, elements: int, context: Context) -> None:
    """Raise `ResourceError` where a thread cannot have so many elements of a tile, wherever they lie."""
    # In registers an element narrower than a byte has one of its own.
    size, most = elements * max(1, alloc.buffer.dtype.bits // 8), context.machine.sm.local_bytes
    if most and size > most:
        raise ResourceError(
            "each thread would have {elements} elements of {name}, more than a thread of {machine} can",
            at=alloc.place, name=alloc.buffer.name, elements=elements, machine=context.machine.name,
            size=size, most=most, registers=context.machine.sm.max_registers_per_thread,
            expected="at most {most} bytes a thread, and {registers} registers where it is to be fast",
            found="{size} bytes a thread",
            hint="make the tile smaller: a block works on a part of the arrays",
        )  # fmt: skip
