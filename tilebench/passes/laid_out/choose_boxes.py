"""Copies ahead into tiles that products read by themselves go in boxes, where their rules hold and they pay.

`T.copy(A[...], A_s, at_stage=...)` -> the same with `by=T.Instr("tma")`. A copy that names an instruction, or
says that threads move it, stays; where a rule forbids boxes a remark says which. What layouts say is seen
later (`allow_boxes`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...ir import Buffer, Function, map_bodies
from ...ir.facts import Facts
from ...ir.stmt import statements
from ...language.copy import Copy
from ...language.gemm import Gemm
from ...language.lowered.decisions import Instr
from ...language.structure import Pipelined
from ...machine import Boxes, Machine
from ..analysis.boxes import box_rows, why_no_boxes
from ..analysis.known_facts import facts_at
from ..context import Context
from .allow_boxes import touched_otherwise

NAME = "choose_boxes"
# Bytes of a row of a box, of the widest in a loop, or else of all boxes of a step. One thread asks for them
# and they come at once, so that small ones cost more than copies of many threads. A product of 2048 on an
# H200, with three stages: rows of 64 bytes in steps of 8 or 12 KB cost 8 to 17 %, in steps of 16 KB they save
# 6 to 11 %, rows of 128 bytes up to 13.
LEAST_ROW, LEAST_STEP = 128, 16 << 10


def choose_boxes(function: Function, context: Context) -> Function:
    """The function whose copies into such tiles are those that boxes take."""
    tiles = _read_by_proxy(function, context.machine)
    copies = [s for s in statements(function.body) if isinstance(s, Copy) and s.dst.buffer.name in tiles]
    copies = [copy for copy in copies if _is_open(copy)]
    rows = dict(box_rows(context.machine))
    return _in_boxes(function, copies, rows, context) if rows and copies else function


def _in_boxes(
    function: Function, copies: Sequence[Copy], rows: Mapping[str, Boxes], context: Context
) -> Function:
    name, boxes = next(iter(rows.items()))
    reasons = _reasons(function, copies, boxes)
    for copy in copies:
        if why := reasons[id(copy)]:
            context.remark(NAME, "note", f"{name} does not take this copy: {why}", copy)

    def step(node: Any) -> Any:
        if not isinstance(node, Pipelined):
            return map_bodies(node, step)
        ahead = [s for s in node.body if reasons.get(id(s)) == "" and isinstance(s, Copy)]
        if not _pay([copy.dst.buffer for copy in ahead]):
            if ahead:
                few = f"rows have less than {LEAST_ROW} bytes, and steps less than {LEAST_STEP >> 10} KB"
                context.remark(NAME, "note", f"{name} does not pay for this loop: {few}", node)
            return map_bodies(node, step)
        named = {id(copy): copy.but(by=Instr(name)) for copy in ahead}
        return node.but(body=tuple(named.get(id(s)) or step(s) for s in node.body))

    return step(function)


def _reasons(function: Function, copies: Sequence[Copy], boxes: Boxes) -> dict[int, str]:
    """The rule that forbids boxes for each copy, by its identity; empty: none."""
    facts: Mapping[int, Facts] = facts_at(function, {id(copy) for copy in copies})
    arrays = frozenset(array.name for array in function.arrays)
    others, wide = touched_otherwise(function, copies), function.known("offsets") == 64
    return {
        id(copy): why_no_boxes(copy, boxes, arrays, others, facts[id(copy)])
        or _why_no_map(copy.src.buffer, wide)
        for copy in copies
    }


def _is_open(copy: Copy) -> bool:
    """Whether nobody has said how a copy that may go on by itself is moved."""
    ahead = copy.at_stage is not None and copy.at_stage.can_be_async
    return ahead and copy.by is None and not copy.by_threads


def _pay(tiles: Sequence[Buffer]) -> bool:
    """Whether boxes of a step are worth their latency."""
    rows = [tile.extents[-1] * tile.dtype.bits // 8 for tile in tiles]
    return max(rows, default=0) >= LEAST_ROW or sum(tile.bytes for tile in tiles) >= LEAST_STEP


def _why_no_map(array: Buffer, wide: bool) -> str:
    """Why there may be a call whose array cannot be told of, which a launch would refuse; empty: none."""
    if any(not isinstance(stride, int) or stride < 1 for stride in array.strides or ()):
        return f"strides of {array.name} come with a call"
    if wide and any(not isinstance(size, int) for size in array.shape):
        return f"{array.name} may be longer than coordinates of 32 bits reach"
    return ""


def _read_by_proxy(function: Function, machine: Machine) -> set[str]:
    """The tiles that an instruction of a product reads by itself."""
    names = {row.name for row in machine.instructions_for(Gemm.word) if row.by_proxy}
    gemms = [g for g in statements(function.body) if isinstance(g, Gemm) and g.by and g.by.name in names]
    return {region.buffer.name for g in gemms for region in (g.a, g.b) if region.buffer.scope == "shared"}
