"""How much of a tile anybody needs: what comes of the rest is stored nowhere.

A kernel may work on more rows than it stores, as a decoding attention does whose block has 16 heads where a
group has 4: the others' work is none that the operation has to do. Asked backwards, from what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from ...ir import (
    Arith,
    Buffer,
    Expr,
    If,
    Let,
    Load,
    LoopStmt,
    Node,
    Stmt,
    Store,
    Var,
    children,
    regions_read,
    walk,
)
from ...language.copy import Copy
from ...language.gemm import Gemm
from ...language.reduce import Reduce, Scan
from ...language.structure import Parallel
from .loop_extents import alone, first_of, inside
from .loop_points import MOST_POINTS, Where, value_at

# What one use needs of a tile, a number or an array a dimension; None for all of it.
Use = Callable[[Where], list[Any] | None]


class NeededExtents:
    """What the statements of a kernel need of its tiles."""

    def __init__(self, statements: Sequence[Stmt]) -> None:
        self._uses: dict[str, list[Use]] = {}
        self._tiles: dict[str, Buffer] = {}
        self._alike: set[tuple[str, Hashable]] = set()
        # What is needed of each tile as far as it is known, and the points for which that is.
        self._needed: dict[str, list[Any]] = {}
        self._where: Where | None = None
        self._stores: dict[int, list[Callable[[Where], dict[str, Any]]]] = {}
        for statement in statements:
            self._see(statement)

    def of(self, buffer: Buffer, where: Where) -> list[Any]:
        """The extents that are needed of a tile: the most of any of its uses."""
        if buffer.name not in self._tiles:
            return list(buffer.extents)
        self._settle(where)
        return self._needed[buffer.name]

    def turns(self, loop: Parallel, where: Where) -> list[dict[str, Any]]:
        """For each store of a loop, how many values of each of its variables it is needed for."""
        self._settle(where)
        return [use(where) for use in self._stores[id(loop)]]

    def _settle(self, where: Where) -> None:
        """From nothing up, until a round finds no more: a loop's tiles are made of each other."""
        if self._where is where:
            return
        self._where = where
        self._needed = {name: [0] * tile.rank for name, tile in self._tiles.items()}
        for _ in range(len(self._tiles) + 1):
            changed = False
            # The last tile first, each by what this round knows already: a chain of tiles takes two rounds.
            for name in reversed(self._tiles):
                now = self._most(name, where)
                changed = changed or not _same(self._needed[name], now)
                self._needed[name] = now
            if not changed:
                return
        self._needed = {name: list(tile.extents) for name, tile in self._tiles.items()}

    def _most(self, name: str, where: Where) -> list[Any]:
        whole = list(self._tiles[name].extents)
        most: list[Any] = [0] * len(whole)
        for use in self._uses[name]:
            found = use(where)
            if found is None or len(found) != len(whole):
                return whole
            most = [np.maximum(a, b) for a, b in zip(most, found, strict=True)]
        return most

    def _use(self, buffer: Buffer, use: Use, alike: Hashable = None) -> None:
        """A use of a tile. Of those that are `alike` one is enough: a kernel of many products repeats it."""
        if alike is not None:
            if (buffer.name, alike) in self._alike:
                return
            self._alike.add((buffer.name, alike))
        if buffer.scope in ("shared", "fragment"):
            self._uses.setdefault(buffer.name, []).append(use)
            self._tiles[buffer.name] = buffer

    def _of_tile(self, buffer: Buffer, where: Where) -> list[Any]:
        """What is needed of a tile as far as this round knows; of one that nothing reads, nothing."""
        return self._needed.get(buffer.name, [0] * buffer.rank)

    def _see(self, statement: Stmt) -> None:
        match statement:
            case Gemm() if statement.a.is_whole and statement.b.is_whole and statement.c.is_whole:
                a, b, c = (region.buffer for region in (statement.a, statement.b, statement.c))
                left, right = statement.transpose_A, not statement.transpose_B
                self._use(a, lambda where: self._operand(a, c, left, 0, where), (c.name, left, 0))
                self._use(b, lambda where: self._operand(b, c, right, 1, where), (c.name, right, 1))
            case Reduce() | Scan() if statement.src.is_whole and statement.dst.is_whole:
                self._use(statement.src.buffer, lambda where: self._folded(statement, where))
            case Copy() if _between_tiles(statement):
                target = statement.dst.buffer
                self._use(statement.src.buffer, lambda where: self._of_tile(target, where), target.name)
            case Parallel():
                self._loop(statement)
            case Store() | Let():
                self._element(statement)
            case If():
                self._element(statement.condition)
            case LoopStmt():
                for expr in (part for part in children(statement) if isinstance(part, Expr)):
                    self._element(expr)
            case _:
                for region in regions_read(statement):
                    self._use(region.buffer, _whole, "whole")

    def _element(self, node: Node) -> None:
        """What is read one element at a time, or decides: what becomes of it is not followed."""
        for load in walk(node):
            if isinstance(load, Load):
                self._use(load.buffer, _whole, "whole")

    def _operand(
        self, own: Buffer, result: Buffer, turned: bool, axis: int, where: Where
    ) -> list[Any] | None:
        """Of an operand the rows (or columns) that are needed of the product; of its sum all."""
        needed = self._of_tile(result, where)
        if own.rank < 2:
            return None
        sizes: list[Any] = list(own.extents)
        sizes[-1 if turned else -2] = needed[-2 + axis]
        return sizes

    def _folded(self, statement: Reduce | Scan, where: Where) -> list[Any] | None:
        needed = self._of_tile(statement.dst.buffer, where)
        source = statement.src.buffer
        if isinstance(statement, Scan):
            return list(source.extents)
        dim = statement.dim % source.rank
        return [*needed[:dim], source.extents[dim], *needed[dim:]] if len(needed) == source.rank - 1 else None

    def _loop(self, loop: Parallel) -> None:
        stores = self._stores[id(loop)] = []
        for store, guards in guarded_stores(loop):
            turns = self._turns(loop, store, guards)
            stores.append(turns)
            for load in walk(store.value):
                if isinstance(load, Load) and load.buffer.name != store.buffer.name:
                    self._use(load.buffer, _of_load(load, turns))
        # What decides or is an index is needed whole.
        for expr in _deciding(loop):
            self._element(expr)

    def _turns(
        self, loop: Parallel, store: Store, guards: Sequence[Expr]
    ) -> Callable[[Where], dict[str, Any]]:
        """How many values of each variable of a loop a store is needed for."""
        extents = {var.name: extent for var, extent in zip(loop.vars, loop.extents, strict=True)}
        of_array = store.buffer.scope == "global"
        moving = [
            (k, index, name)
            for k, index in enumerate(store.index)
            if (name := alone(index, extents)) is not None
        ]
        about = [(guard, name) for guard in guards if (name := alone(guard, extents)) is not None]
        last: list[tuple[Where, dict[str, Any]]] = []

        def turns(where: Where) -> dict[str, Any]:
            if of_array and last and last[0][0] is where:
                return last[0][1]
            limits = list(store.buffer.extents) if of_array else self._of_tile(store.buffer, where)
            counts: dict[str, Any] = dict(extents)
            for k, index, name in moving:
                first = first_of(index, name, extents[name], where)
                if first is not None:
                    counts[name] = np.minimum(counts[name], inside(first, extents[name], limits[k]))
            for guard, name in about:
                _narrow(counts, name, extents[name], guard, where)
            last[:] = [(where, counts)]
            return counts

        return turns


