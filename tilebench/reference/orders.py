"""In which order those come that nobody orders: blocks, and the elements of a loop at one atomic.

One run of the reference is one of many legal orders. What an atomic finds may be another in each, so a kernel
that uses it is run in several: an element that is the same in all of them is a result, one that is not is any
of what was found there (`Bounded.either`). Nobody can try all orders; three show what depends on them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..ir import Function, Store
from ..ir.stmt import statements


@dataclass(frozen=True)
class Order:
    """An order other than that of the numbers: backwards, or one drawn from a seed at each use."""

    seed: int | None = None
    _drawn: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.seed is not None:
            object.__setattr__(self, "_drawn", np.random.default_rng(self.seed))

    def of(self, count: int) -> Any:
        """The numbers below `count` in this order."""
        return np.arange(count)[::-1] if self._drawn is None else self._drawn.permutation(count)


def orders_of(function: Function) -> list[Order | None]:
    """The orders in which a kernel is to be run; None is that of the numbers, enough for most."""
    free = any(
        isinstance(node, Store) and (node.found is not None or node.atomic in ("load", "store"))
        for node in statements(function.body)
    )
    return [None, Order(), Order(seed=1)] if free else [None]


def ordered(order: Order | None, numbers: Any) -> Any:
    """These numbers in an order."""
    listed = list(numbers)
    return listed if order is None else [listed[k] for k in order.of(len(listed))]
