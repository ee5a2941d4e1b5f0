"""`T.micro_gemm` by the emitter of `gemm.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....ir import FALSE, Region
from ..llvm import Value, const
from ..loops.plan_buffers import rows_reached
from ..loops.words import ColumnPanels, MicroGemm, PaddedRows
from ..microkernel.gemm import Block, TileOperand, emit_gemm
from ..numbers.convert import STORAGE

if TYPE_CHECKING:
    from .kernel import Renderer


def render_gemm(work: Renderer, at: MicroGemm) -> None:
    """The micro-kernel; where k may be 0 a test goes around it."""
    f = work.f
    m, n, k = (work.index(each) for each in (at.m, at.n, at.k))
    block = Block(at.block.rows, at.block.vectors) if at.block else None
    accumulate: bool | Value = True
    if at.clear_accum != FALSE:
        flag = work.expr.condition(at.clear_accum)
        accumulate = not flag.integer if flag.integer is not None else work.expr.negate(flag)
    a, b, c = _left(work, at), _right(work, at), _result(work, at.c)
    sure = work.state.low(at.k) >= 1
    with f.when(Value("1", "i1") if sure else f.compare("sgt", k, 0)):
        emit_gemm(f, a, b, c, m, n, k, accumulate=accumulate, block=block)
    if not sure and accumulate is not True:
        _clear(work, at, c, k, accumulate)


def _clear(work: Renderer, at: MicroGemm, c: TileOperand, k: Value, accumulate: bool | Value) -> None:
    """No product at all: the result is zero where it was to be cleared."""
    f = work.f
    cleared = Value("1", "i1") if accumulate is False else work.expr.negate(accumulate)  # type: ignore[arg-type]
    rows, columns = at.c.buffer.shape[-2:]
    with (
        f.when(f.binary("and", f.compare("slt", k, 1), cleared)),
        f.loop(0, rows) as i,
        f.loop(0, columns) as j,
    ):
        f.store(const(0, c.storage), c.at(f, i.index, j.index))


def _left(work: Renderer, at: MicroGemm) -> TileOperand:
    """The left operand, from the region's first element on."""
    layout = work.state.layouts[at.a.buffer.name]
    assert isinstance(layout, PaddedRows)  # the plan packs right operands alone
    rows = at.a.buffer.size // at.a.buffer.shape[-1]
    dtype, corner = at.a.buffer.dtype.name, _corner(work, at.a)
    if at.transpose_A:
        return TileOperand(corner, dtype, 1, layout.stride, padded=layout.rows > rows)
    return TileOperand(corner, dtype, layout.stride, padded=layout.rows >= rows_reached(at.a, rows))


def _right(work: Renderer, at: MicroGemm) -> TileOperand:
    """The right operand, from the region's first element on; in panels that starts a panel's row."""
    layout = work.state.layouts[at.b.buffer.name]
    dtype, corner = at.b.buffer.dtype.name, _corner(work, at.b)
    if isinstance(layout, ColumnPanels):
        stride = layout.width * layout.rows
        return TileOperand(corner, dtype, layout.width, panel=layout.width, panel_stride=stride, padded=True)
    rows = TileOperand(corner, dtype, layout.stride, padded=True)
    return rows.transposed() if at.transpose_B else rows


def _result(work: Renderer, c: Region) -> TileOperand:
    layout = work.state.layouts[c.buffer.name]
    assert isinstance(layout, PaddedRows)
    return TileOperand(_corner(work, c), c.buffer.dtype.name, layout.stride, padded=True)


def _corner(work: Renderer, region: Region) -> Value:
    """The address of a region's first element."""
    where = work.state.address(region.buffer, region.start, work.index, work.expr.value)
    return work.f.at(where.pointer, where.offset, STORAGE[region.buffer.dtype.name])
