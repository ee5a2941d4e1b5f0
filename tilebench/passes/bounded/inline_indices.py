"""Names of index arithmetic are replaced by what they stand for: `n: T.int32 = bx * 128` -> gone.

Later passes prove bounds, divisibility and contiguity on the expressions themselves.
"""

from __future__ import annotations

from typing import Any

from ...ir import Expr, Function, Let, Stmt, map_children, substitute
from ...ir.facts import is_pure, is_small
from ..context import Context


def inline_indices(function: Function, context: Context) -> Function:
    """The function without lets of integers that read no memory, but for long ones used in others."""
    values: dict[str, Expr] = {}

    def step(node: Any) -> Any:
        if isinstance(node, Let) and node.var.type.is_integer:
            value = substitute(node.value, values)
            if is_small(value) and is_pure(value):
                values[node.var.name] = value
                return None
            return Let(node.var, value, place=node.place)
        return map_children(node, step) if isinstance(node, Stmt) else substitute(node, values)

    return step(function)
