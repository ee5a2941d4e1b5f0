"""What a kernel must do at least: operations on true elements, and each array's bytes moved once.

Tiles that stick out of the problem do idle work; it is not counted, so rates of odd sizes compare
with those of even ones. A multiply-add is two operations; a comparison or function is one, and a conversion,
a copy and what computes an index is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np

from ...ir import (
    Arith,
    Call,
    Function,
    If,
    Let,
    Load,
    LoopStmt,
    Node,
    OpStmt,
    Stmt,
    Store,
    Var,
    While,
    regions_read,
    walk,
)
from ...language.gemm import Gemm
from ...language.meanings.tiles import meaning_of
from ...language.structure import KernelLaunch, Parallel, Pipelined, Serial, Unroll, Vectorized
from .loop_extents import accesses, inside, reached
from .loop_points import LoopPoints, Where, value_at
from .needed_extents import NeededExtents
from .reads_writes import reads_and_writes
from .true_extents import TrueExtents


@dataclass(frozen=True)
class Work:
    """`flops`: operations; `bytes`: compulsory global traffic; `exact` whether that is no bound.

    `doubt` is the statement that decides how much it is and that only a run knows of: the count is then that
    of one turn, or of all, and no figure to show. A condition that decides of few operations is none.
    """

    flops: float
    bytes: float
    exact: bool = True
    doubt: Node | None = field(default=None, compare=False)

    @property
    def known(self) -> bool:
        """Whether `flops` is a count, or close to it where there are too many turns to go through."""
        return self.doubt is None


@dataclass(frozen=True)
class _Spot:
    """A statement and the turns of the loops around it."""

    node: Stmt
    points: LoopPoints
    # A loop or branch that is counted by its parts stands before them, for what it says of tiles.
    counts: bool = True


# What conditions on data decide is no doubt where it is at most this share of all operations.
FEW = 0.01


def count_work(function: Function) -> Work:
    """The work of a function in the `tile` stage or one right after it."""
    spots = list(_spots(function, LoopPoints()))
    nodes = [spot.node for spot in spots]
    tiles = TrueExtents(nodes, NeededExtents(nodes))
    flops = optional = 0.0
    exact, doubt, choice = True, None, None
    for spot in spots:
        tiles.see(spot.node)
        if not spot.counts:
            continue
        tiles.guessed = False
        found = _operations(spot.node, spot.points, tiles)
        flops += found
        exact &= (spot.points.exact and not tiles.guessed) or not found
        if not found:
            continue
        if tiles.guessed or not spot.points.bounded:
            doubt = doubt or spot.points.doubt or spot.node
        elif spot.points.doubt is not None:
            optional += found
            choice = choice or spot.points.doubt
    return Work(
        flops, float(_traffic(function)), exact, doubt or (choice if optional > FEW * flops else None)
    )


def _spots(node: Any, points: LoopPoints) -> Iterator[_Spot]:
    """The statements that do something, in the order of the text."""
    match node:
        case OpStmt() | Store() | Let():
            yield _Spot(node, points)
        case Parallel() if not _is_ragged(node):
            yield _Spot(node, points)
        case If():
            yield _Spot(node, points, counts=False)
            yield from _sequence(node.then, points.when(node.condition, of=node))
            yield from _sequence(node.orelse, points.when(node.condition, negated=True, of=node))
        case _:
            if isinstance(node, LoopStmt):
                yield _Spot(node, points, counts=False)
            yield from _sequence(getattr(node, "body", ()), _inside_loop(node, points))


def _sequence(statements: Sequence[Stmt], points: LoopPoints) -> Iterator[_Spot]:
    for statement in statements:
        yield from _spots(statement, points)
        if isinstance(statement, Let):
            points = points.let(statement.var.name, statement.value)


def _inside_loop(node: Any, points: LoopPoints) -> LoopPoints:
    """The points of a loop's body. How many turns a condition lets be taken is not known."""
    if isinstance(node, LoopStmt) and node.condition is not None:
        inner = node.but(condition=None) if node.vars else None
        return _inside_loop(inner, points).unsure(node)
    match node:
        case KernelLaunch():
            rows = zip(node.vars, node.blocks, strict=True)
        case Parallel():
            rows = zip(node.vars, node.extents, strict=True)
        case Vectorized():
            rows = iter([(node.vars[0], node.extent)])
        case Serial() | Unroll():
            return points.loop(node.vars[0].name, node.start, node.stop, node.step, node)
        case Pipelined():
            return points.loop(node.vars[0].name, node.start, node.stop, of=node)
        case _:
            return points
    for var, extent in rows:
        points = points.loop(var.name, 0, extent)
    return points


