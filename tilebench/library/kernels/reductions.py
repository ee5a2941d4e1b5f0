"""Sums and extremes of rows and of columns."""

from __future__ import annotations

import tilebench.language as T

from ...kernel import jit

# What an element that is not there gives.
NOTHING = {"sum": 0.0, "max": float("-inf"), "min": float("inf")}


@T.macro
def combine(v, total, kind, axis):
    """The tile v along an axis. A NaN stays one."""
    if kind == "sum":
        T.reduce_sum(v, total, dim=axis)
    if kind == "max":
        T.reduce_max(v, total, dim=axis, nan_propagate=True)
    if kind == "min":
        T.reduce_min(v, total, dim=axis, nan_propagate=True)


@T.macro
def take_in(v, x, down, across, row, column, rows, columns, kind, block_M, block_N):
    """Combine the tile at (down, across) of x into v, element by element.

    It is that of the array at (row, column); what lies outside the array changes nothing.
    """
    for i, j in T.Parallel(block_M, block_N):
        if kind == "sum":
            v[i, j] += x[down + i, across + j]
        else:
            one = T.cast(x[down + i, across + j], "float32")
            inside = row + i < rows and column + j < columns
            better = one > v[i, j] if kind == "max" else one < v[i, j]
            v[i, j] = T.if_then_else(inside and (better or one != one), one, v[i, j])


@jit
def row_reduce_kernel(M, N, dtype, kind, block_M, block_N, threads, turns=1, num_stages=0):
    """Each thread keeps its part of a row in registers; the parts meet once at the end.

    With stages a block takes `turns` times its rows, and loads ahead through shared memory.
    """
    rows = T.dynamic("M") if M is None else M

    @T.prim_func
    def main(x: T.Tensor((rows, N), dtype), y: T.Tensor((rows,), dtype)):
        with T.Kernel(T.ceildiv(rows, block_M * turns), threads=threads) as bx:
            v = T.alloc_fragment((block_M, block_N), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            if num_stages and block_N >= N:
                tile = T.alloc_shared((block_M, block_N), dtype)
                for turn in T.Pipelined(turns, num_stages=num_stages):
                    row = (bx * turns + turn) * block_M
                    T.copy(x[row, 0], tile)
                    T.fill(v, NOTHING[kind])
                    take_in(v, tile, 0, 0, row, 0, rows, N, kind, block_M, block_N)
                    combine(v, total, kind, 1)
                    T.copy(total, y[row])
            else:
                for turn in T.serial(turns):
                    row = (bx * turns + turn) * block_M
                    T.fill(v, NOTHING[kind])
                    for k in T.serial(T.ceildiv(N, block_N)):
                        column = k * block_N
                        take_in(v, x, row, column, row, column, rows, N, kind, block_M, block_N)
                    combine(v, total, kind, 1)
                    T.copy(total, y[row])

    return main


@T.macro
def reduce_down(x, total, first, last, column, rows, columns, kind, dtype, block_M, block_N, num_stages):
    """Columns of x between two steps of rows; each thread keeps its own, and they meet once at the end."""
    v = T.alloc_fragment((block_M, block_N), "float32")
    T.fill(v, NOTHING[kind])
    if num_stages:
        tile = T.alloc_shared((block_M, block_N), dtype)
        for k in T.Pipelined(first, last, num_stages=num_stages):
            T.copy(x[k * block_M, column], tile)
            take_in(v, tile, 0, 0, k * block_M, column, rows, columns, kind, block_M, block_N)
    else:
        for k in T.serial(first, last):
            row = k * block_M
            take_in(v, x, row, column, row, column, rows, columns, kind, block_M, block_N)
    combine(v, total, kind, 0)


@jit
def column_reduce_kernel(M, N, dtype, kind, block_M, block_N, threads, splits=1, num_stages=0):
    """A block goes down its columns; of several splits each gives a part, which a second launch combines.

    With stages it loads ahead through shared memory.
    """
    rows = T.dynamic("M") if M is None else M

    @T.prim_func
    def main(x: T.Tensor((rows, N), dtype), y: T.Tensor((N,), dtype)):
        steps = T.ceildiv(rows, block_M)
        if splits == 1:
            with T.Kernel(T.ceildiv(N, block_N), threads=threads) as bx:
                column, total = bx * block_N, T.alloc_fragment((block_N,), "float32")
                reduce_down(x, total, 0, steps, column, rows, N, kind, dtype, block_M, block_N, num_stages)
                T.copy(total, y[column])
        else:
            parts = T.alloc_global((splits, N), "float32")
            with T.Kernel(T.ceildiv(N, block_N), splits, threads=threads) as (bx, by):
                column, total = bx * block_N, T.alloc_fragment((block_N,), "float32")
                share = T.ceildiv(steps, splits)
                end = T.min((by + 1) * share, steps)
                reduce_down(
                    x, total, by * share, end, column, rows, N, kind, dtype, block_M, block_N, num_stages
                )
                T.copy(total, parts[by, column])
            with T.Kernel(T.ceildiv(N, 64), threads=128) as bx:
                column, total = bx * 64, T.alloc_fragment((64,), "float32")
                reduce_down(parts, total, 0, 1, column, splits, N, kind, "float32", splits, 64, 0)
                T.copy(total, y[column])

    return main