def _whole(where: Where) -> None:
    """What is needed whole."""


def _of_load(load: Load, turns: Callable[[Where], dict[str, Any]]) -> Use:
    names = [index.name if isinstance(index, Var) else "" for index in load.index]

    def use(where: Where) -> list[Any] | None:
        counts = turns(where)
        return [counts.get(name, size) for name, size in zip(names, load.buffer.extents, strict=True)]

    return use


def _same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def guarded_stores(loop: Parallel) -> Iterator[tuple[Store, tuple[Expr, ...]]]:
    """The stores of a loop, each with the conditions around it that have to hold."""

    def inner(body: Sequence[Stmt], guards: tuple[Expr, ...]) -> Iterator[tuple[Store, tuple[Expr, ...]]]:
        for node in body:
            if isinstance(node, Store):
                yield node, guards
            elif isinstance(node, If):
                yield from inner(node.then, (*guards, *_parts(node.condition)))
                yield from inner(node.orelse, guards)
            else:
                yield from inner(getattr(node, "body", ()), guards)

    return inner(loop.body, ())


def _parts(condition: Expr) -> tuple[Expr, ...]:
    if isinstance(condition, Arith) and condition.op == "and":
        return tuple(part for each in condition.args for part in _parts(each))
    return (condition,)


def _narrow(counts: dict[str, Any], name: str, extent: int, guard: Expr, where: Where) -> None:
    """Less of the one variable that a condition is about, where it is known before the kernel runs."""
    names = {part.name for part in walk(guard) if isinstance(part, Var)}
    points = np.broadcast_shapes(*(np.shape(value) for key, value in where.items() if key in names))
    if prod(points) * extent > MOST_POINTS:
        return
    deeper = {
        key: None if value is None else np.asarray(value)[..., np.newaxis] for key, value in where.items()
    }
    holds = value_at(guard, {**deeper, name: np.arange(extent)})
    if holds is not None:
        counts[name] = np.minimum(counts[name], np.sum(np.asarray(holds, np.int64), axis=-1))


def _deciding(loop: Parallel) -> Iterator[Expr]:
    for node in walk(loop):
        if isinstance(node, If):
            yield node.condition
        elif isinstance(node, (Store, Load)):
            yield from node.index
        elif isinstance(node, Let):
            yield node.value


def _between_tiles(copy: Copy) -> bool:
    """Whether a copy is of a whole tile into a whole tile of its shape."""
    if copy.dst.buffer.scope == "global" or not (copy.src.is_whole and copy.dst.is_whole):
        return False
    return copy.src.buffer.extents == copy.dst.buffer.extents
