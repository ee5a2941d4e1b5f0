"""Names of index arithmetic are replaced by what they stand for: `n: T.int32 = bx * 128` -> gone.

Later passes prove bounds, divisibility and contiguity on the expressions themselves.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from ..ir import Expr, Function, Let, Load, Stmt, map_children, substitute, walk
from .context import Context

# Nodes of a value that is still written out. A hash or random number names a value and uses it twice,
# twenty times over: written out it would have 2^20 nodes, and proofs gain nothing from such a name.
MOST_NODES = 64


def is_small(expr: Expr) -> bool:
    """Whether an expression may stand in place of its name."""
    return next(islice(walk(expr), MOST_NODES, None), None) is None


def inline_indices(function: Function, context: Context) -> Function:
    """The function without lets of integers that read no memory, but for long ones used in others."""
    values: dict[str, Expr] = {}

    def step(at: Any) -> Any:
        if isinstance(at, Let) and at.var.type.is_integer:
            value = substitute(at.value, values)
            if is_small(value) and not any(isinstance(each, Load) for each in walk(value)):
                values[at.var.name] = value
                return None
            return Let(at.var, value, place=at.place)
        return map_children(at, step) if isinstance(at, Stmt) else substitute(at, values)

    return step(function)
