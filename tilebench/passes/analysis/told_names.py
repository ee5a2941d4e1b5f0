"""What the names of a stage's text stand for, in words: what a layout is, where it comes from, who has it,
and what it costs, counted by the functions that chose it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...errors import LayoutError
from ...ir import AllocStmt, Function, WordStmt
from ...ir.stated_once import ValueNames, long_values
from ...ir.stmt import statements
from ...language.gemm import Gemm
from ...language.lowered.layouts import ConvertLayout
from ...language.memory import AllocFragment, AllocShared
from ...layout import Fragment, SharedLayout
from ...layout.choose import AccessPattern, price
from ...layout.words import fragment_in_words, shared_in_words
from ...machine import Machine
from ..laid_out.choose_instructions import row_of
from ..laid_out.choose_shared import patterns_of
from .conversions import register_bits
from .global_accesses import global_access
from .sites import site_of

# A register of a thread, in bits.
REGISTER = 32


def told_names(function: Function, names: ValueNames, machine: Machine) -> dict[str, str]:
    """What each name of a function's text stands for, a sentence a line."""
    uses: dict[Any, list[tuple[WordStmt, str]]] = {value: [] for value in names.names}
    for statement, field, value in long_values(function.body):
        uses[value].append((statement, field))
    products = [node for node in statements(function.body) if isinstance(node, Gemm)]
    patterns = _patterns(function, machine)
    out: dict[str, str] = {}
    for value, name in names.names.items():
        match value:
            case Fragment():
                said = [*fragment_in_words(value, machine.warp), *_of_product(uses[value], products, machine)]
            case SharedLayout():
                said = [*_shared(value, uses[value], patterns, machine)]
            case _:
                said = []
        out[name] = "\n".join([*said, *_holders(uses[value]), *_global_costs(uses[value], machine)])
    return out


def _holders(uses: Sequence[tuple[WordStmt, str]]) -> Iterator[str]:
    """Whose layout it is, with what that takes, and which statements share their elements out so."""
    buffers = [node for node, _ in uses if isinstance(node, AllocStmt)]
    if buffers:
        yield "layout of " + ", ".join(_with_registers(node) for node in buffers)
    counts: dict[str, int] = {}
    for node, field in uses:
        if not isinstance(node, AllocStmt):
            said = "the way of " if field == "through" else "mapping of "
            counts[said + "T." + node.spelling()] = counts.get(said + "T." + node.spelling(), 0) + 1
    if counts:
        yield "; ".join(said + (f", {n} times" if n > 1 else "") for said, n in counts.items())


def _with_registers(node: AllocStmt) -> str:
    if not isinstance(node, AllocFragment) or node.layout is None:
        return node.buffer.name
    count = -(-node.layout.values * register_bits(node.buffer.dtype) // REGISTER)
    return f"{node.buffer.name} ({count} register{'' if count == 1 else 's'} a thread)"


def _of_product(
    uses: Sequence[tuple[WordStmt, str]], products: Sequence[Gemm], machine: Machine
) -> Iterator[str]:
    """That an instruction wants it so, where a product has it for its result."""
    names = {node.buffer.name for node, _ in uses if isinstance(node, AllocStmt)}
    for product in products:
        if product.c.buffer.name in names and product.by is not None:
            row = row_of(product, machine)
            shape = " x ".join(str(size) for size in row.shape)
            whole = f", {shape} at a time" if max(row.shape) > 1 else ""
            yield f"as {row.name} leaves the result of T.gemm{whole}"
            return


def _patterns(function: Function, machine: Machine) -> Mapping[str, Sequence[AccessPattern]]:
    """How warps access the tiles in shared memory; nothing where the stage does not say it yet."""
    try:
        return patterns_of(function, machine)
    except LayoutError:
        return {}


def _shared(
    layout: SharedLayout,
    uses: Sequence[tuple[WordStmt, str]],
    patterns: Mapping[str, Sequence[AccessPattern]],
    machine: Machine,
) -> Iterator[str]:
    """Where elements lie, and by how much bank conflicts are fewer than in plain rows."""
    tiles = [node for node, _ in uses if isinstance(node, AllocShared)]
    turns = [node for node, _ in uses if isinstance(node, ConvertLayout)]
    bits = tiles[0].buffer.dtype.bits if tiles else register_bits(turns[0].dst.buffer.dtype) if turns else 8
    yield from shared_in_words(layout, bits)
    banks = machine.shared
    for tile in tiles:
        found, dtype = patterns.get(tile.buffer.name, ()), tile.buffer.dtype
        if found:
            rows = SharedLayout.rows(tile.buffer.extents, dtype.per_byte)
            own, plain = (price(x, bits, found, banks.banks, banks.bank_bytes) for x in (layout, rows))
            passes = f"{_ratio(own.wavefronts, own.ideal)} passes over the banks for each that is needed"
            in_rows = _ratio(plain.wavefronts, plain.ideal)
            yield f"{tile.buffer.name}: {passes}, {in_rows} in plain rows"


def _ratio(found: float, least: float) -> str:
    return f"{found / least if least else 1.0:.2f}"


def _global_costs(uses: Sequence[tuple[WordStmt, str]], machine: Machine) -> Iterator[str]:
    """How statements that it maps access global memory."""
    seen: set[str] = set()
    for node, field in uses:
        try:
            site = site_of(node) if field == "map" else None
        except LayoutError:
            site = None
        for access in site.accesses if site is not None else ():
            if site is None or access.buffer.scope != "global":
                continue
            found = global_access(site, access, machine)
            if found is not None and found.buffer not in seen:
                seen.add(found.buffer)
                done = "stores to" if found.written else "reads"
                yield (
                    f"{done} {found.buffer} {found.width} bytes at a time, "
                    f"{found.efficiency:.0%} of what memory moves is asked for"
                )


__all__ = ["told_names"]
