"""Shared memory that threads write and an instruction reads by itself, past the view of threads."""

from __future__ import annotations

from typing import Any

from ...ir import Function, OpStmt, Stmt, effects_in, effects_of
from ...ir.stmt import statements
from ...language.structure import Parallel
from ...machine import Machine


def acts_by_proxy(statement: Stmt, machine: Machine) -> bool:
    """Whether an operation's instruction reads and writes shared memory by itself."""
    by: Any = getattr(statement, "by", None)
    if by is None or not isinstance(statement, OpStmt):
        return False
    return any(row.by_proxy and row.name == by.name for row in machine.instructions_for(statement.word))


def fenced_buffers(function: Function, machine: Machine) -> frozenset[str]:
    """The shared buffers that threads write and such an instruction reads: a fence stands between."""
    read: set[str] = set()
    written: set[str] = set()
    nodes = list(statements(function.body))
    for node in nodes:
        if isinstance(node, OpStmt) and acts_by_proxy(node, machine):
            read |= {e.buffer.name for e in effects_of(node) if e.reads and e.buffer.scope == "shared"}
    if not read:
        return frozenset()
    for node in nodes:
        if isinstance(node, OpStmt) and acts_by_proxy(node, machine):
            continue
        effects = effects_in(node) if isinstance(node, Parallel) else effects_of(node)
        written |= {e.buffer.name for e in effects if e.writes and e.buffer.scope == "shared"}
    return frozenset(read & written)
