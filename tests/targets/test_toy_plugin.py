"""A target from another package: found by its entry point, compiled, simulated, and run in C."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests import kernels
from tilebench import targets
from tilebench.errors import IRError, TargetError
from tilebench.ir import Function, parse_function, print_function, verify
from tilebench.kernel.edited import compile_from
from tilebench.simulator import SimulationError, run_threaded
from tilebench.targets import Manifest, resolve

Case = tuple[Any, list[np.ndarray[Any, Any]], np.ndarray[Any, Any]]

pytestmark = pytest.mark.usefixtures("toy")

OWN_WORDS = """\
@T.prim_func
def own(A: T.Tensor((6, 16), T.float32), S: T.Tensor((6,), T.float32)):
    with T.Kernel(6, threads=16) as bx:
        tid: T.int32 = T.thread_id()
        x = T.alloc_local((2,), T.float32)
        T.vector_load(x[0 : 1], A[bx, tid : tid + 1])
        x[1] = T.float32(1)
        T.toy_axpy(x[0 : 1], x[1 : 2], T.cast(bx, T.float32))
        T.toy_warp_sum(x[0 : 1])
        if tid == 8:
            S[bx] = x[0] + T.toy_ramp(x[0] - T.float32(8))
"""


def simulate(manifest: Manifest, function: Function, arrays: list[np.ndarray[Any, Any]]) -> None:
    """The function on the arrays, with the meanings that the target brings."""
    named = dict(zip([param.name for param in function.params], arrays, strict=True))
    run_threaded(function, named, warp=8, meanings=manifest.meanings, functions=manifest.simulated_functions)


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(7).random(shape, dtype=np.float32)


def _add() -> Case:
    a, b = numbers(37, 50), numbers(37, 50) + 1
    kernel = kernels.add_kernel.using(target="toy")(
        37, 50, block_M=8, block_N=32, dtype="float32", threads=64
    )
    return kernel, [a, b, np.zeros_like(a)], a + b


def _gemm() -> Case:
    a, b = numbers(45, 29), numbers(29, 37)
    kernel = kernels.gemm_kernel.using(target="toy")(
        45, 37, 29, block_M=16, block_N=16, block_K=8, threads=32, dtype="float32"
    )
    return kernel, [a, b, np.zeros((45, 37), np.float32)], a @ b


def _softmax() -> Case:
    a = numbers(20, 50)
    kernel = kernels.softmax_kernel.using(target="toy")(20, 50, block_M=4, threads=32, dtype="float32")
    e = np.exp(a - a.max(1, keepdims=True))
    return kernel, [a, np.zeros_like(a)], e / e.sum(1, keepdims=True)


def _greatest() -> Case:
    a = numbers(20, 50)
    kernel = kernels.reduce_kernel.using(target="toy")(
        20, 50, block_M=4, block_N=16, threads=64, dtype="float32", kind="max"
    )
    return kernel, [a, np.zeros(20, np.float32)], a.max(1)


CASES = [_add, _gemm, _softmax, _greatest]


def test_the_entry_point_is_found_here_and_in_a_new_process(toy: Manifest) -> None:
    assert "toy" in targets.names()
    assert resolve("toy")[0] is toy
    assert resolve("toy")[1].warp == 8
    with pytest.raises(TargetError, match="no variants"):
        resolve("toy:b2")
    code = "from tilebench.targets import names; print(*names())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["cpu", "cuda", "null", "toy"]


@pytest.mark.parametrize("case", CASES)
def test_kernels_run_in_the_simulator(toy: Manifest, case: Callable[[], Case]) -> None:
    kernel, arrays, expected = case()
    kernel.stage("threaded")
    simulate(toy, kernel.compilation.functions["threaded"], arrays)
    np.testing.assert_allclose(arrays[-1], expected, rtol=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_kernels_run_in_c(toy: Manifest, case: Callable[[], Case]) -> None:
    if not toy.available()[0]:
        pytest.skip(toy.available()[1])
    kernel, arrays, expected = case()
    kernel(*arrays)
    np.testing.assert_allclose(arrays[-1], expected, rtol=1e-5)


def test_the_text_is_the_languages_own() -> None:
    text = _add()[0].stage("toy_c")
    body = text[text.index("tb_kernel void") :].splitlines()
    assert body[:6] == [
        "tb_kernel void main_(const float* restrict A, const float* restrict B, float* restrict C) {",
        "  const int bx = tb_block[0];",
        "  const int by = tb_block[1];",
        "  const int tid = tb_thread;",
        "  const int tid_1_16 = tid % 16;",
        "  const int tid_16_4 = tid / 16;",
    ]
    assert "  memcpy(" in text
    assert "tb_shfl" not in text
    assert "blockIdx" not in text


def test_own_words_print_back_and_are_legal_in_threaded_alone(toy: Manifest) -> None:
    function = parse_function(OWN_WORDS, toy.registry)
    assert print_function(function).text == OWN_WORDS
    verify(function, next(row.forms for row in toy.road if row.name == "threaded"))
    early = parse_function(
        OWN_WORDS.replace("T.vector_load(x[0 : 1], A[bx, tid : tid + 1])", "pass"), toy.registry
    )
    with pytest.raises(IRError, match="toy_axpy is not legal in stage pipelined"):
        verify(early, next(row.forms for row in toy.road if row.name == "pipelined"))
    with pytest.raises(IRError, match="toy_axpy"):
        parse_function(OWN_WORDS, targets.manifest("cuda").registry)


def test_own_words_mean_in_the_simulator_what_their_text_does(toy: Manifest) -> None:
    a = numbers(6, 16)
    total = a[:, 8:].sum(1) + 8 * np.arange(6, dtype=np.float32)
    expected = total + np.clip(total - 8, 0, 1)
    simulated = np.zeros(6, np.float32)
    simulate(toy, parse_function(OWN_WORDS, toy.registry), [a, simulated])
    np.testing.assert_allclose(simulated, expected, rtol=1e-6)
    kernel = compile_from("threaded", OWN_WORDS, target="toy")
    text = kernel.stage("toy_c")
    assert "  tb_axpy(x, x + 1, (float)bx, 1);\n  tb_warp_sum(x);\n" in text
    if toy.available()[0]:
        ran = np.zeros(6, np.float32)
        kernel(a, ran)
        np.testing.assert_allclose(ran, expected, rtol=1e-6)


def test_the_simulator_refuses_a_warp_word_that_some_threads_miss(toy: Manifest) -> None:
    inside = OWN_WORDS.replace(
        "        T.toy_warp_sum(x[0 : 1])", "        if tid < 12:\n            T.toy_warp_sum(x[0 : 1])"
    )
    with pytest.raises(SimulationError, match="not all threads of a warp take part"):
        simulate(toy, parse_function(inside, toy.registry), [numbers(6, 16), np.zeros(6, np.float32)])


def test_what_the_target_has_no_row_for_is_refused_at_the_users_line() -> None:
    @tilebench.jit(target="toy")
    def inverse_root(n: int, dtype: str) -> Any:
        @T.prim_func
        def main(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype)):
            with T.Kernel(1, threads=8):
                for i in T.Parallel(n):
                    B[i] = T.rsqrt(A[i])

        return main

    with pytest.raises(TargetError) as caught:
        inverse_root(8, "float32").stage("toy_c")
    text = str(caught.value)
    assert text.startswith("target error: T.rsqrt has no code for toy\n")
    assert "B[i] = T.rsqrt(A[i])" in text
    assert "help: it has abs, ceil, clamp, cos, erf, exp, exp2, floor, if_then_else, log, log2," in text
    with pytest.raises(TargetError, match="there is no toy C code for float16 yet"):
        inverse_root(8, "float16").stage("toy_c")
