"""In which order those come that nobody orders: blocks, and the elements of a loop at one atomic.

One run of the reference is one of many legal orders. What an atomic finds may be another in each, so a kernel
that uses it is run in several: an element that is the same in all of them is a result, one that is not is any
of what was found there (`Bounded.either`). Nobody can try all orders; five show what depends on them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from ..ir import Function, Node, Store
from ..ir.stmt import statements


@dataclass(frozen=True)
class Order:
    """An order other than that of the numbers alone: backwards, or one drawn from a seed at each use.

    `parts` is into how many parts the elements of a parallel loop are dealt, of which each is done with the
    whole body before the next one begins.
    """

    seed: int | None = None
    parts: int = 1
    forwards: bool = False
    _drawn: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.seed is not None:
            object.__setattr__(self, "_drawn", np.random.default_rng(self.seed))

    def of(self, count: int) -> Any:
        """The numbers below `count` in this order."""
        if self._drawn is not None:
            return self._drawn.permutation(count)
        return np.arange(count) if self.forwards else np.arange(count)[::-1]


def orders_of(function: Function) -> list[Order | None]:
    """The orders in which a kernel is to be run; None is that of the numbers, enough for most."""
    free = any(map(is_free, statements(function.body)))
    return [None, Order(), Order(seed=1), Order(parts=64), Order(parts=64, forwards=True)] if free else [None]


def is_free(node: Node) -> bool:
    """Whether what a node does depends on who comes first."""
    return isinstance(node, Store) and (node.found is not None or node.atomic in ("load", "store"))


def in_parts(state: Any, body: Callable[[Any], None]) -> None:
    """The body of a loop for its elements, part by part where the order says so; neighbours are apart."""
    order = state.order
    if order is None or order.parts == 1:
        body(state)
        return
    count = prod(state.box)
    numbers: Any = np.arange(count)
    dealt: Any = numbers.reshape(state.box) % order.parts
    for part in order.of(min(order.parts, count)):
        with state.narrowed(dealt == part):
            body(state)


def ordered(order: Order | None, numbers: Any) -> Any:
    """These numbers in an order."""
    listed = list(numbers)
    return listed if order is None else [listed[k] for k in order.of(len(listed))]
