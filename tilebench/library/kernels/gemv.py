"""A matrix times a vector."""

from __future__ import annotations

import tilebench.language as T

from ...kernel import jit


@jit
def gemv_kernel(M, K, dtype, block_M, block_K, threads):
    """A block has some rows of w; each thread keeps its products in registers until the end of the row."""

    @T.prim_func
    def main(w: T.Tensor((M, K), dtype), x: T.Tensor((K,), dtype), y: T.Tensor((M,), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            v = T.alloc_fragment((block_M, block_K), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            T.clear(v)
            for k in T.serial(T.ceildiv(K, block_K)):
                for i, j in T.Parallel(block_M, block_K):
                    one = T.cast(w[bx * block_M + i, k * block_K + j], "float32")
                    v[i, j] += one * T.cast(x[k * block_K + j], "float32")
            T.reduce_sum(v, total, dim=1)
            T.copy(total, y[bx * block_M])

    return main
