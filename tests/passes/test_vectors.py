"""Which bodies go a vector at a time: widths that vectors fill unevenly, and values that have names."""

from __future__ import annotations

import re
from textwrap import indent
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.everywhere import everywhere, kernel_of
from tests.passes.test_thread_groups import outputs

TARGETS = ("cpu", "cuda:sm_90a")


@tilebench.jit
def scaled(N, threads, M=8):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(M, threads=threads) as bx:
            for j in T.Parallel(N):
                C[bx, j] = A[bx, j] * T.float16(2)

    return main


@tilebench.jit
def rms_norm(N, threads, M=8):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(M, threads=threads) as bx:
            x = T.alloc_fragment((N,), "float32")
            squares = T.alloc_fragment((N,), "float32")
            total = T.alloc_fragment((1,), "float32")
            T.copy(A[bx, 0:N], x)
            for j in T.Parallel(N):
                squares[j] = x[j] * x[j]
            T.reduce_sum(squares, total, dim=0)
            for j in T.Parallel(N):
                x[j] = x[j] * T.rsqrt(total[0] / N + 1e-6)
            T.copy(x, C[bx, 0:N])

    return main


@tilebench.jit
def by_variable(N, threads, M=8):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), C: T.Tensor((M, N), "float16"), D: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(N, 512), M, threads=threads) as (bx, by):
            for j in T.Parallel(512):
                v = T.alloc_var("float16", init=1)
                k = T.alloc_var("int32", init=0)
                if bx * 512 + j < N - 3:
                    v = A[by, bx * 512 + j]
                    k = 1
                elif j > 7:
                    v = v + v
                C[by, bx * 512 + j] = v * v
                k = k + 2
                D[by, bx * 512 + j] = v * k

    return main


@tilebench.jit
def by_name(N, threads, M=8):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), C: T.Tensor((M, N), "float16"), D: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(N, 512), M, threads=threads) as (bx, by):
            for j in T.Parallel(512):
                x = A[by, bx * 512 + j]
                C[by, bx * 512 + j] = x * x
                D[by, bx * 512 + j] = x + x

    return main


def halves(n: int) -> Any:
    return np.random.default_rng(n).uniform(-2, 2, (8, n)).astype(np.float16)


@pytest.mark.parametrize(
    ("n", "threads", "width"), [(576, 128, 8), (576, 256, 4), (11008, 256, 8), (1000, 96, 4)]
)
def test_rows_that_vectors_do_not_fill_are_read_in_vectors(n: int, threads: int, width: int) -> None:
    for function in (scaled, rms_norm):
        text = function.using(target="cuda:sm_90a")(n, threads).stage("threaded")
        # All loads of a thread stand before what is done with them where some are under a branch.
        assert re.search(r"A_v = T.alloc_local\(\((\d+),\), T.float16\)", text)
        assert re.search(rf"T.vector_load\(A_v(\[r0 \* {width} : r0 \* {width} \+ {width}\])?, A\[", text)
    for target in TARGETS:
        a, c = halves(n), np.full((8, n), np.nan, np.float16)
        outputs(scaled.using(target=target)(n, threads), a, c)
        np.testing.assert_array_equal(c, a * np.float16(2))


@pytest.mark.parametrize("n", [1024, 1000, 576])
def test_a_named_value_and_a_variable_move_in_vectors_as_a_choice_does(n: int) -> None:
    a = halves(n)
    values = a.copy()
    values[:, -3:] = 1
    late = np.arange(n) % 512 > 7
    values[:, -3:][:, late[-3:]] = 2
    factors = np.where(np.arange(n) < n - 3, 3, 2).astype(np.float16)
    wanted = {
        "by_variable": (values * values, (values * factors).astype(np.float16)),
        "by_name": (a * a, a + a),
    }
    for function in (by_variable, by_name):
        text = function.using(target="cuda:sm_90a")(n, 64).stage("threaded")
        assert "T.vector_load(A_v, A[" in text
        assert text.count("T.vector_store(") == 2
        for target in TARGETS:
            c, d = np.full_like(a, np.nan), np.full_like(a, np.nan)
            outputs(function.using(target=target)(n, 64), a, c, d)
            first, second = wanted[function.__name__]
            np.testing.assert_allclose(c.astype(float), first.astype(float), rtol=2e-3)
            np.testing.assert_allclose(d.astype(float), second.astype(float), rtol=2e-3)


POSITIVE = {
    "choice": "O[i] = T.if_then_else(A[i] > 0, A[i], 0)",
    "two choices": "O[i] = T.if_then_else(A[i] > 0, T.if_then_else(A[i] > 1, A[i], A[i]), 0)",
    "assigned first": "v = T.alloc_var('float16')\nv = 0\nif A[i] > 0:\n    v = A[i]\nO[i] = v",
    "both ways": "v = T.alloc_var('float16')\nif A[i] < 0:\n    v = 0\nelse:\n    v = A[i]\nO[i] = v",
}


@pytest.mark.parametrize("body", POSITIVE.values(), ids=POSITIVE)
def test_what_is_read_already_is_not_read_again_under_a_condition(body: str) -> None:
    body = "for i in T.Parallel(1024):\n" + indent(body, "    ")
    head = 'A: T.Tensor((1024,), "float16"), O: T.Tensor((1024,), "float16")'
    found = everywhere(body, head)
    assert np.array_equal(found["O"], np.maximum(found["A"], np.float16(0)))
    text = kernel_of(body, head).using(target="cuda:sm_90a")().stage("threaded")
    assert (text.count("T.vector_load("), text.count("T.vector_store("), text.count("A[")) == (1, 1, 1)


