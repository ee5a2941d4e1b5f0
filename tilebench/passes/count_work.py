"""What a kernel must do at least: operations on true elements, and each array's bytes moved once.

Tiles that stick out of the problem do idle work; it is not counted, so rates of odd sizes compare
with those of even ones. A multiply-add is two operations; a comparison, conversion or function is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ..ir import (
    Arith,
    Call,
    Expr,
    Function,
    If,
    Load,
    OpStmt,
    Region,
    Stmt,
    Store,
    Var,
    const_of,
    regions_read,
    walk,
)
from ..ir.arith import evaluate
from ..language.copy import Copy
from ..language.gemm import Gemm
from ..language.meanings.tiles import meaning_of
from ..language.structure import KernelLaunch, Parallel, Pipelined, Serial, Unroll, Vectorized
from .reads_writes import reads_and_writes

# More index points than this are not enumerated; edges then count as whole tiles.
MOST_POINTS = 2_000_000
# Variables and their values, as ranges: a loop of 2^31 turns must cost no memory here.
Loops = tuple[tuple[str, range], ...]


@dataclass(frozen=True)
class Work:
    """`flops`: operations; `bytes`: compulsory global traffic; `exact` whether that is no bound."""

    flops: float
    bytes: float
    exact: bool = True


@dataclass(frozen=True)
class _At:
    """A statement and the loops around it: variables with their values; whether a branch holds it."""

    node: Stmt
    loops: Loops
    branch: bool = False


def count_work(function: Function) -> Work:
    """The work of a function in the `tile` stage or one right after it."""
    places = list(_places(function, ()))
    sources = _sources([spot.node for spot in places if isinstance(spot.node, Copy)])
    flops = 0.0
    exact = True
    for spot in places:
        points = prod(len(values) for _, values in spot.loops)
        counted = points <= MOST_POINTS
        # A branch counts as taken each time, so what stands in one is an upper bound.
        exact &= counted and not spot.branch
        where = _points(spot.loops) if counted else {}
        flops += _operations(spot.node, where, sources) * (1 if counted else points)
    return Work(flops, float(_traffic(function)), exact)


def _sources(copies: Sequence[Copy]) -> dict[str, Region]:
    """The global region whose elements a tile holds: where it comes from, or else where it goes."""
    sources: dict[str, Region] = {}
    for copy in copies:
        name = copy.dst.buffer.name
        if copy.src.buffer.scope == "global":
            sources.setdefault(name, copy.src)
        elif copy.src.buffer.name in sources and copy.src.is_whole and copy.dst.is_whole:
            sources.setdefault(name, sources[copy.src.buffer.name])
    for copy in reversed(copies):
        if copy.dst.buffer.scope == "global" and copy.src.is_whole:
            sources.setdefault(copy.src.buffer.name, copy.dst)
    return sources


def _places(node: Any, loops: Loops, branch: bool = False) -> Iterator[_At]:
    match node:
        case KernelLaunch():
            loops = (*loops, *((v.name, range(n)) for v, n in zip(node.vars, node.blocks, strict=True)))
        case Parallel() | OpStmt():
            yield _At(node, loops, branch)
            return
        case Serial() | Unroll() | Pipelined():
            loops = (*loops, (node.vars[0].name, _trips(node)))
        case Vectorized():
            loops = (*loops, (node.vars[0].name, range(node.extent)))
        case If():
            branch = True
        case _:
            pass
    for name in ("body", "then", "orelse"):
        for statement in getattr(node, name, ()):
            yield from _places(statement, loops, branch)


def _trips(node: Serial | Unroll | Pipelined) -> range:
    step = 1 if isinstance(node, Pipelined) else const_of(node.step)
    start, stop = const_of(node.start), const_of(node.stop)
    return range(1) if start is None or stop is None or not step else range(start, stop, step)


def _points(loops: Loops) -> dict[str, Any]:
    """Each variable as an array along an axis of its own, so that expressions broadcast."""
    rank = len(loops)
    return {
        name: np.asarray(values, np.int64).reshape([-1 if k == axis else 1 for k in range(rank)])
        for axis, (name, values) in enumerate(loops)
    }


def _operations(node: Stmt, where: dict[str, Any], sources: dict[str, Region]) -> float:
    shape = np.broadcast_shapes(*(v.shape for v in where.values())) if where else ()
    match node:
        case Gemm():
            m, n, k = _gemm_extents(node, where, sources)
            return 2.0 * float(np.sum(np.broadcast_to(m * n * k, shape)))
        case OpStmt():
            # So many operations for each true element that it reads, as its meaning says.
            meaning = meaning_of(type(node))
            weight = meaning.operations if meaning is not None else 0.0
            tile = next(iter(regions_read(node)), None)
            if not weight or tile is None:
                return 0.0
            source = sources.get(tile.buffer.name)
            total: Any = tile.buffer.size
            if source is not None:
                total = prod(_valid(source, where, tile.buffer.extents))
            return weight * float(np.sum(np.broadcast_to(total, shape)))
        case Parallel():
            operations = _per_element(node)
            return operations * float(
                np.sum(np.broadcast_to(_parallel_elements(node, where, sources), shape))
            )
        case _:
            return 0.0


def _gemm_extents(node: Gemm, where: dict[str, Any], sources: dict[str, Region]) -> tuple[Any, Any, Any]:
    if node.a.extent is None or node.b.extent is None:
        return 0, 0, 0
    m, n, k = node.mnk
    a, b = (
        operand if operand.buffer.scope == "global" else sources.get(operand.buffer.name)
        for operand in (node.a, node.b)
    )
    if a is not None:
        rows, columns = _valid(a, where, node.a.extent[-2:])[-2:]
        m, k = (columns, rows) if node.transpose_A else (rows, columns)
    if b is not None:
        rows, columns = _valid(b, where, node.b.extent[-2:])[-2:]
        n, k = (rows, np.minimum(k, columns)) if node.transpose_B else (columns, np.minimum(k, rows))
    return m, n, k


def _valid(region: Region, where: dict[str, Any], tile: Sequence[int]) -> list[Any]:
    """The extents of a region's part inside its buffer; a head address takes the tile's, right-aligned."""
    kept = tuple(tile)[-region.buffer.rank :]
    extent = region.extent or (1,) * (region.buffer.rank - len(kept)) + kept
    return [
        _inside(evaluate(start, where), size, limit)
        for start, size, limit in zip(region.start, extent, region.buffer.extents, strict=True)
    ]


def _inside(start: Any, size: int, limit: int) -> Any:
    """How many of `size` indices from `start` on lie in [0, limit)."""
    return np.maximum(np.minimum(start + size, limit) - np.maximum(start, 0), 0)


def _parallel_elements(node: Parallel, where: dict[str, Any], sources: dict[str, Region]) -> Any:
    """True elements of a loop: those whose global access is inside, by its first store or load.

    Without one, those that the first tile it touches has true elements for.
    """
    accesses = [access for access in walk(node) if isinstance(access, (Store, Load))]
    for access in accesses:
        if access.buffer.scope == "global":
            return _moving(node, access.index, access.buffer.extents, where, [0] * access.buffer.rank)
    for access in accesses:
        source = sources.get(access.buffer.name)
        if source is not None and source.buffer.rank >= access.buffer.rank:
            lead = source.buffer.rank - access.buffer.rank
            starts = [evaluate(start, where) for start in source.start[lead:]]
            return _moving(node, access.index, source.buffer.extents[lead:], where, starts)
    return prod(node.extents)


def _moving(
    node: Parallel, index: Sequence[Expr], limits: Sequence[int], where: dict[str, Any], starts: Sequence[Any]
) -> Any:
    """Indices of the loop for which each index, from a start on, stays below its limit."""
    names = [v.name for v in node.vars]
    elements: Any = 1
    seen: set[str] = set()
    for position, limit, start in zip(index, limits, starts, strict=True):
        moving = [v.name for v in walk(position) if isinstance(v, Var) and v.name in names]
        if len(moving) != 1 or moving[0] in seen:
            continue
        base = start + evaluate(position, {**where, moving[0]: 0})
        elements = elements * _inside(base, node.extents[names.index(moving[0])], limit)
        seen.add(moving[0])
    return elements * prod(e for e, v in zip(node.extents, names, strict=True) if v not in seen)


def _per_element(node: Parallel) -> float:
    """Floating operations of one index, index arithmetic and copies left out."""
    total = 0
    for expr in walk(node):
        if isinstance(expr, Arith) and expr.args[0].dtype.is_float:
            total += max(1, len(expr.args) - 1)
        elif isinstance(expr, Call) and expr.type.is_float and expr.word != "if_then_else":
            total += 1
    return float(total)


def _traffic(function: Function) -> int:
    reads, writes = reads_and_writes(function)
    return sum(each.bytes * ((each.name in reads) + (each.name in writes)) for each in function.arrays)
