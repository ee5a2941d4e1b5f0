"""What traced kernels compute, run by the reference and compared with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.frontend import kernels
from tests.frontend.cell import trace_body
from tilebench.frontend import trace
from tilebench.ir import verify
from tilebench.passes.pipeline import TILE_FORMS
from tilebench.reference import run_reference


def random(seed: int, *shape: int, dtype: str = "float16") -> Any:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(dtype)


def result(kernel: Any, parameters: dict[str, Any], **arrays: Any) -> dict[str, Any]:
    function = trace(kernel, parameters).function
    verify(function, TILE_FORMS)
    return run_reference(function, arrays)


@pytest.mark.parametrize(("m", "n"), [(64, 128), (37, 61), (1, 130)])
def test_add(m: int, n: int) -> None:
    a, b = random(0, m, n), random(1, m, n)
    made = result(
        kernels.add_kernel, {"M": m, "N": n, "block_M": 16, "block_N": 32}, A=a, B=b, C=np.zeros_like(a)
    )
    assert np.array_equal(made["C"], a + b)


@pytest.mark.parametrize("kernel", [kernels.gemm_kernel, kernels.global_gemm_kernel])
def test_gemm(kernel: Any) -> None:
    m, n, k = 50, 40, 33
    a, b = random(0, m, k), random(1, k, n)
    dtype = "float16" if kernel is kernels.gemm_kernel else "float32"
    blocks = {"block_M": 16, "block_N": 32, "block_K": 8}
    made = result(kernel, {"M": m, "N": n, "K": k, **blocks}, A=a, B=b, C=np.zeros((m, n), dtype))
    wanted = a.astype("float64") @ b.astype("float64")
    unit = 2**-11 if dtype == "float16" else 2**-24
    bound = 2 * k * 2**-24 * (np.abs(a.astype("float64")) @ np.abs(b.astype("float64")))
    assert np.all(np.abs(made["C"] - wanted) <= bound + unit * np.abs(wanted) * 1.01)


def test_row_sum() -> None:
    x = random(0, 45, 70, dtype="float32")
    parameters = {"M": 45, "N": 70, "block_M": 16, "block_N": 32}
    made = result(kernels.row_sum_kernel, parameters, X=x, Y=np.zeros(45, "float32"))
    exact = x.astype("float64").sum(1)
    assert np.all(np.abs(made["Y"] - exact) <= 70 * 2**-24 * np.abs(x).sum(1))


def test_softmax() -> None:
    x = random(0, 10, 70)
    made = result(kernels.softmax_kernel, {"M": 10, "N": 70, "block_M": 4}, X=x, Y=np.zeros_like(x))
    wide = np.exp(x.astype("float64") - x.max(1, keepdims=True).astype("float64"))
    wanted = wide / wide.sum(1, keepdims=True)
    # One rounding to float16; the float32 arithmetic before it adds less than a tenth of that.
    assert np.all(np.abs(made["Y"] - wanted) <= 1.1 * 2**-11 * wanted)


def test_variants() -> None:
    a, b = random(0, 256, 64), random(1, 256, 64)
    parameters = {"M": 256, "negate": True}
    made = result(kernels.variants_kernel, parameters, A=a, B=b, C=np.zeros_like(a))["C"]
    value = -(a + (b * np.float16(0.5))).astype("float32")
    i, j = np.indices((64, 64))
    wanted = np.where((i <= j) & (j < 60), np.maximum(value.reshape(4, 64, 64), 0), 0)
    # The loop counts 0, 2: only the second round finds count above 1, and not in block 0.
    wanted[1:, :8] = 1
    assert np.array_equal(made, wanted.reshape(256, 64).astype("float16"))


def test_statements_of_one_thread() -> None:
    function = trace_body("""
        x = T.alloc_var("int32", init=1)
        y = T.alloc_var("int32", init=10)
        for k in range(3):
            x, y = y, x + k
        if bx == 0 and by == 0:
            I[0] = x
            I[1] = y
            I[2] = -7 // 2
            I[3] = (bx - 7) // 2
            I[4] = (bx - 7) % 4
            I[5] = T.min(x, y) if x > y else 100
            I[-1] = 1 if 0 <= bx < 1 else 0
    """).function
    verify(function, TILE_FORMS)
    arrays = {"A": np.zeros((256, 256), "float16"), "B": np.zeros((256, 256), "float32")}
    made = run_reference(function, {**arrays, "I": np.full(256, -1, "int32")})["I"]
    x, y = 1, 10
    for k in range(3):
        x, y = y, x + k
    assert made[:6].tolist() == [x, y, -4, -4, 1, min(x, y) if x > y else 100]
    assert made[-1] == 1
    assert np.all(made[6:-1] == -1)
