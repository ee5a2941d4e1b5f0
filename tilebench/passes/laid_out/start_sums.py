"""A sum that is set to zero in front of its product is started there by the instruction, where it can.

`T.fill(C, 0); T.gemm(A, B, C, by=T.Instr("wgmma"))` -> `T.gemm(A, B, C, clear_accum=True, by=...)`: a store
to each register less, in loops as attention's in every step. Nothing between the two touches the sum.
"""

from __future__ import annotations

from math import copysign
from typing import Any

from ...ir import FALSE, TRUE, Const, Expr, Function, Stmt, effects_in, map_bodies
from ...language.copy import Fill
from ...language.gemm import Gemm
from ..context import Context
from .choose_instructions import row_of

NAME = "start_sums"


def start_sums(function: Function, context: Context) -> Function:
    """The function whose products start sums themselves that were set to zero in front of them."""
    if not any(row.clears for row in context.machine.instructions_for(Gemm.word)):
        return function

    def step(node: Any) -> Any:
        bodies = {name: _started(getattr(node, name), context) for name in node.bodies}
        changed = {name: body for name, body in bodies.items() if body is not getattr(node, name)}
        return map_bodies(node.but(**changed) if changed else node, step)

    return step(function)


def _started(body: tuple[Stmt, ...], context: Context) -> tuple[Stmt, ...]:
    """The statements of a block, with sums started where they are added up."""
    out = list(body)
    for fill in [s for s in body if isinstance(s, Fill) and _is_zero(s.value)]:
        name, at = fill.dst.buffer.name, next(k for k, s in enumerate(out) if s is fill)
        later = (k for k in range(at + 1, len(out)) if any(e.buffer.name == name for e in effects_in(out[k])))
        user = next(later, None)
        product = None if user is None else out[user]
        if user is None or not isinstance(product, Gemm) or product.c.buffer.name != name:
            continue
        starts = product.clear_accum == FALSE and row_of(product, context.machine).clears
        if starts and fill.dst.is_whole and name not in (product.a.buffer.name, product.b.buffer.name):
            out[user] = product.but(clear_accum=TRUE)
            del out[at]
            context.remark(NAME, "applied", f"{name} starts at zero in the product that adds to it", product)
    return tuple(out) if len(out) != len(body) else body


def _is_zero(value: Expr) -> bool:
    """Whether a number is the zero that sums start from, which has no sign."""
    return isinstance(value, Const) and not value.value and copysign(1, value.value) > 0
