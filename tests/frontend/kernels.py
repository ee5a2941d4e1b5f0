"""Kernels that the front end's tests trace: the four of the first issue and their variants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tilebench.language as T


def add_kernel(M: int, N: int, block_M: int, block_N: int, dtype: str = "float16") -> Any:
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M)) as (bx, by):
            for i, j in T.Parallel(block_M, block_N):
                C[by * block_M + i, bx * block_N + j] = (
                    A[by * block_M + i, bx * block_N + j] + B[by * block_M + i, bx * block_N + j]
                )

    return main


def gemm_kernel(
    M, N, K, block_M, block_N, block_K, num_stages=3, threads=128, dtype="float16", acc="float32"
):
    @T.prim_func
    def matmul(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_s = T.alloc_shared((block_M, block_K), dtype)
            B_s = T.alloc_shared((block_K, block_N), dtype)
            C_l = T.alloc_fragment((block_M, block_N), acc)
            T.clear(C_l)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, ko * block_K], A_s)
                T.copy(B[ko * block_K, bx * block_N], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C[by * block_M, bx * block_N])

    return matmul


def global_gemm_kernel(M, N, K, block_M, block_N, block_K):
    @T.prim_func
    def matmul(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M)) as (bx, by):
            C_l = T.alloc_fragment((block_M, block_N), T.float32)
            T.clear(C_l)
            rows = by * block_M
            for ko in T.Pipelined(T.ceildiv(K, block_K)):
                T.gemm(
                    A[rows : rows + block_M, ko * block_K : (ko + 1) * block_K],
                    B[ko * block_K : (ko + 1) * block_K, bx * block_N : (bx + 1) * block_N],
                    C_l,
                    policy=T.GemmWarpPolicy.FullRow,
                )
            T.copy(C_l, C[by * block_M, bx * block_N])

    return matmul


def row_sum_kernel(M, N, block_M, block_N):
    @T.prim_func
    def row_sum(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            tile = T.alloc_fragment((block_M, block_N), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            T.clear(total)
            for k in T.serial(T.ceildiv(N, block_N)):
                T.copy(X[bx * block_M, k * block_N], tile)
                T.reduce_sum(tile, total, dim=1, clear=False)
            T.copy(total, Y[bx * block_M])

    return row_sum


def softmax_kernel(M, N, block_M, dtype="float16"):
    scale = 1.4426950408889634

    @T.prim_func
    def softmax(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            x = T.alloc_fragment((block_M, N), "float32")
            top = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            T.copy(X[bx * block_M : (bx + 1) * block_M, :], x)
            T.reduce_max(x, top, dim=1)
            for i, j in T.Parallel(block_M, N):
                x[i, j] = T.exp2(x[i, j] * scale - top[i] * scale)
            T.reduce_sum(x, total)
            for i, j in T.Parallel(block_M, N):
                x[i, j] /= total[i]
            T.copy(x, Y[bx * block_M : (bx + 1) * block_M, :])

    return softmax


def relu(value: Any) -> Any:
    return T.max(value, 0)


def stage_both(A: Any, B: Any, row: Any, width: int) -> tuple[Any, Any]:
    a = T.alloc_shared((width, width), "float16")
    b = T.alloc_shared((width, width), "float16")
    T.copy(A[row, 0], a)
    T.copy(B[row, 0], b)
    return a, b


def variants_kernel(M: int, activation: Callable[[Any], Any] = relu, negate: bool = False, scales=(1.0, 0.5)):
    @T.prim_func
    def main(
        A: T.Tensor((M, 64), "float16"), B: T.Tensor((M, 64), "float16"), C: T.Tensor((M, 64), "float16")
    ):
        with T.Kernel(M // 64, threads=64) as bx:
            T.use_swizzle(4)
            a_s, b_s = stage_both(A, B, bx * 64, 64)
            T.swizzle(a_s)
            out = T.alloc_fragment((64, 64), "float32")
            count = T.alloc_var("int32", init=0)
            for i, j in T.Parallel(64, 64):
                value: T.float32 = a_s[i, j] * scales[0] + b_s[i, j] * scales[-1]
                if negate:
                    value = -value
                out[i, j] = activation(value) if i <= j < 60 else 0
            for k in range(0, 4, 2):
                count += k
                if count > 1 and bx != 0:
                    T.fill(out[0:8, :], 1)
                else:
                    count = 0
            T.copy(out, C[bx * 64, 0])

    return main
