"""A store into a row that is used at most once, in the same turn, goes: its value is used instead."""

from __future__ import annotations

from typing import Any

from ....ir import Expr, Load, Stmt, Store, rewrite
from ..loops.words import Accumulate, Prefetch, Running, Vectors
from .touches import read_in, touches_buffer, written_in


def without_unread_store(loop: Vectors, name: str, later: tuple[Stmt, ...]) -> Vectors:
    """The loop without such a store into the tile `name`; `later` are the statements behind it."""
    if any(not isinstance(statement, (Store, Accumulate, Running, Prefetch)) for statement in loop.body):
        return loop
    places = [k for k, each in enumerate(loop.body) if isinstance(each, Store) and each.buffer.name == name]
    if len(places) != 1 or any(not effect.writes for each in later for effect in touches_buffer(each, name)):
        return loop
    store, after = loop.body[places[0]], loop.body[places[0] + 1 :]
    assert isinstance(store, Store)
    loads = [effect.node for each in after for effect in touches_buffer(each, name)]
    if len(loads) > 1 or any(not isinstance(node, Load) or node.index != store.index for node in loads):
        return loop
    if store.value.dtype != store.buffer.dtype or not _movable(store.value, after):
        return loop
    value = store.value

    def change(node: Any) -> Any:
        return value if isinstance(node, Load) and node.buffer.name == name else node

    return loop.but(body=(*loop.body[: places[0]], *(rewrite(statement, change) for statement in after)))


def _movable(value: Expr, after: tuple[Stmt, ...]) -> bool:
    """Whether a value is the same in later statements: none but the last stores, which reads first."""
    return not read_in(value) & written_in(after[:-1])
