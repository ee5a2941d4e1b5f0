"""Products of many matrices at once: of a batch, and of rows that lie group by group."""

from __future__ import annotations

import tilebench.language as T

from ...kernel import jit


@jit
def batched_matmul_kernel(
    B, M, N, K, dtype, a_order, b_order, block_M, block_N, block_K, num_stages, threads, panels=0
):
    """C[i] = A[i] B[i]. An operand of order 1 lies transposed in memory, matrix by matrix."""
    accumulated = "float64" if dtype == "float64" else "float32"

    @T.prim_func
    def main(
        a: T.Tensor((B, K, M) if a_order else (B, M, K), dtype),
        b: T.Tensor((B, N, K) if b_order else (B, K, N), dtype), c: T.Tensor((B, M, N), dtype),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), B, threads=threads) as (bx, by, bz):
            a_s = T.alloc_shared((block_K, block_M) if a_order else (block_M, block_K), dtype)
            b_s = T.alloc_shared((block_N, block_K) if b_order else (block_K, block_N), dtype)
            acc = T.alloc_fragment((block_M, block_N), accumulated)
            if panels:
                T.use_swizzle(panels)
            T.clear(acc)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                if a_order:
                    T.copy(a[bz, ko * block_K, by * block_M], a_s)
                else:
                    T.copy(a[bz, by * block_M, ko * block_K], a_s)
                if b_order:
                    T.copy(b[bz, bx * block_N, ko * block_K], b_s)
                else:
                    T.copy(b[bz, ko * block_K, bx * block_N], b_s)
                T.gemm(a_s, b_s, acc, transpose_A=bool(a_order), transpose_B=bool(b_order))
            T.copy(acc, c[bz, by * block_M, bx * block_N])

    return main


@jit
def grouped_matmul_kernel(
    M, N, K, G, dtype, b_order, block_M, block_N, block_K, num_stages, threads, panels=0
):
    """C[r] = A[r] B[g] of each row r of group g, which ends in front of row ends[g]; of others zero.

    A tile of rows is of one group, which a block finds by counting; each group may end with a part of a tile.
    """
    accumulated = "float64" if dtype == "float64" else "float32"

    @T.prim_func
    def main(
        a: T.Tensor((M, K), dtype), b: T.Tensor((G, N, K) if b_order else (G, K, N), dtype),
        ends: T.Tensor((G,), "int32"), c: T.Tensor((M, N), dtype),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M) + G, threads=threads) as (bx, by):
            a_s = T.alloc_shared((block_M, block_K), dtype)
            b_s = T.alloc_shared((block_N, block_K) if b_order else (block_K, block_N), dtype)
            acc = T.alloc_fragment((block_M, block_N), accumulated)
            if panels:
                T.use_swizzle(panels)
            group = T.alloc_var("int32", init=0)
            first = T.alloc_var("int32", init=M)
            last = T.alloc_var("int32", init=M)
            before = T.alloc_var("int32", init=0)
            start = T.alloc_var("int32", init=0)
            steps = T.ceildiv(K, block_K)
            for g in T.serial(G + 1):
                here = T.if_then_else(g < G, T.max(T.min(ends[T.min(g, G - 1)], M), start), M)
                tiles = T.ceildiv(here - start, block_M)
                if by >= before and by < before + tiles:
                    group = g
                    first = start + (by - before) * block_M
                    last = here
                before = before + tiles
                start = here
            if first < last:
                T.clear(acc)
                for ko in T.Pipelined(T.if_then_else(group < G, steps, 0), num_stages=num_stages):
                    T.copy(a[first : first + block_M, ko * block_K : (ko + 1) * block_K], a_s)
                    if b_order:
                        T.copy(b[group, bx * block_N, ko * block_K], b_s)
                    else:
                        T.copy(b[group, ko * block_K, bx * block_N], b_s)
                    T.gemm(a_s, b_s, acc, transpose_B=bool(b_order))
                for i, j in T.Parallel(block_M, block_N):
                    if first + i < last:
                        c[first + i, bx * block_N + j] = acc[i, j]

    return main
