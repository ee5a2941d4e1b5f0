"""A tile of which a loop over rows needs one row at a time becomes one row, near the processor.

In `for i in T.serial(16)` a tile touched at `X[i, ...]` alone, there alone, is `X[0, ...]`: 8 KB that
stay in the first-level cache instead of 128 that do not. Then what is stored for nobody goes: a row
that is only a copy of an array's row is read from the array again, a value used once is used where
it is made. Softmax over 2048 columns went from 9.2 to 14.2 GB/s a core.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from ....ir import (
    ZERO,
    Buffer,
    Cast,
    Expr,
    Function,
    If,
    Load,
    LoopStmt,
    Node,
    Region,
    Stmt,
    Store,
    Var,
    const_of,
    rename_buffers,
    rewrite,
    substitute,
    walk,
)
from ....language.structure import KernelLaunch, Serial
from ....passes.context import Context
from ..loops.words import Accumulate, AllocScratch, PaddedRows, Prefetch, Vectors
from .overlap_rows import overlap_rows, ring_layout

NAME = "contract_rows"
_LINE = 64


def contract_rows(function: Function, context: Context) -> Function:
    """The function with such tiles one row high, and what is then stored for nobody left out."""
    launch = next((each for each in function.body if isinstance(each, KernelLaunch)), None)
    if launch is None:
        return function
    body: list[Stmt] = []
    rows: dict[str, int] = {}
    for each in launch.body:
        if not isinstance(each, Serial):
            body.append(each)
            continue
        held = [name for name in _tiles(launch.body) if _own_row(name, each, launch.body)]
        loop = _contracted(each, held, _tiles(launch.body))
        made = overlap_rows(loop, held) if held else None
        rows |= dict.fromkeys(held, made.rows if made else 1)
        body += made.body if made else (loop,)
    if not rows:
        return function
    made = launch.but(body=tuple(_laid_out(body, rows)))
    text = ", ".join(f"{count} of {name}" for name, count in rows.items())
    context.remark(NAME, "applied", f"rows at a time: {text}", function, tiles=len(rows))
    return function.but(body=tuple(made if each is launch else each for each in function.body))


def _tiles(body: Iterable[Stmt]) -> dict[str, Buffer]:
    """The tiles of two or more dimensions in rows, by name."""
    return {
        each.buffer.name: each.buffer
        for each in body
        if isinstance(each, AllocScratch) and isinstance(each.layout, PaddedRows) and each.buffer.rank == 2
    }


def _touches(at: Node, name: str) -> Iterator[Load | Store | Region]:
    for each in walk(at):
        if isinstance(each, (Load, Store, Region)) and each.buffer.name == name:
            yield each


def _own_row(name: str, loop: Serial, body: tuple[Stmt, ...]) -> bool:
    """Whether the loop alone touches the tile, in each turn its own row alone."""
    others = (each for each in body if each is not loop and not isinstance(each, AllocScratch))
    if any(True for each in others for _ in _touches(each, name)):
        return False
    if any(
        isinstance(each, LoopStmt) and not isinstance(each, Vectors)
        for top in loop.body
        for each in walk(top)
    ):
        return False
    for each in _touches(loop, name):
        index = each.start if isinstance(each, Region) else each.index
        if index[0] != loop.vars[0] or (isinstance(each, Region) and (each.extent or (0,))[0] != 1):
            return False
    return True


def _contracted(loop: Serial, names: list[str], tiles: dict[str, Buffer]) -> Serial:
    rows = {name: replace(tiles[name], shape=(1, *tiles[name].shape[1:])) for name in names}

    def change(at: Any) -> Any:
        if isinstance(at, (Load, Store)) and at.buffer.name in rows:
            return at.but(index=(ZERO, *at.index[1:]))
        if isinstance(at, Region) and at.buffer.name in rows:
            return at.but(start=(ZERO, *at.start[1:]))
        return at

    body: tuple[Stmt, ...] = tuple(rename_buffers(rewrite(each, change), rows) for each in loop.body)
    for name in names:
        body = _read_again(body, name)
        for k, each in enumerate(body):
            if isinstance(each, Vectors):
                body = (*body[:k], _without_dead(each, name, body[k + 1 :]), *body[k + 1 :])
    return loop.but(body=body)


def _laid_out(body: list[Stmt], rows: dict[str, int]) -> Iterator[Stmt]:
    """The statements, the tiles one after the other again."""
    offset = 0
    for each in body:
        if isinstance(each, AllocScratch) and each.layout is not None:
            layout, buffer = each.layout, each.buffer
            if buffer.name in rows and isinstance(layout, PaddedRows):
                buffer = replace(buffer, shape=(rows[buffer.name], *buffer.shape[1:]))
                layout = ring_layout(layout, buffer.shape[-1], rows[buffer.name], buffer.dtype.bytes_of(1))
            each = each.but(buffer=buffer, layout=layout, offset=offset)
            offset += -(-buffer.dtype.bytes_of(layout.elements) // _LINE) * _LINE + _LINE
        yield each


# -- a row that is a copy of an array's row
def _read_again(body: tuple[Stmt, ...], name: str) -> tuple[Stmt, ...]:
    """The body with loads of a copied row, until it is overwritten, going to the array instead."""
    first = next((k for k, each in enumerate(body) if any(True for _ in _touches(each, name))), 0)
    copy = body[first]
    found = _copied(copy, name)
    if found is None or not isinstance(copy, Vectors):
        return body
    store, source = found
    read = {each.buffer.name for each in walk(source) if isinstance(each, Load)}
    if any(isinstance(each, Store) and each.buffer.name in read for top in body for each in walk(top)):
        return body
    out = list(body)
    out[first] = copy.but(
        body=tuple(_reading(each, name, copy.vars[0], source) for each in copy.body if each is not store)
    )
    for k in range(first + 1, len(body)):
        if any(isinstance(each, Region) for each in _touches(body[k], name)):
            return body  # a fold wants its row in memory
        writes = [each for each in walk(body[k]) if isinstance(each, Store) and each.buffer.name == name]
        if not writes:
            out[k] = _reading(body[k], name, copy.vars[0], source)
            continue
        made = _overwriting(body[k], name, copy, source)
        out[k] = made if made is not None else body[k]
        return tuple(out) if made is not None else body
    return tuple(out)


def _copied(at: Stmt, name: str) -> tuple[Store, Expr] | None:
    """The store that copies a whole row of an array, and what it stores."""
    store = (
        next((each for each in at.body if isinstance(each, Store)), None) if isinstance(at, Vectors) else None
    )
    if store is None or not isinstance(at, Vectors) or store.buffer.name != name or store is not at.body[0]:
        return None
    load = store.value
    while isinstance(load, Cast):
        load = load.value
    whole = _fills(at, store) and not any(isinstance(each, (Store, If)) for each in at.body[1:])
    same = all(not isinstance(each, Load) or each.index == store.index for each in _touches(at, name))
    good = isinstance(load, Load) and load.buffer.scope == "global" and whole and same
    return (store, store.value) if good else None


def _fills(at: Vectors, store: Store) -> bool:
    """Whether a loop's store goes to all of a row."""
    whole = const_of(at.start) == 0 and const_of(at.stop) == store.buffer.shape[-1]
    return whole and store.index == (ZERO, at.vars[0])


