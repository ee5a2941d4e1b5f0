"""Kernels that wait for memory, as a user writes them: what `bench_streaming` and the tests of widths run."""

from __future__ import annotations

import tilebench
import tilebench.language as T

EPS = 1e-5
LOG2E = 1.4426950408889634


@tilebench.jit
def gelu_bias(M, N, block_M=4, block_N=1024, dtype="float16", threads=256):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), B: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            for i, j in T.Parallel(block_M, block_N):
                x = T.cast(X[by * block_M + i, bx * block_N + j] + B[bx * block_N + j], "float32")
                Y[by * block_M + i, bx * block_N + j] = 0.5 * x * (1.0 + T.erf(x * 0.7071067811865476))

    return main


# log2(erfc(a)) over a, from the highest power: erfc within 2e-7 of 1, of itself within 3e-4 up to a = 3.
# A fit by least squares with weights of Lawson on [0, 4]; behind, it falls to minus infinity as erfc does.
ERFC = (
    -1.8031469e-05, 0.00021730763, -0.00075238524, -0.001951375, 0.029237004, -0.14889936, -0.91833663,
    -1.6279135,
)  # fmt: skip


@tilebench.jit
def gelu_bias_by_powers(M, N, block_M=4, block_N=1024, dtype="float16", threads=256):
    """As exact as float16 shows: T.erf, right to 2 units in float32, is twice the instructions."""

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), B: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            for i, j in T.Parallel(block_M, block_N):
                x = T.cast(X[by * block_M + i, bx * block_N + j] + B[bx * block_N + j], "float32")
                a = T.abs(x) * 0.7071067811865476
                power = ERFC[0] * a + ERFC[1]
                for factor in ERFC[2:]:
                    power = power * a + factor
                tail = T.exp2(power * a)
                Y[by * block_M + i, bx * block_N + j] = 0.5 * x * T.if_then_else(x < 0, tail, 2.0 - tail)

    return main


