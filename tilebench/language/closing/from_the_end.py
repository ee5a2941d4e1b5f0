"""Indices below zero: as in Python they count from the end, where every value that they take is below zero.

`A[-1 - i]` in a loop over i is the array backwards. What the ranges of its variables say decides, not the
conditions around it: an index that is below zero at times, `A[i - 1]`, is outside of the array then, where
reads give zero and stores are dropped; so is a box that starts below zero and reaches further.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir import Arith, Const, Expr, Function, Let, Load, Region, Store, const_of, lift, walk
from ...ir.facts import Facts
from ...ir.rewrite import rewrite
from ...ir.stmt import statements
from ..copy import Copy
from ..scopes import entered, entry_facts

Extents = Sequence[int | Expr]


def count_from_the_end(function: Function) -> Function:
    """The function with such indices written as what they mean: `A[7 - i]` of 8 elements."""
    if not any(_below_zero(node) for node in walk(function)):
        return function
    facts = entry_facts(function)
    for statement in statements(function.body):
        facts = entered(statement, facts)
        if isinstance(statement, Let):
            facts = facts.with_let(statement.var, statement.value)
    return rewrite(function, lambda node: _counted(node, facts))


def _below_zero(node: object) -> bool:
    """Whether a node can bring an index below zero: nothing else is looked at in most kernels."""
    if isinstance(node, Arith):
        return node.op in ("-", "~") and node.dtype.is_integer
    return isinstance(node, Const) and node.type.is_integer and node.value < 0


def _counted(node: Any, facts: Facts) -> Any:
    match node:
        case Load() | Store():
            index = _from_the_end(node.index, (1,) * len(node.index), node.buffer.shape, facts)
            return node if index == node.index else node.but(index=index)
        case Region(extent=tuple()):
            return _region(node, node.extent or (), facts)
        case Copy():
            src, dst = node.src, node.dst
            new = {
                "src": src if src.extent else _region(src, dst.extent or (), facts),
                "dst": dst if dst.extent else _region(dst, src.extent or (), facts),
            }
            return node if new["src"] is src and new["dst"] is dst else node.but(**new)
        case _:
            return node


def _region(region: Region, extent: Sequence[int], facts: Facts) -> Region:
    """A box; of a head address the extents of the other side, whose last ones are its own."""
    rank = region.buffer.rank
    box = ((1,) * rank + tuple(extent))[-rank:]
    start = _from_the_end(region.start, box, region.buffer.shape, facts)
    return region if start == region.start else region.but(start=start)


def _from_the_end(
    start: tuple[Expr, ...], box: Sequence[int], shape: Extents, facts: Facts
) -> tuple[Expr, ...]:
    return tuple(
        _shifted(first, size) if facts.bounds(first)[1] + extent <= 0 else first
        for first, extent, size in zip(start, box, shape, strict=True)
    )


def _shifted(index: Expr, size: int | Expr) -> Expr:
    first = const_of(index.args[0]) if isinstance(index, Arith) and len(index.args) == 2 else None
    if isinstance(index, Arith) and index.op == "-" and first is not None and isinstance(size, int):
        return index.but(args=(Const(first + size), index.args[1]))
    return index + lift(size)
