"""Kernels over integers of 4 bits and 8-bit floats, as a person writes them, for tests of all rooms."""

from __future__ import annotations

import tilebench
import tilebench.language as T


@tilebench.jit
def through_shared(M, N, stored="int4", out="float16", block_M=16, block_N=32, threads=64):
    """Global to shared to a fragment, converted, to global: the way of a dequantisation."""

    @T.prim_func
    def main(A: T.Tensor((M, N), stored), C: T.Tensor((M, N), out)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_s = T.alloc_shared((block_M, block_N), stored)
            A_l = T.alloc_fragment((block_M, block_N), stored)
            C_l = T.alloc_fragment((block_M, block_N), out)
            T.copy(A[by * block_M, bx * block_N], A_s)
            T.copy(A_s, A_l)
            for i, j in T.Parallel(block_M, block_N):
                C_l[i, j] = T.cast(A_l[i, j], out)
            T.copy(C_l, C[by * block_M, bx * block_N])

    return main


@tilebench.jit
def narrowed(M, N, given="float32", stored="int4", block_M=16, block_N=32, threads=64):
    """Converted to the narrow dtype in registers, through shared memory, to global."""

    @T.prim_func
    def main(A: T.Tensor((M, N), given), C: T.Tensor((M, N), stored)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            C_s = T.alloc_shared((block_M, block_N), stored)
            A_l = T.alloc_fragment((block_M, block_N), given)
            T.copy(A[by * block_M, bx * block_N], A_l)
            for i, j in T.Parallel(block_M, block_N):
                C_s[i, j] = T.cast(A_l[i, j], stored)
            T.copy(C_s, C[by * block_M, bx * block_N])

    return main


@tilebench.jit
def elementwise(M, N, given="int4", out="int8", block_M=16, block_N=32, threads=64):
    """Straight from global to global memory, element by element."""

    @T.prim_func
    def main(A: T.Tensor((M, N), given), C: T.Tensor((M, N), out)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            for i, j in T.Parallel(block_M, block_N):
                C[by * block_M + i, bx * block_N + j] = T.cast(A[by * block_M + i, bx * block_N + j], out)

    return main


@tilebench.jit
def filled(M, N, stored="int4", value=-3, block_M=16, block_N=32, threads=64):
    """A tile filled in shared memory and in registers, each half of the result from one."""

    @T.prim_func
    def main(C: T.Tensor((2, M, N), stored)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            C_s = T.alloc_shared((block_M, block_N), stored)
            C_l = T.alloc_fragment((block_M, block_N), stored)
            T.fill(C_s, value)
            T.fill(C_l, value)
            T.copy(C_s, C[0, by * block_M, bx * block_N])
            T.copy(C_l, C[1, by * block_M, bx * block_N])

    return main