@pytest.mark.parametrize("store", ["O[i] = v", "if A[i] > 0:\n    O[i] = v"])
def test_a_variable_without_a_first_value_is_zero_where_none_is_given(store: str) -> None:
    body = "for i in T.Parallel(64):\n    v = T.alloc_var('float32')\n    if A[i] > 0:\n        v = A[i]\n"
    body += indent(store, "    ")
    head = 'A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")'
    assert "T.alloc_var" not in kernel_of(body, head).using(target="cuda:sm_90a")().stage("bounded")
    a = np.linspace(-1, 1, 64, dtype=np.float32)
    found = everywhere(body, head, A=a, O=np.zeros(64, np.float32))
    assert np.array_equal(found["O"], np.maximum(a, 0))


@tilebench.jit
def grown(N):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=64):
            for j in T.Parallel(N):
                v = T.alloc_var("float32", init=0)
                if j < 40:
                    v = A[j] + 1.0
                    v = v * v
                    v = v * v
                    v = v * v
                    v = v * v
                    v = v * v
                    v = v * v
                C[j] = v

    return main


def test_a_value_that_doubles_each_time_stays_a_variable() -> None:
    """Spelled as one choice it would have 2^6 parts, and 2^60 with ten times as many lines."""
    assert "T.alloc_var" in grown.using(target="cuda:sm_90a")(64).stage("bounded")
    for target in TARGETS:
        a, c = np.linspace(-0.5, 0.1, 64, dtype=np.float32), np.full(64, np.nan, np.float32)
        outputs(grown.using(target=target)(64), a, c)
        np.testing.assert_allclose(c, np.where(np.arange(64) < 40, (a + 1.0) ** 64, 0), rtol=1e-4)


@tilebench.jit
def stepped():
    @T.prim_func
    def main(A: T.StridedTensor((8, 40), (80, 1), "float32"), C: T.Tensor((8, 40), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((4, 4), "float32")
            for k in range(0, 8, 2):
                T.copy(A[k, k], s)
                T.copy(s, C[k, k])

    return main


@tilebench.jit
def by_a_named_condition():
    @T.prim_func
    def main(A: T.Tensor((64,), "uint16"), F: T.Tensor((64,), "bool"), C: T.Tensor((64,), "uint16")):
        with T.Kernel(1, threads=32):
            for j in T.Parallel(64):
                first = F[0]
                C[j] = T.if_then_else(first, A[j], T.cast(j, "uint16"))

    return main


@tilebench.jit
def of_a_negative_number():
    @T.prim_func
    def main(C: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            for j in T.Parallel(4):
                C[j] = T.sigmoid(T.cast(-1, "float32"))

    return main


def test_an_access_that_a_loops_step_aligns_is_as_wide_as_was_chosen() -> None:
    for target in TARGETS:
        a, c = np.random.default_rng(5).random((8, 80), np.float32), np.full((8, 40), -1, np.float32)
        outputs(stepped.using(target=target)(), a[:, :40], c)
        wanted = np.full((8, 40), -1, np.float32)
        for k in range(0, 8, 2):
            wanted[k : k + 4, k : k + 4] = a[k : k + 4, k : k + 4]
        np.testing.assert_array_equal(c, wanted)


@pytest.mark.parametrize("first", [False, True])
def test_a_load_under_a_condition_with_a_name_stays_with_the_name(first: bool) -> None:
    for target in TARGETS:
        a, flags, c = np.arange(64, dtype=np.uint16) + 100, np.full(64, first), np.zeros(64, np.uint16)
        outputs(by_a_named_condition.using(target=target)(), a, flags, c)
        np.testing.assert_array_equal(c, a if first else np.arange(64))


def test_minus_of_a_negative_number_is_no_other_operator() -> None:
    for target in TARGETS:
        c = np.zeros(4, np.float32)
        outputs(of_a_negative_number.using(target=target)(), c)
        np.testing.assert_allclose(c, 1 / (1 + np.e), rtol=1e-6)


@tilebench.jit
def copied_twice():
    @T.prim_func
    def main(A: T.Tensor((46, 15), "float4_e2m1fn"), B: T.Tensor((40, 16), "float32")):
        with T.Kernel(4) as bx:
            s = T.alloc_shared((10, 16), "float32")
            T.fill(s, -0.5)
            T.copy(s, A[bx * 12 + 1 : bx * 12 + 11, 0:16])
            T.copy(s, B[bx * 10 : bx * 10 + 10, 2:18])

    return main


def test_two_copies_of_a_tile_over_edges_have_registers_of_their_own() -> None:
    """Those of the first stand in front of the branch that its stores are in."""
    for target in TARGETS:
        a, b = np.zeros((46, 15), ml_dtypes.float4_e2m1fn), np.zeros((40, 16), np.float32)
        outputs(copied_twice.using(target=target)(), a, b)
        np.testing.assert_array_equal(a.astype(np.float32)[[0, 12, 24, 36]], 0)
        np.testing.assert_array_equal(a.astype(np.float32)[1:11], -0.5)
        np.testing.assert_array_equal(b[:, 2:], -0.5)
