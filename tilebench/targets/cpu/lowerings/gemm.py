"""Gemms as micro-kernels on the part of the tiles that is inside the problem."""

from __future__ import annotations

from ....ir import Const, Expr, Stmt
from ....language.gemm import Gemm
from ..llvm import bytes_of
from ..loops.inside import extents_inside, stays_inside
from ..loops.lowering import Lowering
from ..loops.words import MicroGemm, RegisterBlock
from ..loops.work import Work
from ..microkernel.gemm import compute_element, register_block


def gemm(work: Work, old: Gemm) -> list[Stmt]:
    """One micro-kernel, on whole regions or, where the rest may be skipped, on their part inside."""
    a, b, c = (work.swapped(region) for region in (old.a, old.b, old.c))
    block = register_block(work.isa)
    compute = compute_element(a.buffer.dtype.name, b.buffer.dtype.name, c.buffer.dtype.name)
    sides = _inside(work, old) if stays_inside(work, old) else tuple(Const(extent) for extent in old.mnk)
    kernel = MicroGemm(
        a, b, c, *sides, block=RegisterBlock(block.rows, block.vectors, work.isa.lanes(bytes_of(compute))),
        transpose_A=old.transpose_A, transpose_B=old.transpose_B, clear_accum=work.swapped(old.clear_accum),
        place=old.place,
    )  # fmt: skip
    return [kernel]


def _inside(work: Work, old: Gemm) -> tuple[Expr, Expr, Expr]:
    """m, n, k of the part inside; k is the same on both sides."""
    rows, depth = extents_inside(work, old, "a")
    if old.transpose_A:
        rows, depth = depth, rows
    columns = extents_inside(work, old, "b")[0 if old.transpose_B else 1]
    return rows, columns, depth


LOWERINGS = (
    Lowering(Gemm, gemm, packable=("a", "b")),
    Lowering(Gemm, gemm, instruction="microkernel", packable=("a", "b")),
)
