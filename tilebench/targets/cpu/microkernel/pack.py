"""Tiles in memory (strides or panels) and copies between them, with conversion."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ....errors import TargetError
from ..llvm import Function, Index, Value, bytes_of, const, vector
from ..llvm.lanes import whole_steps
from ..numbers.convert import COMPUTE, STORAGE, convert, load_value, narrow, store_value, widen


@dataclass(frozen=True)
class TileOperand:
    """A matrix in memory. Strides count elements; element (r, c) is at r * row + c * column.

    With `panel` > 0 the columns lie in panels of that many, each row-major with `row` = its width:
    element (r, c) is at (c // panel) * panel_stride + r * row + c % panel.

    `padded` promises memory that a gemm may read (A, B) and overwrite (C) beyond the valid extents:
    for A and C rows up to `padded_rows`, for B and C columns up to the next whole vector. What is
    there does not matter and never reaches a valid element.
    """

    pointer: Value
    dtype: str
    row: Index
    column: Index = 1
    panel: int = 0
    panel_stride: Index = 0
    padded: bool = False

    @property
    def storage(self) -> str:
        """The LLVM type of one element in memory."""
        return STORAGE[self.dtype]

    def transposed(self) -> TileOperand:
        """The same memory read as its transpose (not for panels)."""
        if self.panel:
            raise TargetError("a tile in panels cannot be read transposed")
        return replace(self, row=self.column, column=self.row, padded=False)

    def offset(self, f: Function, row: Index, column: Index) -> Value:
        """Elements from the pointer to (row, column)."""
        if not self.panel:
            return f.add(f.mul(row, self.row), f.mul(column, self.column))
        column = f.value(column)
        which = (
            f.binary("udiv", column, self.panel) if column.integer is None else column.integer // self.panel
        )
        inside = f.sub(column, f.mul(which, self.panel))
        return f.add(f.add(f.mul(which, self.panel_stride), f.mul(row, self.row)), inside)

    def at(self, f: Function, row: Index, column: Index) -> Value:
        """The address of element (row, column)."""
        return f.at(self.pointer, self.offset(f, row, column), self.storage)


def emit_pack(
    f: Function,
    source: TileOperand,
    target: TileOperand,
    rows: Index,
    columns: Index,
    *,
    zero_rest: bool = True,
) -> None:
    """Copy source[:rows, :columns] into a tile of another layout or dtype (panels, wider elements).

    Both need columns next to each other, or the source may be a transposed row-major matrix (row
    stride 1), which is read in vectors along its rows and scattered. With `zero_rest` and a padded
    target the last vector is filled with zeros past `columns`.
    """
    lanes = f.isa.lanes(max(bytes_of(COMPUTE[source.dtype]), bytes_of(COMPUTE[target.dtype])))
    # A vector that is wider than a panel would reach into the next one.
    lanes = min(lanes, target.panel or source.panel or lanes)
    if not source.panel and source.column != 1:
        _pack_strided(f, source, target, rows, columns, lanes)
        return
    width = target.panel or source.panel or 4 * lanes
    columns = f.value(columns)
    with f.loop(0, rows) as r:
        whole = whole_steps(f, columns, width)
        with f.loop(0, whole, width) as j:
            from_, to = source.at(f, r.index, j.index), target.at(f, r.index, j.index)
            for first in range(0, width, lanes):
                _copy_vector(
                    f,
                    f.at(from_, first, source.storage),
                    f.at(to, first, target.storage),
                    source,
                    target,
                    lanes,
                )
        with f.loop(whole, columns, lanes) as j:
            mask = f.lane_mask(f.sub(columns, j.index), lanes)
            from_, to = source.at(f, r.index, j.index), target.at(f, r.index, j.index)
            keep = None if zero_rest and target.padded else mask
            _copy_vector(f, from_, to, source, target, lanes, mask, keep)


def _copy_vector(
    f: Function,
    from_: Value,
    to: Value,
    source: TileOperand,
    target: TileOperand,
    lanes: int,
    mask: Value | None = None,
    keep: Value | None = None,
) -> None:
    if source.dtype == target.dtype:
        type_ = vector(source.storage, lanes)
        raw = f.load(from_, type_) if mask is None else f.masked_load(from_, type_, mask)
        if keep is None:
            f.store(raw, to)
        else:
            f.masked_store(raw, to, keep)
        return
    value = convert(f, load_value(f, from_, source.dtype, lanes, mask), source.dtype, target.dtype)
    store_value(f, value, to, target.dtype, keep)


def _pack_strided(
    f: Function, source: TileOperand, target: TileOperand, rows: Index, columns: Index, lanes: int
) -> None:
    """Element by element, the source's memory order inside when its rows are next to each other."""
    if target.padded:
        _zero_last_vectors(f, target, rows, f.value(columns), lanes)
    outer, inner = (columns, rows) if source.row == 1 else (rows, columns)
    with f.loop(0, outer) as o, f.loop(0, inner) as i:
        r, c = (i.index, o.index) if source.row == 1 else (o.index, i.index)
        raw = f.load(source.at(f, r, c), source.storage)
        if source.dtype != target.dtype:
            value = convert(f, widen(f, raw, source.dtype), source.dtype, target.dtype)
            raw = narrow(f, value, target.dtype, rounded=True)
        f.store(raw, target.at(f, r, c))


def _zero_last_vectors(f: Function, target: TileOperand, rows: Index, columns: Value, lanes: int) -> None:
    whole = whole_steps(f, columns, lanes)
    with f.when(f.compare("ne", whole, columns)), f.loop(0, rows) as r:
        f.store(const(0, vector(target.storage, lanes)), target.at(f, r.index, whole))
