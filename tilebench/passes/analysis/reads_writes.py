"""Which parameters a kernel reads and which it writes, in any stage of it."""

from __future__ import annotations

from ...ir import Function, names_read_and_written


def reads_and_writes(function: Function) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the parameters whose values may be read, and of those written, in their order."""
    reads, writes = names_read_and_written([function])
    names = [each.name for each in function.arrays]
    return tuple(n for n in names if n in reads), tuple(n for n in names if n in writes)
