"""Which elements of a case are wrong on a road."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.roads import ROADS
from tests.wellknown.case import Case, widened
from tilebench.library.near import allowed, overflowed


def wrong(case: Case, road: str, seed: int = 0) -> list[str]:
    """A line for each output of a case on a road that is not what the oracle says."""
    arrays = case.drawn(seed)
    right = case.oracle(np, widened(arrays), case.parameters)
    after = ROADS[road](case.kernel, arrays, **case.parameters)
    lines = [found for name, exact in right.items() if (found := compared(name, after[name], exact))]
    for name in arrays.keys() - right.keys():
        if arrays[name].tobytes() != after[name].tobytes():
            lines.append(f"{name} is no output, and was changed")
    return lines


def compared(name: str, got: Any, exact: Any) -> str:
    """What is wrong with an output, or nothing."""
    value, found = np.broadcast_to(exact.value, got.shape), got.astype(np.float64)
    right = (found == value) | overflowed(np, found, exact, got.dtype.name)
    error = np.where(right, 0.0, np.abs(found - value))
    bound = np.broadcast_to(allowed(exact, got.dtype.name), got.shape)
    outside = ~(error <= bound)
    if not outside.any():
        return ""
    where = tuple(int(i) for i in np.argwhere(outside)[0])
    return (
        f"{name}{list(where)}: {got[where]}, right {value[where]} +- {bound[where]:.3g}; "
        f"{outside.sum()} of {outside.size} are wrong"
    )
