"""Where a result is wrong, as blocks of a tab: its pattern in words, how much of which kind, and the map."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..check_view import pattern_sentences
from .block_data import Block, CellData, ErrorMapData, ErrorPartData, TableData

if TYPE_CHECKING:
    from ...reference.check import OutputReport
    from ...reference.error_map import ErrorMap

# Elements of a map that one state carries, beside those that stand for many.
MOST_CELLS = 128 * 128


def map_blocks(output: OutputReport) -> list[Block]:
    """Nothing for a result that is right everywhere."""
    found = output.map
    if found is None:
        return []
    words = [Block(sentence, "warn") for sentence in pattern_sentences(output)]
    return [*words, Block(table=_kinds(output)), Block(errors=map_data(output.name, found))]


def _kinds(output: OutputReport) -> TableData:
    """How many elements are wrong in which way: what the map shows, as numbers."""
    written = max(0, output.outside - output.unwritten)
    rows = (
        ("within their bounds", output.checked - output.outside),
        ("outside their bounds, of numbers", max(0, written - output.not_finite)),
        ("infinite or no number", min(output.not_finite, written)),
        ("never written", output.unwritten),
        ("not compared", output.total - output.checked),
    )
    cells = tuple((CellData(name), CellData(str(count))) for name, count in rows if count)
    return TableData(("elements", "count"), cells, numeric=(1,))


def _title(tile: tuple[int, int], top: int, left: int) -> str:
    if tile[0]:
        return f"block ({top // tile[0]}, {left // tile[1]})"
    return f"from row {top}, column {left}"


def map_data(name: str, found: ErrorMap) -> ErrorMapData:
    """A map as the front end draws it: the whole, then its parts while there is room."""
    whole = f"{found.rows} x {found.columns}"
    parts = [ErrorPartData(f"all {whole}", 0, 0, found.patch, found.cells)]
    room = MOST_CELLS
    if found.patch == (1, 1):
        room = 0  # the whole shows each element
    for detail in found.details:
        room -= sum(map(len, detail.cells))
        if room >= 0:
            title = _title(found.tile, detail.top, detail.left)
            parts.append(ErrorPartData(title, detail.top, detail.left, (1, 1), detail.cells))
    tile = found.tile if found.tile[0] else ()
    by = found.threads
    label = f"errors of {name}{found.plane} by place"
    rows, columns, warp = (by.rows, by.columns, by.warp) if by is not None else ((), (), 32)
    return ErrorMapData(label, tuple(parts), tile, rows, columns, warp)
