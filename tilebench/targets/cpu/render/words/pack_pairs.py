"""`T.pack_pairs`: an array's rows into panels of pairs, two at a time or in square blocks of words turned."""

from __future__ import annotations

from .....ir import lift
from ...llvm import Value, const, vector
from ...loops.words import ColumnPanels, PackPairs
from ...microkernel.blocks import turned
from ...microkernel.pairs import none_or
from ..renderer import Renderer, Rendering


def pack_pairs(renderer: Renderer, statement: PackPairs) -> None:
    """The panels of a tile; what is outside the source is zero, or left alone beyond the last pair."""
    layout = renderer.state.layouts[statement.dst.buffer.name]
    assert isinstance(layout, ColumnPanels)  # the plan lays the target out so
    work = _Pairs(renderer, statement, layout)
    if layout.transposed:
        work.by_blocks()
    else:
        work.by_rows()


class _Pairs:
    """Moves words of two elements; `rows` and `columns` of the source are inside."""

    def __init__(self, renderer: Renderer, statement: PackPairs, layout: ColumnPanels) -> None:
        f = self.f = renderer.f
        self.lanes, self.layout, self.fill = statement.lanes, layout, statement.fill
        where = renderer.state.address(statement.src.buffer, statement.src.start, renderer.expr)
        self.source = f.at(where.pointer, where.offset, "i16")
        self.target = renderer.state.pointers[statement.dst.buffer.name]
        self.stride = renderer.expr.size(lift(statement.src.buffer.element_strides[-2]))
        # A tile wholly beyond the source's end has fewer than none inside.
        self.rows, self.columns = (
            none_or(f, renderer.index(extent)) for extent in (statement.rows, statement.columns)
        )
        self.extents = statement.dst.buffer.extents[-2:]

    def reached(self, inside: Value, extent: int) -> Value:
        """How far the tile is written in a dimension."""
        return self.f.value(extent) if self.fill else inside

    def by_rows(self) -> None:
        """Two rows of k beside each other, a vector of columns at a time."""
        f, lanes = self.f, self.lanes
        count = f.binary("lshr", f.add(self.reached(self.rows, self.extents[0]), 1), 1)
        columns = self.reached(self.columns, self.extents[1])
        with f.loop(0, count) as pair, f.loop(0, columns, lanes) as j:
            inside = f.lane_mask(f.sub(self.columns, j.index), lanes)
            words = [self.row(f.add(f.mul(pair.index, 2), half), j.index, inside) for half in (0, 1)]
            upper = f.binary("shl", words[1], const(16, words[1].type))
            self.put(f.binary("or", words[0], upper), pair.index, j.index)

    def row(self, row: Value, column: Value, inside: Value) -> Value:
        """A vector of a row of the source, an element a word."""
        f = self.f
        mask = f.select(f.compare("slt", row, self.rows), inside, const(0, inside.type))
        pointer = f.at(f.at(self.source, f.mul(row, self.stride), "i16"), column, "i16")
        return f.cast(
            "zext", f.masked_load(pointer, vector("i16", self.lanes), mask), vector("i32", self.lanes)
        )

    def by_blocks(self) -> None:
        """The source's rows are the columns of the tile: words are there already, and turned in registers."""
        f, lanes = self.f, self.lanes
        columns = self.reached(self.rows, self.extents[0])
        pairs = f.binary("lshr", f.add(self.reached(self.columns, self.extents[1]), 1), 1)
        with f.loop(0, columns, lanes) as i, f.loop(0, pairs, lanes) as j:
            rows = [self.words(f.add(i.index, r), j.index) for r in range(lanes)]
            for c, column in enumerate(turned(f, rows)):
                pair = f.add(j.index, c)
                with f.when(f.compare("slt", pair, pairs)):
                    self.put(column, pair, i.index)

    def words(self, row: Value, pair: Value) -> Value:
        """Words of a row of the source from a pair on."""
        f, count = self.f, 2 * self.lanes
        first = f.mul(pair, 2)
        inside = f.lane_mask(f.sub(self.columns, first), count)
        mask = f.select(f.compare("slt", row, self.rows), inside, const(0, inside.type))
        pointer = f.at(f.at(self.source, f.mul(row, self.stride), "i16"), first, "i16")
        return f.bits(f.masked_load(pointer, vector("i16", count), mask), vector("i32", self.lanes))

    def put(self, words: Value, pair: Value, column: Value) -> None:
        """A vector of words from a column on, a multiple of the vector: it stays in one panel."""
        f, width = self.f, self.layout.width
        which = f.binary("udiv", column, width)
        inside = f.sub(column, f.mul(which, width))
        start = f.add(f.mul(which, width * (self.layout.rows // 2)), inside)
        f.store(words, f.at(self.target, f.add(start, f.mul(pair, width)), "i32"))


RENDERINGS = (Rendering(PackPairs, pack_pairs),)
