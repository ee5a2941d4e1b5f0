"""Operators of elements: add, and gelu(x + bias)."""

from __future__ import annotations

import tilebench.language as T

from ...kernel import jit
from .activations import activated


@jit
def add_kernel(n, dtype, block, threads):
    """Arrays of any shape as one row."""
    size = T.dynamic("n") if n is None else n

    @T.prim_func
    def main(x: T.Tensor((size,), dtype), y: T.Tensor((size,), dtype), z: T.Tensor((size,), dtype)):
        with T.Kernel(T.ceildiv(size, block), threads=threads) as bx:
            for i in T.Parallel(block):
                z[bx * block + i] = x[bx * block + i] + y[bx * block + i]

    return main


@jit
def bias_gelu_kernel(M, N, dtype, approximate, block_M, block_N, threads, flat=0):
    """Tiles of rows, or, flat, pieces of all rows as one, where rows need not start at a multiple."""
    rows = T.dynamic("M") if M is None else M
    total = T.dynamic("n") if M is None else M * N
    activation = "gelu_tanh" if approximate == "tanh" else "gelu"
    shape = (total,) if flat else (rows, N)

    @T.prim_func
    def main(x: T.Tensor(shape, dtype), bias: T.Tensor((N,), dtype), y: T.Tensor(shape, dtype)):
        if flat:
            with T.Kernel(T.ceildiv(total, block_N), threads=threads) as bx:
                v = T.alloc_fragment((1, block_N), "float32")
                for i, j in T.Parallel(1, block_N):
                    v[i, j] = x[bx * block_N + j]
                for i, j in T.Parallel(1, block_N):
                    v[i, j] += bias[(bx * block_N + j) % N]
                activated(v, activation, dtype, 1, block_N)
                for i, j in T.Parallel(1, block_N):
                    y[bx * block_N + j] = v[i, j]
        else:
            with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(rows, block_M), threads=threads) as (bx, by):
                v = T.alloc_fragment((block_M, block_N), "float32")
                T.copy(x[by * block_M, bx * block_N], v)
                for i, j in T.Parallel(block_M, block_N):
                    v[i, j] += bias[bx * block_N + j]
                activated(v, activation, dtype, block_M, block_N)
                T.copy(v, y[by * block_M, bx * block_N])

    return main
