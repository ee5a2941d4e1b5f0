"""What runs: the values of names, and which elements of a parallel loop are active."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .numbers import Doubt, Numbers
from .orders import Order

Run = Callable[["State"], Any]


@dataclass(eq=False)
class State:
    """One block being run. `box` is the extents of the open parallel loop, empty outside one.

    `mask` is None where every element is active, else bools that broadcast to `box`; `doubt` says
    which elements do what stands here only by rounding. `only` are the numbers of the blocks to run
    (x fastest; None: all), `order` is how blocks and atomics follow each other, and
    `touched` marks what they stored, for the buffers in it. `block` is the number of the running block
    from 1, and `owners` which block stored last (see `owners.claim`). `safe` are the values outside of
    arrays, where they are not 0. `watched` collects accesses of the open loop (see `races.note`), `sums` how
    many terms atomic sums have taken, and the sum of their magnitudes.
    """

    numbers: Numbers
    names: dict[str, Any] = field(default_factory=dict[str, Any])
    box: tuple[int, ...] = ()
    mask: Any = None
    doubt: Doubt = None
    only: frozenset[int] | None = None
    order: Order | None = None
    touched: dict[str, Any] = field(default_factory=dict[str, Any])
    block: int = 0
    owners: dict[str, Any] = field(default_factory=dict[str, Any])
    watched: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    safe: dict[str, Any] = field(default_factory=dict[str, Any])
    sums: dict[str, tuple[Any, Any]] = field(default_factory=dict[str, tuple[Any, Any]])
    by: dict[str, Any] = field(default_factory=dict[str, Any])

    def touch(self, name: str, key: Any, mask: Any) -> None:
        """Mark elements as stored, where anybody wants to know."""
        blocks = self.by.get(name)
        if blocks is not None:
            blocks[key] = self.block if mask is None else np.where(mask, self.block, blocks[key])
        marks = self.touched.get(name)
        if marks is not None:
            marks[key] = True if mask is None else np.logical_or(marks[key], mask)

    def lanes(self) -> list[Any]:
        """The index of each element in each dimension of the box, for arrays that each element has."""
        return np.ix_(*(np.arange(n) for n in self.box)) if self.box else []  # pyright: ignore[reportReturnType]

    @contextmanager
    def narrowed(self, lanes: Any, doubt: Doubt = None) -> Generator[bool]:
        """Only `lanes` stay active. Gives whether any are."""
        before = self.mask, self.doubt
        self.mask = lanes if before[0] is None else np.logical_and(before[0], lanes)
        if doubt is not None and before[1] is not None:
            self.doubt = np.logical_or(before[1][0], doubt[0]), np.logical_and(before[1][1], doubt[1])
        elif doubt is not None:
            self.doubt = doubt
        try:
            yield bool(np.any(self.mask))
        finally:
            self.mask, self.doubt = before
