"""Rows that vectors do not divide: the same numbers on every road, wherever they start and end."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.device import streaming_kernels as streaming
from tests.roads import ROADS
from tilebench.simulator import run_threaded

CARD = "cuda:sm_90a"


@tilebench.jit
def part_of_rows(M, N, K, R, C, rows, columns, dtype, threads=64):
    """A part of an array from row R and column C on, doubled below the diagonal, into one of other rows."""

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), Out: T.Tensor((M, K), dtype)):
        with T.Kernel(T.ceildiv(M, rows), threads=threads) as bx:
            x = T.alloc_fragment((rows, columns), dtype)
            T.copy(A[bx * rows + R, C], x)
            for i, j in T.Parallel(rows, columns):
                if bx * rows + i < M and j < K:
                    Out[bx * rows + i, j] = T.if_then_else(j < bx * rows + i, x[i, j] + x[i, j], x[i, j])

    return main


@tilebench.jit
def extremes(M, N, rows, dtype, threads=64):
    """The least and greatest of each row and where both stand in between: all rows negative, or positive."""

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), Low: T.Tensor((M,), dtype), High: T.Tensor((M,), dtype)):
        with T.Kernel(T.ceildiv(M, rows), threads=threads) as bx:
            x = T.alloc_fragment((rows, N), dtype)
            low = T.alloc_fragment((rows,), dtype)
            high = T.alloc_fragment((rows,), dtype)
            T.copy(A[bx * rows, 0], x)
            T.reduce_min(x, low, dim=1)
            T.reduce_max(x, high, dim=1)
            T.copy(low, Low[bx * rows])
            T.copy(high, High[bx * rows])

    return main


@tilebench.jit
def sums(M, N, rows, threads=64):
    """Sums of squares, zero outside of a row, and of what is one there."""

    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), S: T.Tensor((M,), "float32"), R: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, rows), threads=threads) as bx:
            x = T.alloc_fragment((rows, N), "float32")
            y = T.alloc_fragment((rows, N), "float32")
            z = T.alloc_fragment((rows, N), "float32")
            total = T.alloc_fragment((rows,), "float32")
            T.copy(A[bx * rows, 0], x)
            for i, j in T.Parallel(rows, N):
                y[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(y, total, dim=1)
            T.copy(total, S[bx * rows])
            for i, j in T.Parallel(rows, N):
                z[i, j] = T.exp(0 * x[i, j])
            T.reduce_sum(z, total, dim=1)
            T.copy(total, R[bx * rows])

    return main


@tilebench.jit
def scaled(M, N, block=128, threads=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((N,), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(N, block), M, threads=threads) as (bx, by):
            for j in T.Parallel(block):
                C[by, bx * block + j] = A[by, bx * block + j] * B[bx * block + j]

    return main


def run(function: Any, arrays: dict[str, Any], **parameters: Any) -> dict[str, Any]:
    """What all roads leave in the arrays, which is the same, bit for bit."""
    found = {road: on(function, arrays, **parameters) for road, on in ROADS.items()}
    for road, after in found.items():
        for name in arrays:
            np.testing.assert_array_equal(
                after[name].view(np.uint8), found["reference"][name].view(np.uint8), f"{name} on {road}"
            )
    return found["simulator"]


def shifted(function: Any, **parameters: Any) -> list[str]:
    kernel = function.using(target=CARD)(**parameters)
    kernel.stage("laid_out")
    return [r.message for r in kernel.compilation.context.remarks if r.pass_name == "align_rows"]


@pytest.mark.parametrize("seed", range(12))
def test_parts_of_rows_from_anywhere(seed: int) -> None:
    draw = random.Random(seed)
    dtype = draw.choice(["float16", "int8", "bfloat16"])
    columns = draw.choice([64, 96, 128, 136, 256, 77, 203])
    m, n, k = draw.randrange(1, 9), draw.randrange(1, 300), draw.randrange(65, 300)
    where = {"R": draw.randrange(3), "C": draw.randrange(20), "rows": draw.choice([1, 2, 4])}
    source = np.arange(m * n).reshape(m, n) % 63 - 31
    kind = np.dtype(dtype) if dtype != "bfloat16" else T.bfloat16.numpy
    arrays = {"A": source.astype(kind), "Out": np.full((m, k), 77, kind)}
    after = run(part_of_rows, arrays, M=m, N=n, K=k, columns=columns, dtype=dtype, **where)
    wide = np.zeros((m + 32, n + 400), np.int64)
    wide[:m, :n] = source
    want = np.full((m, k), 77)
    seen = min(columns, k)
    want[:, :seen] = wide[where["R"] :, where["C"] :][:m, :seen]
    below = np.arange(k)[None, :] < np.minimum(np.arange(m)[:, None], seen)
    np.testing.assert_array_equal(after["Out"].astype(np.int64), np.where(below, 2 * want, want))


@pytest.mark.parametrize(("m", "n", "rows"), [(5, 67, 3), (4, 129, 1), (3, 1003, 1), (6, 203, 2)])
@pytest.mark.parametrize("sign", [-1, 1])
def test_what_lies_outside_of_a_row_is_neither_least_nor_greatest(
    m: int, n: int, rows: int, sign: int
) -> None:
    draw = np.random.default_rng(n)
    for dtype in ("float16", "int8"):
        a = (sign * draw.integers(3, 90, (m, n))).astype(dtype)
        arrays = {"A": a, "Low": np.zeros(m, dtype), "High": np.zeros(m, dtype)}
        after = run(extremes, arrays, M=m, N=n, rows=rows, dtype=dtype)
        np.testing.assert_array_equal(after["Low"], a.min(1))
        np.testing.assert_array_equal(after["High"], a.max(1))
        assert shifted(extremes, M=m, N=n, rows=rows, dtype=dtype) or n < 128


@pytest.mark.parametrize(("m", "n", "rows"), [(4, 203, 1), (5, 203, 3), (2, 1003, 1)])
def test_sums_have_no_mask_where_all_outside_is_zero(m: int, n: int, rows: int) -> None:
    a = np.random.default_rng(n).integers(-3, 4, (m, n)).astype(np.float16)
    arrays = {"A": a, "S": np.zeros(m, np.float32), "R": np.zeros(m, np.float32)}
    after = run(sums, arrays, M=m, N=n, rows=rows)
    np.testing.assert_array_equal(after["S"], (a.astype(np.float32) ** 2).sum(1))
    np.testing.assert_array_equal(after["R"], np.full(m, n))
    text = sums.using(target=CARD)(M=m, N=n, rows=rows).stage("laid_out")
    first, second = text.split("T.reduce_sum(")[:2]
    assert "T.float32(0))\n" not in first
    assert "T.float32(0))\n" in second


@pytest.mark.parametrize(("m", "n", "block"), [(21, 1003, 1000), (40, 2003, 1016)])
def test_columns_are_summed_of_rows_in_their_places(m: int, n: int, block: int) -> None:
    parameters = {"M": m, "N": n, "block_M": 8, "block_N": block, "splits": 1, "threads": 64}
    x = np.random.default_rng(n).integers(-9, 10, (m, n)).astype(np.float16)
    kernel = streaming.column_sum.using(target=CARD)(**parameters)
    kernel.stage("threaded")
    assert "sums_rows[" in kernel.stage("laid_out")
    after = {"X": x, "Y": np.full(n, np.nan, np.float16)}
    run_threaded(kernel.compilation.functions["threaded"], after, warp=32)
    np.testing.assert_array_equal(after["Y"], x.astype(np.int64).sum(0))


@pytest.mark.parametrize("n", [67, 203, 1003])
def test_kernels_of_rows_are_shifted_as_a_whole(n: int) -> None:
    for function in (streaming.rms_norm, streaming.layer_norm, streaming.softmax, streaming.row_sum):
        assert len(shifted(function, M=6, N=n, block_M=3, threads=64)) == 1
        text = function.using(target=CARD)(M=6, N=n, block_M=3, threads=64).stage("threaded")
        assert "T.vector_load(X_v" in text


@pytest.mark.parametrize("n", [203, 1003])
def test_a_scale_is_read_up_to_its_end(n: int) -> None:
    draw = np.random.default_rng(n)
    x, g = (draw.integers(-3, 4, shape).astype(np.float16) for shape in ((5, n), (n,)))
    arrays = {"A": x, "B": g, "C": np.full((5, n), np.nan, np.float16)}
    after = run(scaled, arrays, M=5, N=n)
    np.testing.assert_array_equal(after["C"], x * g)


def test_a_vector_from_any_address_reads_what_has_no_place_with_the_row() -> None:
    kernel = streaming.rms_norm.using(target=CARD)(M=6, N=1003, block_M=1, threads=64)
    text = kernel.stage("threaded")
    assert "T.load_pieces(G_p[" in text
    assert "T.from_pieces(G_v, G_p[" in text
    assert "T.vector_store(Y[" in text
    assert "tb_ld_pieces<16, 2>(G_p" in kernel.stage("cuda")


def test_rows_that_vectors_divide_and_short_rows_stay_as_they_are() -> None:
    for n in (63, 128, 202, 1024):
        assert not shifted(streaming.softmax, M=6, N=n, block_M=3, threads=64)
    # Of sums of columns the rows must stand where they are.
    assert not shifted(streaming.column_sum, M=40, N=203, block_M=4, block_N=128, splits=2, threads=64)


def test_each_launch_loads_all_it_needs_first() -> None:
    text = streaming.rms_norm.using(target=CARD)(M=6, N=1003, block_M=1, threads=64).stage("threaded")
    loads, found, rest = text.partition("x[e + r0 * 8] = ")
    assert found
    assert "X_v = T.alloc_local((16,), T.float16)" in loads
    assert "T.vector_load(X_v[r0 * 8 : r0 * 8 + 8]" in loads
    assert "T.vector_load(X_v" not in rest
