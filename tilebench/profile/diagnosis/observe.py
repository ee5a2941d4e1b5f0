"""What stands in the laid-out stage, as figures: how memory is accessed, by what a product is carried out.

Everything is counted on the addresses that the lanes of a warp form, with the same functions that chose the
layouts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ...ir import Function, Stmt, Var, children, const_of, walk
from ...ir.arith import evaluate
from ...language.copy import Copy
from ...language.gemm import Gemm
from ...language.lowered.decisions import Instr
from ...language.memory import AllocFragment, AllocShared
from ...language.structure import Parallel, Pipelined, Serial
from ...layout import Fragment, SharedLayout
from ...layout.analysis import coalescing
from ...layout.choose import AccessPattern, price
from ...machine import Machine
from ...passes.analysis.sites import Site, SiteAccess, sites_of
from ...passes.choose_shared import patterns_of

# Instructions of a statement that are looked at; they stand for all that it issues.
_LOOKED_AT = 4


@dataclass(frozen=True)
class GlobalAccess:
    """How one statement accesses one array in global memory.

    `element` and `width` are bytes of an element and of one access of a thread, `possible` the widest that
    its dtype and the machine have. `efficiency` is the share of moved bytes that is asked for. `in_flight` is
    what a thread asks for, in bytes, before it needs the first of them, `total` what a block does.
    """

    buffer: str
    written: bool
    element: int
    width: int
    possible: int
    efficiency: float
    in_flight: int
    total: int
    line: int


@dataclass(frozen=True)
class Product:
    """One `T.gemm`: the extents of its tile, dtypes of a, b, c, and the instruction that carries it out."""

    mnk: tuple[int, int, int]
    dtypes: tuple[str, str, str]
    instruction: str
    threads: int
    line: int


@dataclass(frozen=True)
class Spread:
    """How a fragment lies: values a thread holds, and how many threads hold each element."""

    name: str
    values: int
    copies: int
    elements: int
    line: int


@dataclass(frozen=True)
class BankedTile:
    """A tile in shared memory: passes over the banks for each ideal one, and whether it is swizzled."""

    name: str
    swizzled: bool
    wavefronts: float
    line: int


@dataclass(frozen=True)
class Observed:
    """All of it, in the order of the text."""

    accesses: tuple[GlobalAccess, ...] = ()
    products: tuple[Product, ...] = ()
    fragments: tuple[Spread, ...] = ()
    shared: tuple[BankedTile, ...] = ()
    threads: int = 0


def observe(function: Function | None, machine: Machine, threads: int) -> Observed:
    """The figures of a function in the stage `laid_out`; nothing for a road that has no such stage."""
    if function is None:
        return Observed(threads=threads)
    times = _times(function)
    accesses = [
        found
        for site in sites_of(function)
        for access in site.accesses
        if access.buffer.scope == "global"
        and (found := _access(site, access, machine, times.get(id(site.node), 1))) is not None
    ]
    nodes = list(walk(function))
    products = tuple(_product(node, threads) for node in nodes if isinstance(node, Gemm))
    spreads = tuple(
        Spread(n.buffer.name, n.layout.values, n.layout.replicated_threads, n.layout.elements, _line(n))
        for n in nodes
        if isinstance(n, AllocFragment) and n.layout is not None
    )
    patterns = patterns_of(function, machine)
    tiles = tuple(
        _tile(n, n.layout, patterns.get(n.buffer.name, []), machine)
        for n in nodes
        if isinstance(n, AllocShared) and n.layout is not None
    )
    return Observed(tuple(accesses), products, spreads, tiles, threads)


def _tile(
    node: AllocShared, layout: SharedLayout, patterns: list[AccessPattern], machine: Machine
) -> BankedTile:
    """How the warps' accesses to a tile fall on the banks under its layout."""
    shared = machine.shared
    priced = price(layout, node.buffer.dtype.bits, patterns, shared.banks, shared.bank_bytes)
    ways = priced.wavefronts / priced.ideal if priced.ideal else 1.0
    return BankedTile(node.buffer.name, layout.swizzle is not None, ways, _line(node))


