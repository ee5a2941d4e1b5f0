"""What stands in the tabs beside the panes, as plain data: `extension/src/bench/block_data.ts` is made of it.

Sentences, tables, bars, maps, drawings; what a figure means and its rounding are said where they are made.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CellData:
    """One cell of a table."""

    text: str
    tone: str = ""
    title: str = ""


@dataclass(frozen=True)
class TableData:
    """A table; `numeric` and `mono` are numbers of columns."""

    heads: tuple[str, ...]
    rows: tuple[tuple[CellData, ...], ...]
    caption: str = ""
    numeric: tuple[int, ...] = ()
    mono: tuple[int, ...] = ()


@dataclass(frozen=True)
class BarData:
    """`part` of a whole: 0 to 1, more where it is `over`."""

    name: str
    part: float
    text: str
    over: bool = False


@dataclass(frozen=True)
class ErrorPartData:
    """A part of a map of errors, from the element `top`, `left` on: a digit a cell of `patch` elements.

    A digit is 0 (exact) to 4 (just inside its bound), 5 outside, 6 infinite, 7 no number, 8 never written,
    9 not compared.
    """

    title: str
    top: int
    left: int
    patch: tuple[int, ...]
    rows: tuple[str, ...]


@dataclass(frozen=True)
class ErrorMapData:
    """Where a result is wrong: all of it, then parts of it element by element.

    `tile` is what one block makes, empty where that is not known. The thread that wrote an element of a tile
    is `thread_rows[i] + thread_columns[j]`, in warps of `warp`; both are empty where nobody says.
    """

    label: str
    parts: tuple[ErrorPartData, ...]
    tile: tuple[int, ...] = ()
    thread_rows: tuple[int, ...] = ()
    thread_columns: tuple[int, ...] = ()
    warp: int = 32


@dataclass(frozen=True)
class LaneSiteData:
    """A statement that is timed: what it does, its name, and the user's line, 0 for none."""

    kind: str
    name: str
    line: int


@dataclass(frozen=True)
class LaneData:
    """One warp: four numbers a bar, begin, length, number of the site, turn of the loop around it."""

    name: str
    bars: tuple[int, ...]


@dataclass(frozen=True)
class LaneBlockData:
    """The warps of one block, which took `length` in all."""

    title: str
    length: int
    lanes: tuple[LaneData, ...]


@dataclass(frozen=True)
class LanesData:
    """What warps did when, on one axis of `unit`; `a_microsecond` of them are one (0: they are no time)."""

    label: str
    unit: str
    a_microsecond: float
    sites: tuple[LaneSiteData, ...]
    blocks: tuple[LaneBlockData, ...]


@dataclass(frozen=True)
class TileDrawing:
    """A tile to draw, as modes that the front end counts out.

    Of what threads hold, `thread` and `value` are (count, dimension, step), the fastest first, with dimension
    -1 for copies; `unit` is what a thread has several of (a register, a step of a loop). Of a tile in shared
    memory `places` has the (extent, stride) modes of each dimension in elements of `bits`, `swizzle` its
    (bits, base, shift), drawn beside the tile without it. `banks` of `bank_bytes` are the machine's, `warp`
    its threads.
    """

    name: str
    extents: tuple[int, ...]
    warp: int
    thread: tuple[tuple[int, ...], ...] = ()
    value: tuple[tuple[int, ...], ...] = ()
    places: tuple[tuple[tuple[int, ...], ...], ...] = ()
    swizzle: tuple[int, ...] = ()
    bits: int = 0
    banks: int = 0
    bank_bytes: int = 0
    unit: str = "register"


@dataclass(frozen=True)
class LanesDrawing:
    """An instruction of a warp: the first byte of each lane's `width` bytes, -1 where it takes no part.

    Over `banks` of `bank_bytes` in shared memory, else (0 banks) over sectors of `sector` bytes.
    """

    title: str
    lanes: tuple[int, ...]
    width: int
    banks: int = 0
    bank_bytes: int = 4
    sector: int = 0


@dataclass(frozen=True)
class SpanDrawing:
    """A buffer in a map of memory: `bytes` from `offset` on, from statement `first` to `last`, in `parts`."""

    name: str
    offset: int
    bytes: int
    parts: int
    first: int
    last: int
    words: str


@dataclass(frozen=True)
class MapDrawing:
    """Memory by address over statements; `lines` has the user's line of each. Sizes in bytes."""

    spans: tuple[SpanDrawing, ...]
    total: int
    limit: int
    lines: tuple[int, ...]


@dataclass(frozen=True)
class Drawing:
    """One picture: what there is of a tile, instructions of warps side by side, a map of memory."""

    tile: TileDrawing | None = None
    lanes: tuple[LanesDrawing, ...] = ()
    map: MapDrawing | None = None


@dataclass(frozen=True)
class OptionBlocks:
    """One of a choice, and what is shown of it."""

    name: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class ChoiceBlock:
    """A list to choose from inside a tab; the reader's choice is kept by `key` as values change."""

    key: str
    label: str
    options: tuple[OptionBlocks, ...]


@dataclass(frozen=True)
class ActionData:
    """A button: what it says, and the kind of what it asks the bench for."""

    label: str
    kind: str


@dataclass(frozen=True)
class Block:
    """One piece of a tab: those of `text` (a sentence), `quote`, `table` and pictures that there are."""

    text: str = ""
    tone: str = ""
    quote: str = ""
    table: TableData | None = None
    bars: tuple[BarData, ...] = ()
    errors: ErrorMapData | None = None
    lanes: LanesData | None = None
    drawing: Drawing | None = None
    choice: ChoiceBlock | None = None
    action: ActionData | None = None


@dataclass(frozen=True)
class TabData:
    """A tab beside the panes. `badge` is a small word at its name.

    Blocks that are long and change with the compilation alone come apart from the state of a live bench.
    """

    name: str
    title: str
    blocks: tuple[Block, ...] = ()
    badge: str = ""
    tone: str = ""
