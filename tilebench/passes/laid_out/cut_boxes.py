"""How the tiles of copies in boxes are cut, once their layouts are known.

`T.copy(A[...], A_s, by=T.Instr("tma"), map=...)` -> `T.copy(A[...], A_s, by=T.Instr("tma", box=(128, 64),
swizzle=128))`: no thread moves anything, so that no map is left.
"""

from __future__ import annotations

from typing import Any

from ...errors import LayoutError
from ...ir import Function, map_bodies
from ...ir.stmt import statements
from ...language.lowered.decisions import Instr
from ...language.memory import AllocShared
from ..analysis.boxes import boxes_of, cut, sides
from ..context import Context

NAME = "cut_boxes"


def cut_boxes(function: Function, context: Context) -> Function:
    """The function with a box on every copy that goes in boxes."""
    machine = context.machine
    if not any(boxes_of(node, machine) for node in statements(function.body)):
        return function
    layouts = {n.buffer.name: n.layout for n in statements(function.body) if isinstance(n, AllocShared)}

    def step(node: Any) -> Any:
        boxes = boxes_of(node, machine)
        if boxes is None:
            return map_bodies(node, step)
        part, tile = sides(node)
        name, layout = tile.buffer.name, layouts[tile.buffer.name]
        assert layout is not None
        found = cut(part, tile, layout, boxes)
        if isinstance(found, str):
            raise LayoutError(
                "{by} cannot move {tile}: {why}", at=node.place, by=node.by.name, tile=name, why=found,
            )  # fmt: skip
        count = len(found.pieces)
        context.remark(
            NAME, "applied",
            f"{name} is {'filled' if part is node.src else 'stored'} by {node.by.name} in {count} "
            f"box{'es' * (count > 1)} of " + " x ".join(map(str, found.box)), node, boxes=count,
            bytes=tile.buffer.bytes,
        )  # fmt: skip
        return node.but(by=Instr(node.by.name, box=found.box, swizzle=found.swizzle), map=None)

    return step(function)
