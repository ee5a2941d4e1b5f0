"""Copies and fills of a part of a fragment become loops over all of it, with a condition.

`T.copy(A[0:8, 0:16], x[8:16, 0:16])` -> `for i, j in T.Parallel(32, 16): if i >= 8 and i < 16:
x[i, j] = A[i - 8, j]`. Threads own fixed elements of a fragment, so a part of it is a question
that each element answers. Between parts of two fragments the values go through shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir import (
    Buffer,
    Call,
    Cast,
    Expr,
    Function,
    If,
    Load,
    Region,
    Stmt,
    Store,
    Var,
    all_of,
    const_of,
    map_bodies,
    whole,
    zero_of,
)
from ...ir.names import Names
from ...language.copy import Copy, Fill, Within
from ...language.memory import AllocShared
from ...language.structure import Parallel
from ..context import Context

NAME = "open_parts"
LETTERS = "ijkl"


def open_parts(function: Function, context: Context) -> Function:
    """The function in which every copy and fill of a fragment is of all of it."""
    work = _Opener(function, context)

    def step(node: Any) -> Any:
        if isinstance(node, Copy):
            return work.copy(node)
        if isinstance(node, Fill) and _is_part(node.dst):
            return work.fill(node)
        return map_bodies(node, step)

    return step(function)


def _is_part(region: Region) -> bool:
    return region.buffer.scope == "fragment" and not region.is_whole


class _Opener:
    def __init__(self, function: Function, context: Context) -> None:
        self.names = Names(function)
        self.context = context

    def copy(self, copy: Copy) -> Any:
        if not _is_part(copy.src) and not _is_part(copy.dst):
            return copy
        if copy.src.buffer.scope == copy.dst.buffer.scope == "fragment":
            return self.between(copy)
        self.note(copy)
        return self.into(copy) if _is_part(copy.dst) else self.out_of(copy)

    def note(self, node: Copy | Fill) -> None:
        part = node.dst if isinstance(node, Fill) or _is_part(node.dst) else node.src
        if node.map is not None:
            self.context.remark(NAME, "missed", "the mapping of a part of a fragment is the fragment's", node)
        self.context.remark(
            NAME, "note", f"a part of {part.buffer.name} is a loop over all of it with a condition", node,
            elements=part.buffer.size,
        )  # fmt: skip

    def between(self, copy: Copy) -> tuple[Stmt, ...]:
        """Part of a fragment to part of another: through a shared tile of the part's extents."""
        shape = tuple(extent for extent in copy.src.extent or () if extent != 1) or (1,)
        tile = Buffer(
            self.names.fresh(f"{copy.src.buffer.name}_part"), shape, copy.src.buffer.dtype, "shared"
        )
        first = copy.but(dst=whole(tile), dst_within=None, at_stage=None)
        second = copy.but(src=whole(tile), src_within=None, at_stage=None)
        halves: list[Stmt] = [AllocShared(tile, place=copy.place)]
        for half in (first, second):
            opened = self.copy(half)
            halves.append(opened)
        return tuple(halves)

    def fill(self, fill: Fill) -> Stmt:
        self.note(fill)
        index, inside, _ = self.walk(fill.dst)
        store = Store(fill.dst.buffer, index, fill.value, place=fill.place)
        return self.loop(fill, fill.dst.buffer, index, inside, (store,))

    def into(self, copy: Copy) -> Stmt:
        index, inside, moved = self.walk(copy.dst)
        value = _read(copy.src, moved, copy.src_within, copy)
        store = Store(copy.dst.buffer, index, _cast(value, copy.dst.buffer), place=copy.place)
        return self.loop(copy, copy.dst.buffer, index, inside, (store,))

    def out_of(self, copy: Copy) -> Stmt:
        index, inside, moved = self.walk(copy.src)
        where = _shifted(copy.dst, moved)
        inside = [*inside, *_tests(where, copy.dst_within)]
        value = _cast(Load(copy.src.buffer, index, place=copy.place), copy.dst.buffer)
        store = Store(copy.dst.buffer, where, value, version=copy.dst.version, place=copy.place)
        return self.loop(copy, copy.src.buffer, index, inside, (store,))

    def walk(self, part: Region) -> tuple[tuple[Var, ...], list[Expr], list[Expr]]:
        """Loop variables over the fragment, what holds inside the part, and offsets in its box."""
        rank = part.buffer.rank
        index = tuple(Var(self.names.fresh(LETTERS[k] if k < len(LETTERS) else f"i{k}")) for k in range(rank))
        inside: list[Expr] = []
        moved: list[Expr] = []
        for var, start, extent, limit in zip(
            index, part.start, part.extent or (), part.buffer.extents, strict=True
        ):
            if extent != limit:
                inside += _between(var, start, extent, limit)
            if extent != 1:
                moved.append(var - start)
        return index, inside, moved

    def loop(
        self, stmt: Stmt, buffer: Buffer, index: tuple[Var, ...], inside: list[Expr], body: tuple[Stmt, ...]
    ) -> Stmt:
        guarded = (If(all_of(inside), body, (), place=stmt.place),) if inside else body
        return Parallel(buffer.extents, index, guarded, place=stmt.place)


def _between(var: Var, start: Expr, extent: int, limit: int) -> list[Expr]:
    """What holds where a loop variable over `limit` is in the box; nothing that always holds."""
    if extent == 1:
        return [var.compare("==", start)]
    low, high = var.compare(">=", start), var.compare("<", start + extent)
    first, last = const_of(start) == 0, const_of(start + extent) == limit
    return [*([] if first else [low]), *([] if last else [high])]


def _shifted(region: Region, moved: Sequence[Expr]) -> tuple[Expr, ...]:
    """The index in a region of the element that lies `moved` from its start, extents of 1 standing still."""
    steps = iter(moved)
    return tuple(
        start if extent == 1 else start + next(steps)
        for start, extent in zip(region.start, region.extent or (), strict=True)
    )


def _tests(index: Sequence[Expr], within: Within) -> list[Expr]:
    """What must hold for an access to be inside; nothing where that is proved."""
    tests: list[Expr] = []
    for position, limit in zip(index, within or (None,) * len(index), strict=True):
        if limit is not None:
            tests += [position.compare(">=", 0), position.compare("<", limit)]
    return tests


def _read(region: Region, moved: Sequence[Expr], within: Within, copy: Copy) -> Expr:
    index = _shifted(region, moved)
    load = Load(region.buffer, index, version=region.version, place=copy.place)
    tests = _tests(index, within)
    if not tests:
        return load
    args = (all_of(tests), load, zero_of(load.dtype))
    return Call("if_then_else", args, type=load.dtype, place=copy.place)


def _cast(value: Expr, into: Buffer) -> Expr:
    return value if value.dtype == into.dtype else Cast(value, type=into.dtype, place=value.place)
