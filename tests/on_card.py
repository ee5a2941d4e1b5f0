"""A kernel of one block, as text, where a processor has no meaning of it: reference and simulator agree."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.everywhere import SQUARE, arrays_of, kernel_of
from tests.simulated import run_threaded
from tilebench.reference import run_reference


def simulated(body: str, head: str = SQUARE, threads: int = 256, arch: str = "sm_90a") -> dict[str, Any]:
    """What a kernel leaves in its arrays in the simulator; its CUDA text is made too."""
    kernel = kernel_of(body, head, threads).using(target=f"cuda:{arch}")()
    kernel.stage("cuda")
    arrays = arrays_of(kernel.compilation.reference)
    run_threaded(kernel.compilation.functions["threaded"], arrays, warp=32)
    return arrays


def on_card(
    body: str, head: str = SQUARE, threads: int = 256, arch: str = "sm_90a", exact: bool = True
) -> dict[str, Any]:
    """What a kernel leaves in its arrays, the same in the reference and in the simulator."""
    function = kernel_of(body, head, threads).using(target=f"cuda:{arch}")().compilation.reference
    arrays = arrays_of(function)
    expected = {**arrays, **run_reference(function, {name: each.copy() for name, each in arrays.items()})}
    found = simulated(body, head, threads, arch)
    for name, wanted in expected.items():
        bound = 0.0 if exact or wanted.dtype.kind != "f" else 1e-4
        one, two = found[name].astype(np.float64), wanted.astype(np.float64)
        np.testing.assert_allclose(one, two, rtol=bound, atol=bound, err_msg=name)
    return expected
