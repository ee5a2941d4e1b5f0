"""The tab of layouts: who holds what, with and without a swizzle, and where a fragment changes its layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..style import bytes_text, number
from ..table import Cell, Value
from .block_data import Block, ChoiceBlock, Drawing, OptionBlocks, TileDrawing
from .blocks import table

if TYPE_CHECKING:
    from ...machine import Machine
    from ...pictures.collect import AccessPicture, KernelPictures
    from ...pictures.layout_changes import LayoutChange, MapChoice
    from ...pictures.tile_layouts import TileLayout

_KINDS = {"fragment": "fragment", "shared": "shared memory", "instruction": "operand", "mapping": "mapping"}


def layout_blocks(pictures: KernelPictures) -> tuple[Block, ...]:
    """A choice of tiles, each with its grid and its modes; then the conversions with their prices."""
    if pictures.fault:
        return (Block(f"There are no pictures: {pictures.fault}.", "bad"),)
    if not pictures.layouts:
        return ()
    names = [_name(layout) for layout in pictures.layouts]
    options = tuple(
        # Two tiles of one name (loops of a line) are told apart by their number.
        OptionBlocks(f"{name} ({names[:k].count(name) + 1})" if names.count(name) > 1 else name,
                     _tile(layout, pictures))
        for k, (name, layout) in enumerate(zip(names, pictures.layouts, strict=True))
    )  # fmt: skip
    tiles = Block(choice=ChoiceBlock("layout", "tile", options))
    return (tiles, *_changes(pictures.conversions), *_ways(pictures.ways))


def _name(layout: TileLayout) -> str:
    line = f", line {layout.line}" if layout.line else ""
    return f"{layout.name} \N{EN DASH} {_KINDS[layout.kind]} {_size(layout)}{line}"


def _size(layout: TileLayout) -> str:
    extents = "x".join(str(extent) for extent in layout.extents) or "1"
    return f"{extents} {layout.dtype}".rstrip()


def _tile(layout: TileLayout, pictures: KernelPictures) -> tuple[Block, ...]:
    machine = pictures.machine
    drawing = Block(drawing=Drawing(tile=drawing_of(layout, machine)))
    said = Block(" ".join(_said(layout)))
    if layout.kind != "shared":
        return said, drawing, _modes(layout)
    touched = [one for one in pictures.accesses if one.access.buffer == layout.name]
    return (said, drawing, *_with_and_without(touched), _places(layout))


def drawing_of(layout: TileLayout, machine: Machine) -> TileDrawing:
    """A layout as the front end draws it."""
    level = machine.shared
    return TileDrawing(
        layout.name, layout.extents, machine.warp, layout.thread, layout.value, layout.modes, layout.swizzle,
        layout.bits, level.banks, level.bank_bytes, "step" if layout.kind == "mapping" else "register",
    )  # fmt: skip


def _said(layout: TileLayout) -> list[str]:
    if layout.kind == "shared":
        return _said_of_shared(layout)
    fragment = layout.fragment
    what = "does" if layout.kind == "mapping" else "holds"
    each = f"{fragment.threads} threads; each {what} {fragment.values} element{'s' * (fragment.values != 1)}."
    out = [each if layout.kind != "instruction" else f"As the instruction takes it from a warp: {each}"]
    if layout.copies > 1:
        who = "does" if layout.kind == "mapping" else "writes"
        out.append(f"Each element is held by {layout.copies} threads; the first of them {who} it.")
    if fragment.has_ghosts:
        beyond = "x".join(str(extent) for extent in fragment.padded)
        out.append(f"The modes reach {beyond}: what lies past the tile is nobody's.")
    return out


def _said_of_shared(layout: TileLayout) -> list[str]:
    versions = f", {layout.versions} of them in a ring" if layout.versions > 1 else ""
    out = [f"A tile of {bytes_text(_bytes(layout))}{versions}."]
    if layout.swizzle:
        bits, base, shift = layout.swizzle
        together = bytes_text((1 << base) * layout.bits / 8)
        apart = bytes_text((1 << (base + shift)) * layout.bits / 8)
        changing = bytes_text((1 << (base + bits)) * layout.bits / 8)
        out.append(
            f"Swizzle({bits}, {base}, {shift}): {together} stay together and change places within "
            f"{changing}, by XOR with the number of the {apart} that they lie in."
        )
    else:
        out.append("No swizzle.")
    return out


def _bytes(layout: TileLayout) -> float:
    reach = 1 + sum((extent - 1) * step for modes in layout.modes for extent, step in modes)
    return reach * layout.bits / 8


def _with_and_without(touched: Sequence[AccessPicture]) -> list[Block]:
    """Passes of the accesses to a tile as it is, and as it would be otherwise."""
    if not touched:
        return []
    other = next((one.other.words for one in touched if one.other is not None), "")
    heads = ["line", "access", "passes a block", *([other] if other else []), "fewest"]
    rows: list[list[Value]] = []
    for one in touched:
        access = one.access
        row: list[Value] = [str(access.line), access_words(one), cost_cell(access.passes, access.least)]
        if other:
            row.append(cost_cell(one.other.passes, one.other.least) if one.other is not None else "")
        rows.append([*row, str(access.least)])
    numeric = tuple(range(2, len(heads)))
    return [table(heads, rows, caption="Passes over the banks, with each access", numeric=numeric)]


def access_words(one: AccessPicture) -> str:
    """`written by cp_async, 16 B a thread`"""
    access = one.access
    how = "written" if access.written else "read"
    return f"{how} by {access.word}, {access.width} B a thread"


def cost_cell(cost: int, least: int) -> Value:
    """A cost, coloured where it is more than there need be."""
    tone = cost_tone(cost, least)
    return Cell(f"{cost} (x{number(cost / least, 2)})", tone) if tone else str(cost)


def cost_tone(cost: int, least: int) -> str:
    """What colours a cost: a tenth more than there need be is worth a look, half more is bad."""
    ratio = cost / least if least else 1.0
    return "bad" if ratio >= 1.5 else "warn" if ratio >= 1.1 else ""


def _modes(layout: TileLayout) -> Block:
    """The digits of thread and register numbers: all of the layout, in a few rows."""
    unit = "step" if layout.kind == "mapping" else "register"
    rows: list[list[Value]] = []
    for what, modes in (("thread", layout.thread), (unit, layout.value)):
        divisor = 1
        for count, dim, step in modes:
            digit = f"{what} // {divisor} % {count}" if divisor > 1 else f"{what} % {count}"
            moves = "a copy of the same" if dim < 0 else f"{_axis(dim, len(layout.extents))}, by {step}"
            rows.append([digit, str(count), moves])
            divisor *= count
    return table(("digit", "count", "moves along"), rows, caption="The whole layout", numeric=(1,), mono=(0,))


def _places(layout: TileLayout) -> Block:
    rows: list[list[Value]] = []
    for dim, modes in enumerate(layout.modes):
        divisor = 1
        for extent, step in modes:
            name = _axis(dim, len(layout.modes)).removesuffix("s")
            digit = f"{name} // {divisor} % {extent}" if divisor > 1 else f"{name} % {extent}"
            rows.append([digit, str(extent), str(step)])
            divisor *= extent
    caption = "The whole layout, before the swizzle" if layout.swizzle else "The whole layout"
    return table(("digit", "count", "elements apart"), rows, caption=caption, numeric=(1, 2), mono=(0,))


def _axis(dim: int, rank: int) -> str:
    """What a dimension is called where the last two are drawn as rows and columns."""
    return {rank - 1: "columns", rank - 2: "rows"}.get(dim, f"dimension {dim}") if rank > 1 else "elements"


_WAYS = {
    "as_it_lies": "as fragments lie", "exchanged": "lanes exchange vectors",
    "rows": "whole rows, by shared memory",
}  # fmt: skip


def _ways(ways: Sequence[MapChoice]) -> list[Block]:
    if not ways:
        return []
    rows: list[list[Value]] = []
    for way in ways:
        least = min(cycles for _, cycles in way.cycles)
        told = [f"{_WAYS.get(name, name)} {number(cycles)}" for name, cycles in way.cycles]
        rows.append([str(way.line), way.chosen, Cell("; ".join(told), title=f"the least: {number(least)}")])
    heads = ("line", "what was chosen", "cycles of a warp, with the conversions of each way")
    return [table(heads, rows, caption="How global memory is reached")]


def _changes(changes: Sequence[LayoutChange]) -> list[Block]:
    if not changes:
        return []
    names = {"rename": "other registers", "shfl": "shuffles in a warp", "shared": "shared memory"}
    rows: list[list[Value]] = []
    for change in changes:
        taken = next((way for way in change.ways if way.name == change.way), None)
        others = "; ".join(
            f"{names.get(way.name, way.name)} {number(way.cycles)} ({way.words})"
            for way in change.ways
            if way is not taken
        )
        rows.append([
            str(change.line), f"{change.source} to {change.target}", names.get(change.way, change.way),
            change.price, number(taken.cycles) if taken is not None else "", others,
        ])  # fmt: skip
    heads = (
        "line",
        "conversion",
        "by",
        "a thread's instructions",
        "cycles of a warp",
        "other ways, in cycles",
    )
    return [table(heads, rows, caption="Where a fragment changes its layout", numeric=(4,), mono=(1,))]
