"""Loops over elements of fragments: each over a whole fragment, or on a shared tile in its place.

Threads own fixed elements of a fragment. A loop over some of them, `for i in T.Parallel(3): f[i] = x`
on a fragment of 256, becomes one over all of them in which each element asks whether it is meant.
Where an index is more than a variable of the loop, `y[i, j // 4] += x[i, j]` with a serial j inside, the
loop works on a shared tile, which has an address for every index.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...ir import (
    AllocStmt,
    Buffer,
    Const,
    Expr,
    Function,
    If,
    Let,
    Load,
    LoopStmt,
    Stmt,
    Store,
    Var,
    all_of,
    children,
    map_bodies,
    walk,
    whole,
)
from ...language.copy import Copy
from ...language.structure import Parallel
from ..analysis.sites import plain_dims
from ..context import Context
from .twins import Twins, at_twins

NAME = "spill_elements"


@dataclass(frozen=True)
class Use:
    """An access of a fragment in a loop.

    `dims` are the dimensions of the loop that index it (None: something else does), `around` the
    conditions and bounds of inner loops that it stands under.
    """

    access: Load | Store
    dims: tuple[int | None, ...] | None
    around: tuple[Expr, ...]

    @property
    def stores(self) -> bool:
        return isinstance(self.access, Store)


Uses = Mapping[str, list[Use]]


def spill_elements(function: Function, context: Context) -> Function:
    """The function in which a loop indexes a fragment by its own variables, each over a whole extent."""
    twins = Twins(function, context, NAME)

    def step(node: Any) -> Any:
        if isinstance(node, Parallel):
            uses = _uses(node)
            loop = _widened(node, uses) if uses else node
            return _on_shared_tiles(loop, uses if loop is node else _uses(loop), twins)
        return map_bodies(node, step)

    return step(function)


def _uses(loop: Parallel) -> Uses:
    """The uses of fragments in a loop, by name."""
    names = tuple(v.name for v in loop.vars)
    uses: dict[str, list[Use]] = {}
    for access, around in _accesses(loop.body, ()):
        if access.buffer.scope == "fragment":
            use = Use(access, plain_dims(access.buffer, access.index, names), around)
            uses.setdefault(access.buffer.name, []).append(use)
    return uses


def _accesses(
    body: tuple[Stmt, ...], around: tuple[Expr, ...]
) -> Iterator[tuple[Load | Store, tuple[Expr, ...]]]:
    """The accesses of a body, each with the expressions that decide whether it happens."""
    for statement in body:
        own = [part for part in children(statement) if not isinstance(part, Stmt)]
        if isinstance(statement, Store):
            yield statement, around
        yield from ((load, around) for part in own for load in walk(part) if isinstance(load, Load))
        inner = (*around, *(part for part in own if isinstance(part, Expr)))
        for mark in statement.marks:
            if mark.mark == "body":
                yield from _accesses(getattr(statement, mark.name), inner)


def _widened(loop: Parallel, uses: Uses) -> Parallel:
    """The loop over the longest extent that its variables index, with a test of the old ones inside."""
    extents = list(loop.extents)
    stored = [use.dims for each in uses.values() for use in each if use.stores and use.dims is not None]
    for each in uses.values():
        for use in each:
            for dim, extent in zip(use.dims or (), use.access.buffer.extents, strict=False):
                # What a store is not indexed by stays as it is: it would be the store of some elements only.
                if dim is not None and all(dim in dims for dims in stored):
                    extents[dim] = max(extents[dim], extent)
    # Whose mapping a kernel gives is not made longer: what it does not fit goes through shared tiles.
    if extents == list(loop.extents) or loop.map is not None:
        return loop
    tests: list[Expr] = [
        var.compare("<", Const(old))
        for var, old, new in zip(loop.vars, loop.extents, extents, strict=True)
        if new > old
    ]
    return loop.but(extents=tuple(extents), body=(If(all_of(tests), loop.body, (), place=loop.place),))


def _on_shared_tiles(loop: Parallel, uses: Uses, twins: Twins) -> Any:
    """The loop with a shared tile for each fragment that it does not walk through as a whole."""
    before: list[Stmt] = []
    after: list[Stmt] = []
    tiles: dict[str, Buffer] = {}
    for name, each in uses.items():
        if _walks(loop, each) and all(_alike(loop, use) for use in each):
            continue
        fragment = whole(each[0].access.buffer)
        allocation, tile = twins.twin(fragment, "shared", loop, "loop")
        tiles[name] = tile.buffer
        # What the loop does not write keeps its value, so the tile starts with the old ones.
        before += [allocation, Copy(fragment, tile, place=loop.place)]
        if any(use.stores for use in each):
            after.append(Copy(tile, fragment, place=loop.place))
    return (*before, at_twins(loop, tiles), *after) if tiles else loop


def _walks(loop: Parallel, uses: list[Use]) -> bool:
    """Whether a loop runs over all of a fragment, and is always at the element that it names.

    A loop that stores in one order, under a condition, what it uses in another may do so without a race:
    `if i < j: x[i, j] = x[j, i]`.
    """
    extents = uses[0].access.buffer.extents
    orders = {use.dims for use in uses}
    if len(orders) > 1 and any(use.stores and use.around for use in uses):
        return False
    return None not in orders and all(
        dim is None or loop.extents[dim] == extent
        for dims in orders
        for dim, extent in zip(dims or (), extents, strict=True)
    )


def _bound(loop: Parallel) -> set[str]:
    """The names that a loop binds or stores to inside: their values may differ from element to element."""
    names: set[str] = set()
    for node in walk(loop):
        if isinstance(node, Let):
            names.add(node.var.name)
        elif isinstance(node, (Store, AllocStmt)):
            names.add(node.buffer.name)
        elif isinstance(node, LoopStmt) and node is not loop:
            names.update(v.name for v in node.vars)
    return names


def _alike(loop: Parallel, use: Use) -> bool:
    """Whether all elements of the loop that meet at one of a fragment store the same, and all of them do.

    Each thread has the fragment's element for itself then, and stores what the others do.
    """
    dims = use.dims or ()
    missing = {v.name for k, v in enumerate(loop.vars) if k not in dims and loop.extents[k] > 1}
    if not missing or not isinstance(use.access, Store):
        return True
    moving = missing | _bound(loop)
    return not any(
        isinstance(part, (Var, Load)) and (part.name if isinstance(part, Var) else part.buffer.name) in moving
        for expr in (use.access.value, *use.around)
        for part in walk(expr)
    )
