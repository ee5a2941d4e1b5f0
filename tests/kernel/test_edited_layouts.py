"""Layouts of shared memory edited by hand in `laid_out`: the same results, and CUDA text that compiles."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

from tests import kernels
from tests.simulated import run_threaded
from tilebench.kernel import Kernel, compile_from
from tilebench.layout import SharedLayout, atom_layout
from tilebench.targets.cuda.compiler.nvrtc import compile_cuda
from tilebench.targets.cuda.machines import machine_of

TILE = (128, 128)
M = N = K = 128


@cache
def plain() -> Kernel:
    return kernels.gemm_kernel.using(target="cuda:sm_90")(M, N, K, 128, 128, 128)


def edited(a: SharedLayout, b: SharedLayout) -> Kernel:
    text = plain().stage("laid_out")
    for name, layout in (("A_s", a), ("B_s", b)):
        pattern = rf"({name} = T.alloc_shared\(.*), layout=.*\)"
        text, count = re.subn(pattern, rf"\1, layout={layout!r})", text)
        assert count == 1
    return compile_from("laid_out", text, like=plain())


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (atom_layout(TILE, 16), atom_layout(TILE, 16)),
        (atom_layout(TILE, 16, 64), atom_layout(TILE, 16, 32)),
        (atom_layout(TILE, 16, 128, (1, 0)), SharedLayout(((8, 16), (8, 16)), ((8, 1024), (1, 64)))),
    ],
    ids=["128", "64 and 32", "columns and core matrices"],
)
def test_a_gemm_on_hierarchical_layouts(a: SharedLayout, b: SharedLayout) -> None:
    kernel = edited(a, b)
    assert repr(a) in kernel.stage("pipelined")
    made = compile_cuda(kernel.stage("cuda"), machine_of("sm_90a"))
    random = np.random.default_rng(3)
    left, right = (random.integers(-4, 5, (128, 128)).astype(np.float16) for _ in range(2))
    out = np.zeros((M, N), np.float16)
    run_threaded(kernel.compilation.functions["threaded"], {"A": left, "B": right, "C": out}, warp=32)
    assert np.array_equal(out, (left.astype(np.float64) @ right.astype(np.float64)).astype(np.float16))
    (resources,) = made.resources.values()

    assert resources.spill_store_bytes == 0
    assert (a.cosize, b.cosize) == (128 * 128, 128 * 128)
