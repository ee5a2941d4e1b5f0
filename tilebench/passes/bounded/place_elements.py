"""Elements of an array that has an order of its own, found where they lie.

`A[i, j]`, with `for i, j in T.annotate_layout(A): T.lies_at(j, i)` in the kernel, -> the element of A
whose row-major number is that of (j, i). What the index may be has been tested on the index as it was
written; the annotation is gone.
"""

from __future__ import annotations

from typing import Any

from ...ir import Function, Load, Store, map_bodies, rewrite
from ...language.placement import AnnotatedLayout, placements
from ...layout.permutation import placed
from ..context import Context

NAME = "place_elements"


def place_elements(function: Function, context: Context) -> Function:
    """The function in which every index says where in memory the element is."""
    found = placements(function)
    if not found:
        return function

    def without(node: Any) -> Any:
        if isinstance(node, AnnotatedLayout):
            context.remark(
                NAME, "applied", f"elements of {node.of.name} are found where its layout puts them", node
            )
            return None
        return map_bodies(node, without)

    def change(node: Any) -> Any:
        if isinstance(node, (Load, Store)) and node.buffer.name in found:
            return node.but(index=placed(found[node.buffer.name], node.index))
        return node

    return rewrite(without(function), change)
