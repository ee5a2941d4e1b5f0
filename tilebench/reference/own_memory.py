"""Scalars and arrays of each thread: stores to them, and what they hold after a parallel loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir import AllocStmt, Store, walk
from ..language.structure import Parallel
from .boxes import clipped, within
from .expressions import LOCAL, check_active, local_key
from .numbers import Numbers
from .state import State


def copied(value: Any) -> Any:
    """A value that later stores into its buffer do not change."""
    return value.copy() if hasattr(value, "copy") else value


def outer_locals(at: Parallel) -> list[Any]:
    """Buffers of each thread that a parallel loop stores to and that were made before it."""
    inner = {each.buffer.name for each in walk(at) if isinstance(each, AllocStmt)}
    found = {
        each.buffer.name: each.buffer
        for each in walk(at)
        if isinstance(each, Store) and each.buffer.scope in LOCAL and each.buffer.name not in inner
    }
    return list(found.values())


def collapsed(numbers: Numbers, held: Any, box: tuple[int, ...], buffer: Any) -> Any:
    """What a thread's buffer holds after a parallel loop: unknown unless all elements left the same."""
    plain = getattr(held, "value", held)
    if np.ndim(plain) <= buffer.rank:
        return held
    flat = numbers.spread(held, (*box, *buffer.shape), buffer.dtype).reshape((-1, *buffer.shape))
    values = getattr(flat, "value", flat)
    if bool(np.all(values == values[:1])):
        return flat[0]
    return numbers.new(buffer.shape, buffer.dtype)[()]


def store_var(state: State, name: str, value: Any, dtype: Any) -> None:
    """Assign a scalar of each thread; inactive elements keep theirs."""
    if state.mask is None:
        state.names[name] = value
        return
    numbers = state.numbers
    held = copied(numbers.spread(state.names[name], state.box, dtype))
    numbers.put(held, ..., numbers.spread(value, state.box, dtype), state.mask, state.doubt, dtype)
    state.names[name] = numbers.kept(held, dtype)


def store_local(state: State, at: Store, index: list[Any], value: Any) -> None:
    """Store into an array of each thread's own."""
    buffer = at.buffer
    held = state.names[buffer.name]
    ok = np.asarray(within(buffer, index))
    mask = state.mask
    if not ok.all():
        check_active(state, buffer, index, ok, at.place)
        index = clipped(buffer, index)
    key = local_key(state, held, buffer.rank, index)
    state.numbers.put(held, key, value, mask, state.doubt, buffer.dtype)
