"""Atomic stores in NumPy: which accesses can be done together, and how two values combine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from ...ir import DType
from ..tracing.operators import operator_meaning
from .elements import scalar_meaning


def combination(how: str, dtype: DType) -> Callable[..., Any]:
    """What comes of an element and a value by `T.atomic_<how>`."""
    if how in ("load", "store"):
        return _kept if how == "load" else _taken
    operator = {"add": "+", "or": "|"}.get(how)
    found = operator_meaning(operator, dtype) if operator else scalar_meaning(how, dtype)
    assert found is not None  # every dtype has a greater and a lesser of two
    return found


def _kept(old: Any, new: Any) -> Any:
    return old


def _taken(old: Any, new: Any) -> Any:
    return new


class TurnOrder(Protocol):
    """An order in which accesses come."""

    def of(self, count: int) -> Any: ...


def turns(where: Sequence[Any], extents: tuple[int, ...], by: TurnOrder | None = None) -> Iterator[Any]:
    """The numbers of accesses in groups without two at one place; at each place in order, or as `by` says."""
    if not where or not where[0].size:
        return
    flat: Any = np.ravel_multi_index(tuple(where), extents)
    first: Any = np.arange(int(flat.size)) if by is None else by.of(int(flat.size))
    sorted_: Any = np.argsort(flat[first], kind="stable")
    order: Any = first[sorted_]
    starts: Any = np.flatnonzero(np.r_[True, flat[order][1:] != flat[order][:-1]])
    lengths = np.diff(np.r_[starts, len(order)])
    for k in range(int(lengths.max())):
        yield order[starts[lengths > k] + k]
