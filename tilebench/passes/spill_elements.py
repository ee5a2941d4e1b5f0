"""Loops over elements of fragments: each over a whole fragment, or on a shared tile in its place.

Threads own fixed elements of a fragment. A loop over some of them, `for i in T.Parallel(3): f[i] = x`
on a fragment of 256, becomes one over all of them in which each element asks whether it is meant.
Where an index is more than a variable of the loop, `y[i, j // 4] += x[i, j]` with a serial j inside, the
loop works on a shared tile, which has an address for every index.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..ir import Buffer, Const, Expr, Function, If, Load, Stmt, Store, all_of, map_children, walk, whole
from ..ir.rewrite import rename_buffers
from ..language.copy import Copy
from ..language.structure import Parallel
from .context import Context
from .sites import plain_dims
from .twins import Twins

NAME = "spill_elements"
Uses = Mapping[str, list[Load | Store]]


def spill_elements(function: Function, context: Context) -> Function:
    """The function in which a loop indexes a fragment by its own variables, each over a whole extent."""
    twins = Twins(function, context, NAME)

    def step(node: Any) -> Any:
        if isinstance(node, Parallel):
            uses = _fragments(node)
            loop = _widened(node, uses) if uses else node
            return _on_shared_tiles(loop, uses, twins)
        return map_children(node, step) if isinstance(node, Stmt) else node

    return step(function)


def _fragments(loop: Parallel) -> Uses:
    """The accesses of fragments in a loop, by name."""
    uses: dict[str, list[Load | Store]] = {}
    for node in walk(loop):
        if isinstance(node, (Load, Store)) and node.buffer.scope == "fragment":
            uses.setdefault(node.buffer.name, []).append(node)
    return uses


def _dims(loop: Parallel, accesses: list[Load | Store]) -> list[tuple[int | None, ...]] | None:
    """The dimensions of the loop that index a fragment, an access each; None where an index is another."""
    names = tuple(v.name for v in loop.vars)
    dims = [plain_dims(access.buffer, access.index, names) for access in accesses]
    return None if None in dims else [each for each in dims if each is not None]


def _widened(loop: Parallel, uses: Uses) -> Parallel:
    """The loop over the longest extent that its variables index, with a test of the old ones inside."""
    extents = list(loop.extents)
    for accesses in uses.values():
        for dims in _dims(loop, accesses) or ():
            for dim, extent in zip(dims, accesses[0].buffer.extents, strict=True):
                if dim is not None:
                    extents[dim] = max(extents[dim], extent)
    if extents == list(loop.extents):
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
    for name, accesses in uses.items():
        fragment = whole(accesses[0].buffer)
        if _walks(loop, accesses):
            continue
        allocation, tile = twins.twin(fragment, "shared", loop, "loop")
        tiles[name] = tile.buffer
        # What the loop does not write keeps its value, so the tile starts with the old ones.
        before += [allocation, Copy(fragment, tile, place=loop.place)]
        if any(isinstance(access, Store) for access in accesses):
            after.append(Copy(tile, fragment, place=loop.place))
    return (*before, rename_buffers(loop, tiles), *after) if tiles else loop


def _walks(loop: Parallel, accesses: list[Load | Store]) -> bool:
    """Whether a loop runs over all of a fragment, and is always at the element that it names."""
    extents = accesses[0].buffer.extents
    return (found := _dims(loop, accesses)) is not None and all(
        dim is None or loop.extents[dim] == extent
        for dims in found
        for dim, extent in zip(dims, extents, strict=True)
    )
