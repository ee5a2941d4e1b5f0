"""Kernels whose lines are followed through all stages: macros, a pipelined loop, vectors."""

from __future__ import annotations

import tilebench
import tilebench.language as T


@T.macro
def load(src, dst, row, col):
    T.copy(src[row, col], dst)


@tilebench.jit
def macro_gemm(M, N, K, num_stages=3):
    @T.macro
    def scale(frag, by):
        for i, j in T.Parallel(64, 64):
            frag[i, j] = frag[i, j] * by

    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=128) as (bx, by):
            A_s = T.alloc_shared((64, 32), "float16")
            B_s = T.alloc_shared((32, 64), "float16")
            C_l = T.alloc_fragment((64, 64), "float32")
            T.clear(C_l)
            for ko in T.Pipelined(T.ceildiv(K, 32), num_stages=num_stages):
                load(A, A_s, by * 64, ko * 32)
                load(B, B_s, ko * 32, bx * 64)
                T.gemm(A_s, B_s, C_l)
            scale(C_l, 2.0)
            T.copy(C_l, C[by * 64, bx * 64])

    return main


@tilebench.jit
def vector_add(N, block=1024):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            for i in T.Parallel(block):
                C[bx * block + i] = A[bx * block + i] + B[bx * block + i]

    return main
