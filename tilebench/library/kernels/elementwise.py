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
def bias_gelu_kernel(M, N, dtype, approximate, block_M, block_N, threads):
    rows = T.dynamic("M") if M is None else M
    activation = "gelu_tanh" if approximate == "tanh" else "gelu"

    @T.prim_func
    def main(x: T.Tensor((rows, N), dtype), bias: T.Tensor((N,), dtype), y: T.Tensor((rows, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(rows, block_M), threads=threads) as (bx, by):
            v = T.alloc_fragment((block_M, block_N), "float32")
            T.copy(x[by * block_M, bx * block_N], v)
            for i, j in T.Parallel(block_M, block_N):
                v[i, j] += bias[bx * block_N + j]
            activated(v, activation, dtype, block_M, block_N)
            T.copy(v, y[by * block_M, bx * block_N])

    return main
