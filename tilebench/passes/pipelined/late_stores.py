"""Stores in boxes are waited for behind what fills the next tile, and no longer at once.

    copy acc[:, 0:64] to even; store even; commit; wait; copy acc[:, 64:128] to odd; store odd; commit; wait
 -> copy ... to even; store even; commit; copy ... to odd; wait; store odd; commit; ...; wait

A store is done, for its tile, when the accelerator has read it. The thread that issued it waits for that, and
the others behind a barrier for the thread. In front of the next store stands a barrier anyway, since its tile
was written by all: a wait there holds nobody up, and the same barrier gives the first tile back. A wait goes
behind statements of threads alone that leave its tile as it is, and stays in its body. In a loop over a
launch's tiles the last one of a turn goes in front of the next one's first store, and one stands behind it.
"""

from __future__ import annotations

from typing import Any

from ...ir import Buffer, Function, If, Let, Stmt, map_bodies, names_read_and_written
from ...ir.stmt import statements
from ...language.copy import Copy, Fill
from ...language.lowered.tokens import BY_HAND, Commit, Wait
from ...language.memory import AllocFragment, AllocShared
from ...language.structure import Parallel, Serial
from ..context import Context
from .waiting_bodies import with_waits_moved

NAME = "late_stores"


def late_stores(function: Function, context: Context) -> Function:
    """The function whose stores in boxes are waited for late."""

    def step(node: Any) -> Any:
        below = with_waits_moved(map_bodies(node, step), lambda body: _moved_down(body, context))
        return _into_next_turn(below, context) if isinstance(below, Serial) and below.tiles else below

    return step(function)


def _into_next_turn(loop: Serial, context: Context) -> Any:
    """The loop whose last wait of a turn stands in the next one, with a wait behind it; or as it is."""
    only = loop.body[0] if len(loop.body) == 1 else None
    body = only.then if isinstance(only, If) and not only.orelse else loop.body
    wait = body[-1]
    if not isinstance(wait, Wait) or (last := _store_of(body, len(body) - 1)) is None:
        return loop
    tile = last.src.buffer
    first = next(k for k, s in enumerate(body) if isinstance(s, Copy) and s.token == wait.token)
    made = any(isinstance(s, AllocShared) and s.buffer.name == tile.name for s in statements(body))
    if made or any(_writes(statement, tile) for statement in body[:first]):
        return loop
    turned = (*body[:first], wait, *body[first:-1])
    message = f"the last store of {tile.name} in a turn is waited for in the next"
    context.remark(NAME, "applied", message, last)
    inside = (only.but(then=turned),) if isinstance(only, If) and body is not loop.body else turned
    # The first turn waits for a group of nothing.
    return Commit(wait.token, by=wait.by, place=wait.place), loop.but(body=inside), wait


def _moved_down(body: tuple[Stmt, ...], context: Context) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    going: tuple[Copy, Wait] | None = None
    passed = 0
    for number, statement in enumerate(body):
        if going is not None and not _may_pass(statement, going[0].src.buffer):
            out.append(_waited(*going, passed, context))
            going = None
        store = _store_of(body, number)
        if store is not None and isinstance(statement, Wait):
            going, passed = (store, statement), 0
            continue
        passed += 1
        out.append(statement)
    if going is not None:
        out.append(_waited(*going, passed, context))
    return tuple(out)


def _waited(store: Copy, wait: Wait, passed: int, context: Context) -> Wait:
    if passed:
        name = store.src.buffer.name
        message = f"the store of {name} is waited for behind {passed} more statements"
        context.remark(NAME, "applied", message, store, statements=passed)
    return wait


def _store_of(body: tuple[Stmt, ...], number: int) -> Copy | None:
    """The store in boxes that the statement of that number waits for, if it stands right in front of it."""
    wait = body[number]
    if not isinstance(wait, Wait) or wait.pending or wait.token in ("", BY_HAND) or number < 2:
        return None
    store, commit = body[number - 2 : number]
    if not isinstance(store, Copy) or not isinstance(commit, Commit):
        return None
    same = store.token == commit.token == wait.token
    stores = (store.src.buffer.scope, store.dst.buffer.scope) == ("shared", "global")
    return store if same and stores else None


def _may_pass(statement: Stmt, tile: Buffer) -> bool:
    """Whether a statement is of threads alone and leaves a tile as it is."""
    if not isinstance(statement, (Parallel, Copy, Fill, Let, AllocFragment)):
        return False
    if isinstance(statement, Copy) and (statement.token or statement.barrier is not None):
        return False
    return not _writes(statement, tile)


def _writes(statement: Stmt, tile: Buffer) -> bool:
    return tile.name in names_read_and_written([statement])[1]


__all__ = ["late_stores"]
