"""Gemms as micro-kernels on the part of the tiles that is inside the problem."""

from __future__ import annotations

from ....ir import Call, Const, Expr, Region, Stmt
from ....language.copy import Copy
from ....language.gemm import Gemm
from ..llvm import bytes_of
from ..loops.to_loops import Lowering
from ..loops.words import MicroGemm, RegisterBlock
from ..microkernel.gemm import compute_element, register_block


def skips(work: Lowering, at: Gemm) -> bool:
    """Whether a gemm leaves out what is outside the problem.

    Its operands must each be filled by one copy, and nothing may look at the accumulator's ghost
    elements, which then hold anything.
    """
    plan = work.plan
    if not plan.nobody_reads_ghosts(at.c.buffer):
        return False
    for each in (at.a, at.b):
        uses = plan.uses[each.buffer.name]
        if not uses.packed or len(uses.copied_in) != 1 or uses.filled:
            return False
    # Another gemm on the same accumulator must leave out the same, else its zeros are needed.
    return len(plan.uses[at.c.buffer.name].gemm_c) == 1


def lower_gemm(work: Lowering, at: Gemm) -> list[Stmt]:
    """One micro-kernel, on whole tiles or, where the rest may be skipped, on their part inside."""
    a, b, c = (work.swapped(each) for each in (at.a, at.b, at.c))
    block = register_block(work.isa)
    compute = compute_element(a.buffer.dtype.name, b.buffer.dtype.name, c.buffer.dtype.name)
    m, n, k = (Const(each) for each in at.mnk)
    sides: list[Expr] = [m, n, k]
    if skips(work, at):
        sides = _inside(work, at)
    made = MicroGemm(
        a, b, c, *sides, block=RegisterBlock(block.rows, block.vectors, work.isa.lanes(bytes_of(compute))),
        transpose_A=at.transpose_A, transpose_B=at.transpose_B, clear_accum=work.swapped(at.clear_accum),
        place=at.place,
    )  # fmt: skip
    return [made]


def _inside(work: Lowering, at: Gemm) -> list[Expr]:
    """m, n, k of the part inside, from the copies that filled the operands."""
    k = at.mnk[2]
    rows, depth = _extents(work, at.a, at.transpose_A)
    columns, other = _extents(work, at.b, not at.transpose_B)
    if other == Const(k) or depth == other:
        deep = depth
    else:
        deep = other if depth == Const(k) else Call("min", (depth, other), type=depth.dtype)
    return [rows, columns, deep]


def _extents(work: Lowering, operand: Region, swap: bool) -> tuple[Expr, Expr]:
    """The two extents of an operand inside the problem, turned round where it is transposed."""
    copy = work.sources.get(operand.buffer.name)
    found: list[Expr] = []
    for size, (start, limit) in zip(operand.buffer.shape[-2:], _starts(copy, operand), strict=True):
        found.append(Const(size) if copy is None or limit is None else work.valid(start, size, limit))
    return (found[1], found[0]) if swap else (found[0], found[1])


def _starts(copy: Copy | None, operand: Region) -> list[tuple[Expr, int | None]]:
    if copy is None or copy.src.extent is None:
        return [(Const(0), None)] * 2
    within = copy.src_within or (None,) * copy.src.buffer.rank
    long = [d for d, extent in enumerate(copy.src.extent) if extent != 1]
    dims = long if len(long) == 2 else list(range(copy.src.buffer.rank))[-2:]
    return [(copy.src.start[d], within[d]) for d in dims]
