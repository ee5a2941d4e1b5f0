"""Arrays whose elements lie in an order of their own, seen by their indices while a kernel runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..language.placement import placements
from ..language.structure import KernelLaunch
from ..layout.permutation import offsets
from .state import Run, State


def in_order(launch: KernelLaunch, run: Run) -> Run:
    """A launch that finds the element (i, j) of an array at (i, j), wherever its layout has put it."""
    orders = {name: offsets(order) for name, order in placements(launch).items()}
    if not orders:
        return run

    def moved(state: State, move: Any) -> None:
        for name, order in orders.items():
            state.names[name] = move(state.names[name], order)
            if name in state.sums:
                count, total = state.sums[name]
                state.sums[name] = move(count, order), move(total, order)
            for marks in (state.touched, state.owners, state.by):
                if name in marks:
                    marks[name][...] = move(marks[name].copy(), order)

    def ordered(state: State) -> None:
        moved(state, _seen)
        run(state)
        moved(state, _lying)

    return ordered


def _seen(array: Any, order: Any) -> Any:
    """An array, of plain or inexact numbers, by the indices of its elements."""
    return array.reshape(-1)[order]


def _lying(array: Any, order: Any) -> Any:
    """The reverse: each element where it lies in memory."""
    back = np.empty_like(order.reshape(-1))
    back[order.reshape(-1)] = np.arange(order.size)
    return array.reshape(-1)[back].reshape(array.shape)
