"""The registers in which a product is summed: those of C, or wider ones that are rounded into C once."""

from __future__ import annotations

from collections.abc import Callable

from ...ir import FALSE, TRUE, Buffer, Cast, Const, Expr, If, Load, Stmt, Store, zero_of
from ...language.accumulation import gemm_sum_dtype
from ...language.gemm import Gemm
from ...language.memory import AllocLocal
from ...language.structure import Unroll
from .addresses import lower_expr
from .emitter import Emitter
from .tiles import NOWHERE


def accumulators(emitter: Emitter, gemm: Gemm) -> tuple[Buffer, list[Stmt], list[Stmt]]:
    """The registers of the sums, what stands before the product and what behind it."""
    own = emitter.fragments[gemm.c.buffer.name].local
    total = gemm_sum_dtype(own.dtype)
    if total == own.dtype:
        return own, _start(emitter, gemm, own, own), []
    sums = Buffer(emitter.name(f"{gemm.c.buffer.name}_sum"), own.shape, total, "local")
    before: list[Stmt] = [AllocLocal(sums), *_start(emitter, gemm, own, sums)]
    return sums, before, registerwise(emitter, own, lambda r: Cast(Load(sums, (r,)), type=own.dtype))


def registerwise(emitter: Emitter, target: Buffer, value: Callable[[Expr], Expr]) -> list[Stmt]:
    """`value` of its number in each register."""
    var = emitter.leaf_variable("r0", target.size)
    return [Unroll(Const(target.size), (var,), (Store(target, (var,), value(var)),))]


def _start(emitter: Emitter, gemm: Gemm, registers: Buffer, sums: Buffer) -> list[Stmt]:
    """The sum's first value: zero, C, or either by `clear_accum`."""
    clear = registerwise(emitter, sums, lambda r: zero_of(sums.dtype))
    keep: list[Stmt] = []
    if sums != registers:
        keep = registerwise(emitter, sums, lambda r: Cast(Load(registers, (r,)), type=sums.dtype))
    if gemm.clear_accum == TRUE:
        return clear
    if gemm.clear_accum == FALSE:
        return keep
    lowered: list[Stmt] = []
    condition = lower_expr(emitter, gemm.clear_accum, NOWHERE, lowered)
    return [*lowered, If(condition, tuple(clear), tuple(keep))]
