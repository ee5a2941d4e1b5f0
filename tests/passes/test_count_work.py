"""Work counted exactly, on sizes that tiles divide and on those they do not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilebench.language as T
from tests import kernels
from tilebench.frontend import trace
from tilebench.ir import If, parse_function
from tilebench.language.words import registry
from tilebench.passes.analysis.count_work import count_work
from tilebench.passes.analysis.loop_points import MOST_POINTS

SIZE = st.integers(1, 70)
BLOCK = st.integers(1, 33)


def work_of(kernel: Any, **values: Any) -> tuple[float, float]:
    found = count_work(trace(getattr(kernel, "function", kernel), values).function)
    assert found.exact
    return found.flops, found.bytes


@settings(max_examples=40)
@given(SIZE, SIZE, SIZE, BLOCK, BLOCK, BLOCK, st.sampled_from(["gemm_kernel", "gemm_regions"]))
def test_a_gemm_of_any_size(m: int, n: int, k: int, bm: int, bn: int, bk: int, name: str) -> None:
    values = {"M": m, "N": n, "K": k, "block_M": bm, "block_N": bn, "block_K": bk}
    assert work_of(getattr(kernels, name), **values) == (2 * m * n * k, 2 * (m * k + k * n + m * n))


@settings(max_examples=40)
@given(SIZE, SIZE, BLOCK, BLOCK, st.sampled_from([("float16", 2), ("float64", 8)]))
def test_an_addition_of_any_size(m: int, n: int, bm: int, bn: int, dtype: tuple[str, int]) -> None:
    values = {"M": m, "N": n, "block_M": bm, "block_N": bn, "dtype": dtype[0]}
    assert work_of(kernels.add_kernel, **values) == (m * n, 3 * dtype[1] * m * n)


@settings(max_examples=20)
@given(SIZE, SIZE, BLOCK, BLOCK)
def test_a_row_sum_of_any_size(m: int, n: int, bm: int, bn: int) -> None:
    flops, moved = work_of(kernels.reduce_kernel, M=m, N=n, block_M=bm, block_N=bn)
    assert moved == 2 * (m * n + m)
    assert flops == m * n  # each element is added once


def test_softmax() -> None:
    # A row of n: n for the maximum, n each for minus and exp, n for the sum, n divisions.
    flops, moved = work_of(kernels.softmax_kernel, M=10, N=47, block_M=4)
    assert moved == 2 * 2 * 10 * 47
    assert flops == 5 * 10 * 47


def test_integers_and_index_arithmetic_are_no_flops() -> None:
    assert work_of(kernels.add_kernel, M=8, N=8, dtype="int32") == (0, 3 * 4 * 64)


def transposed(M=37, N=21, K=53):
    @T.prim_func
    def main(A: T.Tensor((K, M), "float32"), B: T.Tensor((N, K), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 16), T.ceildiv(M, 16)) as (bx, by):
            a = T.alloc_shared((8, 16), "float32")
            b = T.alloc_shared((16, 8), "float32")
            c = T.alloc_fragment((16, 16), "float32")
            T.clear(c)
            for k in range(0, K, 8):
                T.copy(A[k, by * 16], a)
                T.copy(B[bx * 16, k], b)
                T.gemm(a, b, c, transpose_A=True, transpose_B=True)
            T.copy(c, C[by * 16, bx * 16])

    return main


def test_transposed_operands() -> None:
    assert work_of(transposed) == (2 * 37 * 21 * 53, 4 * (37 * 53 + 21 * 53 + 37 * 21))


def test_the_same_in_every_stage_of_whole_tiles() -> None:
    made = kernels.gemm_regions.using(target="null")(100, 75, 90)
    for stage in ("scheduled", "bounded"):
        function = parse_function(made.stage(stage), registry())
        assert count_work(function).flops == 2 * 100 * 75 * 90, stage


def test_too_many_points_are_not_enumerated() -> None:
    values = {"M": 1 << 20, "N": 1 << 13, "block_M": 1, "block_N": 1}
    found = count_work(trace(kernels.add_kernel.function, values).function)
    assert MOST_POINTS < (1 << 33)
    assert not found.exact
    assert found.flops == 1 << 33


def test_a_branch_counts_where_it_is_taken() -> None:
    text = """@T.prim_func
