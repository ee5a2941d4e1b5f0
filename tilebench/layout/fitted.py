"""Layouts found in tables: the mixed-radix digits of offsets, as shapes, strides, swizzles and fragments.

A person writes a layout as a function of the indices. Asked at every element it is a table, and most such
tables are sums of digits (`i % 8`, `i // 8`) times strides, some of them swizzled.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .fragment import REPLICATED, Fragment, FragmentMode
from .shared import SharedLayout
from .swizzle import Swizzle

IntArray: TypeAlias = npt.NDArray[np.int64]
Digits: TypeAlias = list[tuple[int, Any]]
# Swizzles that are looked for: bits exchanged, elements kept together, and how far above.
_BITS, _BASES, _SHIFTS = range(1, 5), range(8), range(1, 9)


def digits(values: IntArray) -> Digits | None:
    """A function of 0, 1, 2, ..., 0 at 0, as digits (count, step), fastest first; None if it is no such sum.

    `values` has a row for each number, of one or several components. The last digit may reach past them.
    """
    found: Digits = []
    while len(values) > 1:
        step = values[1]
        numbers = np.arange(len(values)).reshape(-1, *(1,) * (values.ndim - 1))
        straight = (values == numbers * step).reshape(len(values), -1).all(axis=1)
        count = len(values) if straight.all() else int(np.argmin(straight))
        places = np.arange(len(values))
        rest = values[::count]
        if (values != values[places % count] + rest[places // count]).any():
            return None
        found.append((count, step.tolist()))
        values = rest
    return found


def _separate(table: IntArray) -> list[IntArray] | None:
    """What each dimension adds to a table that is 0 at its start; None if it is no sum of that kind."""
    axes: list[IntArray] = []
    total: Any = 0
    for dim in range(table.ndim):
        along = table[tuple(slice(None) if k == dim else 0 for k in range(table.ndim))]
        axes.append(along)
        total = total + along.reshape(tuple(-1 if k == dim else 1 for k in range(table.ndim)))
    return axes if (table == total).all() else None


def fitted_shared(table: IntArray) -> SharedLayout | None:
    """The layout of shared memory with these offsets, an entry an element; None if there is none."""
    if not table.size or table.ravel()[0] != 0:
        return None
    plain = _strided(table, None)
    return plain if plain is not None else _swizzled(table)


def _swizzled(table: IntArray) -> SharedLayout | None:
    for bits in _BITS:
        for base in _BASES:
            for shift in _SHIFTS:
                if shift < bits or table.max() >> (base + shift) == 0:
                    continue
                swizzle = Swizzle(bits, base, shift)
                found = _strided(np.asarray(swizzle(table), np.int64), swizzle)
                if found is not None:
                    return found
    return None


def _strided(table: IntArray, swizzle: Swizzle | None) -> SharedLayout | None:
    axes = _separate(table)
    if axes is None:
        return None
    shape: list[Any] = []
    strides: list[Any] = []
    for along in axes:
        found = digits(along)
        if found is None or any(step < 1 for _, step in found):
            return None
        modes = found or [(1, 1)]
        shape.append(modes[0][0] if len(modes) == 1 else tuple(count for count, _ in modes))
        strides.append(modes[0][1] if len(modes) == 1 else tuple(step for _, step in modes))
    return SharedLayout(tuple(shape), tuple(strides), swizzle)


def fitted_fragment(extents: tuple[int, ...], thread: IntArray, index: IntArray) -> Fragment | None:
    """The fragment in which an element has these threads and that index; None if it is no such one.

    `thread` is a table of (replicas, *extents), `index` one of the extents: numbers from 0 on.
    """
    threads, values = int(thread.max()) + 1, int(index.max()) + 1
    holders = np.full((threads, values), -1, np.int64)
    flat = np.arange(index.size).reshape(extents)
    for replica in thread:
        holders[replica, index] = flat
    if (holders < 0).any() or holders.size != thread.size:
        return None
    where = np.stack(np.unravel_index(holders, extents), axis=-1)
    if where[0, 0].any() or (where != where[:, :1] + where[:1]).any():
        return None
    by_thread, by_value = _modes(where[:, 0]), _modes(where[0])
    if by_thread is None or by_value is None or any(mode[1] == REPLICATED for mode in by_value):
        return None
    fitted = Fragment(extents, by_thread, by_value)
    return fitted if (fitted.threads, fitted.values) == (threads, values) else None


def _modes(coordinates: IntArray) -> tuple[FragmentMode, ...] | None:
    """The modes of a thread's or value's number, None where a digit steps along no one dimension."""
    found = digits(coordinates)
    if found is None:
        return None
    modes: list[FragmentMode] = []
    for count, step in found:
        moved = [dim for dim, by in enumerate(step) if by]
        if len(moved) > 1 or any(by < 0 for by in step):
            return None
        modes.append((count, moved[0], step[moved[0]]) if moved else (count, REPLICATED, 0))
    return tuple(modes)
