"""The kernels that tests, benchmarks and the device check share: add, gemm, row reduction, softmax."""

from __future__ import annotations

import tilebench
import tilebench.language as T


@tilebench.jit
def add_kernel(M, N, block_M=64, block_N=128, dtype="float16", threads=128):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            for i, j in T.Parallel(block_M, block_N):
                C[by * block_M + i, bx * block_N + j] = (
                    A[by * block_M + i, bx * block_N + j] + B[by * block_M + i, bx * block_N + j]
                )

    return main


@tilebench.jit
def gemm_kernel(
    M, N, K, block_M=128, block_N=128, block_K=32, num_stages=2, threads=256, dtype="float16", accum="float32"
):
    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_s = T.alloc_shared((block_M, block_K), dtype)
            B_s = T.alloc_shared((block_K, block_N), dtype)
            C_l = T.alloc_fragment((block_M, block_N), accum)
            T.clear(C_l)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, ko * block_K], A_s)
                T.copy(B[ko * block_K, bx * block_N], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C[by * block_M, bx * block_N])

    return main


@tilebench.jit
def gemm_regions(
    M, N, K, block_M=128, block_N=128, block_K=32, num_stages=2, threads=256, dtype="float16", accum="float32"
):
    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            C_local = T.alloc_fragment((block_M, block_N), accum)
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.gemm(
                    A[by * block_M : (by + 1) * block_M, ko * block_K : (ko + 1) * block_K],
                    B[ko * block_K : (ko + 1) * block_K, bx * block_N : (bx + 1) * block_N],
                    C_local,
                )
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


@tilebench.jit
def reduce_kernel(M, N, block_M=16, block_N=256, dtype="float16", accum="float32", threads=128, kind="sum"):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), C: T.Tensor((M,), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            X = T.alloc_fragment((block_M, block_N), accum)
            acc = T.alloc_fragment((block_M,), accum)
            if kind == "sum":
                T.clear(acc)
            else:
                T.fill(acc, T.min_value(accum))
            for k in T.serial(T.ceildiv(N, block_N)):
                if kind == "sum":
                    T.copy(A[bx * block_M, k * block_N], X)
                    T.reduce_sum(X, acc, dim=1, clear=False)
                else:
                    for i, j in T.Parallel(block_M, block_N):
                        value = T.cast(A[bx * block_M + i, k * block_N + j], accum)
                        X[i, j] = T.if_then_else(k * block_N + j < N, value, T.min_value(accum))
                    T.reduce_max(X, acc, dim=1, clear=False)
            T.copy(acc, C[bx * block_M])

    return main


@tilebench.jit
def softmax_kernel(M, N, block_M=4, dtype="float16", threads=128):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            X = T.alloc_fragment((block_M, N), "float32")
            top = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            T.copy(A[bx * block_M, 0], X)
            T.reduce_max(X, top, dim=1)
            for i, j in T.Parallel(block_M, N):
                X[i, j] = T.exp(X[i, j] - top[i])
            T.reduce_sum(X, total, dim=1)
            for i, j in T.Parallel(block_M, N):
                X[i, j] = X[i, j] / total[i]
            T.copy(X, C[bx * block_M, 0])

    return main


@tilebench.jit
def gemm_nt_kernel(
    M,
    N,
    K,
    block_M=128,
    block_N=128,
    block_K=64,
    num_stages=3,
    threads=256,
    dtype="float16",
    panel=8,
    turned=True,
    out=None,
):
    """C = A B^T, or A B; blocks are numbered in panels of that many rows, `out` is the dtype of C."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((N, K) if turned else (K, N), dtype),
        C: T.Tensor((M, N), out or dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_s = T.alloc_shared((block_M, block_K), dtype)
            B_s = T.alloc_shared((block_N, block_K) if turned else (block_K, block_N), dtype)
            C_l = T.alloc_fragment((block_M, block_N), "float32")
            if panel:
                T.use_swizzle(panel)
            T.clear(C_l)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, ko * block_K], A_s)
                if turned:
                    T.copy(B[bx * block_N, ko * block_K], B_s)
                else:
                    T.copy(B[ko * block_K, bx * block_N], B_s)
                T.gemm(A_s, B_s, C_l, transpose_B=turned)
            T.copy(C_l, C[by * block_M, bx * block_N])

    return main
