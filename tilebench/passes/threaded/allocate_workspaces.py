"""Shared memory that operations work in, allocated in front of each: parts of a reduction meet there."""

from __future__ import annotations

from typing import Any

from ...ir import WORKS, Buffer, Function, OpStmt, map_bodies, whole
from ...ir.names import Names
from ...ir.stmt import statements
from ...language.memory import AllocFragment, AllocShared
from ...layout import Fragment
from ..context import Context
from ..threads.lowering import Lowerings, built_in


def allocate_workspaces(function: Function, context: Context, lowerings: Lowerings | None = None) -> Function:
    """`T.reduce_sum(x, y)` over several warps -> the same with `scratch=` and its allocation in front."""
    table = lowerings or built_in()
    layouts: dict[str, Fragment] = {
        node.buffer.name: node.layout
        for node in statements(function.body)
        if isinstance(node, AllocFragment) and node.layout is not None
    }
    names = Names(function)

    def step(node: Any) -> Any:
        if not isinstance(node, OpStmt):
            return map_bodies(node, step)
        field = next((mark.name for mark in node.effect_marks if mark.effect == WORKS), None)
        if field is None or getattr(node, field) is not None:
            return node
        row = table.find(node, context.machine)
        space = row.workspace(node, layouts, context.machine) if row.workspace is not None else None
        if space is None:
            return node
        buffer = Buffer(names.fresh(space.base), (space.elements,), space.dtype, "shared")
        return AllocShared(buffer, place=node.place), node.but(**{field: whole(buffer)})

    return step(function)
