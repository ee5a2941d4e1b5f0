"""Work counted against values derived by hand: slices with unit dimensions, parts, ragged loops, branches."""

from __future__ import annotations

from typing import Any

import pytest

import tilebench.language as T
from tilebench.frontend import trace
from tilebench.ir.sizes import for_sizes
from tilebench.passes.analysis.count_work import Work, count_work


def work(function: Any, sizes: dict[str, int] | None = None, **values: Any) -> Work:
    return count_work(for_sizes(trace(function, values).function, sizes or {}))


def attention(B=2, S=96, H=3, D=16, block_M=32, block_N=32, causal=False):
    shape = (B, S, H, D)

    @T.prim_func
    def main(
        Q: T.Tensor(shape, "float32"), K: T.Tensor(shape, "float32"), V: T.Tensor(shape, "float32"),
        Out: T.Tensor(shape, "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(S, block_M), H, B, threads=128) as (bx, by, bz):
            q = T.alloc_shared((block_M, D), "float32")
            kv = T.alloc_shared((block_N, D), "float32")
            p = T.alloc_fragment((block_M, block_N), "float32")
            p_s = T.alloc_shared((block_M, block_N), "float32")
            o = T.alloc_fragment((block_M, D), "float32")
            T.copy(Q[bz, bx * block_M : (bx + 1) * block_M, by, :], q)
            T.clear(o)
            turns = T.ceildiv((bx + 1) * block_M, block_N) if causal else T.ceildiv(S, block_N)
            for k in T.Pipelined(turns, num_stages=1):
                T.copy(K[bz, k * block_N : (k + 1) * block_N, by, :], kv)
                T.clear(p)
                T.gemm(q, kv, p, transpose_B=True)
                T.copy(p, p_s)
                T.copy(V[bz, k * block_N : (k + 1) * block_N, by, :], kv)
                T.gemm(p_s, kv, o)
            T.copy(o, Out[bz, bx * block_M : (bx + 1) * block_M, by, :])

    return main


@pytest.mark.parametrize("s", [96, 100, 31, 1])
@pytest.mark.parametrize("blocks", [(32, 32), (64, 16), (16, 64)])
def test_attention_on_slices_with_unit_dimensions(s: int, blocks: tuple[int, int]) -> None:
    """Two products of s x s x d a head; one tile holds K, then V."""
    b, h, d = 2, 3, 16
    found = work(attention, B=b, S=s, H=h, D=d, block_M=blocks[0], block_N=blocks[1])
    assert found == Work(2 * 2.0 * b * h * s * s * d, 4.0 * 4 * b * s * h * d)


def test_causal_attention_counts_the_blocks_that_run() -> None:
    """Block bx of 32 rows goes over bx + 1 blocks of columns."""
    found = work(attention, B=2, S=96, H=3, D=16, causal=True)
    assert found.flops == 2 * 2 * (2 * 3) * 16 * sum(32 * 32 * (bx + 1) for bx in range(3))
    assert found.exact


def batched(B=5, M=20, N=24, K=40, last=False):
    """A batched product with the batch in front, or heads between rows and columns."""
    a, b, c = ((M, B, K), (K, B, N), (M, B, N)) if last else ((B, M, K), (B, K, N), (B, M, N))

    @T.prim_func
    def main(A: T.Tensor(a, "float16"), W: T.Tensor(b, "float16"), C: T.Tensor(c, "float16")):
        with T.Kernel(T.ceildiv(N, 16), T.ceildiv(M, 16), B, threads=128) as (bx, by, bz):
            a_s = T.alloc_shared((16, 16), "float16")
            b_s = T.alloc_shared((16, 16), "float16")
            acc = T.alloc_fragment((16, 16), "float32")
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(K, 16), num_stages=2):
                if last:
                    T.copy(A[by * 16 : by * 16 + 16, bz, k * 16 : k * 16 + 16], a_s)
                    T.copy(W[k * 16 : k * 16 + 16, bz, bx * 16 : bx * 16 + 16], b_s)
                else:
                    T.copy(A[bz, by * 16, k * 16], a_s)
                    T.copy(W[bz, k * 16, bx * 16], b_s)
                T.gemm(a_s, b_s, acc)
            if last:
                T.copy(acc, C[by * 16 : by * 16 + 16, bz, bx * 16 : bx * 16 + 16])
            else:
                T.copy(acc, C[bz, by * 16, bx * 16])

    return main


@pytest.mark.parametrize("last", [False, True])
def test_a_batch_is_counted_once_each(last: bool) -> None:
    found = work(batched, B=5, M=20, N=24, K=40, last=last)
    assert found == Work(2.0 * 5 * 20 * 24 * 40, 2.0 * 5 * (20 * 40 + 40 * 24 + 20 * 24))


def one_row(N=40, K=48):
    """A product of one row: m is 1 and is no unit dimension to be skipped."""

    @T.prim_func
    def main(A: T.Tensor((1, K), "float32"), W: T.Tensor((K, N), "float32"), C: T.Tensor((1, N), "float32")):
        with T.Kernel(T.ceildiv(N, 16), threads=128) as bx:
            a = T.alloc_shared((16, 16), "float32")
            b = T.alloc_shared((16, 16), "float32")
            acc = T.alloc_fragment((16, 16), "float32")
            T.clear(acc)
            for k in range(0, K, 16):
                T.copy(A[0, k], a)
                T.copy(W[k, bx * 16], b)
                T.gemm(a, b, acc)
            T.copy(acc, C[0, bx * 16])

    return main


def test_a_product_of_one_row() -> None:
    assert work(one_row) == Work(2.0 * 40 * 48, 4.0 * (48 + 48 * 40 + 40))


def in_parts(M=40, K=50):
    """A tile filled by two copies, multiplied in two parts, on arrays that it does not divide."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float32"), W: T.Tensor((K, 16), "float32"), C: T.Tensor((M, 16), "float32")
    ):
        with T.Kernel(T.ceildiv(M, 32), threads=128) as bx:
            a = T.alloc_shared((32, 64), "float32")
            b = T.alloc_shared((64, 16), "float32")
            acc = T.alloc_fragment((32, 16), "float32")
            T.clear(acc)
            T.copy(A[bx * 32 : bx * 32 + 32, 0:32], a[:, 0:32])
            T.copy(A[bx * 32 : bx * 32 + 32, 32:64], a[:, 32:64])
            T.copy(W[0:64, :], b)
            T.gemm(a[:, 0:16], b[0:16, :], acc)
            T.gemm(a[:, 16:64], b[16:64, :], acc)
            T.copy(acc, C[bx * 32, 0])

    return main


def test_parts_of_tiles() -> None:
    assert work(in_parts) == Work(2.0 * 40 * 50 * 16, 4.0 * (40 * 50 + 50 * 16 + 40 * 16))


def loops(N=70, turns=9):
    """Serial loops in parallel ones, names for indices, stores without a parallel loop, branches."""

    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32"), s: T.Tensor((8,), "float32")):
        with T.Kernel(T.ceildiv(N, 32), threads=32) as bx:
            first = bx * 32
            for i in T.Parallel(32):
                for _ in T.serial(turns):
                    C[first + i] = C[first + i] * 2.0 + A[first + i]
            # 1 a store, in the first block alone
            if bx == 0:
                for k in T.serial(8):
                    s[k] = A[k] * 3.0

    return main


def test_loops_inside_and_outside_of_parallel_ones() -> None:
    assert work(loops) == Work(2.0 * 9 * 70 + 8, 4.0 * (70 + 2 * 70 + 8))


def triangle(N=48):
    """As many turns as the index says, for each row."""

    @T.prim_func
    def main(A: T.Tensor((N, N), "float32"), C: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, 16), threads=32) as bx:
            for i in T.Parallel(16):
                for k in T.serial(bx * 16 + i):
                    C[bx * 16 + i] = C[bx * 16 + i] + A[bx * 16 + i, k]

    return main


def test_turns_that_an_index_says() -> None:
    assert work(triangle) == Work(48 * 47 / 2, 4.0 * (48 * 48 + 2 * 48))


def test_turns_that_an_array_says_are_no_exact_count() -> None:
    def told():
        @T.prim_func
        def main(A: T.Tensor((32,), "float32"), n: T.Tensor((1,), "int32"), C: T.Tensor((32,), "float32")):
            with T.Kernel(1, threads=32) as _:
                for _k in T.serial(n[0]):
                    for i in T.Parallel(32):
                        C[i] = C[i] + A[i]

        return main

    found = work(told)
    assert (found.flops, found.exact) == (32, False)


def symbolic():
    m, n = T.dynamic("m"), T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((m, 1, n), "float16"), C: T.Tensor((m,), "float32")):
        with T.Kernel(T.ceildiv(m, 8), threads=128) as bx:
            tile = T.alloc_fragment((8, 32), "float32")
            row = T.alloc_fragment((8,), "float32")
            T.clear(row)
            for k in T.serial(T.ceildiv(n, 32)):
                T.copy(A[bx * 8 : bx * 8 + 8, 0, k * 32 : k * 32 + 32], tile)
                T.reduce_sum(tile, row, dim=1, clear=False)
            T.copy(row, C[bx * 8])

    return main


@pytest.mark.parametrize(("m", "n"), [(16, 64), (13, 45), (1, 1)])
def test_sizes_of_a_call(m: int, n: int) -> None:
    assert work(symbolic, {"m": m, "n": n}) == Work(1.0 * m * n, 2.0 * m * n + 4 * m)


def strides_and_nibbles():
    @T.prim_func
    def main(
        A: T.StridedTensor((8, 8), (16, 1), "float32"), B: T.Tensor((8, 8), "int4"),
        C: T.Tensor((8, 8), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=32) as _:
            for i, j in T.Parallel(8, 8):
                C[i, j] = A[i, j] + T.cast(B[i, j], "float32")

    return main


def groups():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=128) as _:
            with T.threads(0, 64):
                for i in T.Parallel(64):
                    C[i] = A[i] * 2.0
            tx = T.get_thread_binding()
            if tx < 32:
                for i in T.Parallel(64):
                    C[i] = C[i] + 1.0

    return main


def three_dimensions():
    """Tiles that stick out on each side; a scan and a reduction of the elements that are there."""

    @T.prim_func
    def main(
        A: T.Tensor((7, 9, 5), "float32"), C: T.Tensor((7, 9, 5), "float32"), R: T.Tensor((7, 5), "float32")
    ):
        with T.Kernel(1, threads=128) as _:
            t = T.alloc_fragment((8, 16, 8), "float32")
            u = T.alloc_fragment((8, 16, 8), "float32")
            r = T.alloc_fragment((8, 8), "float32")
            T.copy(A[0, 0, 0], t)
            T.cumsum(t, u, dim=0)
            T.reduce_sum(t, r, dim=1)
            T.copy(u, C[0, 0, 0])
            T.copy(r, R[0, 0])

    return main


def masked():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
        with T.Kernel(2, threads=128) as b:
            for i in T.Parallel(32):
                if b * 32 + i < 40:
                    C[b * 32 + i] = T.exp(A[b * 32 + i]) + 1.0

    return main


def matrix_vector():
    @T.prim_func
    def main(A: T.Tensor((60, 48), "float32"), x: T.Tensor((48,), "float32"), C: T.Tensor((60,), "float32")):
        with T.Kernel(2, threads=128) as b:
            acc = T.alloc_fragment((32,), "float32")
            T.clear(acc)
            for k in T.serial(48):
                for i in T.Parallel(32):
                    acc[i] = acc[i] + A[b * 32 + i, k] * x[k]
            T.copy(acc, C[b * 32])

    return main


@pytest.mark.parametrize(
    ("function", "flops", "moved"),
    [
        (strides_and_nibbles, 64, 4 * 64 + 32 + 4 * 64),  # the gaps between rows are no traffic
        (groups, 64 + 64, 4 * 64 * 3),
        (three_dimensions, 2 * 7 * 9 * 5, 4 * (2 * 7 * 9 * 5 + 7 * 5)),
        (masked, 2 * 40, 4 * 64 * 2),
        (matrix_vector, 2 * 60 * 48, 4 * (60 * 48 + 48 + 60)),
    ],
)
def test_other_kernels(function: Any, flops: int, moved: int) -> None:
    assert work(function) == Work(float(flops), float(moved))