def _reading(at: Any, name: str, var: Var, source: Expr) -> Any:
    """The node with loads of the row as loads of the array."""

    def change(node: Any) -> Any:
        if isinstance(node, Load) and node.buffer.name == name:
            return substitute(source, {var.name: node.index[-1]})
        return node

    made = rewrite(at, change)
    if isinstance(made, Vectors) and made is not at:
        whole = const_of(made.stop)
        return made.but(overrun=made.overrun and whole is not None and whole % made.lanes == 0)
    return made


def _overwriting(at: Stmt, name: str, copy: Vectors, source: Expr) -> Stmt | None:
    """The loop that makes a new row of the old: loads up to its store go to the array. None: not that."""
    if not isinstance(at, Vectors) or any(isinstance(each, If) for each in at.body):
        return None
    k = next(k for k, each in enumerate(at.body) if isinstance(each, Store) and each.buffer.name == name)
    store = at.body[k]
    if not isinstance(store, Store) or not _fills(at, store):
        return None
    if any(isinstance(each, Load) and each.index != store.index for each in _touches(at, name)):
        return None
    head = _reading(at.but(body=at.body[: k + 1]), name, copy.vars[0], source)
    return head.but(body=(*head.body, *at.body[k + 1 :]))


# -- stores that nobody reads
def _without_dead(at: Vectors, name: str, later: tuple[Stmt, ...]) -> Vectors:
    """The loop without the store into a row that is used at most once, in the same turn."""
    if any(not isinstance(each, (Store, Accumulate, Prefetch)) for each in at.body):
        return at
    places = [k for k, each in enumerate(at.body) if isinstance(each, Store) and each.buffer.name == name]
    if len(places) != 1 or any(not isinstance(each, Store) for top in later for each in _touches(top, name)):
        return at
    (k,) = places
    store, after = at.body[k], at.body[k + 1 :]
    loads = [
        each for top in after for each in walk(top) if isinstance(each, Load) and each.buffer.name == name
    ]
    if not isinstance(store, Store) or len(loads) > 1 or any(each.index != store.index for each in loads):
        return at
    if store.value.dtype != store.buffer.dtype or not _movable(store.value, after):
        return at
    value = store.value

    def change(node: Any) -> Any:
        return value if isinstance(node, Load) and node.buffer.name == name else node

    return at.but(body=(*at.body[:k], *(rewrite(each, change) for each in after)))


def _movable(value: Expr, after: tuple[Stmt, ...]) -> bool:
    """Whether a value is the same in later statements: none but the last stores, which reads first."""
    read = {each.buffer.name for each in walk(value) if isinstance(each, Load)}
    return not any(isinstance(each, Store) and each.buffer.name in read for each in after[:-1])
