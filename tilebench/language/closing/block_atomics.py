"""Atomics of the block: what one thread finds is told to all, and an order is that of the whole block.

    old = T.atomic_add(C[0], 1)   ->   for i in T.Parallel(1):
                                           found = T.atomic_add(C[0], 1)
                                           told[i] = found
                                       old = told[0]

`told` lies in shared memory. Around an atomic that orders memory, in code of tiles, stand barriers: the block
has done what is in front of it, and does what follows behind it. A thread's own atomics stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir import (
    ACQUIRES,
    RELEASES,
    Buffer,
    Const,
    Function,
    If,
    Load,
    LoopStmt,
    Stmt,
    Store,
    Var,
    WithStmt,
    zero_of,
)
from ...ir.stmt import statements
from ..lowered.threads import SyncThreads
from ..memory import AllocShared, AllocVar
from ..structure import Parallel


def of_block(function: Function, fresh: Callable[[str], str]) -> Function:
    """The kernel in which only threads have atomics that find something, or that order memory."""
    if not any(_matters(statement) for statement in statements(function.body)):
        return function
    return function.but(body=_body(function.body, fresh))


def _matters(statement: Stmt) -> bool:
    return isinstance(statement, Store) and (statement.found is not None or statement.order != "relaxed")


def _body(body: tuple[Stmt, ...], fresh: Callable[[str], str]) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for statement in body:
        if isinstance(statement, Store) and _matters(statement):
            out += _ordered(statement, _told(statement, fresh), [statement])
        elif isinstance(statement, Parallel):
            inner = [] if statement.of_threads else [s for s in statements(statement.body) if _matters(s)]
            out += _ordered(statement, [statement], inner)
        elif isinstance(statement, (If, LoopStmt, WithStmt)):
            fields: dict[str, Any] = {
                mark.name: _body(getattr(statement, mark.name), fresh)
                for mark in statement.marks
                if mark.mark == "body"
            }
            out.append(statement.but(**fields))
        else:
            out.append(statement)
    return tuple(out)


def _ordered(node: Stmt, done: list[Stmt], atomics: list[Any]) -> list[Stmt]:
    """What is done, with barriers where an atomic in it hands on or takes what all threads do."""
    orders = {atomic.order for atomic in atomics}
    before: list[Stmt] = [SyncThreads(why="an atomic hands on what the block did", place=node.place)]
    after: list[Stmt] = [SyncThreads(why="the block goes on behind an atomic", place=node.place)]
    return [
        *(before if orders & set(RELEASES) else ()), *done, *(after if orders & set(ACQUIRES) else ())
    ]  # fmt: skip


def _told(store: Store, fresh: Callable[[str], str]) -> list[Stmt]:
    """An atomic of the block, by one thread; what it found is told to all."""
    if store.found is None:
        return [store]
    name, place = store.found.name, store.place
    told = Buffer(fresh(f"{name}_told"), (1,), store.found.dtype, "shared")
    own = Buffer(fresh(name), (), store.found.dtype, "var")
    one = Var(fresh("i"), place=place)
    body = (
        AllocVar(own, init=zero_of(own.dtype), place=place),
        store.but(found=own),
        Store(told, (one,), Load(own, (), place=place), place=place),
    )
    return [
        AllocShared(told, place=place),
        Parallel((1,), (one,), body, place=place),
        Store(store.found, (), Load(told, (Const(0),), place=place), place=place),
    ]
