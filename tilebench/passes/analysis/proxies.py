"""Shared memory that threads write and an instruction reads by itself, past the view of threads."""

from __future__ import annotations

from typing import Any

from ...ir import Function, OpStmt, Stmt, effects_in, effects_of
from ...ir.stmt import statements
from ...language.memory import AllocShared
from ...language.structure import Parallel
from ...machine import Machine
from .shared_bytes import byte_range


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
    nodes = list(statements(function.body))
    apart = [node for node in nodes if acts_by_proxy(node, machine)]
    if not apart:
        return frozenset()
    touched = {
        e.buffer.name
        for node in apart
        for e in effects_of(node)
        if e.buffer.scope == "shared" and (e.reads or e.writes)
    }
    own = {id(node) for node in apart}
    written: set[str] = set()
    for node in nodes:
        if id(node) not in own:
            effects = effects_in(node) if isinstance(node, Parallel) else effects_of(node)
            written |= {e.buffer.name for e in effects if e.writes and e.buffer.scope == "shared"}
    places = {n.buffer.name: place for n in nodes if isinstance(n, AllocShared) and (place := byte_range(n))}
    theirs = [places[name] for name in touched if name in places]
    return frozenset(
        name
        for name in written
        if name in touched or (name in places and any(places[name].meets(other) for other in theirs))
    )
