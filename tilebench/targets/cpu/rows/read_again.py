"""A row that is a copy of an array's row is read from the array again, instead of from a tile."""

from __future__ import annotations

from typing import Any

from ....ir import ZERO, Cast, Expr, If, Load, Stmt, Store, Var, const_of, rewrite, substitute
from ..loops.words import Vectors
from .touches import read_in, touches_buffer, written_in


def read_again(body: tuple[Stmt, ...], name: str) -> tuple[Stmt, ...]:
    """The body with loads of a copied row, until it is overwritten, going to the array instead."""
    first = next((k for k, each in enumerate(body) if any(True for _ in touches_buffer(each, name))), None)
    if first is None:
        return body
    copy = body[first]
    store = _copied(copy, name)
    if store is None or not isinstance(copy, Vectors) or written_in(body) & read_in(store.value):
        return body
    source, var = store.value, copy.vars[0]
    rest = tuple(_reading(each, name, var, source) for each in copy.body if each is not store)
    out = [*body[:first], copy.but(body=rest), *body[first + 1 :]]
    for k in range(first + 1, len(body)):
        effects = list(touches_buffer(body[k], name))
        if any(effect.region is not None for effect in effects):
            return body  # a fold wants its row in memory
        if not any(effect.writes for effect in effects):
            out[k] = _reading(body[k], name, var, source)
            continue
        overwriting = _overwriting(body[k], name, copy, source)
        if overwriting is None:
            return body
        out[k] = overwriting
        break
    return tuple(out)


def _copied(statement: Stmt, name: str) -> Store | None:
    """The store that copies a whole row of an array: the first of a loop with no other stores or tests."""
    store = statement.body[0] if isinstance(statement, Vectors) else None
    if not isinstance(statement, Vectors) or not isinstance(store, Store) or store.buffer.name != name:
        return None
    load = store.value
    while isinstance(load, Cast):
        load = load.value
    alone = not any(isinstance(each, (Store, If)) for each in statement.body[1:])
    same = all(
        not isinstance(effect.node, Load) or effect.node.index == store.index
        for effect in touches_buffer(statement, name)
    )
    from_array = isinstance(load, Load) and load.buffer.scope == "global"
    return store if from_array and alone and same and fills_row(statement, store) else None


def fills_row(loop: Vectors, store: Store) -> bool:
    """Whether a loop's store goes to all of a row."""
    whole = const_of(loop.start) == 0 and const_of(loop.stop) == store.buffer.shape[-1]
    return whole and store.index == (ZERO, loop.vars[0])


def _reading(statement: Any, name: str, var: Var, source: Expr) -> Any:
    """The statement with loads of the row as loads of the array."""

    def change(node: Any) -> Any:
        if isinstance(node, Load) and node.buffer.name == name:
            return substitute(source, {var.name: node.index[-1]})
        return node

    changed = rewrite(statement, change)
    if isinstance(changed, Vectors) and changed is not statement:
        count = const_of(changed.stop)
        return changed.but(overrun=changed.overrun and count is not None and count % changed.lanes == 0)
    return changed


def _overwriting(statement: Stmt, name: str, copy: Vectors, source: Expr) -> Stmt | None:
    """The loop that makes a new row of the old: loads up to its store go to the array. None: not that."""
    if not isinstance(statement, Vectors) or any(isinstance(each, If) for each in statement.body):
        return None
    stores = [each for each in statement.body if isinstance(each, Store) and each.buffer.name == name]
    if not stores or not fills_row(statement, stores[0]):
        return None
    loads = (effect.node for effect in touches_buffer(statement, name) if isinstance(effect.node, Load))
    if any(load.index != stores[0].index for load in loads):
        return None
    k = next(k for k, each in enumerate(statement.body) if each is stores[0])
    head = _reading(statement.but(body=statement.body[: k + 1]), name, copy.vars[0], source)
    return head.but(body=(*head.body, *statement.body[k + 1 :]))
