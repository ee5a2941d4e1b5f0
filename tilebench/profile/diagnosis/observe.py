"""What stands in the laid-out stage, as figures: how memory is accessed, by what a product is carried out.

Everything is counted on the addresses that the lanes of a warp form, with the same functions that chose the
layouts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...ir import Function, Stmt, children, const_of, walk
from ...language.gemm import Gemm
from ...language.memory import AllocFragment, AllocShared
from ...language.structure import Pipelined, Serial
from ...layout import SharedLayout
from ...layout.choose import AccessPattern, price
from ...machine import Machine
from ...passes.analysis.global_accesses import GlobalAccess, global_access
from ...passes.analysis.sites import sites_of
from ...passes.laid_out.choose_shared import patterns_of


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
        and (found := global_access(site, access, machine, times.get(id(site.node), 1))) is not None
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
