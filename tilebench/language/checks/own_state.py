"""State that iterations of `T.Parallel` would share: scalars and arrays of a thread made before the loop.

Each iteration has such a scalar to itself, and no order: one that reads what another may have left
there, or what the loop leaves behind, has no meaning that all targets could agree on. It is allowed as
a place for a value on the way, stored in an iteration before that iteration reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...errors import LanguageError, Place
from ...ir import (
    AllocStmt,
    Const,
    Expr,
    Function,
    If,
    Load,
    LoopStmt,
    Stmt,
    Store,
    Var,
    WithStmt,
    children,
    const_of,
    walk,
)
from ...ir.stmt import statements
from ..structure import Parallel, Vectorized

OWN = ("var", "local")
# The store after which an element, by buffer and index, is one of another iteration as well.
Torn = dict[tuple[str, tuple[Expr, ...]], Store]


def refuse_shared_state(function: Function) -> None:
    """Raise `LanguageError` at the store of a parallel loop whose value another iteration may meet."""
    if any(isinstance(node, Store) and node.own is not None for node in statements(function.body)):
        _body(function.body, {})


def _body(body: Sequence[Stmt], torn: Torn) -> None:
    """Go through statements in order; `torn` is what is torn before them, and then after them."""
    for statement in body:
        _read(statement, torn)
        match statement:
            case AllocStmt():
                for key in [key for key in torn if key[0] == statement.buffer.name]:
                    del torn[key]
            case Store():
                torn.pop((statement.buffer.name, statement.index), None)
                if statement.found is not None:
                    torn.pop((statement.found.name, ()), None)
            case If():
                other = dict(torn)
                _body(statement.then, torn)
                _body(statement.orelse, other)
                torn.update(other)
            case Parallel():
                stores = list(_stores_around(statement))
                torn.update(stores)
                _body(statement.body, torn)
                torn.update(stores)
            case LoopStmt():
                _turns(statement, torn)
            case WithStmt():
                _body(statement.body, torn)
            case _:
                pass


def _turns(loop: LoopStmt, torn: Torn) -> None:
    """A loop in order: a turn meets what the one before left, and what was there if there was none."""
    before = dict(torn)
    _body(loop.body, torn)
    if loop.condition is not None:
        _read(loop, torn)
    _body(loop.body, torn)
    if not _surely_runs(loop):
        torn.update(before)


def _surely_runs(loop: LoopStmt) -> bool:
    if isinstance(loop, Vectorized):
        return True
    if loop.condition is not None:
        return False
    start, stop = const_of(getattr(loop, "start", Const(0))), const_of(getattr(loop, "stop", Const(0)))
    return start is not None and stop is not None and start < stop


def _stores_around(loop: Parallel) -> Iterator[tuple[tuple[str, tuple[Expr, ...]], Store]]:
    """The stores of a parallel loop to what was made before it."""
    inside = {node.buffer.name for node in statements(loop.body) if isinstance(node, AllocStmt)}
    for store in statements(loop.body):
        own = store.own if isinstance(store, Store) else None
        if isinstance(store, Store) and own is not None and own.name not in inside:
            names = {var.name for var in loop.vars}
            where = store.index if own is store.buffer else ()
            for node in (node for index in where for node in walk(index)):
                if isinstance(node, Load) or (isinstance(node, Var) and node.name in names):
                    _refuse(store, own.name, store.place)
            yield (own.name, where), store


def _read(statement: Stmt, torn: Torn) -> None:
    """Refuse a read of a torn element in a statement's own expressions."""
    if not torn:
        return
    inner: list[object] = []
    if isinstance(statement, If):
        inner = [*statement.then, *statement.orelse]
    elif isinstance(statement, (LoopStmt, WithStmt)):
        inner = [*statement.body]
    kept = {id(each) for each in inner}
    for node in (node for child in children(statement) if id(child) not in kept for node in walk(child)):
        if isinstance(node, Load) and node.buffer.scope in OWN:
            for (name, index), store in torn.items():
                if name == node.buffer.name and not _apart(index, node.index):
                    _refuse(store, name, node.place or statement.place)


def _apart(a: tuple[Expr, ...], b: tuple[Expr, ...]) -> bool:
    """Whether two indices are surely of different elements."""
    return any(isinstance(x, Const) and isinstance(y, Const) and x != y for x, y in zip(a, b, strict=True))


def _refuse(store: Store, name: str, read: Place | None) -> None:
    raise LanguageError(
        "{name} is changed in T.Parallel and was made before it: iterations run in no order, and would race",
        name=name, at=store.place, also=[("its value is used here", read)],
        expected="a value of one iteration: made in the loop, or stored there before it is read",
        hint="make {name} inside the loop; add up with T.reduce_sum (or T.reduce_max, ...) of a tile, "
        "or in order with T.serial",
    )  # fmt: skip
