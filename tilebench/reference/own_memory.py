"""Scalars and arrays of each thread: stores to them, and what they hold after a parallel loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir import AllocStmt, Store, walk
from ..language.structure import Parallel
from .boxes import clipped, within
from .expressions import LOCAL, local_key
from .numbers import Numbers
from .state import State


def copied(value: Any) -> Any:
    """A value that later stores into its buffer do not change."""
    return value.copy() if hasattr(value, "copy") else value


def outer_locals(loop: Parallel) -> list[Any]:
    """Buffers of each thread that a parallel loop stores to and that were made before it."""
    inner = {node.buffer.name for node in walk(loop) if isinstance(node, AllocStmt)}
    buffers = {
        buffer.name: buffer
        for node in walk(loop)
        if isinstance(node, Store)
        for buffer in (node.buffer, node.found)
        if buffer is not None and buffer.scope in LOCAL and buffer.name not in inner
    }
    return list(buffers.values())


def collapsed(numbers: Numbers, value: Any, box: tuple[int, ...], buffer: Any) -> Any:
    """What a thread's buffer holds after a parallel loop: unknown unless all elements left the same."""
    plain = getattr(value, "value", value)
    if np.ndim(plain) <= buffer.rank:
        return value
    flat = numbers.spread(value, (*box, *buffer.shape), buffer.dtype).reshape((-1, *buffer.shape))
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
    values = copied(numbers.spread(state.names[name], state.box, dtype))
    numbers.put(values, ..., numbers.spread(value, state.box, dtype), state.mask, state.doubt, dtype)
    state.names[name] = numbers.kept(values, dtype)


def store_local(state: State, store: Store, index: list[Any], value: Any) -> None:
    """Store into an array of each thread's own."""
    buffer = store.buffer
    memory = state.names[buffer.name]
    ok = np.asarray(within(buffer, index))
    mask = state.mask
    if not ok.any():
        return
    if not ok.all():
        mask = ok if mask is None else np.logical_and(ok, mask)
        index = clipped(buffer, index)
    key = local_key(state, memory, buffer.rank, index)
    state.numbers.put(memory, key, value, mask, state.doubt, buffer.dtype)
