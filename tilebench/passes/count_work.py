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
from ..language.meanings.tiles import MEANINGS
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
    sources = _sources([at.node for at in places if isinstance(at.node, Copy)])
    flops = 0.0
    exact = True
    for at in places:
        points = prod(len(values) for _, values in at.loops)
        counted = points <= MOST_POINTS
        # A branch counts as taken each time, so what stands in one is an upper bound.
        exact &= counted and not at.branch
        where = _points(at.loops) if counted else {}
        flops += _operations(at.node, where, sources) * (1 if counted else points)
    return Work(flops, float(_traffic(function)), exact)


def _sources(copies: Sequence[Copy]) -> dict[str, Region]:
    """The global region whose elements a tile holds: where it comes from, or else where it goes."""
    out: dict[str, Region] = {}
    for each in copies:
        name = each.dst.buffer.name
        if each.src.buffer.scope == "global":
            out.setdefault(name, each.src)
        elif each.src.buffer.name in out and each.src.is_whole and each.dst.is_whole:
            out.setdefault(name, out[each.src.buffer.name])
    for each in reversed(copies):
        if each.dst.buffer.scope == "global" and each.src.is_whole:
            out.setdefault(each.src.buffer.name, each.dst)
    return out


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
        for each in getattr(node, name, ()):
            yield from _places(each, loops, branch)


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
            each = MEANINGS[type(node)].operations if type(node) in MEANINGS else 0.0
            tile = next(iter(regions_read(node)), None)
            if not each or tile is None:
                return 0.0
            source = sources.get(tile.buffer.name)
            total: Any = tile.buffer.size
            if source is not None:
                total = prod(_valid(source, where, tile.buffer.extents))
            return each * float(np.sum(np.broadcast_to(total, shape)))
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
        each if each.buffer.scope == "global" else sources.get(each.buffer.name) for each in (node.a, node.b)
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
    accesses = [each for each in walk(node) if isinstance(each, (Store, Load))]
    for each in accesses:
        if each.buffer.scope == "global":
            return _moving(node, each.index, each.buffer.extents, where, [0] * each.buffer.rank)
    for each in accesses:
        source = sources.get(each.buffer.name)
        if source is not None and source.buffer.rank >= each.buffer.rank:
            lead = source.buffer.rank - each.buffer.rank
            starts = [evaluate(start, where) for start in source.start[lead:]]
            return _moving(node, each.index, source.buffer.extents[lead:], where, starts)
    return prod(node.extents)


def _moving(
    node: Parallel, index: Sequence[Expr], limits: Sequence[int], where: dict[str, Any], starts: Sequence[Any]
) -> Any:
    """Indices of the loop for which each index, from a start on, stays below its limit."""
    names = [v.name for v in node.vars]
    found: Any = 1
    seen: set[str] = set()
    for each, limit, start in zip(index, limits, starts, strict=True):
        moving = [v.name for v in walk(each) if isinstance(v, Var) and v.name in names]
        if len(moving) != 1 or moving[0] in seen:
            continue
        base = start + evaluate(each, {**where, moving[0]: 0})
        found = found * _inside(base, node.extents[names.index(moving[0])], limit)
        seen.add(moving[0])
    return found * prod(e for e, v in zip(node.extents, names, strict=True) if v not in seen)


def _per_element(node: Parallel) -> float:
    """Floating operations of one index, index arithmetic and copies left out."""
    total = 0
    for each in walk(node):
        if isinstance(each, Arith) and each.args[0].dtype.is_float:
            total += max(1, len(each.args) - 1)
        elif isinstance(each, Call) and each.type.is_float and each.word != "if_then_else":
            total += 1
    return float(total)


def _traffic(function: Function) -> int:
    reads, writes = reads_and_writes(function)
    return sum(each.bytes * ((each.name in reads) + (each.name in writes)) for each in function.arrays)
