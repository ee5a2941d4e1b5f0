"""`T.pack_transposed`: rows of an array into panels of the transpose, square blocks turned in registers.

Gathering one column at a time instead reads 16 rows whose distance is often a power of two, so that
all fall into one cache set: a 1024^3 product with B transposed then ran at 40 GFLOP/s a core.
"""

from __future__ import annotations

from .....ir import lift
from ...llvm import Function, Index, Value, const, vector
from ...loops.words import ColumnPanels, PackTransposed
from ...microkernel.blocks import turned
from ...numbers.convert import STORAGE, load_value, store_value
from ..renderer import Renderer, Rendering


def pack_transposed(renderer: Renderer, statement: PackTransposed) -> None:
    """Blocks of lanes x lanes; those at the edges are read and written under masks."""
    f, state, lanes = renderer.f, renderer.state, statement.lanes
    layout = state.layouts[statement.dst.buffer.name]
    assert isinstance(layout, ColumnPanels)  # the plan lays the target out so
    where = state.address(statement.src.buffer, statement.src.start, renderer.expr)
    source = f.at(where.pointer, where.offset, STORAGE[statement.src.buffer.dtype.name])
    stride = renderer.expr.size(lift(statement.src.buffer.element_strides[-2]))
    block = _Block(f, statement, layout, source, state.pointers[statement.dst.buffer.name], stride)
    rows, columns = renderer.index(statement.rows), renderer.index(statement.columns)
    with f.loop(0, rows, lanes) as i, f.loop(0, columns, lanes) as j:
        inner = f.compare("sle", f.add(i.index, lanes), rows)
        full = f.binary("and", inner, f.compare("sle", f.add(j.index, lanes), columns))
        with f.when(full):
            block.move(i.index, j.index, None)
        with f.otherwise(full):
            block.move(i.index, j.index, (f.sub(rows, i.index), f.sub(columns, j.index)))


class _Block:
    """Moves one square block from (i, j) of the source to (j, i) of the panels."""

    def __init__(
        self,
        f: Function,
        statement: PackTransposed,
        layout: ColumnPanels,
        source: Value,
        target: Value,
        stride: Value,
    ) -> None:
        self.f, self.lanes, self.layout = f, statement.lanes, layout
        self.source, self.target = source, target
        self.types = (statement.src.buffer.dtype.name, statement.dst.buffer.dtype.name)
        self.stride = stride

    def move(self, i: Value, j: Value, left: tuple[Value, Value] | None) -> None:
        """`left` are the rows and columns still inside, for a block at the edge."""
        f, lanes, (source, target) = self.f, self.lanes, self.types
        rows: list[Value] = []
        inside = None if left is None else f.lane_mask(left[1], lanes)
        for r in range(lanes):
            pointer = f.at(self.source, f.add(f.mul(f.add(i, r), self.stride), j), STORAGE[source])
            mask = None if left is None or inside is None else self.only_if(r, left[0], inside)
            rows.append(load_value(f, pointer, source, lanes, mask))
        width = self.layout.width
        which = f.binary("udiv", i, width)
        start = f.add(f.mul(which, width * self.layout.rows), f.sub(i, f.mul(which, width)))
        for c, column in enumerate(turned(f, rows)):
            pointer = f.at(self.target, f.add(start, f.mul(f.add(j, c), width)), STORAGE[target])
            every = const(1, vector("i1", lanes))
            store_value(f, column, pointer, target, None if left is None else self.only_if(c, left[1], every))

    def only_if(self, index: Index, count: Value, mask: Value) -> Value:
        """The mask where `index` is below the count, else no lane."""
        f = self.f
        return f.select(f.compare("slt", f.value(index), count), mask, const(0, mask.type))


RENDERINGS = (Rendering(PackTransposed, pack_transposed),)