@tilebench.jit
def rms_norm(M, N, block_M=1, dtype="float16", threads=256, blocks=1):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), G: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            T.annotate_min_blocks_per_sm(blocks)
            x = T.alloc_fragment((block_M, N), "float32")
            square = T.alloc_fragment((block_M, N), "float32")
            rstd = T.alloc_fragment((block_M,), "float32")
            T.copy(X[bx * block_M, 0], x)
            for i, j in T.Parallel(block_M, N):
                square[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(square, rstd, dim=1)
            for i in T.Parallel(block_M):
                rstd[i] = T.rsqrt(rstd[i] / N + EPS)
            for i, j in T.Parallel(block_M, N):
                Y[bx * block_M + i, j] = x[i, j] * rstd[i] * G[j]

    return main


@tilebench.jit
def layer_norm(M, N, block_M=1, dtype="float16", threads=256, blocks=1):
    @T.prim_func
    def main(
        X: T.Tensor((M, N), dtype), G: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype),
        Y: T.Tensor((M, N), dtype),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            T.annotate_min_blocks_per_sm(blocks)
            x = T.alloc_fragment((block_M, N), "float32")
            square = T.alloc_fragment((block_M, N), "float32")
            mean = T.alloc_fragment((block_M,), "float32")
            rstd = T.alloc_fragment((block_M,), "float32")
            T.copy(X[bx * block_M, 0], x)
            T.reduce_sum(x, mean, dim=1)
            for i, j in T.Parallel(block_M, N):
                x[i, j] -= mean[i] / N
                square[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(square, rstd, dim=1)
            for i in T.Parallel(block_M):
                rstd[i] = T.rsqrt(rstd[i] / N + EPS)
            for i, j in T.Parallel(block_M, N):
                Y[bx * block_M + i, j] = x[i, j] * rstd[i] * G[j] + B[j]

    return main


@tilebench.jit
def softmax(M, N, block_M=1, dtype="float16", threads=256, blocks=1):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            T.annotate_min_blocks_per_sm(blocks)
            x = T.alloc_fragment((block_M, N), "float32")
            top = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            T.copy(X[bx * block_M, 0], x)
            T.reduce_max(x, top, dim=1)
            for i, j in T.Parallel(block_M, N):
                x[i, j] = T.exp2((x[i, j] - top[i]) * LOG2E)
            T.reduce_sum(x, total, dim=1)
            for i in T.Parallel(block_M):
                total[i] = 1.0 / total[i]
            for i, j in T.Parallel(block_M, N):
                Y[bx * block_M + i, j] = x[i, j] * total[i]

    return main


@tilebench.jit
def row_sum(M, N, block_M=1, dtype="float16", threads=256, blocks=1):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M,), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            T.annotate_min_blocks_per_sm(blocks)
            x = T.alloc_fragment((block_M, N), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            T.copy(X[bx * block_M, 0], x)
            T.reduce_sum(x, total, dim=1)
            T.copy(total, Y[bx * block_M])

    return main


@tilebench.jit
def column_sum(M, N, block_M=32, block_N=512, splits=32, dtype="float16", threads=256):
    """Parts of the sums into a workspace, which a second launch adds."""
    steps = -(-M // (block_M * splits))

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((N,), dtype)):
        parts = T.alloc_global((splits, N), "float32")
        with T.Kernel(T.ceildiv(N, block_N), splits, threads=threads) as (bx, by):
            x = T.alloc_fragment((block_M, block_N), "float32")
            sums = T.alloc_fragment((block_M, block_N), "float32")
            total = T.alloc_fragment((block_N,), "float32")
            T.clear(sums)
            for k in T.serial(steps):
                T.copy(X[(by * steps + k) * block_M, bx * block_N], x)
                for i, j in T.Parallel(block_M, block_N):
                    sums[i, j] += x[i, j]
            T.reduce_sum(sums, total, dim=0)
            T.copy(total, parts[by, bx * block_N])
        with T.Kernel(T.ceildiv(N, 64), threads=256) as bx:
            x = T.alloc_fragment((splits, 64), "float32")
            total = T.alloc_fragment((64,), "float32")
            T.copy(parts[0, bx * 64], x)
            T.reduce_sum(x, total, dim=0)
            T.copy(total, Y[bx * 64])

    return main


@tilebench.jit
def column_sum_at_once(M, N, block_M=256, block_N=64, dtype="float16", threads=1024):
    """Each block sums some columns whole; rows of the next step are on their way while these are added."""
    steps = -(-M // block_M)

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), threads=threads) as bx:
            these = T.alloc_fragment((block_M, block_N), dtype)
            others = T.alloc_fragment((block_M, block_N), dtype)
            sums = T.alloc_fragment((block_M, block_N), "float32")
            total = T.alloc_fragment((block_N,), "float32")
            T.clear(sums)
            T.copy(X[0, bx * block_N], these)
            for k in T.serial(T.ceildiv(steps, 2)):
                T.copy(X[(2 * k + 1) * block_M, bx * block_N], others)
                for i, j in T.Parallel(block_M, block_N):
                    sums[i, j] += these[i, j]
                T.copy(X[(2 * k + 2) * block_M, bx * block_N], these)
                for i, j in T.Parallel(block_M, block_N):
                    sums[i, j] += others[i, j]
            T.reduce_sum(sums, total, dim=0)
            T.copy(total, Y[bx * block_N])

    return main


@tilebench.jit
def transpose(M, N, block_M=64, block_N=64, dtype="float16", threads=256):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((N, M), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            x = T.alloc_shared((block_M, block_N), dtype)
            T.copy(X[by * block_M, bx * block_N], x)
            for j, i in T.Parallel(block_N, block_M):
                Y[bx * block_N + j, by * block_M + i] = x[i, j]

    return main


@tilebench.jit
def gemv(M, N, block_M=4, block_N=2048, dtype="float16", threads=256):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), X: T.Tensor((N,), dtype), Y: T.Tensor((M,), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            terms = T.alloc_fragment((block_M, block_N), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            T.clear(terms)
            for k in T.serial(T.ceildiv(N, block_N)):
                for i, j in T.Parallel(block_M, block_N):
                    a = T.cast(A[bx * block_M + i, k * block_N + j], "float32")
                    terms[i, j] += a * X[k * block_N + j]
            T.reduce_sum(terms, total, dim=1)
            T.copy(total, Y[bx * block_M])

    return main
