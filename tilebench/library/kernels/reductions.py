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
def take_in(v, x, row, column, rows, columns, kind, block_M, block_N):
    """Combine a tile of x into v, element by element; what lies outside changes nothing."""
    for i, j in T.Parallel(block_M, block_N):
        if kind == "sum":
            v[i, j] += x[row + i, column + j]
        else:
            one = T.cast(x[row + i, column + j], "float32")
            inside = row + i < rows and column + j < columns
            better = one > v[i, j] if kind == "max" else one < v[i, j]
            v[i, j] = T.if_then_else(inside and (better or one != one), one, v[i, j])


@jit
def row_reduce_kernel(M, N, dtype, kind, block_M, block_N, threads):
    """Each thread keeps its part of a row in registers; the parts meet once at the end."""
    rows = T.dynamic("M") if M is None else M

    @T.prim_func
    def main(x: T.Tensor((rows, N), dtype), y: T.Tensor((rows,), dtype)):
        with T.Kernel(T.ceildiv(rows, block_M), threads=threads) as bx:
            v = T.alloc_fragment((block_M, block_N), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            T.fill(v, NOTHING[kind])
            for k in T.serial(T.ceildiv(N, block_N)):
                take_in(v, x, bx * block_M, k * block_N, rows, N, kind, block_M, block_N)
            combine(v, total, kind, 1)
            T.copy(total, y[bx * block_M])

    return main


@T.macro
def reduce_down(x, total, first, last, column, rows, columns, kind, block_M, block_N):
    """Columns of x between two steps of rows; each thread keeps its own, and they meet once at the end."""
    v = T.alloc_fragment((block_M, block_N), "float32")
    T.fill(v, NOTHING[kind])
    for k in T.serial(first, last):
        take_in(v, x, k * block_M, column, rows, columns, kind, block_M, block_N)
    combine(v, total, kind, 0)


@jit
def column_reduce_kernel(M, N, dtype, kind, block_M, block_N, threads, splits):
    """A block goes down its columns; of several splits each gives a part, which a second launch combines."""
    rows = T.dynamic("M") if M is None else M

    @T.prim_func
    def main(x: T.Tensor((rows, N), dtype), y: T.Tensor((N,), dtype)):
        steps = T.ceildiv(rows, block_M)
        if splits == 1:
            with T.Kernel(T.ceildiv(N, block_N), threads=threads) as bx:
                total = T.alloc_fragment((block_N,), "float32")
                reduce_down(x, total, 0, steps, bx * block_N, rows, N, kind, block_M, block_N)
                T.copy(total, y[bx * block_N])
        else:
            parts = T.alloc_global((splits, N), "float32")
            with T.Kernel(T.ceildiv(N, block_N), splits, threads=threads) as (bx, by):
                total = T.alloc_fragment((block_N,), "float32")
                share = T.ceildiv(steps, splits)
                last = T.min((by + 1) * share, steps)
                reduce_down(x, total, by * share, last, bx * block_N, rows, N, kind, block_M, block_N)
                T.copy(total, parts[by, bx * block_N])
            with T.Kernel(T.ceildiv(N, 64), threads=128) as bx:
                total = T.alloc_fragment((64,), "float32")
                reduce_down(parts, total, 0, 1, bx * 64, splits, N, kind, splits, 64)
                T.copy(total, y[bx * 64])

    return main
