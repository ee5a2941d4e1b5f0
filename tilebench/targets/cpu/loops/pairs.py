"""Which tiles hold bfloat16 for dot products of pairs: both operands of a product, or none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....ir import Buffer, Expr, Region
from ....ir.arith import divisor
from ....language.gemm import Gemm
from ..microkernel.gemm import panel_width
from ..microkernel.pairs import has_pairs

if TYPE_CHECKING:
    from .plan_buffers import BufferPlan


def paired_tiles(plan: BufferPlan) -> frozenset[str]:
    """The names of the tiles that products take as pairs.

    The left operand in rows, the right one in panels; a tile of which one product wants something else is
    widened for all of them, and so is what it is multiplied by.
    """
    if not has_pairs(plan.isa):
        return frozenset()
    every: dict[int, Gemm] = {}
    for uses in plan.uses.values():
        every |= {id(gemm): gemm for field in ("a", "b") for gemm in uses.of(Gemm, field)}
    gemms = list(every.values())
    good = [gemm for gemm in gemms if _takes_pairs(plan, gemm)]
    while True:
        others = [gemm for gemm in gemms if all(gemm is not each for each in good)]
        spoiled = {region.buffer.name for gemm in others for region in (gemm.a, gemm.b)}
        kept = [gemm for gemm in good if not {gemm.a.buffer.name, gemm.b.buffer.name} & spoiled]
        if len(kept) == len(good):
            return frozenset(region.buffer.name for gemm in good for region in (gemm.a, gemm.b))
        good = kept


def _takes_pairs(plan: BufferPlan, gemm: Gemm) -> bool:
    a, b = gemm.a, gemm.b
    small = a.buffer.dtype.name == b.buffer.dtype.name == "bfloat16"
    if not small or gemm.transpose_A or a.buffer.rank != 2 or a.buffer.name == b.buffer.name:
        return False
    depth = b.start[1 if gemm.transpose_B else 0]
    return _even(a.start[1]) and _even(depth) and _only_right(plan, b.buffer) and _on_chip(a) and _on_chip(b)


def _only_right(plan: BufferPlan, buffer: Buffer) -> bool:
    """Whether a tile can lie in panels: it is a right operand alone, always turned the same way."""
    uses = plan.uses_of(buffer)
    gemms = uses.of(Gemm, "b")
    width, sides = panel_width(plan.isa), {gemm.transpose_B for gemm in gemms}
    starts = (gemm.b.start[0 if gemm.transpose_B else 1] for gemm in gemms)
    whole = all(divisor(start) % width == 0 for start in starts)
    return plan.packed(buffer) and not uses.of(Gemm, "a") and len(sides) == 1 and buffer.rank == 2 and whole


def _on_chip(region: Region) -> bool:
    return region.buffer.scope != "global"


def _even(expr: Expr) -> bool:
    return divisor(expr) % 2 == 0
