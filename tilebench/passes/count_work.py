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
    Const,
    Expr,
    Function,
    Load,
    Region,
    Stmt,
    Store,
    Var,
    const_of,
    walk,
)
from ..language.copy import Copy
from ..language.gemm import Gemm
from ..language.reduce import Reduce
from ..language.structure import KernelLaunch, Parallel, Pipelined, Serial, Unroll, Vectorized

# More index points than this are not enumerated; edges then count as whole tiles.
MOST_POINTS = 2_000_000


@dataclass(frozen=True)
class Work:
    """`flops`: operations; `bytes`: compulsory global traffic; `exact` whether edges were cut off."""

    flops: float
    bytes: float
    exact: bool = True


@dataclass(frozen=True)
class _At:
    """A statement and the loops around it: variables with their values."""

    node: Stmt
    loops: tuple[tuple[str, tuple[int, ...]], ...]


def count_work(function: Function) -> Work:
    """The work of a function in the `tile` stage or one right after it."""
    places = list(_places(function, ()))
    sources = {at.node.dst.buffer.name: at.node.src for at in places if isinstance(at.node, Copy)}
    flops = 0.0
    exact = True
    for at in places:
        points = prod(len(values) for _, values in at.loops)
        counted = points <= MOST_POINTS
        exact &= counted
        where = _points(at.loops) if counted else {}
        flops += _operations(at.node, where, sources) * (1 if counted else points)
    return Work(flops, float(_traffic(function)), exact)


def _places(node: Any, loops: tuple[tuple[str, tuple[int, ...]], ...]) -> Iterator[_At]:
    match node:
        case KernelLaunch():
            loops = (*loops, *((v.name, tuple(range(n))) for v, n in zip(node.vars, node.grid, strict=True)))
        case Parallel() | Copy() | Gemm() | Reduce():
            yield _At(node, loops)
            return
        case Serial() | Unroll() | Pipelined():
            loops = (*loops, (node.vars[0].name, _trips(node)))
        case Vectorized():
            loops = (*loops, (node.vars[0].name, tuple(range(node.extent))))
        case _:
            pass
    for name in ("body", "then"):
        for each in getattr(node, name, ()):
            yield from _places(each, loops)


def _trips(node: Serial | Unroll | Pipelined) -> tuple[int, ...]:
    step = 1 if isinstance(node, Pipelined) else const_of(node.step)
    start, stop = const_of(node.start), const_of(node.stop)
    return (0,) if start is None or stop is None or not step else tuple(range(start, stop, step)) or ()


def _points(loops: Sequence[tuple[str, tuple[int, ...]]]) -> dict[str, Any]:
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
        case Reduce():
            source = sources.get(node.src.buffer.name)
            total = _valid_elements(source, where) if source is not None else node.src.buffer.size
            return float(np.sum(np.broadcast_to(total, shape)))
        case Parallel():
            operations = _per_element(node)
            return operations * float(np.sum(np.broadcast_to(_parallel_elements(node, where), shape)))
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
    extent = region.extent or (1,) * (region.buffer.rank - len(tile)) + tuple(tile)
    out: list[Any] = []
    for start, size, limit in zip(region.start, extent, region.buffer.shape, strict=True):
        out.append(np.clip(limit - _value(start, where), 0, size) if where else size)
    return out


def _valid_elements(region: Region, where: dict[str, Any]) -> Any:
    if region.buffer.scope != "global" or region.extent is None:
        return prod(region.extent or (0,))
    total: Any = 1
    for each in _valid(region, where, region.extent):
        total = total * each
    return total


def _parallel_elements(node: Parallel, where: dict[str, Any]) -> Any:
    """True elements of a loop: those whose global access is inside, by its first store or load."""
    for each in walk(node):
        if isinstance(each, (Store, Load)) and each.buffer.scope == "global":
            names = [v.name for v in node.vars]
            found: Any = 1
            seen: set[str] = set()
            for index, limit in zip(each.index, each.buffer.shape, strict=True):
                moving = [v.name for v in walk(index) if isinstance(v, Var) and v.name in names]
                if len(moving) != 1:
                    continue
                base = _value(index, {**where, moving[0]: 0})
                found = found * np.clip(limit - base, 0, node.extents[names.index(moving[0])])
                seen.add(moving[0])
            rest = prod(e for e, v in zip(node.extents, names, strict=True) if v not in seen)
            return found * rest
    return prod(node.extents)


def _per_element(node: Parallel) -> float:
    """Floating operations of one index, index arithmetic and copies left out."""
    total = 0
    for each in walk(node):
        if isinstance(each, Arith) and each.args[0].dtype.is_float:
            total += max(1, len(each.args) - 1)
        elif isinstance(each, Call) and each.type.is_float and each.word != "if_then_else":
            total += 1
    return float(total)


def _value(expr: Expr, where: dict[str, Any]) -> Any:
    match expr:
        case Const():
            return expr.value
        case Var():
            return where.get(expr.name, 0)
        case Arith(op="+"):
            return sum((_value(each, where) for each in expr.args[1:]), _value(expr.args[0], where))
        case Arith(op="*"):
            out = _value(expr.args[0], where)
            for each in expr.args[1:]:
                out = out * _value(each, where)
            return out
        case Arith(op="-" | "//" | "%") if len(expr.args) == 2:
            a, b = _value(expr.args[0], where), _value(expr.args[1], where)
            return a - b if expr.op == "-" else (a // b if expr.op == "//" else a % b)
        case _:
            return 0


def reads_and_writes(function: Function) -> tuple[set[str], set[str]]:
    """The names of global buffers that are read, and that are written, anywhere."""
    reads: set[str] = set()
    writes: set[str] = set()

    for node in walk(function):
        if isinstance(node, (Load, Store)):
            into = reads if isinstance(node, Load) else writes
            if node.buffer.scope == "global":
                into.add(node.buffer.name)
            continue
        # Whatever moves tiles or vectors names its sides so, in every stage.
        for field, into in (("src", reads), ("a", reads), ("b", reads), ("dst", writes)):
            region = getattr(node, field, None)
            if isinstance(region, Region) and region.buffer.scope == "global":
                into.add(region.buffer.name)
    return reads, writes


def _traffic(function: Function) -> int:
    reads, writes = reads_and_writes(function)
    return sum(each.bytes * ((each.name in reads) + (each.name in writes)) for each in function.params)
