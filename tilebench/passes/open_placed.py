"""Copies and fills of an array that has an order of its own become loops over their elements.

`T.copy(A[i, 0:64], S)`, with `for i, j in T.annotate_layout(A)` in the kernel, -> `for k in
T.Parallel(64): S[k] = A[i, k]`. Neighbours of such an array need not be neighbours in memory: each
element's place is a question of its own, which `place_elements` answers when bounds have been tested.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ..errors import LayoutError
from ..ir import Cast, Expr, Function, Load, OpStmt, Region, Stmt, Store, Var, effects_of, map_children
from ..ir.names import Names
from ..language.copy import Copy, Fill
from ..language.placement import AnnotatedLayout, placements
from ..language.structure import Parallel
from .context import Context

NAME = "open_placed"
LETTERS = "ijkl"


def open_placed(function: Function, context: Context) -> Function:
    """The function in which arrays with an order of their own are used element by element."""
    placed = placements(function)
    if not placed:
        return function
    work = _Opener(function, placed)

    def step(node: Any) -> Any:
        if isinstance(node, AnnotatedLayout):
            return node
        if isinstance(node, OpStmt):
            return work.operation(node)
        return map_children(node, step) if isinstance(node, Stmt) else node

    return step(function)


class _Opener:
    def __init__(self, function: Function, placed: Collection[str]) -> None:
        self.names = Names(function)
        self.placed = placed

    def operation(self, stmt: OpStmt) -> Stmt:
        strange = [e for e in effects_of(stmt) if e.region is not None and e.buffer.name in self.placed]
        if not strange:
            return stmt
        if isinstance(stmt, Copy):
            return self.copy(stmt)
        if isinstance(stmt, Fill):
            return self.fill(stmt)
        raise LayoutError(
            "T.{word} does not work on {name}, whose elements lie in an order of their own",
            at=stmt.place, word=stmt.spelling(), name=strange[0].buffer.name,
            hint="copy the part to a tile first: T.copy(A[...], tile)",
        )  # fmt: skip

    def copy(self, copy: Copy) -> Stmt:
        extent = copy.dst.extent if copy.dst.extent is not None else copy.src.extent
        moved = [n for n in extent or () if n != 1] or [1]
        index = self.variables(len(moved))
        load = Load(copy.src.buffer, _element(copy.src, index, moved), place=copy.place)
        into = copy.dst.buffer
        value = load if load.dtype == into.dtype else Cast(load, type=into.dtype, place=copy.place)
        store = Store(into, _element(copy.dst, index, moved), value, place=copy.place)
        return Parallel(tuple(moved), index, (store,), place=copy.place)

    def fill(self, fill: Fill) -> Stmt:
        moved = [n for n in fill.dst.extent or () if n != 1] or [1]
        index = self.variables(len(moved))
        store = Store(fill.dst.buffer, _element(fill.dst, index, moved), fill.value, place=fill.place)
        return Parallel(tuple(moved), index, (store,), place=fill.place)

    def variables(self, count: int) -> tuple[Var, ...]:
        """Free names for the loops over a box."""
        letters = [LETTERS[k] if k < len(LETTERS) else f"i{k}" for k in range(count)]
        return tuple(Var(self.names.fresh(letter)) for letter in letters)


def _element(region: Region, index: tuple[Var, ...], moved: list[int]) -> tuple[Expr, ...]:
    """The element of a box at these loop variables; dimensions of extent 1 stand still.

    A head address takes the extents that move, aligned to the right.
    """
    rank = region.buffer.rank
    extent = region.extent
    if extent is None:
        extent = (*(1,) * (rank - len(moved)), *moved)[-rank:] if rank else ()
    steps = iter(index)
    return tuple(
        start if n == 1 else start + next(steps) for start, n in zip(region.start, extent, strict=True)
    )