def f(A: T.Tensor((8, 8), T.float32)):
    with T.Kernel(4) as bx:
        if bx < 2:
            for i, j in T.Parallel(8, 8):
                A[i, j] = A[i, j] + A[i, j]
        else:
            for i__2, j__2 in T.Parallel(8, 8):
                A[i__2, j__2] = A[i__2, j__2] * A[i__2, j__2]
"""
    found = count_work(parse_function(text, registry()))
    assert (found.flops, found.exact) == (4 * 64, True)


def cholesky(B, n):
    """Of each matrix n roots, n (n - 1) / 2 quotients, and two operations for each pair beyond a column."""

    @T.prim_func
    def main(A: T.Tensor((B, n, n), "float32"), L: T.Tensor((B, n, n), "float32")):
        with T.Kernel(B, threads=32) as b:
            s = T.alloc_shared((n, n), "float32")
            T.copy(A[b, 0, 0], s)
            for k in T.serial(n):
                s[k, k] = T.sqrt(s[k, k])
                for i in T.Parallel(n):
                    if i > k:
                        s[i, k] = s[i, k] / s[k, k]
                for i, j in T.Parallel(n, n):
                    if i > k and j > k:
                        s[i, j] -= s[i, k] * s[j, k]
            T.copy(s, L[b, 0, 0])

    return main


@pytest.mark.parametrize(("batch", "n"), [(1, 17), (65, 40), (4096, 32), (5000, 13), (77777, 64)])
def test_conditions_hold_as_often_where_points_are_drawn(batch: int, n: int) -> None:
    """A loop that is cut short says nothing of those inside it: one index of it is not like another."""
    each = n + n * (n - 1) // 2 + 2 * sum((n - 1 - k) ** 2 for k in range(n))
    found = count_work(trace(cholesky, {"B": batch, "n": n}).function)
    few = batch * n**3 < MOST_POINTS
    assert found.known
    assert found.exact == few
    assert abs(found.flops - batch * each) <= (0 if few else 0.005) * batch * each


def test_tiles_that_stick_out_are_counted_where_points_are_drawn() -> None:
    values = {"M": 1501, "N": 1403, "block_M": 1, "block_N": 1}
    assert work_of(kernels.add_kernel, **{**values, "M": 1001}) == (1001 * 1403, 6 * 1001 * 1403)
    values = {"M": 3001, "N": 3003, "K": 5001, "block_M": 16, "block_N": 16, "block_K": 16}
    found = count_work(trace(kernels.gemm_regions.function, values).function)
    assert not found.exact
    assert abs(found.flops / (2 * 3001 * 3003 * 5001) - 1) < 1e-3


def losses(M, V, rounds):
    """One row of many has no target: what data decide is little beside the sums."""

    @T.prim_func
    def main(X: T.Tensor((M, V), "float32"), Y: T.Tensor((M,), "int32"), Out: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, 4), threads=32) as bx:
            x = T.alloc_fragment((4, V), "float32")
            s = T.alloc_fragment((4,), "float32")
            T.copy(X[bx * 4, 0], x)
            for _ in T.serial(rounds):
                T.reduce_sum(x, s, dim=1)
            for i in T.Parallel(4):
                if Y[bx * 4 + i] >= 0:
                    Out[bx * 4 + i] = s[i] - X[bx * 4 + i, Y[bx * 4 + i]]
                else:
                    Out[bx * 4 + i] = 0.0

    return main


def test_a_condition_on_data_is_a_doubt_where_it_decides_of_much() -> None:
    few = count_work(trace(losses, {"M": 8, "V": 128, "rounds": 2}).function)
    assert (few.flops, few.known, few.exact) == (8 * (2 * 128 + 1), True, False)
    much = count_work(trace(losses, {"M": 8, "V": 16, "rounds": 1}).function)
    assert not much.known
    assert isinstance(much.doubt, If)
