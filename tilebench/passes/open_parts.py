"""Copies and fills of a part of a fragment become loops over all of it, with a condition.

`T.copy(A[0:8, 0:16], x[8:16, 0:16])` -> `for i, j in T.Parallel(32, 16): if i >= 8 and i < 16:
x[i, j] = A[i - 8, j]`. Threads own fixed elements of a fragment, so a part of it is a question
that each element answers. Between parts of two fragments the values go through shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir import (
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
    map_children,
    whole,
    zero_of,
)
from ..language.copy import Copy, Fill, Within
from ..language.memory import AllocShared
from ..language.structure import Parallel
from .context import Context
from .names import Names

NAME = "open_parts"
LETTERS = "ijkl"


def open_parts(function: Function, context: Context) -> Function:
    """The function in which every copy and fill of a fragment is of all of it."""
    work = _Opener(function, context)

    def step(at: Any) -> Any:
        if isinstance(at, Copy):
            return work.copy(at)
        if isinstance(at, Fill) and _is_part(at.dst):
            return work.fill(at)
        return map_children(at, step) if isinstance(at, Stmt) else at

    return step(function)


def _is_part(region: Region) -> bool:
    return region.buffer.scope == "fragment" and not region.is_whole


class _Opener:
    def __init__(self, function: Function, context: Context) -> None:
        self.names = Names(function)
        self.context = context

    def copy(self, at: Copy) -> Any:
        if not _is_part(at.src) and not _is_part(at.dst):
            return at
        if at.src.buffer.scope == at.dst.buffer.scope == "fragment":
            return self.between(at)
        self.note(at)
        return self.into(at) if _is_part(at.dst) else self.out_of(at)

    def note(self, at: Copy | Fill) -> None:
        part = at.dst if isinstance(at, Fill) or _is_part(at.dst) else at.src
        self.context.remark(
            NAME, "note", f"a part of {part.buffer.name} is a loop over all of it with a condition", at,
            elements=part.buffer.size,
        )  # fmt: skip

    def between(self, at: Copy) -> tuple[Stmt, ...]:
        """Part of a fragment to part of another: through a shared tile of the part's extents."""
        shape = tuple(each for each in at.src.extent or () if each != 1) or (1,)
        tile = Buffer(self.names.fresh(f"{at.src.buffer.name}_part"), shape, at.src.buffer.dtype, "shared")
        first = at.but(dst=whole(tile), dst_within=None, at_stage=None)
        second = at.but(src=whole(tile), src_within=None, at_stage=None)
        out: list[Stmt] = [AllocShared(tile, place=at.place)]
        for each in (first, second):
            made = self.copy(each)
            out.append(made)
        return tuple(out)

    def fill(self, at: Fill) -> Stmt:
        self.note(at)
        index, inside, _ = self.walk(at.dst)
        store = Store(at.dst.buffer, index, at.value, place=at.place)
        return self.loop(at, at.dst.buffer, index, inside, (store,))

    def into(self, at: Copy) -> Stmt:
        index, inside, moved = self.walk(at.dst)
        value = _read(at.src, moved, at.src_within, at)
        store = Store(at.dst.buffer, index, _cast(value, at.dst.buffer), place=at.place)
        return self.loop(at, at.dst.buffer, index, inside, (store,))

    def out_of(self, at: Copy) -> Stmt:
        index, inside, moved = self.walk(at.src)
        where = _shifted(at.dst, moved)
        inside = [*inside, *_tests(where, at.dst_within)]
        value = _cast(Load(at.src.buffer, index, place=at.place), at.dst.buffer)
        store = Store(at.dst.buffer, where, value, version=at.dst.version, place=at.place)
        return self.loop(at, at.src.buffer, index, inside, (store,))

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
        self, at: Stmt, held: Buffer, index: tuple[Var, ...], inside: list[Expr], body: tuple[Stmt, ...]
    ) -> Stmt:
        guarded = (If(all_of(inside), body, (), place=at.place),) if inside else body
        return Parallel(held.extents, index, guarded, place=at.place)


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
    out: list[Expr] = []
    for each, limit in zip(index, within or (None,) * len(index), strict=True):
        if limit is not None:
            out += [each.compare(">=", 0), each.compare("<", limit)]
    return out


def _read(region: Region, moved: Sequence[Expr], within: Within, at: Copy) -> Expr:
    index = _shifted(region, moved)
    load = Load(region.buffer, index, version=region.version, place=at.place)
    tests = _tests(index, within)
    if not tests:
        return load
    args = (all_of(tests), load, zero_of(load.dtype))
    return Call("if_then_else", args, type=load.dtype, place=at.place)


def _cast(value: Expr, into: Buffer) -> Expr:
    return value if value.dtype == into.dtype else Cast(value, type=into.dtype, place=value.place)
