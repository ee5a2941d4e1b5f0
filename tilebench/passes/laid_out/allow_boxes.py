"""Copies that are told to go in boxes keep their instruction where every rule of it holds.

`T.copy(A[...], A_s, by=T.Instr("tma"))` -> the same, or without `by=` and with a remark that says which rule
forbids it: the cheapest other instruction is taken then. One that the kernel waits for itself is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import LayoutError
from ...ir import Function, Load, effects_in, effects_of, map_bodies, walk
from ...ir.stmt import statements
from ...language.copy import Copy
from ...language.lowered.tokens import BY_HAND
from ...language.memory import AllocShared
from ...language.structure import Parallel
from ...machine import Boxes
from ..analysis.boxes import boxes_of, cut, sides, why_no_boxes
from ..analysis.known_facts import facts_at
from ..context import Context
from .choose_shared import layouts_for_boxes

NAME = "allow_boxes"


def allow_boxes(function: Function, context: Context) -> Function:
    """The function whose copies in boxes are those that can be."""
    copies = [node for node in statements(function.body) if boxes_of(node, context.machine) is not None]
    if not copies:
        return function
    tiles = {n.buffer.name: n for n in statements(function.body) if isinstance(n, AllocShared)}
    arrays = frozenset(array.name for array in function.arrays)
    others = touched_otherwise(function, copies)

    facts = facts_at(function, {id(copy) for copy in copies})

    def why_not(copy: Copy, boxes: Boxes) -> str:
        found = why_no_boxes(copy, boxes, arrays, others, facts[id(copy)])
        return found or _of_layout(copy, tiles[sides(copy)[1].buffer.name], boxes, context)

    def step(node: Any) -> Any:
        boxes = boxes_of(node, context.machine)
        if boxes is None:
            return map_bodies(node, step)
        why = why_not(node, boxes)
        if not why:
            return node
        if node.token == BY_HAND:
            raise LayoutError(
                "{by} cannot move this box: {why}", at=node.place, by=node.by.name, why=why,
                hint="T.copy takes another instruction, and waits for it",
            )  # fmt: skip
        context.remark(NAME, "missed", f"{node.by.name} does not take this copy: {why}", node)
        return node.but(by=None)

    return step(function)


def touched_otherwise(function: Function, copies: Sequence[Any]) -> frozenset[str]:
    """The arrays that the kernel writes other than in boxes, or reads too where boxes of them are written."""
    own = {id(copy) for copy in copies}
    stored = {copy.dst.buffer.name for copy in copies if copy.dst.buffer.scope == "global"}
    found: set[str] = set()
    for node in statements(function.body):
        effects = effects_of(node) if not isinstance(node, Parallel) else effects_in(node)
        for effect in effects:
            name = effect.buffer.name
            if (effect.writes and id(node) not in own) or (effect.reads and name in stored):
                found.add(name)
    loads = {load.buffer.name for load in walk(function) if isinstance(load, Load)}
    return frozenset(found | (loads & stored))


def _of_layout(copy: Copy, tile: AllocShared, boxes: Boxes, context: Context) -> str:
    """Why no layout that the tile may have is one of boxes; empty: one is."""
    given = [tile.layout] if tile.layout is not None else layouts_for_boxes(tile, context.machine)
    reasons = [found for layout in given if isinstance(found := cut(*sides(copy), layout, boxes), str)]
    return reasons[0] if len(reasons) == len(given) else ""
