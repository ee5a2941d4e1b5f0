"""Shared memory that threads write and an instruction reads by itself, past the view of threads."""

from __future__ import annotations

from typing import Any

from ...ir import Function, OpStmt, Stmt, effects_in, effects_of
from ...ir.stmt import statements
from ...language.memory import AllocShared
from ...language.structure import Parallel
from ...layout import SharedLayout
from ...machine import Machine


def acts_by_proxy(statement: Stmt, machine: Machine) -> bool:
    """Whether an operation's instruction reads and writes shared memory by itself."""
    by: Any = getattr(statement, "by", None)
    if by is None or not isinstance(statement, OpStmt):
        return False
    return any(row.by_proxy and row.name == by.name for row in machine.instructions_for(statement.word))


def fenced_buffers(function: Function, machine: Machine) -> frozenset[str]:
    """The shared buffers that threads write and whose bytes such an instruction reads, or writes in its turn.

    A fence stands between the two.
    """
    touched: set[str] = set()
    written: set[str] = set()
    nodes = list(statements(function.body))
    for node in nodes:
        if isinstance(node, OpStmt) and acts_by_proxy(node, machine):
            touched |= {
                e.buffer.name
                for e in effects_of(node)
                if e.buffer.scope == "shared" and (e.reads or e.writes)
            }
    if not touched:
        return frozenset()
    for node in nodes:
        if isinstance(node, OpStmt) and acts_by_proxy(node, machine):
            continue
        effects = effects_in(node) if isinstance(node, Parallel) else effects_of(node)
        written |= {e.buffer.name for e in effects if e.writes and e.buffer.scope == "shared"}
    spans = {n.buffer.name: _span(n) for n in nodes if isinstance(n, AllocShared)}
    return frozenset(
        name for name in written if any(_overlap(spans.get(name), spans.get(other)) for other in touched)
    ) | frozenset(written & touched)


def _span(alloc: AllocShared) -> tuple[int, int] | None:
    """The bytes of a buffer that has its place."""
    if alloc.offset is None:
        return None
    layout = alloc.layout or SharedLayout.rows(alloc.buffer.extents, alloc.buffer.dtype.per_byte)
    return alloc.offset, alloc.offset - (-layout.cosize * alloc.versions * alloc.buffer.dtype.bits // 8)


def _overlap(a: tuple[int, int] | None, b: tuple[int, int] | None) -> bool:
    return a is not None and b is not None and a[0] < b[1] and b[0] < a[1]
