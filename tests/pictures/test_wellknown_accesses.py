"""Passes over the banks and sectors of well-known kernels, worked out from their code and counted in runs."""

from __future__ import annotations

import pytest

from tests.pictures.test_accesses import COUNTS
from tests.simulated import run_threaded
from tests.wellknown.case import Case
from tests.wellknown.table import CASES
from tilebench.pictures.warp_accesses import warp_accesses
from tilebench.simulator import Counters

# A few of each family: products with edges, attention and its gradients, reductions, states, narrow dtypes.
NAMES = (
    "gemm NN float16", "gemm TT float32", "gemm bias silu", "attention bhsd 2/2 heads 70x70x48 float16",
    "attention_backward causal 2/2 heads 70x16 float32", "latent_decode 20 heads 70x64+16 float16",
    "gemv_by_blocks 70x200 float16", "gemm_of_int4 17x40x90 bfloat16",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_each_buffer_takes_the_passes_that_the_simulator_counts(name: str) -> None:
    case: Case = next(case for case in CASES if case.name == name)
    kernel = case.kernel.using(target="cuda:sm_90a").kernel((), dict(case.parameters))
    kernel.stage("threaded")
    function = kernel.compilation.functions["threaded"]
    arrays, counters = case.drawn(), Counters(32, 4)
    own = {param.name: arrays[param.name] for param in function.arrays}
    run_threaded(function, own, [(0, 0, 0)], warp=32, counters=counters)
    found: dict[str, tuple[int, ...]] = {}
    moved = least = 0
    for access in warp_accesses(function, kernel.compilation.machine, whole=True):
        if access.scope == "shared":
            before = found.get(access.buffer, (0, 0, 0))
            found[access.buffer] = tuple(a + getattr(access, b) for a, b in zip(before, COUNTS, strict=True))
        else:
            moved, least = moved + access.passes, least + access.least
    assert found == {k: (p.instructions, p.wavefronts, p.ideal) for k, p in counters.shared.items()}
    sectors = [line.sectors for line in counters.lines.values()]
    assert (moved, least) == (sum(s.moved for s in sectors), sum(s.ideal for s in sectors))
    assert moved > 0
