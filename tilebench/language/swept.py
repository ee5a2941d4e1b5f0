"""`T.Parallel` over extents that only the running kernel knows: tiles of constant extents, one after another.

`for i in T.Parallel(n)` becomes `for i_tile in T.serial(ceildiv(n, 128))` around
`for i_inside in T.Parallel(128)`, where `i` is a name for the index and a branch leaves out what is past the
end. No pass or target has to know of other loops than those over constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from ..errors import LanguageError
from ..ir import Expr, If, Let, Load, LoopStmt, Stmt, Var, all_of, walk
from ..ir.stmt import statements
from .elementwise import ceildiv
from .nested import merged
from .structure import Parallel, Serial
from .tracing.builder import Builder
from .tracing.expressions import Value
from .tracing.promote import expr_of

# Threads of a block whose kernel does not say how many.
USUAL = 128
# The least indices of a row that are done together, so that neighbours in memory are read together.
LEAST = 32


def tile_extents(sizes: Sequence[int | Expr], threads: int) -> tuple[int, ...]:
    """The extents of one tile: the constant ones, and the last of the others as wide as threads need."""
    constant = prod(size for size in sizes if isinstance(size, int))
    room = max(LEAST, threads // max(1, constant))
    extents: list[int] = []
    for size in reversed(sizes):
        if isinstance(size, int):
            extents.insert(0, size)
        else:
            extents.insert(0, room)
            room = 1
    return tuple(extents)


def swept(
    builder: Builder, sizes: Sequence[int | Expr], width: int | None = None
) -> Callable[[tuple[Var, ...], tuple[Stmt, ...]], LoopStmt]:
    """The loop over these extents. Those of the running kernel are read once, now.

    `width` caps the width of its vectors.
    """
    limits = [size if isinstance(size, int) else read_once(builder, size, "extent") for size in sizes]
    threads = builder.blocks[-1].count if builder.blocks else USUAL
    extents = tile_extents(limits, threads)

    def build(vars: tuple[Var, ...], body: tuple[Stmt, ...]) -> LoopStmt:
        refuse_inner(body)
        place = builder.place
        moving = {k: Value(limit) for k, limit in enumerate(limits) if not isinstance(limit, int)}
        inside, tiles = list(vars), dict[int, Var]()
        head: list[Stmt] = []
        tests: list[Expr] = []
        for k in moving:
            name = vars[k].name
            inside[k], tiles[k] = Var(builder.unique(f"{name}_inside")), Var(builder.unique(f"{name}_tile"))
            head.append(Let(vars[k], tiles[k] * extents[k] + inside[k], place=place))
            tests.append(vars[k].compare("<", moving[k].expr))
        guarded = If(all_of(tests), body, (), place=place)
        loop: LoopStmt = merged(extents, tuple(inside), (*head, guarded), width=width)
        for k in reversed([*moving]):
            count: Any = ceildiv(moving[k], extents[k])
            loop = Serial(expr_of(count), (tiles[k],), (loop.at(place),))
        return loop

    return build


def refuse_inner(body: Sequence[Stmt]) -> None:
    """Refuse a T.Parallel inside one of the running kernel's extents: the two are no loop over constants."""
    inner = next((each for each in statements(tuple(body)) if isinstance(each, Parallel)), None)
    if inner is not None:
        raise LanguageError(
            "a T.Parallel whose extent only the running kernel knows, and another one inside", at=inner.place,
            hint="give one loop all the extents: for i, j in T.Parallel(m, n)",
        )  # fmt: skip


def read_once(builder: Builder, expr: Expr, name: str) -> Expr:
    """A name for a value that reads memory, so that a store in the loop does not change it."""
    if not any(isinstance(part, Load) for part in walk(expr)):
        return expr
    var = Var(builder.unique(name), type=expr.dtype, place=builder.place)
    builder.emit(Let(var, expr, place=builder.place))
    return var


__all__ = ["read_once", "refuse_inner", "swept"]
