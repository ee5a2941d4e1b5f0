"""Atomic stores in NumPy: which accesses can be done together, and how two values combine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...ir import DType
from ..tracing.operators import operator_meaning
from .elements import scalar_meaning


def combination(how: str, dtype: DType) -> Callable[..., Any]:
    """What comes of an element and a value by `T.atomic_<how>`."""
    operator = {"add": "+", "or": "|"}.get(how)
    found = operator_meaning(operator, dtype) if operator else scalar_meaning(how, dtype)
    assert found is not None  # every dtype has a greater and a lesser of two
    return found


def turns(where: Sequence[Any], extents: tuple[int, ...]) -> Iterator[Any]:
    """The numbers of accesses in groups without two at one place, in their order at each place."""
    if not where or not where[0].size:
        return
    flat: Any = np.ravel_multi_index(tuple(where), extents)
    order: Any = np.argsort(flat, kind="stable")
    starts: Any = np.flatnonzero(np.r_[True, flat[order][1:] != flat[order][:-1]])
    lengths = np.diff(np.r_[starts, len(order)])
    for k in range(int(lengths.max())):
        yield order[starts[lengths > k] + k]
