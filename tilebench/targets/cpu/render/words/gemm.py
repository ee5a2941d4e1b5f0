"""`T.micro_gemm` by the emitter of `microkernel`."""

from __future__ import annotations

from .....ir import FALSE, Region
from .....ir.arith import divisor
from ...llvm import Value, const
from ...loops.plan_buffers import rows_reached
from ...loops.words import ColumnPanels, MicroGemm, PaddedRows
from ...microkernel.gemm import Block, TileOperand, emit_gemm, register_block
from ...microkernel.pairs import emit_pair_gemm, in_words
from ...numbers.convert import STORAGE
from ..renderer import Renderer, Rendering


def micro_gemm(renderer: Renderer, statement: MicroGemm) -> None:
    """The micro-kernel; where k may be 0 a test goes around it."""
    f = renderer.f
    m, n, k = (renderer.index(extent) for extent in (statement.m, statement.n, statement.k))
    block = Block(statement.block.rows, statement.block.vectors) if statement.block else None
    accumulate: bool | Value = True
    if statement.clear_accum != FALSE:
        flag = renderer.expr.condition(statement.clear_accum)
        accumulate = not flag.integer if flag.integer is not None else renderer.expr.negate(flag)
    a, b, c = _left(renderer, statement), _right(renderer, statement), _result(renderer, statement.c)
    sure = renderer.state.low(statement.k) >= 1
    layout = renderer.state.layouts[statement.b.buffer.name]
    with f.when(Value("1", "i1") if sure else f.compare("sgt", k, 0)):
        if isinstance(layout, ColumnPanels) and layout.pairs:
            even, block = divisor(statement.k) % 2 == 0, block or register_block(f.isa)
            emit_pair_gemm(f, in_words(a), in_words(b), c, m, n, k, block, accumulate=accumulate, even=even)
        else:
            emit_gemm(f, a, b, c, m, n, k, accumulate=accumulate, block=block)
    if not sure and accumulate is not True:
        _clear(renderer, statement, c, k, accumulate)


def _clear(
    renderer: Renderer, statement: MicroGemm, c: TileOperand, k: Value, accumulate: bool | Value
) -> None:
    """No product at all: the result is zero where it was to be cleared."""
    f = renderer.f
    cleared = renderer.expr.negate(accumulate) if isinstance(accumulate, Value) else Value("1", "i1")
    rows, columns = statement.c.buffer.extents[-2:]
    with (
        f.when(f.binary("and", f.compare("slt", k, 1), cleared)),
        f.loop(0, rows) as i,
        f.loop(0, columns) as j,
    ):
        f.store(const(0, c.storage), c.at(f, i.index, j.index))


def _left(renderer: Renderer, statement: MicroGemm) -> TileOperand:
    """The left operand, from the region's first element on."""
    a = statement.a
    layout = renderer.state.layouts[a.buffer.name]
    assert isinstance(layout, PaddedRows)  # the plan packs right operands alone
    rows = a.buffer.size // a.buffer.extents[-1]
    dtype, corner = a.buffer.dtype.name, _corner(renderer, a)
    if statement.transpose_A:
        return TileOperand(corner, dtype, 1, layout.stride, padded=layout.rows > rows)
    return TileOperand(corner, dtype, layout.stride, padded=layout.rows >= rows_reached(a, rows))


def _right(renderer: Renderer, statement: MicroGemm) -> TileOperand:
    """The right operand, from the region's first element on; in panels that starts a panel's row."""
    b = statement.b
    layout = renderer.state.layouts[b.buffer.name]
    dtype, corner = b.buffer.dtype.name, _corner(renderer, b)
    if isinstance(layout, ColumnPanels):
        stride = layout.width * layout.rows
        return TileOperand(corner, dtype, layout.width, panel=layout.width, panel_stride=stride, padded=True)
    rows = TileOperand(corner, dtype, layout.stride, padded=True)
    return rows.transposed() if statement.transpose_B else rows


def _result(renderer: Renderer, c: Region) -> TileOperand:
    layout = renderer.state.layouts[c.buffer.name]
    assert isinstance(layout, PaddedRows)
    return TileOperand(_corner(renderer, c), c.buffer.dtype.name, layout.stride, padded=True)


def _corner(renderer: Renderer, region: Region) -> Value:
    """The address of a region's first element."""
    where = renderer.state.address(region.buffer, region.start, renderer.expr)
    return renderer.f.at(where.pointer, where.offset, STORAGE[region.buffer.dtype.name])


RENDERINGS = (Rendering(MicroGemm, micro_gemm),)
