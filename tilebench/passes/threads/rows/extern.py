"""Calls with pointers outside of loops over elements: all threads of the block make them."""

from __future__ import annotations

from ....ir import Expr, Stmt
from ....language.extern import ExternCall
from ..addresses import lower_expr
from ..emitter import Emitter
from ..lowering import Lowering
from ..pointers import lowered_call
from ..tiles import NOWHERE


def call_of_the_block(emitter: Emitter, call: ExternCall) -> list[Stmt]:
    """The call as each thread makes it."""
    before: list[Stmt] = []

    def value(expr: Expr) -> Expr:
        return lower_expr(emitter, expr, NOWHERE, before)

    found = lowered_call(emitter, call, value, before)
    return [*before, found.but(together=True)]


LOWERINGS = (Lowering(ExternCall, "", call_of_the_block),)
