"""A case on each road: what the kernel leaves in its arrays, and which elements of it are wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.wellknown.case import Arrays, Case, allowed, widened
from tilebench.reference import run_reference
from tilebench.simulator import run_threaded

CARD = "sm_80"


def on_reference(case: Case, arrays: Arrays) -> Arrays:
    traced = case.kernel.using(target="cpu")(**case.parameters).compilation.functions["tile"]
    return {**arrays, **run_reference(traced, arrays)}


def on_cpu(case: Case, arrays: Arrays) -> Arrays:
    case.kernel.using(target="cpu")(**case.parameters)(*arrays.values())
    return arrays


def on_simulator(case: Case, arrays: Arrays) -> Arrays:
    compilation = case.kernel.using(target=f"cuda:{CARD}")(**case.parameters).compilation
    compilation.reach("threaded")
    run_threaded(compilation.functions["threaded"], arrays, warp=32)
    return arrays


ROADS = {"reference": on_reference, "cpu": on_cpu, "simulator": on_simulator}


def wrong(case: Case, road: str, seed: int = 0) -> list[str]:
    """A line for each output of a case on a road that is not what the oracle says."""
    arrays = case.drawn(seed)
    right = case.oracle(np, widened(arrays), case.parameters)
    after = ROADS[road](case, {name: array.copy() for name, array in arrays.items()})
    lines = [found for name, exact in right.items() if (found := compared(name, after[name], exact))]
    for name in arrays.keys() - right.keys():
        if arrays[name].tobytes() != after[name].tobytes():
            lines.append(f"{name} is no output, and was changed")
    return lines


def compared(name: str, got: Any, exact: Any) -> str:
    """What is wrong with an output, or nothing."""
    value = np.broadcast_to(exact.value, got.shape)
    error = np.abs(got.astype(np.float64) - value)
    error = np.where(got.astype(np.float64) == value, 0.0, error)
    bound = np.broadcast_to(allowed(exact, got.dtype.name), got.shape)
    outside = ~(error <= bound)
    if not outside.any():
        return ""
    where = tuple(int(i) for i in np.argwhere(outside)[0])
    return (
        f"{name}{list(where)}: {got[where]}, right {value[where]} +- {bound[where]:.3g}; "
        f"{outside.sum()} of {outside.size} are wrong"
    )
