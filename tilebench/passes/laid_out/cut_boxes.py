"""How the tiles of copies in boxes are cut, once their layouts are known.

`T.copy(A[...], A_s, by=T.Instr("tma"), map=...)` -> `T.copy(A[...], A_s, by=T.Instr("tma", box=(128, 64),
swizzle=128))`: no thread moves anything, so that no map is left. Where all blocks of a cluster read the tile
(`for_blocks=2`) and a producer brings it, each brings a part for all: `T.Instr(..., blocks=2)`.
"""

from __future__ import annotations

from typing import Any

from ...errors import LayoutError
from ...ir import Function, map_bodies
from ...ir.stmt import statements
from ...language.copy import Copy
from ...language.lowered.decisions import PRODUCER, Instr
from ...language.memory import AllocShared
from ...language.structure import Pipelined
from ..analysis.box_shares import shares
from ..analysis.boxes import Cut, boxes_of, cut, sides
from ..context import Context

NAME = "cut_boxes"


def cut_boxes(function: Function, context: Context) -> Function:
    """The function with a box on every copy that goes in boxes."""
    machine = context.machine
    copies = [node for node in statements(function.body) if isinstance(node, Copy)]
    if not any(boxes_of(copy, machine) or copy.for_blocks or copy.eviction for copy in copies):
        return function
    layouts = {n.buffer.name: n.layout for n in statements(function.body) if isinstance(n, AllocShared)}
    brought = _brought(function)

    def step(node: Any) -> Any:
        if not isinstance(node, Copy):
            return map_bodies(node, step)
        boxes = boxes_of(node, machine)
        if boxes is None or node.by is None:
            return _without_hints(node, context)
        part, tile = sides(node)
        name, layout = tile.buffer.name, layouts[tile.buffer.name]
        assert layout is not None
        found = cut(part, tile, layout, boxes)
        if isinstance(found, str):
            raise LayoutError(
                "{by} cannot move {tile}: {why}", at=node.place, by=node.by.name, tile=name, why=found,
            )  # fmt: skip
        by = _shared_out(node, found, id(node) in brought, context)
        count = len(found.pieces)
        context.remark(
            NAME, "applied",
            f"{name} is {'filled' if part is node.src else 'stored'} by {by.name} in {count} "
            f"box{'es' * (count > 1)} of " + " x ".join(map(str, found.box)), node, boxes=count,
            bytes=tile.buffer.bytes,
        )  # fmt: skip
        return node.but(by=by, map=None, for_blocks=0)

    return step(function)


def _brought(function: Function) -> set[int]:
    """The copies, by identity, that a producer brings."""
    loops = [loop for loop in statements(function.body) if isinstance(loop, Pipelined)]
    return {
        id(copy)
        for loop in loops
        if loop.plan is not None and loop.plan.roles == PRODUCER
        for copy in loop.body
        if isinstance(copy, Copy) and copy.at_stage is not None and copy.at_stage.number == 0
    }


def _shared_out(copy: Copy, found: Cut, has_producer: bool, context: Context) -> Instr:
    """The instruction of a copy in those boxes, or in the part of them that a block of a cluster brings."""
    assert copy.by is not None
    plain = Instr(copy.by.name, box=found.box, swizzle=found.swizzle)
    if not copy.for_blocks:
        return plain
    if not has_producer:
        _missed(copy, "no warps of their own bring it (warp_specialize)", context)
        return plain
    share = shares(found, copy.for_blocks, copy.dst.buffer.dtype.bits)
    if isinstance(share, str):
        _missed(copy, share, context)
        return plain
    context.remark(
        NAME, "applied", f"each of {copy.for_blocks} blocks brings a part of {copy.dst.buffer.name} for all",
        copy, blocks=copy.for_blocks,
    )  # fmt: skip
    return Instr(copy.by.name, box=share.box, swizzle=found.swizzle, blocks=copy.for_blocks)


def _without_hints(copy: Copy, context: Context) -> Copy:
    """A copy by another instruction, and a remark for what that one cannot be told."""
    if copy.for_blocks:
        _missed(copy, "its instruction goes to one block", context)
    if copy.eviction:
        message = f"{copy.eviction} is told of a copy in boxes alone, and this goes by another instruction"
        context.remark(NAME, "missed", message, copy)
    return copy.but(for_blocks=0, eviction=None) if copy.for_blocks or copy.eviction else copy


def _missed(copy: Copy, why: str, context: Context) -> None:
    context.remark(NAME, "missed", f"each block brings {copy.dst.buffer.name} for itself: {why}", copy)
