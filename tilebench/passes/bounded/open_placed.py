"""Copies and fills of an array that has an order of its own become loops over their elements.

`T.copy(A[i, 0:64], S)`, with `for i, j in T.annotate_layout(A)` in the kernel, -> `for k in
T.Parallel(64): S[k] = A[i, k]`. Neighbours of such an array need not be neighbours in memory: each
element's place is a question of its own, which `place_elements` answers when bounds have been tested.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ...errors import LayoutError
from ...ir import Function, OpStmt, Stmt, effects_of, map_bodies
from ...ir.names import Names
from ...language.copy import Copy, Fill
from ...language.placement import AnnotatedLayout, placements
from ..context import Context
from .element_loops import copy_loop, fill_loop

NAME = "open_placed"


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
        return map_bodies(node, step)

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
            return copy_loop(stmt, self.names)
        if isinstance(stmt, Fill):
            return fill_loop(stmt, self.names)
        raise LayoutError(
            "T.{word} does not work on {name}, whose elements lie in an order of their own",
            at=stmt.place, word=stmt.spelling(), name=strange[0].buffer.name,
            hint="copy the part to a tile first: T.copy(A[...], tile)",
        )  # fmt: skip
