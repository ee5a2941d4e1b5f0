"""A result in registers that is to go in boxes passes shared memory, a panel of columns at a time.

    T.copy(acc, C[m : m + 128, n : n + 128], by=T.Instr("tma"))
 -> T.copy(acc[0:128, 0:64], acc_even); T.copy(acc_even, C[m : m + 128, n : n + 64], by=T.Instr("tma"))
    T.copy(acc[0:128, 64:128], acc_odd); T.copy(acc_odd, C[m : m + 128, n + 64 : n + 128], by=T.Instr("tma"))

Panels are as wide as the widest swizzle of boxes, so that threads write them without conflicts, and two take
turns: one is filled while the accelerator reads the other. Threads exchange nothing between themselves, form
no addresses of the array and test no edges. Where a rule forbids boxes a remark says which, and the copy goes
by another instruction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...ir import Buffer, Const, Function, Region, Stmt, map_bodies, whole
from ...ir.facts import Facts
from ...ir.names import Names
from ...ir.stmt import statements
from ...language.copy import Copy
from ...language.memory import AllocShared
from ...language.structure import KernelLaunch
from ...machine import Boxes
from ..analysis.boxes import boxes_of, why_no_boxes
from ..analysis.known_facts import facts_at
from ..context import Context
from .allow_boxes import touched_otherwise

NAME = "stage_results"
TURNS = ("even", "odd")


def stage_results(function: Function, context: Context) -> Function:
    """The function whose results in registers reach boxes through tiles of shared memory."""
    asked = [s for s in statements(function.body) if _is_asked(s, context)]
    return _Stager(function, asked, context).function() if asked else function


def _is_asked(node: Any, context: Context) -> bool:
    """Whether a copy is of a whole fragment to an array, by an instruction of boxes."""
    if boxes_of(node, context.machine) is None:
        return False
    return node.src.buffer.scope == "fragment" and node.src.is_whole and node.dst.buffer.scope == "global"


class _Stager:
    def __init__(self, function: Function, asked: Sequence[Any], context: Context) -> None:
        self.given, self.context, self.names = function, context, Names(function)
        self.asked = {id(copy) for copy in asked}
        self.facts: Mapping[int, Facts] = facts_at(function, self.asked)
        self.arrays = frozenset(array.name for array in function.arrays)
        boxed = [s for s in statements(function.body) if boxes_of(s, context.machine) is not None]
        self.others = touched_otherwise(function, boxed)
        self.tiles: list[Stmt] = []

    def function(self) -> Function:
        return map_bodies(self.given, self.statement)

    def statement(self, node: Any) -> Any:
        if id(node) in self.asked:
            return self.staged(node)
        if not isinstance(node, KernelLaunch):
            return map_bodies(node, self.statement)
        self.tiles = []
        below = map_bodies(node, self.statement)
        return below.but(body=(*self.tiles, *below.body)) if self.tiles else below

    def staged(self, copy: Copy) -> Any:
        boxes = boxes_of(copy, self.context.machine)
        assert boxes is not None
        columns = max(boxes.swizzles) * 8 // copy.dst.buffer.dtype.bits
        why = self.why_not(copy, boxes, columns)
        if why:
            name = copy.by.name if copy.by else ""
            self.context.remark(NAME, "missed", f"{name} does not store this result: {why}", copy)
            return copy.but(by=None)
        rows, width = copy.src.buffer.extents
        count = width // columns
        turns = [self.tile(copy, turn, (rows, columns)) for turn in TURNS[:count]]
        parts: list[Stmt] = []
        for number in range(count):
            parts += _part(copy, number * columns, whole(turns[number % len(turns)]))
        self.context.remark(
            NAME, "applied", f"{copy.src.buffer.name} is stored in {count} panels of {columns} columns by "
            f"way of {' and '.join(tile.name for tile in turns)} in turns", copy, panels=count,
            bytes=sum(tile.bytes for tile in turns),
        )  # fmt: skip
        return tuple(parts)

    def tile(self, copy: Copy, turn: str, extents: tuple[int, int]) -> Buffer:
        name = self.names.fresh(f"{copy.src.buffer.name}_{turn}")
        tile = Buffer(name, extents, copy.dst.buffer.dtype, "shared")
        self.tiles.append(AllocShared(tile, place=copy.place))
        return tile

    def why_not(self, copy: Copy, boxes: Boxes, columns: int) -> str:
        """The rule that forbids it; empty: none."""
        source, extent = copy.src.buffer, copy.dst.extent or ()
        if source.rank != 2 or any(size != 1 for size in extent[:-2]) or extent[-2:] != source.extents:
            return f"{source.name} is no matrix of rows and columns of {copy.dst.buffer.name}"
        if source.extents[1] % columns:
            return f"its {source.extents[1]} columns are no whole panels of {columns}"
        tile = Buffer("panel", (source.extents[0], columns), copy.dst.buffer.dtype, "shared")
        store = _part(copy, 0, whole(tile))[1]
        return why_no_boxes(store, boxes, self.arrays, self.others, self.facts[id(copy)])


def _part(copy: Copy, first: int, tile: Region) -> tuple[Copy, Copy]:
    """The copies of the columns from `first` on into a tile, and from it into the array."""
    rows, columns = tile.buffer.extents
    source = Region(copy.src.buffer, (Const(0), Const(first)), extent=(rows, columns), place=copy.src.place)
    start, extent = copy.dst.start, copy.dst.extent or ()
    target = copy.dst.but(start=(*start[:-1], start[-1] + first), extent=(*extent[:-1], columns))
    if copy.src.buffer.extents == tile.buffer.extents:
        source = whole(copy.src.buffer)
    into = Copy(source, tile, place=copy.place)
    return into, copy.but(src=tile, dst=target, src_within=None)
