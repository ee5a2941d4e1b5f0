"""RMSNorm and LayerNorm along the last axis.

A row that fits a block's registers (`block_N` of the schedule) is read once; a longer one in parts, once for
each sum and once more. Everything between the first load and the last store is float32.
"""

from __future__ import annotations

import tilebench.language as T

from ...kernel import jit


@T.macro
def write_scaled(v, weight, bias, y, row, column, middle, scale, has_weight, has_bias, block_M, block_N):
    """One tile of y: (v - middle) * scale * weight + bias."""
    for i, j in T.Parallel(block_M, block_N):
        one = (v[i, j] - middle[i]) * scale[i]
        if has_weight:
            one = one * weight[column + j]
        if has_bias:
            one = one + bias[column + j]
        y[row + i, column + j] = one


@T.macro
def whole_rows(x, first, weight, bias, y, row, N, eps, centred, has_weight, has_bias, block_M):
    """Rows of x from `first` on, an array or a tile."""
    v = T.alloc_fragment((block_M, N), "float32")
    square = T.alloc_fragment((block_M, N), "float32")
    middle = T.alloc_fragment((block_M,), "float32")
    scale = T.alloc_fragment((block_M,), "float32")
    T.copy(x[first, 0], v)
    T.clear(middle)
    if centred:
        T.reduce_sum(v, middle, dim=1)
        for i in T.Parallel(block_M):
            middle[i] = middle[i] * (1.0 / N)
    for i, j in T.Parallel(block_M, N):
        away = v[i, j] - middle[i]
        square[i, j] = away * away
    T.reduce_sum(square, scale, dim=1)
    for i in T.Parallel(block_M):
        scale[i] = T.rsqrt(scale[i] * (1.0 / N) + eps)
    write_scaled(v, weight, bias, y, row, 0, middle, scale, has_weight, has_bias, block_M, N)


@T.macro
def rows_in_parts(x, weight, bias, y, row, N, eps, centred, has_weight, has_bias, block_M, block_N):
    v = T.alloc_fragment((block_M, block_N), "float32")
    sums = T.alloc_fragment((block_M, block_N), "float32")
    middle = T.alloc_fragment((block_M,), "float32")
    scale = T.alloc_fragment((block_M,), "float32")
    T.clear(middle)
    if centred:
        T.clear(sums)
        for k in T.serial(T.ceildiv(N, block_N)):
            for i, j in T.Parallel(block_M, block_N):
                sums[i, j] += x[row + i, k * block_N + j]
        T.reduce_sum(sums, middle, dim=1)
        for i in T.Parallel(block_M):
            middle[i] = middle[i] * (1.0 / N)
    T.clear(sums)
    for k in T.serial(T.ceildiv(N, block_N)):
        for i, j in T.Parallel(block_M, block_N):
            away = x[row + i, k * block_N + j] - middle[i]
            sums[i, j] += T.if_then_else(k * block_N + j < N, away * away, 0.0)
    T.reduce_sum(sums, scale, dim=1)
    for i in T.Parallel(block_M):
        scale[i] = T.rsqrt(scale[i] * (1.0 / N) + eps)
    for k in T.serial(T.ceildiv(N, block_N)):
        T.copy(x[row, k * block_N], v)
        write_scaled(
            v, weight, bias, y, row, k * block_N, middle, scale, has_weight, has_bias, block_M, block_N
        )


@jit
def norm_kernel(
    M, N, dtype, centred, has_weight, has_bias, eps, block_M, block_N, threads, turns=1, num_stages=0
):  # fmt: skip
    """LayerNorm where it is centred, else RMSNorm.

    With stages a block takes `turns` times its rows, and loads ahead through shared memory.
    """
    rows = T.dynamic("M") if M is None else M

    @T.prim_func
    def main(
        x: T.Tensor((rows, N), dtype), weight: T.Tensor((N if has_weight else 1,), dtype),
        bias: T.Tensor((N if has_bias else 1,), dtype), y: T.Tensor((rows, N), dtype),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(rows, block_M * turns), threads=threads) as bx:
            if block_N >= N and num_stages:
                tile = T.alloc_shared((block_M, N), dtype)
                for turn in T.Pipelined(turns, num_stages=num_stages):
                    row = (bx * turns + turn) * block_M
                    T.copy(x[row, 0], tile)
                    whole_rows(tile, 0, weight, bias, y, row, N, eps, centred, has_weight, has_bias, block_M)
            else:
                for turn in T.serial(turns):
                    row = (bx * turns + turn) * block_M
                    if block_N >= N:
                        whole_rows(
                            x, row, weight, bias, y, row, N, eps, centred, has_weight, has_bias, block_M
                        )
                    else:
                        rows_in_parts(
                            x, weight, bias, y, row, N, eps, centred, has_weight, has_bias, block_M, block_N
                        )

    return main
