"""Hints of TileLang's: layouts of shared tiles, registers of warp groups, the scope "local" of a fragment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.everywhere import kernel_of
from tests.passes.test_thread_groups import TARGETS, outputs
from tilebench.errors import TileError
from tilebench.language.hints import make_linear_layout, make_swizzled_layout


@tilebench.jit
def turned(layout):
    @T.prim_func
    def main(A: T.Tensor((64, 32), "float16"), B: T.Tensor((32, 64), "float16")):
        with T.Kernel(1, threads=64) as bx:
            S = T.alloc_shared((64, 32), "float16")
            base = T.alloc_fragment((1,), "int32", "local")
            T.no_set_max_nreg()
            T.disable_warp_group_reg_alloc()
            T.annotate_layout({S: layout(S)})
            base[0] = 0
            T.copy(A, S)
            for i, j in T.Parallel(32, 64):
                B[i, j] = S[j, i + base[0]]

    return main


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("layout", [make_swizzled_layout, make_linear_layout])
def test_hints_change_no_result(layout: Any, target: str) -> None:
    a = np.arange(2048, dtype=np.float16).reshape(64, 32)
    b = np.zeros((32, 64), np.float16)
    kernel = turned.using(target=target)(layout)
    outputs(kernel, a, b)
    np.testing.assert_array_equal(b, a.T)
    assert f"swizzle={layout is make_swizzled_layout}" in kernel.stage("tile")


@pytest.mark.parametrize(
    ("hints", "said"),
    [
        ("{S: lambda i, j: (j, i)}", "with a layout of one's own is TileLang's, not here yet"),
        ("{A: make_swizzled_layout(A)}", r"takes a buffer made by T\.alloc_shared"),
        ("make_swizzled_layout(S)", r"T\.annotate_layout takes \{buffer: layout\}"),
    ],
)
def test_what_is_refused(hints: str, said: str) -> None:
    kernel = kernel_of(f"S = T.alloc_shared((8, 8), 'float32')\nT.annotate_layout({hints})")
    kernel.function.__globals__["make_swizzled_layout"] = make_swizzled_layout
    with pytest.raises(TileError, match=said):
        kernel()
