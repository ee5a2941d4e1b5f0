"""Which copy filled a tile that a statement reads, where that is sure.

It is sure of a copy that stands before the statement in the same body, or in a body around it: then it
has always run, and the variables in its address are the same. A copy under a condition, or in a
loop that has ended, may have filled the tile or not.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....ir import Effect, Function, If, LoopStmt, Stmt, WithStmt, effects_in, effects_of
from ....language.copy import Copy

# The copy behind each field of a statement that reads a tile, by the statement's identity and the field.
Sources = dict[tuple[int, str], Copy]


def sources_of(function: Function) -> Sources:
    """The sure copy behind each region that a statement reads."""
    found: Sources = {}
    _visit(function.body, {}, found)
    return found


def _visit(body: Sequence[Stmt], around: dict[str, Copy], found: Sources) -> None:
    """`around` are the copies that have filled tiles when the body starts, by the tile's name."""
    filled = dict(around)
    for statement in body:
        for effect in effects_of(statement):
            _note(effect, statement, filled, found)
        for inner in _bodies(statement):
            # What a loop fills anew in its later part is not what its first turn finds.
            kept = {name: copy for name, copy in filled.items() if not _writes(inner, name)}
            _visit(inner, kept, found)
        for effect in effects_in(statement):
            if effect.writes:
                filled.pop(effect.buffer.name, None)
        if isinstance(statement, Copy) and statement.dst.is_whole:
            filled[statement.dst.buffer.name] = statement


def _note(effect: Effect, statement: Stmt, filled: dict[str, Copy], found: Sources) -> None:
    copy = filled.get(effect.buffer.name)
    if effect.reads and copy is not None:
        found[id(statement), effect.field] = copy


def _bodies(statement: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    if isinstance(statement, If):
        return statement.then, statement.orelse
    return (statement.body,) if isinstance(statement, (LoopStmt, WithStmt)) else ()


def _writes(body: Sequence[Stmt], name: str) -> bool:
    return any(effect.writes and effect.buffer.name == name for top in body for effect in effects_in(top))
