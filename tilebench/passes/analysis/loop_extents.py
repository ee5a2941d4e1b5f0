"""How many indices of a parallel loop reach true elements of the problem."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ...ir import Buffer, Call, Load, Node, Store, Var, children, walk
from ...language.structure import Parallel
from .loop_points import Where, value_at

# The true extents of a tile at some points of the loops; None where nothing is known of it.
Known = Callable[[Buffer, Where], list[Any] | None]


def inside(start: Any, size: Any, limit: Any) -> Any:
    """How many of `size` indices from `start` on lie in [0, limit)."""
    return np.maximum(np.minimum(start + size, limit) - np.maximum(start, 0), 0)


def accesses(node: Node) -> list[Store | Load]:
    """The accesses of a statement, those of global arrays first: they say most surely what is true.

    Left out are those in a choice between two accesses: an element that is not in one is in the other.
    """
    found = [access for access in _certain(node) if isinstance(access, (Store, Load))]
    return sorted(found, key=lambda access: access.buffer.scope != "global")


def _certain(node: Node) -> Iterator[Node]:
    """A node and what is in it, without both sides of a choice where both read memory."""
    waiting = [node]
    while waiting:
        at = waiting.pop()
        yield at
        chosen = isinstance(at, Call) and at.word == "if_then_else" and all(map(_reads, at.args[1:]))
        waiting.extend(reversed(children(at)[: 1 if chosen else None]))


def _reads(expr: Node) -> bool:
    return any(isinstance(part, Load) for part in walk(expr))


def reached(node: Parallel, where: Where, known: Known, without: str = "") -> Mapping[str, Any]:
    """How many values of each variable of a parallel loop reach true elements; those that are known.

    The first access of a global array in which a variable moves alone decides; without one, the tile with
    the fewest true elements there, of those other than `without`.
    """
    extents = {var.name: extent for var, extent in zip(node.vars, node.extents, strict=True)}
    counts: dict[str, Any] = {}
    settled: set[str] = set()
    for access in accesses(node):
        of_array = access.buffer.scope == "global"
        limits = list(access.buffer.extents) if of_array else known(access.buffer, where)
        if limits is None or access.buffer.name == without:
            continue
        for index, limit in zip(access.index, limits, strict=True):
            var = alone(index, extents)
            if var is None or var in settled:
                continue
            base = first_of(index, var, extents[var], where)
            if base is None:
                continue
            here = inside(base, extents[var], limit)
            counts[var] = np.minimum(counts[var], here) if var in counts else here
            if of_array:
                settled.add(var)
    return counts


def alone(index: Any, names: Mapping[str, int]) -> str | None:
    """The one variable of the loop in an index."""
    moving = {part.name for part in walk(index) if isinstance(part, Var) and part.name in names}
    return next(iter(moving)) if len(moving) == 1 else None


def first_of(index: Any, var: str, extent: int, where: Where) -> Any:
    """Where an index begins that goes on by 1 with its variable; None for one that goes otherwise."""
    if isinstance(index, Var):
        return 0
    first, last = (value_at(index, {**where, var: turn}) for turn in (0, extent - 1))
    if first is None or last is None or np.any(np.asarray(last) - first != extent - 1):
        return None
    return first
