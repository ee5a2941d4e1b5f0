"""Softmax along the last axis.

A row that fits a block's registers (`block_N` of the schedule) is read once; a longer one in parts, twice.
"""

from __future__ import annotations

import tilebench.language as T

from ...kernel import jit

LOG2E = 1.4426950408889634
LEAST = float("-inf")


@T.macro
def whole_rows(x, first, y, row, N, block_M):
    """Rows of x from `first` on, an array or a tile."""
    v = T.alloc_fragment((block_M, N), "float32")
    top = T.alloc_fragment((block_M,), "float32")
    total = T.alloc_fragment((block_M,), "float32")
    T.copy(x[first, 0], v)
    T.reduce_max(v, top, dim=1)
    for i, j in T.Parallel(block_M, N):
        v[i, j] = T.exp2((v[i, j] - top[i]) * LOG2E)
    T.reduce_sum(v, total, dim=1)
    for i in T.Parallel(block_M):
        total[i] = 1.0 / total[i]
    for i, j in T.Parallel(block_M, N):
        y[row + i, j] = v[i, j] * total[i]


@T.macro
def rows_in_parts(x, y, row, N, block_M, block_N):
    """The first pass keeps the maximum so far, and the sum of weights under it."""
    v = T.alloc_fragment((block_M, block_N), "float32")
    top = T.alloc_fragment((block_M,), "float32")
    before = T.alloc_fragment((block_M,), "float32")
    part = T.alloc_fragment((block_M,), "float32")
    total = T.alloc_fragment((block_M,), "float32")
    T.fill(top, LEAST)
    T.clear(total)
    for k in T.serial(T.ceildiv(N, block_N)):
        for i, j in T.Parallel(block_M, block_N):
            v[i, j] = T.if_then_else(k * block_N + j < N, x[row + i, k * block_N + j], LEAST)
        T.copy(top, before)
        T.reduce_max(v, top, dim=1, clear=False)
        for i, j in T.Parallel(block_M, block_N):
            # Under a maximum of minus infinity, and there alone, infinities are subtracted.
            v[i, j] = T.if_then_else(v[i, j] == LEAST, 0.0, T.exp2((v[i, j] - top[i]) * LOG2E))
        T.reduce_sum(v, part, dim=1)
        for i in T.Parallel(block_M):
            shrink = T.if_then_else(before[i] == LEAST, 0.0, T.exp2((before[i] - top[i]) * LOG2E))
            total[i] = total[i] * shrink + part[i]
    for k in T.serial(T.ceildiv(N, block_N)):
        for i, j in T.Parallel(block_M, block_N):
            weight = T.exp2((x[row + i, k * block_N + j] - top[i]) * LOG2E)
            y[row + i, k * block_N + j] = weight / total[i]


@jit
def softmax_kernel(M, N, dtype, block_M, block_N, threads, turns=1, num_stages=0):
    """With stages a block takes `turns` times its rows, and loads ahead through shared memory."""
    rows = T.dynamic("M") if M is None else M

    @T.prim_func
    def main(x: T.Tensor((rows, N), dtype), y: T.Tensor((rows, N), dtype)):
        with T.Kernel(T.ceildiv(rows, block_M * turns), threads=threads) as bx:
            if block_N < N:
                for turn in T.serial(turns):
                    rows_in_parts(x, y, (bx * turns + turn) * block_M, N, block_M, block_N)
            elif num_stages:
                tile = T.alloc_shared((block_M, N), dtype)
                for turn in T.Pipelined(turns, num_stages=num_stages):
                    row = (bx * turns + turn) * block_M
                    T.copy(x[row, 0], tile)
                    whole_rows(tile, 0, y, row, N, block_M)
            else:
                for turn in T.serial(turns):
                    row = (bx * turns + turn) * block_M
                    whole_rows(x, row, y, row, N, block_M)

    return main
