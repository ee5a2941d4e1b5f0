"""Atomics: each element of a parallel loop, and each block, in some order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..ir import Store
from ..language.meanings.atomics import turns
from ..language.meanings.inexact import DOUBLE_ROUNDOFF, Inexact, inexact, limits
from .boxes import spread_indices, within
from .numbers import BoundedNumbers, Numbers
from .own_memory import store_var
from .state import Run, State


def atomic_store(numbers: Numbers, store: Store, index: Run, value: Run) -> Run:
    """The statement as a function of the state."""
    buffer, place = store.buffer, store.place
    combined = _combined(numbers, store)

    def run(state: State) -> None:
        box = state.box or (1,)
        spread = [np.broadcast_to(np.asarray(each), box) for each in spread_indices(state, index(state))]
        ok = within(buffer, spread)
        active = np.broadcast_to(ok if state.mask is None else np.logical_and(ok, state.mask), box)
        taken = numbers.spread(value(state), box, buffer.dtype)[active]
        # As it is read from memory: what nobody has written is refused, and what is exact is plain.
        part = numbers.variable(numbers.kept(taken, buffer.dtype), None, place)
        where = tuple(each[active] for each in spread)
        there = None if store.found is None else numbers.zeros((int(active.sum()),), buffer.dtype)
        for turn in turns(where, buffer.extents, state.order):
            spot = tuple(each[turn] for each in where)
            old = numbers.read(state.names[buffer.name], spot, None, buffer.dtype, place)
            if there is not None:
                numbers.put(there, turn, old, None, None, buffer.dtype)
            if store.looks:
                continue
            new = combined(state, spot, old, part[turn])
            doubt = None if state.doubt is None else tuple(
                np.broadcast_to(each, box)[active][turn] for each in state.doubt
            )  # fmt: skip
            mask = None if doubt is None else np.ones(len(turn), np.bool_)
            numbers.put(state.names[buffer.name], spot, new, mask, doubt, buffer.dtype)  # type: ignore[arg-type]
        if not store.looks:
            state.touch(buffer.name, where, None)
        if store.found is not None:
            _tell(state, store, box, active, there)

    return run


def _tell(state: State, store: Store, box: tuple[int, ...], active: Any, there: Any) -> None:
    """What each element found goes into its scalar; 0 where there was nothing to find."""
    assert store.found is not None
    dtype, numbers = store.found.dtype, state.numbers
    found = numbers.zeros(box, dtype)
    found[active] = there
    told = numbers.kept(found, dtype)
    store_var(state, store.found.name, told if state.box else told[0], dtype)


def _combined(numbers: Numbers, store: Store) -> Callable[[State, Any, Any, Any], Any]:
    """What comes of an old value and a new one: `f(state, spot, old, new)`."""
    dtype = store.buffer.dtype
    if store.atomic == "add" and dtype.is_float and isinstance(numbers, BoundedNumbers):
        return lambda state, spot, old, new: _bounded_sum(state, store, spot, inexact(old), inexact(new))
    if store.atomic in ("load", "store"):
        return lambda state, spot, old, new: new
    operator = {"add": "+", "or": "|"}.get(store.atomic)
    apply = numbers.operator(operator, dtype) if operator else numbers.function(store.atomic, dtype)
    assert apply is not None  # every dtype has a greater and a lesser of two
    return lambda state, spot, old, new: apply(old, new)


def _bounded_sum(state: State, store: Store, spot: Any, old: Inexact, new: Inexact) -> Inexact:
    """A sum with a bound that holds for every order of its terms.

    Of n additions in any order each rounds a partial sum that is at most M, the sum of magnitudes, with
    M's own errors: n u M in all. Of that the term x adds M' + n |x|, where M' = M + |x|.
    """
    buffer = store.buffer
    if buffer.name not in state.sums:
        state.sums[buffer.name] = np.zeros(buffer.extents), np.zeros(buffer.extents)
    count, total = state.sums[buffer.name]
    most = np.abs(new.value) + new.error
    before = np.where(count[spot] > 0, total[spot], np.abs(old.value) + old.error)
    unit = buffer.dtype.unit_roundoff + DOUBLE_ROUNDOFF
    error = old.error + new.error + unit * (1 + count[spot] * unit) * (before + most + count[spot] * most)
    beyond = before + most + error > limits(buffer.dtype).overflow
    total[spot], count[spot] = before + most, count[spot] + 1
    with np.errstate(invalid="ignore"):
        return Inexact(old.value + new.value, np.where(beyond, np.inf, error))