def _line(node: Any) -> int:
    return node.place.line if node.place is not None else 0


def _product(node: Gemm, threads: int) -> Product:
    dtypes = tuple(region.buffer.dtype.name for region in (node.a, node.b, node.c))
    by = node.by.name if node.by is not None else ""
    return Product(node.mnk, (dtypes[0], dtypes[1], dtypes[2]), by, threads, _line(node))


def _mapping(node: Any) -> tuple[Fragment | None, int | None]:
    """The mapping of a statement, and the elements of one access where the stage says it."""
    if isinstance(node, Parallel):
        return node.map, node.vector
    by: Instr | None = getattr(node, "by", None)
    width = by.bytes if isinstance(node, Copy) and by is not None and by.bytes else None
    return getattr(node, "map", None), -width if width else None


def _times(function: Function) -> dict[int, int]:
    """How often a block does each statement, by identity; a loop of unknown length counts once."""
    found: dict[int, int] = {}

    def visit(statements: Sequence[Any], times: int) -> None:
        for statement in statements:
            found[id(statement)] = times
            inner = times
            if isinstance(statement, (Serial, Pipelined)):
                start, stop = const_of(statement.start), const_of(statement.stop)
                inner = times * max(1, stop - start) if start is not None and stop is not None else times
            visit([child for child in children(statement) if isinstance(child, Stmt)], inner)

    visit(function.body, 1)
    return found


def _access(site: Site, access: SiteAccess, machine: Machine, times: int) -> GlobalAccess | None:
    box, width = _mapping(site.node)
    bits = access.buffer.dtype.bits
    strides = _strides(access)
    if box is None or strides is None or bits < 8:
        return None
    size = bits // 8
    if width is not None and width < 0:
        elements = max(1, -width // size)
    else:
        elements = max(1, width or 1)
    # An index that does not follow the innermost digit of the mapping cannot be one access.
    elements = min(elements, box.contiguous_values(len(box.extents) - 1))
    addresses = _addresses(site, access, box, strides, elements, machine.warp) * size
    found = coalescing(addresses, elements * size, machine.transaction_bytes)
    possible = min(max(machine.vector_bytes), size * _run(site, access, strides))
    return GlobalAccess(
        access.buffer.name, access.written, size, elements * size, possible, found.efficiency,
        box.values * size, times * site.elements * size, _line(site.node),
    )  # fmt: skip


def _strides(access: SiteAccess) -> tuple[int, ...] | None:
    """The strides of an array in elements; None where they are known only at a call."""
    extents = [extent for extent in access.buffer.shape if isinstance(extent, int)]
    if len(extents) != access.buffer.rank:
        return None
    return tuple(prod(extents[k + 1 :]) for k in range(len(extents)))


def _run(site: Site, access: SiteAccess, strides: Sequence[int]) -> int:
    """Elements that lie beside each other along the site's last dimension, as far as a row goes."""
    last = site.vars[-1] if site.vars else ""
    moving = [k for k, index in enumerate(access.index) if any(v.name == last for v in _variables(index))]
    if len(moving) != 1 or strides[moving[0]] != 1:
        return 1
    return site.extents[-1]


def _variables(expr: Any) -> list[Var]:
    return [node for node in walk(expr) if isinstance(node, Var)]


def _addresses(
    site: Site, access: SiteAccess, box: Fragment, strides: Sequence[int], elements: int, warp: int
) -> Any:
    """Element numbers (instructions, lanes) of the first accesses; what is no variable of the box is 0."""
    lanes = np.arange(min(warp, box.threads))
    firsts = np.arange(0, box.values, elements)[:_LOOKED_AT]
    coordinates = box.coordinates(lanes[None, :], firsts[:, None])
    where: dict[str, Any] = dict(zip(site.vars, coordinates, strict=True))
    total = np.zeros((len(firsts), len(lanes)), np.int64)
    for index, stride in zip(access.index, strides, strict=True):
        # What is gathered by data counts as if all were the first element.
        total = total + np.broadcast_to(evaluate(index, where), total.shape) * stride
    return total
