"""Reading and writing boxes and scattered elements of a buffer, with what happens outside it.

Outside a buffer reads give zero and writes are skipped, on the chip as in arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import LanguageError, Place
from ..ir import Buffer
from .numbers import Doubt
from .owners import claim
from .state import State


def inside(shape: Sequence[int], start: Sequence[int], extent: Sequence[int]) -> bool:
    """Whether a whole box lies inside a buffer."""
    return all(s >= 0 and s + e <= n for s, e, n in zip(start, extent, shape, strict=True))


def _slices(start: Sequence[int], extent: Sequence[int]) -> tuple[slice, ...]:
    return tuple([slice(s, s + e) for s, e in zip(start, extent, strict=True)])


def _cut(
    shape: Sequence[int], start: Sequence[int], extent: Sequence[int]
) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """The part of a box inside a buffer: as slices of the buffer, and of the box."""
    low = [min(max(s, 0), n) for s, n in zip(start, shape, strict=True)]
    high = [max(min(s + e, n), a) for s, e, n, a in zip(start, extent, shape, low, strict=True)]
    outer = tuple(slice(a, b) for a, b in zip(low, high, strict=True))
    return outer, tuple(slice(a - s, b - s) for a, b, s in zip(low, high, start, strict=True))


def read_box(
    state: State, buffer: Buffer, start: Sequence[int], extent: Sequence[int], mask: Any, place: Place | None
) -> Any:
    """The box as an array of shape `extent`; it may be a view. `mask` are the elements that are meant."""
    memory, numbers = state.names[buffer.name], state.numbers
    if inside(buffer.extents, start, extent):
        return numbers.read(memory, _slices(start, extent), mask, buffer.dtype, place)
    padded = numbers.zeros(tuple(extent), buffer.dtype)
    if buffer.name in state.safe:
        padded[...] = numbers.spread(state.safe[buffer.name], tuple(extent), buffer.dtype)
    outer, inner = _cut(buffer.extents, start, extent)
    padded[inner] = memory[outer]
    return numbers.read(padded, ..., mask, buffer.dtype, place)


def write_box(
    state: State, buffer: Buffer, start: Sequence[int], extent: Sequence[int], value: Any, mask: Any,
    doubt: Doubt, place: Place | None,
) -> None:  # fmt: skip
    """Store a value of shape `extent` (or one that broadcasts to it) where `mask` holds."""
    memory, numbers = state.names[buffer.name], state.numbers
    if inside(buffer.extents, start, extent):
        key = _slices(start, extent)
        claim(state, buffer, key, value, mask, place)
        numbers.put(memory, key, value, mask, doubt, buffer.dtype)
        state.touch(buffer.name, key, mask)
        return
    outer, inner = _cut(buffer.extents, start, extent)
    shape = tuple(extent)
    part = numbers.spread(value, shape, buffer.dtype)[inner]
    kept = None if mask is None else np.broadcast_to(mask, shape)[inner]
    unsure = None if doubt is None else cut_doubt(doubt, shape, inner)
    claim(state, buffer, outer, part, kept, place)
    numbers.put(memory, outer, part, kept, unsure, buffer.dtype)
    state.touch(buffer.name, outer, kept)


def cut_doubt(doubt: tuple[Any, Any], shape: tuple[int, ...], key: Any) -> tuple[Any, Any]:
    """The doubt about part of a box."""
    return np.broadcast_to(doubt[0], shape)[key], np.broadcast_to(doubt[1], shape)[key]


def spread_indices(state: State, index: Sequence[Any]) -> list[Any]:
    """Indices as arrays of one shape: the box, with extent 1 where none of them varies."""
    arrays = [np.asarray(each) for each in index]
    shape = np.broadcast_shapes((1,) * len(state.box), *(each.shape for each in arrays))
    return [np.broadcast_to(each, shape) for each in arrays]


def clipped(buffer: Buffer, index: Sequence[Any]) -> list[Any]:
    """Indices moved into the buffer."""
    return [np.clip(each, 0, n - 1) for each, n in zip(index, buffer.extents, strict=True)]


def within(buffer: Buffer, index: Sequence[Any]) -> Any:
    """Where indices lie inside the buffer."""
    ok: Any = np.True_
    for coordinate, extent in zip(index, buffer.shape, strict=True):
        ok = ok & (coordinate >= 0) & (coordinate < extent)
    return ok


def gather(state: State, buffer: Buffer, index: Sequence[Any], place: Place | None) -> Any:
    """Elements at any indices, each that of one element of the box."""
    memory, numbers = state.names[buffer.name], state.numbers
    spread = spread_indices(state, index)
    ok = within(buffer, spread)
    whole = bool(np.all(ok))
    locations = tuple(spread if whole else clipped(buffer, spread))
    elements = numbers.read(memory, locations, state.mask, buffer.dtype, place)
    if whole:
        return elements
    outside = state.safe.get(buffer.name)
    outside = numbers.constant(0, buffer.dtype) if outside is None else outside
    return numbers.select(ok, elements, outside, buffer.dtype)


def scatter(state: State, buffer: Buffer, index: Sequence[Any], value: Any, place: Place | None) -> None:
    """Store at any indices. Raises `LanguageError` where elements store different values to one location."""
    memory, numbers = state.names[buffer.name], state.numbers
    box = state.box
    spread = [np.broadcast_to(np.asarray(each), box) for each in index]
    ok = within(buffer, spread)
    active = np.broadcast_to(ok if state.mask is None else np.logical_and(ok, state.mask), box)
    locations = tuple(each[active] for each in spread)
    if not active.any():
        return
    part = numbers.spread(value, box, buffer.dtype)[active]
    check_race(buffer, locations, part, active, place)
    doubt = None if state.doubt is None else cut_doubt(state.doubt, box, active)
    mask = None if doubt is None else np.ones(part.shape, np.bool_)
    claim(state, buffer, locations, part, mask, place)
    numbers.put(memory, locations, part, mask, doubt, buffer.dtype)
    state.touch(buffer.name, locations, None)


def position(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index of an element from its row-major number."""
    digits: list[int] = []
    for extent in reversed(shape):
        flat, k = divmod(flat, extent)
        digits.append(k)
    return tuple(reversed(digits))


def check_race(
    buffer: Buffer, locations: tuple[Any, ...], part: Any, active: Any, place: Place | None
) -> None:
    """Compare every value stored to a location with the others stored to it."""
    flat: Any = np.ravel_multi_index(locations, buffer.extents)
    order = np.argsort(flat, kind="stable")
    same = flat[order][1:] == flat[order][:-1]
    if not same.any():
        return
    values: Any = getattr(part, "value", part)
    before, after = values[order][:-1], values[order][1:]
    differs = same & (before != after) & ~((before != before) & (after != after))
    if not differs.any():
        return
    first = int(np.argmax(differs))
    one, two = order[first], order[first + 1]
    lanes = np.argwhere(active)
    where = tuple(int(each[one]) for each in locations)
    raise LanguageError(
        "two elements of T.Parallel store different values to {name}[{index}]", at=place, name=buffer.name,
        index=", ".join(map(str, where)), a=tuple(map(int, lanes[one])), b=tuple(map(int, lanes[two])),
        x=values[one], y=values[two], expected="one store a location, or equal values",
        found="element {a} stores {x}, element {b} stores {y}",
        hint="reduce with T.reduce_sum and its kin, or loop over that index with T.serial inside",
    )  # fmt: skip
