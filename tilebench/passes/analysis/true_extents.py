"""How much of a tile is elements of the problem, and how much sticks out of it.

A tile holds true elements where the copy that filled it read inside its array; a product has as many rows
and columns as its operands, and what is stored as many as fit its target. Statements are seen in the
order in which they run, as one tile may hold one operand after another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...ir import Buffer, Const, Expr, Load, Region, Stmt, Store, Var, walk, whole
from ...language.copy import Copy
from ...language.gemm import Gemm
from ...language.reduce import Reduce, Scan
from ...language.structure import Parallel
from .loop_extents import inside, reached
from .loop_points import Where, value_at
from .needed_extents import NeededExtents

# The true extents of a box at some points of the loops, a number or an array a dimension.
Extents = Callable[[Where], list[Any]]


@dataclass(frozen=True)
class _Piece:
    """A box of a tile, and how many of its elements from its start on are true."""

    box: Region
    true: Extents


def _once(true: Extents) -> Extents:
    """The same function, which remembers its last answer: tiles are made of tiles that are made of tiles."""
    last: list[tuple[Where, list[Any]]] = []

    def remembering(where: Where) -> list[Any]:
        if not last or last[0][0] is not where:
            last[:] = [(where, true(where))]
        return last[0][1]

    return remembering


Pieces = tuple[_Piece, ...]


class TrueExtents:
    """What tiles hold. `see` each statement in the order of the text, then ask `of` a region."""

    def __init__(self, statements: Sequence[Stmt], needed: NeededExtents) -> None:
        self.needed = needed
        # Whether an answer was one for a part of an array whose place only a run knows.
        self.guessed = False
        self._held: dict[str, Pieces] = {}
        # Where a tile goes bounds it too, and says all there is where nothing says what filled it.
        self._stored: dict[str, Pieces] = {}
        for statement in reversed(statements):
            if isinstance(statement, Copy):
                self._moved(self._stored, statement.src, statement.dst)
        for statement in statements:
            self.see(statement)  # what the end of a loop leaves for its head

    def see(self, statement: Stmt) -> None:
        """Note what a statement puts into tiles."""
        if isinstance(statement, Copy):
            self._moved(self._held, statement.dst, statement.src)
        elif isinstance(statement, Gemm) and statement.a.extent and statement.b.extent:
            a, b = self._look(statement.a), self._look(statement.b)
            result = _once(lambda where: _mnk(statement, a(where), b(where))[:2])
            self._held[statement.c.buffer.name] = (_Piece(whole(statement.c.buffer), result),)
        elif isinstance(statement, (Reduce, Scan)):
            self._folded(statement)
        elif isinstance(statement, Parallel):
            self._stored_by(statement)

    def of(self, region: Region, where: Where) -> list[Any]:
        """The true extents of a region."""
        return self._look(region)(where)

    def product(self, node: Gemm, where: Where) -> list[Any]:
        """m, n and k of a product: each the least that an operand or the stored result has."""
        if node.a.extent is None or node.b.extent is None:
            return [0, 0, 0]
        m, n, k = _mnk(node, self.of(node.a, where), self.of(node.b, where))
        stored = _part(whole(node.c.buffer), self._stored.get(node.c.buffer.name, ()), where)
        needed = self.needed.of(node.c.buffer, where) if node.c.is_whole else stored
        rows, columns = (np.minimum(stored[axis], needed[axis]) for axis in (-2, -1))
        return [np.minimum(m, rows), np.minimum(n, columns), k]

    def _look(self, region: Region) -> Extents:
        """As `of`, with what tiles hold now."""
        if region.buffer.scope == "global":
            return lambda where: self._in_array(region, where)
        name = region.buffer.name
        pieces = self._held.get(name) or self._stored.get(name, ())
        return lambda where: _part(region, pieces, where)

    def known(
        self, buffer: Buffer, where: Where, held: Mapping[str, Pieces] | None = None
    ) -> list[Any] | None:
        """The true extents of a whole tile; None where nothing says what fills it.

        `held` is what tiles held at another statement than the one seen last.
        """
        pieces = self._held if held is None else held
        found = pieces.get(buffer.name) or self._stored.get(buffer.name)
        return _part(whole(buffer), found, where) if found else None

    def _folded(self, statement: Reduce | Scan) -> None:
        """A reduction has as many true results as its source has lines with any."""
        source, tile = self._look(statement.src), statement.dst
        if tile.buffer.scope == "global" or not (tile.extent and statement.src.extent):
            return
        gone = statement.dim % len(statement.src.extent) if isinstance(statement, Reduce) else -1
        sizes = [size for k, size in enumerate(statement.src.extent) if k != gone]
        if tile.is_whole and sizes == list(tile.extent):
            true = _once(lambda where: [n for k, n in enumerate(source(where)) if k != gone])
            self._held[tile.buffer.name] = (_Piece(tile, true),)

    def _stored_by(self, loop: Parallel) -> None:
        """A tile that a loop fills has as many true elements as what it is made of."""
        filled = {
            node.buffer.name: node
            for node in walk(loop)
            if isinstance(node, Store) and node.buffer.scope in ("shared", "fragment")
        }
        for name, store in filled.items():
            axes = [index.name for index in store.index if isinstance(index, Var)]
            sizes = {var.name: extent for var, extent in zip(loop.vars, loop.extents, strict=True)}
            if len(axes) != len(store.index) or [sizes.get(a) for a in axes] != list(store.buffer.extents):
                continue
            self._held[name] = (_Piece(whole(store.buffer), self._of_loop(loop, name, axes)),)

    def _of_loop(self, loop: Parallel, name: str, axes: Sequence[str]) -> Extents:
        held, own = dict(self._held), self._held.get(name, ())
        box = whole(next(n.buffer for n in walk(loop) if isinstance(n, Store) and n.buffer.name == name))

        def true(where: Where) -> list[Any]:
            found = reached(loop, where, partial(self.known, held=held), without=name)
            before = _part(box, own, where)
            return [found.get(axis, before[k]) for k, axis in enumerate(axes)]

        return _once(true)

    def _in_array(self, region: Region, where: Where) -> list[Any]:
        """The extents of a region's part inside its array; all of them where its start is not known."""
        sizes: list[Any] = []
        for start, size, limit in zip(region.start, _extent(region), region.buffer.extents, strict=True):
            first = value_at(start, where)
            if first is None and size > 1 and _of_data(start, where):
                self.guessed = True
            sizes.append(size if first is None else inside(first, size, limit))
        return sizes

    def _moved(self, known: dict[str, Pieces], tile: Region, other: Region) -> None:
        """Note in `known` what a copy moves between a box of a tile and its other side."""
        if tile.buffer.scope == "global":
            return
        name, box, side = tile.buffer.name, settled(tile, other), settled(other, tile)
        others = known.get(other.buffer.name, ())
        rest = () if box.is_whole else tuple(each for each in known.get(name, ()) if each.box != box)
        if other.buffer.scope == "global":
            true = _once(lambda where: _lined_up(box, side, self._in_array(side, where)))
            known[name] = (*rest, _Piece(box, true))
        elif others:
            true = _once(lambda where: _lined_up(box, side, _part(side, others, where)))
            known[name] = (*rest, _Piece(box, true))
        else:
            known[name] = rest


