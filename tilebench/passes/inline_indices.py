"""Names of index arithmetic are replaced by what they stand for: `n: T.int32 = bx * 128` -> gone.

Later passes prove bounds, divisibility and contiguity on the expressions themselves.
"""

from __future__ import annotations

from typing import Any

from ..ir import Expr, Function, Let, Stmt, map_children, substitute
from ..ir.facts import is_pure, is_small
from .context import Context


def inline_indices(function: Function, context: Context) -> Function:
    """The function without lets of integers that read no memory, but for long ones used in others."""
    values: dict[str, Expr] = {}

    def step(at: Any) -> Any:
        if isinstance(at, Let) and at.var.type.is_integer:
            value = substitute(at.value, values)
            if is_small(value) and is_pure(value):
                values[at.var.name] = value
                return None
            return Let(at.var, value, place=at.place)
        return map_children(at, step) if isinstance(at, Stmt) else substitute(at, values)

    return step(function)
