"""Which register of a thread holds an element of a fragment."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ...errors import LayoutError
from ...ir import Buffer, Const, Expr, Node, Var, const_of, show
from ...ir.arith import INFINITE
from ...layout import Fragment
from ...layout.tiling import coalesced
from .emitter import Emitter
from .tiles import Coordinates


@lru_cache(maxsize=4096)
def with_vector(fragment: Fragment, width: int) -> Fragment:
    """The same map with its value modes coalesced and the first cut to `width` (where it is longer)."""
    value = coalesced(fragment.value)
    if value and width > 1 and value[0][0] > width:
        count, dim, step = value[0]
        value = ((width, dim, step), (count // width, dim, step * width), *value[1:])
    return Fragment(fragment.extents, fragment.thread, value)


def _thread_set(fragment: Fragment, relabel: dict[int, int]) -> set[tuple[int, int, int, int]]:
    """Digits (divisor, count, dim, step) of the dimensions named by `relabel`, coalesced."""
    digits: list[tuple[int, int, int, int]] = []
    for divisor, count, dim, step in fragment.thread_digits:
        # Past the extent there are ghosts alone: whose, does not matter.
        if count == 1 or dim not in relabel or step >= fragment.extents[dim]:
            continue
        label = relabel[dim]
        if digits:
            d, c, last, s = digits[-1]
            if last == label and s * c == step and d * c == divisor:
                digits[-1] = (d, c * count, last, s)
                continue
        digits.append((divisor, count, label, step))
    return set(digits)


@lru_cache(maxsize=4096)
def value_strides(
    mapping: Fragment, layout: Fragment, dims: tuple[int | None, ...]
) -> tuple[int, ...] | None:
    """What each value digit of a mapping adds to the register number in a fragment's layout.

    `dims[k]` is the dimension of the mapping that dimension k of the fragment is indexed with, None for
    a dimension of extent 1. None when a thread lacks an element it asks for.
    """
    relabel = {dim: k for k, dim in enumerate(dims) if dim is not None}
    threads = _thread_set(layout, {k: k for k, dim in enumerate(dims) if dim is not None})
    if _thread_set(mapping, relabel) != threads or not _are_there(mapping, layout, dims):
        return _strides_by_search(mapping, layout, dims)
    digits: dict[int, list[tuple[int, int, int]]] = {}
    divisor = 1
    for count, dim, step in coalesced(layout.value):
        digits.setdefault(dim, []).append((step, count, divisor))
        divisor *= count
    strides: list[int] = []
    for _, count, dim, step in mapping.value_digits:
        if dim not in relabel or count == 1:
            strides.append(0)
            continue
        matches = [
            (step // s * d)
            for s, c, d in digits.get(relabel[dim], [])
            if step % s == 0 and step * count <= s * c
        ]
        if not matches:
            return _strides_by_search(mapping, layout, dims)
        strides.append(matches[0])
    return tuple(strides)


def _are_there(mapping: Fragment, layout: Fragment, dims: tuple[int | None, ...]) -> bool:
    """Whether threads that have ghosts alone in a layout have nothing else in the mapping."""
    empty = [
        digit
        for digit in layout.thread_digits
        if digit.modulus > 1
        and digit.dim >= 0
        and (dims[digit.dim] is None or digit.step >= layout.extents[digit.dim])
    ]
    if not empty or mapping.threads != layout.threads:
        return not empty
    working = np.flatnonzero(mapping.real.any(axis=1))
    return all(not (working // digit.divisor % digit.modulus).any() for digit in empty)


def _strides_by_search(
    mapping: Fragment, layout: Fragment, dims: tuple[int | None, ...]
) -> tuple[int, ...] | None:
    """The same by enumerating all threads and values, for maps whose modes are cut differently."""
    if None in dims or mapping.threads != layout.threads:
        return None
    table = mapping.value_map(layout, [dim for dim in dims if dim is not None])
    if table is None:
        return None
    strides = tuple(table[d.divisor] - table[0] if d.modulus > 1 else 0 for d in mapping.value_digits)
    for value, number in enumerate(table):
        digits = zip(mapping.value_digits, strides, strict=True)
        linear = sum(value // d.divisor % d.modulus * stride for d, stride in digits)
        if linear + table[0] != number or table[0] != 0:
            return None
    return strides


def register_of(
    emitter: Emitter,
    buffer: Buffer,
    index: tuple[Expr, ...],
    version: Expr | None,
    element: Coordinates,
    node: Node,
) -> Expr:
    """The number of the register that holds an element of a fragment in this thread.

    Raises `LayoutError` when the thread does not hold it, or its number differs from thread to thread.
    """
    tile = emitter.fragments[buffer.name]
    lead: Expr = Const(0)
    if version is not None:
        check_version(emitter, buffer.name, version, tile.local.size // max(1, tile.layout.values))
        lead = version * tile.layout.values
    dims = _dimensions(emitter, tile.layout, index, element)
    if dims is None or element.map is None:
        return lead + _replicated_register(emitter, buffer, index, node)
    _check_extents(tile.layout, dims, element, buffer.name, node)
    strides = value_strides(element.map, tile.layout, dims)
    if strides is None:
        raise LayoutError(
            "the thread that computes an element does not hold the element of {name} it needs",
            at=element.place or node.place, name=buffer.name, loop=element.map, layout=tile.layout,
            expected="the layout of {name} and the thread mapping to agree",
            found="mapping {loop}, layout {layout}",
        )  # fmt: skip
    number: Expr = lead
    for digit, stride in zip(element.digits, strides, strict=True):
        number = number + digit * stride
    return number


def _check_extents(
    layout: Fragment, dims: tuple[int | None, ...], element: Coordinates, name: str, node: Node
) -> None:
    """Refuse a loop over a part of a fragment: a thread's registers beyond it would be stored to as well."""
    assert element.map is not None
    for extent, dim in zip(layout.extents, dims, strict=True):
        if dim is not None and extent != element.map.extents[dim]:
            raise LayoutError(
                "a loop over {count} elements uses {name}, which has {extent} there",
                at=element.place or node.place, count=element.map.extents[dim], name=name, extent=extent,
                expected="a loop over all of them, with a condition inside",
            )  # fmt: skip