def _is_ragged(node: Parallel) -> bool:
    """Whether what runs inside may differ from index to index: a branch, or a loop whose bounds move."""
    if not _of_expressions(node):
        return False
    inner = [part for part in walk(node) if isinstance(part, (Serial, Unroll, Pipelined, While, If))]
    return any(isinstance(part, (While, If)) or _bounds_move(part) for part in inner)


def _bounds_move(loop: Any) -> bool:
    bounds = (loop.start, loop.stop)
    return loop.condition is not None or any(
        isinstance(part, (Var, Load)) for bound in bounds for part in walk(bound)
    )


def _operations(node: Stmt, points: LoopPoints, tiles: TrueExtents) -> float:
    match node:
        case Gemm():
            m, n, k = tiles.product(node, points.where)
            return 2.0 * points.total(m * n * k)
        case OpStmt():
            # So many operations for each true element that it reads, as its meaning says.
            meaning = meaning_of(type(node))
            weight = meaning.operations if meaning is not None else 0.0
            tile = next(iter(regions_read(node)), None)
            if not weight or tile is None:
                return 0.0
            needed = tiles.needed.of(tile.buffer, points.where) if tile.is_whole else None
            true = tiles.of(tile, points.where)
            return weight * points.total(_product(_least(true, needed or true)))
        case Parallel():
            each = _per_index(node, points)
            if not each:
                return 0.0
            return points.total(_product(_turns(node, points.where, tiles))) * each
        case Store() | Let():
            each = _of_expressions(node)
            return points.total(_reached(node, points.where)) * each if each else 0.0
        case _:
            return 0.0


def _turns(node: Parallel, where: Where, tiles: TrueExtents) -> list[Any]:
    """How many values of each variable of a loop matter: true ones, that some store is needed for."""
    true = reached(node, where, tiles.known)
    needed = tiles.needed.turns(node, where)
    counts: list[Any] = []
    for var, extent in zip(node.vars, node.extents, strict=True):
        most = (
            np.maximum.reduce(np.broadcast_arrays(*[each[var.name] for each in needed])) if needed else extent
        )
        counts.append(np.minimum(true.get(var.name, extent), most))
    return counts


def _least(one: Sequence[Any], other: Sequence[Any]) -> list[Any]:
    return [np.minimum(a, b) for a, b in zip(one, other, strict=True)]


def _product(factors: list[Any]) -> Any:
    return prod(factors, start=1)


def _per_index(node: Node, points: LoopPoints) -> float:
    """Floating operations of one index of a parallel loop, those of loops inside as often as they turn."""
    total = 0.0
    for statement in getattr(node, "body", ()):
        if isinstance(statement, (Store, Let)):
            total += _of_expressions(statement)
        else:
            turns = _inside_loop(
                statement, replace(points, where={}, shape=(), inside=True, stands=None, loops=0)
            )
            total += turns.total(1) * _per_index(statement, points)
    return total


_COMBINES = ("add", "max", "min")


def _of_expressions(statement: Stmt) -> float:
    """Floating operations of a statement's expressions, index arithmetic and conversions left out."""
    total = 0
    for expr in walk(statement):
        if isinstance(expr, Store) and expr.atomic in _COMBINES and expr.buffer.dtype.is_float:
            total += 1  # combining it with the element
        elif isinstance(expr, Arith) and expr.args[0].dtype.is_float:
            total += max(1, len(expr.args) - 1)
        elif isinstance(expr, Call) and expr.type.is_float and expr.word != "if_then_else":
            total += 1
    return float(total)


def _reached(node: Stmt, where: Where) -> Any:
    """Whether a single statement reaches a true element, by its first access of a global array."""
    for access in accesses(node)[:1]:
        if access.buffer.scope == "global":
            indices = [value_at(index, where) for index in access.index]
            known = zip(indices, access.buffer.extents, strict=True)
            return _product([inside(index, 1, limit) for index, limit in known if index is not None])
    return 1


def _traffic(function: Function) -> int:
    reads, writes = reads_and_writes(function)
    return sum(each.bytes * ((each.name in reads) + (each.name in writes)) for each in function.arrays)
