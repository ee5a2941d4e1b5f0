"""Transposing a matrix."""

from __future__ import annotations

import tilebench.language as T

from ...kernel import jit


@jit
def transpose_kernel(M, N, dtype, block_M, block_N, threads):
    """Tiles go through shared memory, so that both sides are met along their rows."""

    @T.prim_func
    def main(x: T.Tensor((M, N), dtype), y: T.Tensor((N, M), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            tile = T.alloc_shared((block_M, block_N), dtype)
            T.copy(x[by * block_M, bx * block_N], tile)
            for i, j in T.Parallel(block_N, block_M):
                y[bx * block_N + i, by * block_M + j] = tile[j, i]

    return main
