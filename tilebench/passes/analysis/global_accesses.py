"""How statements access arrays in global memory, counted on the addresses that the lanes of a warp form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ...ir import Stmt, Var, walk
from ...ir.arith import evaluate
from ...ir.node import children
from ...ir.stmt import statements
from ...language.copy import Copy
from ...language.lowered.decisions import Instr
from ...language.structure import Parallel
from ...layout import Fragment
from ...layout.analysis import coalescing
from ...machine import Machine
from .sites import Site, SiteAccess

# Instructions of a statement that are looked at; they stand for all that it issues.
_LOOKED_AT = 4


@dataclass(frozen=True)
class GlobalAccess:
    """How one statement accesses one array in global memory.

    `element` and `width` are bytes of an element and of one access of a thread, `possible` the widest that
    its dtype and the machine have. `efficiency` is the share of moved bytes that is asked for. `in_flight` is
    what a thread asks for, in bytes, before it needs the first of them, `total` what a block does.
    """

    buffer: str
    written: bool
    element: int
    width: int
    possible: int
    efficiency: float
    in_flight: int
    total: int
    line: int


def global_access(site: Site, access: SiteAccess, machine: Machine, times: int = 1) -> GlobalAccess | None:
    """The figures of one access of a statement that a block does `times` times; None where they are not known
    before a call, or the stage has no mapping."""
    box, width = _mapping(site.node)
    bits = access.buffer.dtype.bits
    strides = _strides(access)
    if box is None or strides is None or bits < 8:
        return None
    size = bits // 8
    if width is not None and width < 0:
        elements = max(1, -width // size)
    else:
        elements = max(1, width or 1)
    # An index that does not follow the innermost digit of the mapping cannot be one access.
    elements = min(elements, box.contiguous_values(len(box.extents) - 1))
    elements = _beside(site, access, box, strides, elements)
    addresses = _addresses(site, access, box, strides, elements, machine.warp) * size
    found = coalescing(addresses, elements * size, machine.transaction_bytes)
    possible = min(max(machine.vector_bytes), size * _run(site, access, strides))
    line = _line(site, access)
    return GlobalAccess(
        access.buffer.name, access.written, size, elements * size, possible, found.efficiency,
        box.values * size, times * site.elements * size, line,
    )  # fmt: skip


def _mapping(node: Any) -> tuple[Fragment | None, int | None]:
    """The mapping of a statement, and the elements of one access where the stage says it."""
    if isinstance(node, Parallel):
        return node.map, node.vector
    by: Instr | None = getattr(node, "by", None)
    width = by.bytes if isinstance(node, Copy) and by is not None and by.bytes else None
    return getattr(node, "map", None), -width if width else None


def _line(site: Site, access: SiteAccess) -> int:
    """The line of the innermost statement of a site in which an access stands; 0 where it has none."""
    place = site.node.place
    for statement in statements((site.node,)):
        inner = [node for child in children(statement) if not isinstance(child, Stmt) for node in walk(child)]
        if any(getattr(node, "index", None) is access.index for node in (statement, *inner)):
            place = statement.place or place
    return place.line if place is not None else 0


def _beside(site: Site, access: SiteAccess, box: Fragment, strides: Sequence[int], elements: int) -> int:
    """How many of a thread's elements lie side by side in this array: a loop's vectors may be another's."""
    addresses = _places(site, access, strides, box.coordinates(0, np.arange(elements)))
    together = int(np.argmin([*(addresses - addresses[0] == np.arange(elements)), False]))
    return max(size for size in (1, 2, 4, 8, 16, 32) if size <= together and elements % size == 0)


def _strides(access: SiteAccess) -> tuple[int, ...] | None:
    """The strides of an array in elements; None where they are known only at a call."""
    extents = [extent for extent in access.buffer.shape if isinstance(extent, int)]
    if len(extents) != access.buffer.rank:
        return None
    return tuple(prod(extents[k + 1 :]) for k in range(len(extents)))


def _run(site: Site, access: SiteAccess, strides: Sequence[int]) -> int:
    """Elements that lie beside each other along the site's last dimension, as far as a row goes."""
    last = site.vars[-1] if site.vars else ""
    moving = [k for k, index in enumerate(access.index) if any(v.name == last for v in _variables(index))]
    if len(moving) != 1 or strides[moving[0]] != 1:
        return 1
    return site.extents[-1]


def _variables(expr: Any) -> list[Var]:
    return [node for node in walk(expr) if isinstance(node, Var)]


def _addresses(
    site: Site, access: SiteAccess, box: Fragment, strides: Sequence[int], elements: int, warp: int
) -> Any:
    """Element numbers (instructions, lanes) of the first accesses; what is no variable of the box is 0."""
    lanes = np.arange(min(warp, box.threads))
    firsts = np.arange(0, box.values, elements)[:_LOOKED_AT]
    coordinates = box.coordinates(lanes[None, :], firsts[:, None])
    return _places(site, access, strides, coordinates)


def _places(site: Site, access: SiteAccess, strides: Sequence[int], coordinates: Sequence[Any]) -> Any:
    """Element numbers of an array where a site's variables have these values."""
    where: dict[str, Any] = dict(zip(site.vars, coordinates, strict=True))
    shape = np.broadcast_shapes(*(np.shape(each) for each in coordinates))
    total = np.zeros(shape, np.int64)
    for index, stride in zip(access.index, strides, strict=True):
        # What is gathered by data counts as if all were the first element.
        total = total + np.broadcast_to(evaluate(index, where), shape) * stride
    return total
