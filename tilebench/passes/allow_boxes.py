"""Copies that are told to go in boxes keep their instruction where every rule of it holds.

`T.copy(A[...], A_s, by=T.Instr("tma"))` -> the same, or without `by=` and with a remark that says which rule
forbids it: the cheapest other instruction is taken then.
"""

from __future__ import annotations

from typing import Any

from ..ir import Function, effects_in, map_bodies
from ..ir.stmt import statements
from ..language.copy import Copy
from ..language.memory import AllocShared
from ..language.structure import ThreadGroup
from ..machine import Boxes
from .analysis.boxes import boxes_of, cut, why_no_boxes
from .choose_shared import layouts_for_boxes
from .context import Context

NAME = "allow_boxes"


def allow_boxes(function: Function, context: Context) -> Function:
    """The function whose copies in boxes are those that can be."""
    copies = [node for node in statements(function.body) if boxes_of(node, context.machine) is not None]
    if not copies:
        return function
    tiles = {n.buffer.name: n for n in statements(function.body) if isinstance(n, AllocShared)}
    arrays = frozenset(array.name for array in function.arrays)
    written = frozenset(e.buffer.name for e in effects_in(function) if e.writes)
    grouped = {
        id(inner)
        for group in statements(function.body)
        if isinstance(group, ThreadGroup)
        for inner in statements(group.body)
    }

    def why_not(copy: Copy, boxes: Boxes) -> str:
        if id(copy) in grouped:
            return "it stands among statements of some of the threads"
        found = why_no_boxes(copy, boxes, arrays, written)
        return found or _of_layout(copy, tiles[copy.dst.buffer.name], boxes, context)

    def step(node: Any) -> Any:
        boxes = boxes_of(node, context.machine)
        if boxes is None:
            return map_bodies(node, step)
        why = why_not(node, boxes)
        if not why:
            return node
        context.remark(NAME, "missed", f"{node.by.name} does not take this copy: {why}", node)
        return node.but(by=None)

    return step(function)


def _of_layout(copy: Copy, tile: AllocShared, boxes: Boxes, context: Context) -> str:
    """Why no layout that the tile may have is one of boxes; empty: one is."""
    given = [tile.layout] if tile.layout is not None else layouts_for_boxes(tile, context.machine)
    reasons = [
        found for layout in given if isinstance(found := cut(copy.src, tile.buffer, layout, boxes), str)
    ]
    return reasons[0] if len(reasons) == len(given) else ""
