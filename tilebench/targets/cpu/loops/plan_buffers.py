"""Where each tile lies in scratch memory and in which layout, decided from who reads and writes it.

A tile that only gemms read, as their right operand, is laid out in the micro-kernel's panels, so
that the copy into it is the packing. A tile of small floats that only gemms read is widened by that
copy too. All others are padded rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....ir import AllocStmt, Buffer, Expr, Function, Region, walk
from ....ir.arith import linear
from ....ir.dtypes import float32
from ....language.gemm import Gemm
from ..llvm import bytes_of
from ..machine import Isa
from ..microkernel.gemm import compute_element, padded_rows, panel_width, row_stride
from ..numbers.convert import COMPUTE, STORAGE, stored_bytes
from .lowering import LoweringTable
from .pairs import paired_tiles
from .sources import sources_of
from .uses import Use, Uses, uses_of
from .words import LINE, ColumnPanels, PaddedRows


@dataclass(frozen=True)
class Tile:
    """A planned tile: the buffer as later statements see it, its layout and its first byte."""

    buffer: Buffer
    layout: PaddedRows | ColumnPanels
    offset: int


class BufferPlan:
    """Tiles of one function. `size` is the scratch memory of a worker, in bytes."""

    def __init__(self, function: Function, isa: Isa, table: LoweringTable) -> None:
        self.isa = isa
        self.table = table
        self.uses = uses_of(function)
        self.sources = sources_of(function)
        self.paired = paired_tiles(self)
        self.size = 0
        self.tiles: dict[str, Tile] = {}
        for node in walk(function):
            if isinstance(node, AllocStmt) and node.buffer.scope in ("shared", "fragment", "local"):
                self.place(node.buffer)
        self.buffers = {name: tile.buffer for name, tile in self.tiles.items()}

    def uses_of(self, buffer: Buffer) -> Uses:
        """Who touches a buffer."""
        return self.uses.get(buffer.name, Uses())

    def layout_of(self, buffer: Buffer) -> PaddedRows | ColumnPanels | None:
        """How a tile lies; None for an array."""
        tile = self.tiles.get(buffer.name)
        return tile.layout if tile is not None else None

    def place(self, buffer: Buffer) -> None:
        """The tile of a buffer, behind those that have been placed."""
        dtype = buffer.dtype
        # Widened once here instead of at each of the many reads of the micro-kernel.
        if (
            buffer.name not in self.paired
            and self.packed(buffer)
            and STORAGE[dtype.name] != COMPUTE[dtype.name]
        ):
            dtype = float32
        scratch = Buffer(buffer.name, buffer.shape, dtype, "scratch")
        layout = self.panels(scratch) or self.rows(scratch)
        self.tiles[buffer.name] = Tile(scratch, layout, self.size)
        # A line of slack behind each tile: vectors may read past the last element.
        self.size += -(-stored_bytes(dtype, layout.elements) // LINE) * LINE + LINE

    def packed(self, buffer: Buffer) -> bool:
        """Whether all who touch a tile ask how it lies: it is filled as a whole, and multiplied."""
        uses = self.uses_of(buffer)
        multiplied = bool(uses.of(Gemm, "a") or uses.of(Gemm, "b"))
        return multiplied and all(self._asks(use) for use in uses.all)

    def _asks(self, use: Use) -> bool:
        asked = self.table.may_pack(use.effect.node, use.effect.field)
        return asked and (use.fills or not use.effect.writes)

    def panels(self, buffer: Buffer) -> ColumnPanels | None:
        """The panels of a right operand; None where it has to lie in rows."""
        uses = self.uses_of(buffer)
        gemms = uses.of(Gemm, "b")
        sides = {gemm.transpose_B for gemm in gemms}
        if not self.packed(buffer) or uses.of(Gemm, "a") or len(sides) != 1 or buffer.rank != 2:
            return None
        names = (self.dtype_of(gemms[0].a.buffer), buffer.dtype.name, gemms[0].c.buffer.dtype.name)
        width = panel_width(self.isa, compute_element(*names))
        transposed = sides.pop()
        if not all(is_multiple(gemm.b.start[0 if transposed else 1], width) for gemm in gemms):
            return None  # a vector that starts inside a panel runs into the next
        columns, depth = buffer.extents if transposed else buffer.extents[::-1]
        pairs = buffer.name in self.paired
        rows = depth + depth % 2 if pairs else depth
        return ColumnPanels(width, rows, -(-columns // width), transposed=transposed, pairs=pairs)

    def dtype_of(self, buffer: Buffer) -> str:
        """The dtype that a gemm finds in a tile."""
        tile = self.tiles.get(buffer.name)
        return (tile.buffer if tile else buffer).dtype.name

    def rows(self, buffer: Buffer) -> PaddedRows:
        """Padded rows, and below them what register blocks read or write over the end."""
        uses = self.uses_of(buffer)
        columns = buffer.extents[-1] if buffer.rank else 1
        rows = buffer.size // columns
        stride = row_stride(self.isa, columns, bytes_of(STORAGE[buffer.dtype.name])) if rows > 1 else columns
        needed = rows
        for gemm in uses.of(Gemm, "c"):
            needed = max(needed, rows_reached(gemm.c, rows))
        for gemm in uses.of(Gemm, "a"):
            if gemm.transpose_A:
                reached = columns - gemm.mnk[0] + padded_rows(gemm.mnk[0])
                needed = max(needed, rows + max(1, -(-reached // stride) - 1))
            else:
                needed = max(needed, rows_reached(gemm.a, rows))
        return PaddedRows(stride, needed)


def is_multiple(expr: Expr, number: int) -> bool:
    """Whether an integer expression is a multiple of a number whatever its variables are."""
    form = linear(expr)
    return form.constant % number == 0 and all(factor % number == 0 for _, factor in form.terms)


def rows_reached(region: Region, rows: int) -> int:
    """Rows of a tile that register blocks over a region touch, wherever in the tile's `rows` it starts."""
    height = (region.extent or region.buffer.extents)[-2]
    return rows - height + padded_rows(height)
