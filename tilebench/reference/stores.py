"""Stores of single elements, inside parallel loops and outside them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir import Store
from .atomics import atomic_store
from .boxes import scatter, within, write_box
from .expressions import ExpressionRunner, box_shape, corner_of, too_late
from .own_memory import copied, store_local, store_var
from .owners import claim
from .races import note
from .state import Run, State


class StoreRunner(ExpressionRunner):
    """Prepares the stores of one function for one kind of numbers."""

    def store(self, store: Store) -> Run:
        buffer, place, numbers = store.buffer, store.place, self.numbers
        name, dtype, value = buffer.name, buffer.dtype, self.prepare(store.value)
        if store.version is not None:
            raise too_late(f"versions of {name}", place)
        if buffer.scope == "var":
            return lambda state: store_var(state, name, copied(value(state)), dtype)
        index = self.integers(store.index)
        if buffer.scope == "local":
            return lambda state: store_local(state, store, index(state), value(state))
        if store.atomic:
            return self.store_atomic(store, index, value)
        if not self.scope.parallel:

            def single(state: State) -> None:
                spot = tuple(int(position) for position in index(state))
                if within(buffer, spot):
                    new = value(state)
                    claim(state, buffer, spot, new, None, place)
                    numbers.put(state.names[name], spot, new, None, None, dtype)
                    state.touch(name, spot, None)

            return single
        return self.store_parallel(store, index, value)

    def store_atomic(self, store: Store, index: Run, value: Run) -> Run:
        combined = atomic_store(self.numbers, store, index, value)
        if not self.scope.parallel or store.buffer.name not in self.scope.suspects:
            return combined

        def run(state: State) -> None:
            new = None if store.looks else value(state)
            note(state, store.buffer, index(state), new, store.place, store)
            combined(state)

        return run

    def store_parallel(self, store: Store, index: Run, value: Run) -> Run:
        buffer, place, numbers = store.buffer, store.place, self.numbers
        box, plan = self.scope.extents, self.scope.box_of(store.index)
        if buffer.name in self.scope.suspects:
            return self.store_noted(store, index, value)
        general: Run = lambda state: scatter(state, buffer, index(state), value(state), place)  # noqa: E731
        if plan is None:
            return general
        extent, order, shape = box_shape(plan, box)
        if shape != box:  # an axis of the loop is in no index: several elements meet
            return general
        start = self.integers([axis.start for axis in plan])
        plain = order == tuple(range(len(order))) and shape == extent
        axes = [axis.axis for axis in plan if axis.axis is not None]
        axes += [k for k in range(len(box)) if k not in axes]
        inverse = tuple(axes)

        def turned(array: Any) -> Any:
            return np.broadcast_to(array, box).transpose(inverse).reshape(extent)

        def run(state: State) -> None:
            spot = corner_of(start(state))
            mask, doubt = state.mask, state.doubt
            new = value(state)
            if not plain:
                new = numbers.spread(new, box, buffer.dtype).transpose(inverse).reshape(extent)
                mask = None if mask is None else turned(mask)
                doubt = None if doubt is None else (turned(doubt[0]), turned(doubt[1]))
            write_box(state, buffer, spot, extent, new, mask, doubt, place)

        return run

    def store_noted(self, store: Store, index: Run, value: Run) -> Run:
        """A store whose locations are compared with those of other statements of the loop."""
        buffer, place = store.buffer, store.place

        def run(state: State) -> None:
            new, where = copied(value(state)), index(state)
            note(state, buffer, where, new, place)
            scatter(state, buffer, where, new, place)

        return run