def check_version(emitter: Emitter, name: str, version: Expr, count: int) -> None:
    """Raises `LayoutError` where a version may be one that a buffer has not."""
    low, high = emitter.facts.bounds(version)
    if (low >= 0 and high < count) or high >= INFINITE[1] or low <= INFINITE[0]:
        return
    raise LayoutError(
        "the version {version} of {name} may be number {last}, and they count from 0 to {most}", name=name,
        version=show(version), last=high if high >= count else low, most=count - 1, needed=high + 1,
        found="versions={count}", count=count, expected="versions={needed} where {name} is allocated",
    )  # fmt: skip


def _dimensions(
    emitter: Emitter, layout: Fragment, index: tuple[Expr, ...], element: Coordinates
) -> tuple[int | None, ...] | None:
    """The coordinate that indexes each dimension; None where an index is something else."""
    dims: list[int | None] = []
    for extent, part in zip(layout.extents, index, strict=True):
        if isinstance(part, Var) and part.name in element.vars:
            dims.append(element.vars.index(part.name))
        elif extent == 1 and const_of(emitter.facts.resolved(part)) == 0:
            dims.append(None)
        else:
            return None
    return tuple(dims)


def _replicated_register(emitter: Emitter, buffer: Buffer, index: tuple[Expr, ...], node: Node) -> Expr:
    """The register of a fragment that every thread holds whole, at any index."""
    layout = emitter.fragments[buffer.name].layout
    if any(dim >= 0 and count > 1 for count, dim, _ in layout.thread):
        raise LayoutError(
            "{name} is spread over threads, and indexed by more than the variables of the loop",
            at=node.place, name=buffer.name, layout=layout,
            expected="a fragment that every thread holds whole, or one index variable a dimension",
            found="layout {layout}",
        )  # fmt: skip
    number: Expr = Const(0)
    for divisor, count, dim, step in layout.value_digits:
        digit = _digit(emitter, index[dim], step, count)
        number = number + digit * divisor
    return number


def _digit(emitter: Emitter, part: Expr, step: int, count: int) -> Expr:
    """`part // step % count`."""
    return emitter.facts.mod(emitter.facts.floordiv(part, step), count)
