"""Norms and running sums over rows, as users write them, for tests and benchmarks of the CPU target."""

from __future__ import annotations

import tilebench
import tilebench.language as T


@tilebench.jit
def rms_norm(M, N, block_M, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            X = T.alloc_fragment((block_M, N), "float32")
            squares = T.alloc_fragment((block_M, N), "float32")
            weights = T.alloc_fragment((N,), "float32")
            scale = T.alloc_fragment((block_M,), "float32")
            T.copy(A[bx * block_M, 0], X)
            T.copy(W, weights)
            for i, j in T.Parallel(block_M, N):
                squares[i, j] = X[i, j] * X[i, j]
            T.reduce_sum(squares, scale, dim=1)
            for i in T.Parallel(block_M):
                scale[i] = T.rsqrt(scale[i] / N + 1e-6)
            for i, j in T.Parallel(block_M, N):
                X[i, j] *= scale[i] * weights[j]
            T.copy(X, C[bx * block_M, 0])

    return main


@tilebench.jit
def layer_norm(M, N, block_M, dtype="float32"):
    """Two passes over a row for mean and variance; both are outputs too."""

    @T.prim_func
    def main(
        A: T.Tensor((M, N), dtype),
        W: T.Tensor((N,), dtype),
        B: T.Tensor((N,), dtype),
        C: T.Tensor((M, N), dtype),
        means: T.Tensor((M,), "float32"),
    ):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            X = T.alloc_fragment((block_M, N), "float32")
            squares = T.alloc_fragment((block_M, N), "float32")
            weights = T.alloc_fragment((N,), "float32")
            bias = T.alloc_fragment((N,), "float32")
            mean = T.alloc_fragment((block_M,), "float32")
            scale = T.alloc_fragment((block_M,), "float32")
            T.copy(A[bx * block_M, 0], X)
            T.copy(W, weights)
            T.copy(B, bias)
            T.reduce_sum(X, mean, dim=1)
            for i in T.Parallel(block_M):
                mean[i] = mean[i] / N
                means[bx * block_M + i] = mean[i]
            for i, j in T.Parallel(block_M, N):
                squares[i, j] = (X[i, j] - mean[i]) * (X[i, j] - mean[i])
            T.reduce_sum(squares, scale, dim=1)
            for i in T.Parallel(block_M):
                scale[i] = T.rsqrt(scale[i] / N + 1e-5)
            for i, j in T.Parallel(block_M, N):
                X[i, j] = (X[i, j] - mean[i]) * scale[i] * weights[j] + bias[j]
            T.copy(X, C[bx * block_M, 0])

    return main


@tilebench.jit
def running_sum(M, N, block_M, dtype="float32", out="float32", dim=1, reverse=False):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), C: T.Tensor((M, N), out)):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            X = T.alloc_shared((block_M, N), dtype)
            Y = T.alloc_shared((block_M, N), out)
            T.copy(A[bx * block_M, 0], X)
            T.cumsum(X, Y, dim=dim, reverse=reverse)
            T.copy(Y, C[bx * block_M, 0])

    return main


@tilebench.jit
def with_last_row(M, N, block_M):
    """Each row and the block's last one, which is there after all of them."""

    @T.prim_func
    def main(
        A: T.Tensor((M, N), "float32"), C: T.Tensor((M, N), "float32"), last: T.Tensor((M, N), "float32")
    ):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            X = T.alloc_fragment((block_M, N), "float32")
            row = T.alloc_shared((N,), "float32")
            T.copy(A[bx * block_M, 0], X)
            for i, j in T.Parallel(block_M, N):
                X[i, j] = X[i, j] * 2.0
            for j in T.Parallel(N):
                row[j] = X[block_M - 1, j]
            for i, j in T.Parallel(block_M, N):
                X[i, j] = X[i, j] + row[j]
            T.copy(X, C[bx * block_M, 0])
            T.copy(X, last[bx * block_M, 0])

    return main
