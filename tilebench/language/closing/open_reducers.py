"""Loops that update reducers (`reducers.py`) written as loops that fill a tile, and reductions of it.

`for i, j in T.Parallel(m, n): r[i] += x` becomes `r_tile[i, j] = x` in that loop, and
`T.reduce_sum(r_tile, r, dim=1, clear=False)` behind it: the old value takes part once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import LanguageError
from ...ir import (
    TRUE,
    Arith,
    Buffer,
    Call,
    Const,
    Expr,
    Function,
    If,
    Let,
    Load,
    LoopStmt,
    Stmt,
    Store,
    Var,
    all_of,
    map_bodies,
    walk,
    whole,
)
from ...ir.effects import effects_of
from ...ir.expr_walks import seen
from ...ir.names import Names
from ...ir.stmt import statements
from ..copy import Fill
from ..memory import AllocFragment
from ..reduce import BITS, Reduce
from ..reducers import combined, nothing
from ..structure import Parallel


def open_reducers(function: Function, reducers: Mapping[str, str]) -> Function:
    """The function without updates of reducers. `LanguageError` for one that is none, or that begins."""
    if not reducers:
        return function
    _check_begun(function, reducers)
    return _Opener(function, reducers).step(function)


def _check_begun(function: Function, reducers: Mapping[str, str]) -> None:
    """Refuse a reducer with nothing in it when its updates begin, anywhere in the kernel."""
    updates: dict[str, Stmt] = {}
    begun: set[str] = set()
    for statement in statements(function.body):
        for name in {each.buffer.name for each in effects_of(statement) if each.writes} & reducers.keys():
            if isinstance(statement, Store) and _reads(statement.value, name):
                updates.setdefault(name, statement)
            else:
                begun.add(name)
    for name, first in updates.items():
        if name not in begun:
            raise LanguageError(
                "the reducer {name} has no value when its updates begin", name=name, at=first.place,
                hint="T.reducer_init({name}) in front of them: its memory starts with anything",
            )  # fmt: skip


def _reads(value: Expr, name: str) -> bool:
    return any(isinstance(part, Load) and part.buffer.name == name for part in walk(value))


class _Opener:
    def __init__(self, function: Function, reducers: Mapping[str, str]) -> None:
        self.names, self.reducers = Names(function), reducers

    def step(self, node: Any) -> Any:
        """The node without updates; a loop becomes several statements."""
        if isinstance(node, Parallel):
            return self.loop(node)
        if isinstance(node, Store) and node.buffer.name in self.reducers:
            return self.alone(node)
        return map_bodies(node, self.step)

    def alone(self, store: Store) -> Stmt:
        """An update outside of T.Parallel, which the block does once: a loop that changes its element."""
        op, buffer, place = self.reducers[store.buffer.name], store.buffer, store.place
        names = tuple(Var(self.names.fresh(f"i{axis}"), place=place) for axis in range(buffer.rank))
        value = combined(op, Load(buffer, names, place=place), _added(store, op))
        update = Store(buffer, names, value, place=place)
        own = all_of([name.compare("==", each) for name, each in zip(names, store.index, strict=True)])
        return Parallel(buffer.extents, names, (If(own, (update,), (), place=place),), place=place)

    def loop(self, loop: Parallel) -> Any:
        found = [
            store for store in statements(loop.body)
            if isinstance(store, Store) and store.buffer.name in self.reducers and self.shared(loop, store)
        ]  # fmt: skip
        if not found:
            return loop
        before: list[Stmt] = []
        behind: list[Stmt] = []
        changed: dict[int, Store] = {}
        for store in found:
            op = self.reducers[store.buffer.name]
            axes = self.axes(loop, store)
            name = self.names.fresh(f"{store.buffer.name}_tile")
            tile = Buffer(name, tuple(loop.extents), store.buffer.dtype, "fragment")
            before.append(AllocFragment(tile, place=store.place))
            value = _added(store, op)
            if any(store is each for each in loop.body):
                changed[id(store)] = store.but(buffer=tile, index=loop.vars, value=value)
            else:
                # Not in every iteration, or several times in one.
                before.append(Fill(whole(tile), nothing(op, tile.dtype), place=store.place))
                sofar = combined(op, Load(tile, loop.vars, place=store.place), value)
                changed[id(store)] = store.but(buffer=tile, index=loop.vars, value=sofar)
            if self.is_direct(loop, store):
                behind += self.reduced(tile, store, op, axes)
            else:
                behind += self.elsewhere(loop, tile, store, op, axes)

        def filled(node: Any) -> Any:
            new = changed.get(id(node))
            if new is not None:
                return new
            return map_bodies(node, filled)

        return (*before, filled(loop), *behind)

    def shared(self, loop: Parallel, store: Store) -> bool:
        """Whether several iterations of the loop have the store's element."""
        named = {each.name for each in store.index if isinstance(each, Var)}
        loops = zip(loop.vars, loop.extents, strict=True)
        return any(var.name not in named and extent != 1 for var, extent in loops)

    def axes(self, loop: Parallel, store: Store) -> tuple[int, ...]:
        """The dimensions of the loop that the element is reduced over."""
        kept = self.kept(loop, store)
        names = [var.name for var in loop.vars]
        fits = all(axis is None or loop.extents[axis] == size
                   for axis, size in zip(kept, store.buffer.extents, strict=True))  # fmt: skip
        others = [index for index, axis in zip(store.index, kept, strict=True) if axis is None]
        # What is bound or changed inside is not there, or another value, behind the loop.
        inside = {*names, *(name for inner in statements(loop.body) for name in _bound(inner))}
        moved = any(seen(index).loads or not inside.isdisjoint(seen(index).names) for index in others)
        order = [axis for axis in kept if axis is not None]
        if order != sorted(set(order)) or not fits or moved:
            raise LanguageError(
                "an update of {name} names elements in another way than the loop does",
                name=store.buffer.name, at=store.place, shape=store.buffer.extents, extents=loop.extents,
                expected="indices that are variables of the loop in its order, with the extents {shape}, or "
                "the same in all iterations",
                found="a loop over {extents}",
                hint="fill a fragment in the loop, and reduce it with T.reduce_sum",
            )  # fmt: skip
        return tuple(axis for axis in range(len(names)) if axis not in order)

    def is_direct(self, loop: Parallel, store: Store) -> bool:
        """Whether a reduction gives the reducer itself: all indices are the loop's, or it is one element."""
        kept = self.kept(loop, store)
        return None not in kept or (set(kept) == {None} and set(store.buffer.extents) == {1})

    def kept(self, loop: Parallel, store: Store) -> list[int | None]:
        """For each index of an element the axis of the loop that it is; None for another one."""
        names = [var.name for var in loop.vars]
        return [
            names.index(index.name) if isinstance(index, Var) and index.name in names else None
            for index in store.index
        ]

    def elsewhere(
        self, loop: Parallel, tile: Buffer, store: Store, op: str, axes: Sequence[int]
    ) -> list[Stmt]:
        """The same where all iterations have some index in common: by way of a part, and a loop over the
        reducer that takes it in where the index is."""
        kept, place = self.kept(loop, store), store.place
        sizes = tuple(loop.extents[axis] for axis in kept if axis is not None) or (1,)
        part = Buffer(self.names.fresh(tile.name), sizes, tile.dtype, "fragment")
        begun = (AllocFragment(part, place=place), Fill(whole(part), nothing(op, part.dtype), place=place))
        names = tuple(Var(self.names.fresh(f"i{axis}"), place=place) for axis in range(store.buffer.rank))
        index = tuple(name for name, axis in zip(names, kept, strict=True) if axis is not None) or (Const(0),)
        value = combined(op, Load(store.buffer, names, place=place), Load(part, index, place=place))
        pairs = zip(names, store.index, kept, store.buffer.extents, strict=True)
        own = all_of([name.compare("==", at) for name, at, axis, size in pairs if axis is None and size != 1])
        update: Stmt = Store(store.buffer, names, value, place=place)
        inner = update if own == TRUE else If(own, (update,), (), place=place)
        taken = Parallel(store.buffer.extents, names, (inner,), place=place)
        return [*begun, *self.reduced(tile, store.but(buffer=part), op, axes), taken]

    def reduced(self, tile: Buffer, store: Store, op: str, axes: Sequence[int]) -> list[Stmt]:
        """Reductions of the tile into the reducer, the last dimension first."""
        out: list[Stmt] = []
        for number, axis in enumerate(reversed(axes)):
            if number == len(axes) - 1:
                into = whole(store.buffer)
                out.append(Reduce(op, whole(tile), into, dim=axis, clear=False, place=store.place))
                return out
            extents = tile.extents
            part = Buffer(
                self.names.fresh(tile.name), (*extents[:axis], *extents[axis + 1 :]), tile.dtype, "fragment"
            )
            out.append(AllocFragment(part, place=store.place))
            out.append(Reduce(op, whole(tile), whole(part), dim=axis, place=store.place))
            tile = part
        return out


def _bound(statement: Stmt) -> list[str]:
    """The names that a statement binds."""
    if isinstance(statement, Let):
        return [statement.var.name]
    return [var.name for var in statement.vars] if isinstance(statement, LoopStmt) else []


def _added(store: Store, op: str) -> Expr:
    """What an update combines the old value with. Raises `LanguageError` where it is no update."""
    old = Load(store.buffer, store.index)
    match store.value:
        case Arith(op="+") if op == "sum" and old in store.value.args:
            rest = list(store.value.args)
            rest.remove(old)
            return rest[0] if len(rest) == 1 else store.value.but(args=tuple(rest))
        case Arith(op=sign, args=args) if sign == BITS.get(op) and old in args:
            return args[1] if args[0] == old else args[0]
        case Arith(op="-", args=(first, second)) if op == "sum" and first == old:
            return Arith("-", (second,), place=store.place)
        case Call(word=word, args=args) if word == op and old in args:
            return args[1] if args[0] == old else args[0]
        case _:
            raise LanguageError(
                "{name} is a reducer of {op}, and this is no update of it", name=store.buffer.name,
                op=repr(op), at=store.place, hint="T.reducer_update({name}[i], x)",
            )  # fmt: skip


__all__ = ["open_reducers"]
