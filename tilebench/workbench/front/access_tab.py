"""The tab of accesses: banks, sectors and width of each access of a line to memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..style import number
from ..table import Cell, Value
from .block_data import Block, ChoiceBlock, Drawing, LanesDrawing, OptionBlocks
from .blocks import table
from .layout_tab import access_words, cost_tone

if TYPE_CHECKING:
    from ...machine import Machine
    from ...pictures.collect import AccessPicture, KernelPictures

HEADS = ("line", "access", "instructions", "cost / needed")


def access_blocks(pictures: KernelPictures) -> tuple[Block, ...]:
    """Every access in a table, and one of them lane by lane."""
    if not pictures.accesses:
        return ()
    rows = [_row(one) for one in pictures.accesses]
    caption = "Of the first block: passes over the banks of shared memory, or sectors of global memory"
    overview = table(HEADS, rows, caption=caption, numeric=(2, 3))
    several = len({one.launch for one in pictures.accesses}) > 1
    shown = [one for one in pictures.accesses if one.access.lanes]
    # What costs most for what it needs is what one looks for, then what a swizzle saves.
    shown.sort(key=_interest, reverse=True)
    options = tuple(OptionBlocks(_name(one, several), _one(one, pictures.machine)) for one in shown)
    if not options:
        return (overview,)
    return overview, Block(choice=ChoiceBlock("access", "access", options))


def _interest(one: AccessPicture) -> tuple[float, float]:
    ways = one.access.ways if one.access.ways >= 1.1 else 1.0
    return ways, one.other.passes / one.other.least if one.other is not None and one.other.least else 0.0


def _row(one: AccessPicture) -> list[Value]:
    access = one.access
    about = "about " if access.about else ""
    said = f"{access.buffer} {access_words(one)}"
    if one.narrow:
        said = Cell(f"{said}: {one.narrow}", title=f"not wider, since {one.narrow}")
    if not access.lanes:
        return [str(access.line), said, "", "up to data"]
    cost = Cell(f"{access.passes} / {access.least}", cost_tone(access.passes, access.least))
    return [str(access.line), said, f"{about}{access.instructions}", cost]


def _name(one: AccessPicture, several: bool) -> str:
    access = one.access
    launch = f"launch {one.launch}, " if several else ""
    ways = f", x{number(access.ways, 2)}" if access.ways >= 1.1 else ""
    return f"{launch}line {access.line}: {access.buffer} {access_words(one)}{ways}"


def _one(one: AccessPicture, machine: Machine) -> tuple[Block, ...]:
    access = one.access
    shared = access.scope == "shared"
    drawings = [_lanes("as it is", access.lanes, access.width, shared, machine)]
    if one.other is not None and one.other.lanes:
        drawings.append(_lanes(one.other.words, one.other.lanes, one.other.width, shared, machine))
    blocks = [Block(_said(one)), Block(drawing=Drawing(lanes=tuple(drawings)))]
    if access.by_data:
        blocks.append(Block("Data decide who takes part: counted as if all lanes did.", "warn"))
    if access.about:
        blocks.append(Block("Of a long loop some turns stand for the others.", "quiet"))
    return tuple(blocks)


def _said(one: AccessPicture) -> str:
    access = one.access
    if access.scope == "shared":
        way = access.worst / access.worst_least if access.worst_least else 1.0
        said = f"The instruction that takes most passes: {access.worst}, {access.worst_least} of them needed"
        said += f" ({number(way, 2)}-way conflict)." if way > 1 else ": no conflict."
        if one.other is not None:
            said += f" {one.other.words.capitalize()}: {one.other.worst}."
    else:
        said = (
            f"The instruction that moves most: {access.worst} sectors, where {access.worst_least} hold what "
        )
        said += "its lanes ask for."
    return f"{said} Not wider, since {one.narrow}." if one.narrow else said


def _lanes(
    title: str, lanes: tuple[int | None, ...], width: int, shared: bool, machine: Machine
) -> LanesDrawing:
    firsts = tuple(-1 if lane is None else lane for lane in lanes)
    level = machine.shared
    if shared:
        return LanesDrawing(title, firsts, width, level.banks, level.bank_bytes)
    return LanesDrawing(title, firsts, width, sector=machine.transaction_bytes)
