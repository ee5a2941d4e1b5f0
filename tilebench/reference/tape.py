"""What numbers were made of, operation by operation, so that one can say afterwards which were needed.

Each number carries a mark. Marks above 0 are places on the tape: where the number was made. An operation that
no stored element needs, for it was done in a part of a tile that sticks out of the problem, is not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

# Marks of what is on no tape: zeros that stand outside of arrays, and numbers that a kernel makes itself.
OUTSIDE, OWN, GIVEN = -1, 0, 1

# From the needed places of an entry: how many operations they took, and which marks they came of.
Back = Callable[[Any], tuple[float, Sequence[Any]]]


class Tape:
    """Entries in the order in which they were made; `place` gives marks to the results of one."""

    def __init__(self) -> None:
        self._next = GIVEN + 1
        self._entries: list[tuple[int, tuple[int, ...], Back]] = []
        self._asked: list[Any] = []

    def place(self, shape: tuple[int, ...], back: Back) -> Any:
        """Marks for results of a shape."""
        count = int(np.prod(shape, dtype=np.int64))
        first, self._next = self._next, self._next + count
        self._entries.append((first, shape, back))
        return np.arange(first, self._next, dtype=np.float64).reshape(shape)

    def ask(self, marks: Any) -> None:
        """These are needed whatever is stored: a condition or an index came of them."""
        self._asked.append(np.array(marks).reshape(-1))

    def operations(self, stored: Sequence[Any]) -> float:
        """How many operations the stored numbers needed, from their marks."""
        needed = np.zeros(self._next, np.bool_)
        for marks in (*stored, *self._asked):
            _set(needed, marks)
        total = 0.0
        for first, shape, back in reversed(self._entries):
            count = int(np.prod(shape, dtype=np.int64))
            here = needed[first : first + count].reshape(shape)
            if here.any():
                found, sources = back(here)
                total += found
                for marks in sources:
                    _set(needed, marks)
        return total


def _set(needed: Any, marks: Any) -> None:
    flat = np.asarray(marks).reshape(-1)
    needed[flat[flat > GIVEN].astype(np.int64)] = True


def elementwise(tape: Tape, op: str, marks: Sequence[Any], shape: tuple[int, ...], weight: float) -> Any:
    """Marks of what one operation gives for each element. With a zero from outside there is nothing to do."""
    spread = [np.array(np.broadcast_to(each, shape)) for each in marks]  # memory goes on to change
    counted = np.logical_and.reduce([each > OUTSIDE for each in spread])
    own = np.logical_and.reduce([each == OWN for each in spread])
    if not weight and len(spread) == 1:
        return spread[0]

    def back(needed: Any) -> tuple[float, Sequence[Any]]:
        return weight * int(np.count_nonzero(needed & counted)), [each[needed] for each in spread]

    made = tape.place(shape, back)
    made = made if weight else np.where(own, OWN, made)
    # A sum with a zero from outside is its other term; anything else with one is outside itself.
    kept = np.logical_or.reduce(
        [each > OUTSIDE for each in (spread if op in ("+", "min", "max") else spread[:1])]
    )
    return np.where(counted | (kept & (op in ("+", "-", "min", "max"))), made, OUTSIDE)


def product(tape: Tape, a: Any, b: Any, before: Any | None) -> Any:
    """Marks of a matrix product of (m, k) by (k, n), with what was added to."""
    a, b, before = a.copy(), b.copy(), None if before is None else before.copy()
    left, right = a > OUTSIDE, b > OUTSIDE
    terms: Any = left.astype(np.int64) @ right.astype(np.int64)

    def back(needed: Any) -> tuple[float, Sequence[Any]]:
        rows = a[np.any(needed, 1)]
        columns = b[:, np.any(needed, 0)]
        sources = [rows, columns] if before is None else [rows, columns, before[needed]]
        return 2.0 * int(terms[needed].sum()), sources

    made = tape.place(terms.shape, back)
    outside = terms == 0
    if before is not None:
        return np.where(outside & (before <= OWN), np.where(before == OWN, OUTSIDE, before), made)
    return np.where(outside, OUTSIDE, made)


def reduction(tape: Tape, source: Any, dim: int, before: Any | None, weight: float) -> Any:
    """Marks of a reduction along a dimension."""
    source, before = source.copy(), None if before is None else before.copy()
    counted = source > OUTSIDE

    def back(needed: Any) -> tuple[float, Sequence[Any]]:
        wide = np.broadcast_to(np.expand_dims(needed, dim), source.shape)
        sources = [source[wide]] if before is None else [source[wide], before.reshape(needed.shape)[needed]]
        return weight * int(np.count_nonzero(wide & counted)), sources

    axis = dim % source.ndim
    made = tape.place((*source.shape[:axis], *source.shape[axis + 1 :]), back)
    empty = ~counted.any(dim)
    return np.where(empty if before is None else empty & (before.reshape(made.shape) <= OWN), OUTSIDE, made)


def scan(tape: Tape, source: Any, dim: int, backwards: bool, weight: float) -> Any:
    """Marks of running sums along a dimension: each needs all in front of it."""
    source = source.copy()
    counted = source > OUTSIDE

    def back(needed: Any) -> tuple[float, Sequence[Any]]:
        turned = needed if backwards else np.flip(needed, dim)
        before = np.logical_or.accumulate(turned, axis=dim)
        before = before if backwards else np.flip(before, dim)
        return weight * int(np.count_nonzero(before & counted)), [source[before]]

    return np.where(counted, tape.place(source.shape, back), OUTSIDE)