def settled(region: Region, other: Region) -> Region:
    """A region with extents: a head address takes those of the other side, aligned to the right."""
    if region.extent is not None:
        return region
    rank = region.buffer.rank
    given = (other.extent or other.buffer.extents)[-rank:] if rank else ()
    return region.but(extent=(1,) * (rank - len(given)) + tuple(given))


def _extent(region: Region) -> list[Any]:
    return list(region.extent if region.extent is not None else (1,) * region.buffer.rank)


def _of_data(start: Expr, where: Where) -> bool:
    """Whether data says where a part begins, and no loop that is over."""
    return any(isinstance(part, Load) for part in walk(start)) or any(
        isinstance(part, Var) and part.name in where and where[part.name] is None for part in walk(start)
    )


def _lined_up(box: Region, side: Region, true: Sequence[Any]) -> list[Any]:
    """The true extents of a copy's one side as those of the other: extents of 1 have no partner.

    A dimension of extent 1 that lies outside (a head of a batch that is not there) leaves nothing.
    """
    alive: Any = 1
    moving: list[Any] = []
    for size, found in zip(_extent(side), true, strict=True):
        if size == 1:
            alive = alive * np.minimum(found, 1)
        else:
            moving.append(found)
    partners = iter(moving)
    return [alive * (1 if size == 1 else next(partners, size)) for size in _extent(box)]


def _part(region: Region, pieces: Pieces, where: Where) -> list[Any]:
    """The true extents of a part of a tile, from the pieces that filled it."""
    own = next((piece for piece in reversed(pieces) if piece.box == region), None)
    if own is not None:
        return own.true(where)
    if not pieces or not all(_fixed(piece.box) for piece in pieces):
        return _extent(region)
    ends = [
        [start + found for start, found in zip(_starts(piece.box), piece.true(where), strict=True)]
        for piece in pieces
    ]
    reached = [np.maximum.reduce(np.broadcast_arrays(*column)) for column in zip(*ends, strict=True)]
    starts = [value_at(start, where) for start in region.start]
    return [
        size if start is None else inside(start, size, limit)
        for start, size, limit in zip(starts, _extent(region), reached, strict=True)
    ]


def _fixed(region: Region) -> bool:
    return all(isinstance(start, Const) for start in region.start)


def _starts(region: Region) -> list[Any]:
    return [value_at(start, {}) for start in region.start]


def _mnk(node: Gemm, a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
    (m, k) = (a[-1], a[-2]) if node.transpose_A else (a[-2], a[-1])
    (n, other) = (b[-2], b[-1]) if node.transpose_B else (b[-1], b[-2])
    return [m, n, np.minimum(k, other)]
