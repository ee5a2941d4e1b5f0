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


@T.macro
def combine_parts(parts, y, columns, kind, count):
    """The launch that combines parts of columns."""
    with T.Kernel(T.ceildiv(columns, 64), threads=128) as bx:
        total = T.alloc_fragment((64,), "float32")
        reduce_down(parts, total, 0, 1, bx * 64, count, columns, kind, "float32", count, 64, 0)
        T.copy(total, y[bx * 64])


@T.macro
def columns_in_splits(x, y, rows, N, kind, dtype, block_M, block_N, threads, splits, num_stages):
    parts = T.alloc_global((splits, N), "float32")
    with T.Kernel(T.ceildiv(N, block_N), splits, threads=threads) as (bx, by):
        column, total = bx * block_N, T.alloc_fragment((block_N,), "float32")
        steps = T.ceildiv(rows, block_M)
        share = T.ceildiv(steps, splits)
        end = T.min((by + 1) * share, steps)
        reduce_down(x, total, by * share, end, column, rows, N, kind, dtype, block_M, block_N, num_stages)
        T.copy(total, parts[by, column])
    combine_parts(parts, y, N, kind, splits)


@T.macro
def columns_of_folded(x, y, length, N, kind, block_M, block_N, threads, fold):
    """`fold` rows as one: a long row has each column `fold` times, and a part for each."""
    parts = T.alloc_global((fold, N), "float32")
    wide = fold * N
    with T.Kernel(T.ceildiv(wide, block_N), threads=threads) as bx:
        v = T.alloc_fragment((block_M, block_N), "float32")
        total = T.alloc_fragment((block_N,), "float32")
        T.fill(v, NOTHING[kind])
        for k in T.serial(T.ceildiv(T.ceildiv(length, wide), block_M)):
            for i, j in T.Parallel(block_M, block_N):
                # Behind a long row stands the next: those columns are left out where they are stored.
                place = (k * block_M + i) * wide + bx * block_N + j
                if kind == "sum":
                    v[i, j] += x[place]
                else:
                    one = T.cast(x[place], "float32")
                    better = one > v[i, j] if kind == "max" else one < v[i, j]
                    v[i, j] = T.if_then_else(place < length and (better or one != one), one, v[i, j])
        combine(v, total, kind, 0)
        for j in T.Parallel(block_N):
            if bx * block_N + j < wide:
                parts[(bx * block_N + j) // N, (bx * block_N + j) % N] = total[j]
    combine_parts(parts, y, N, kind, fold)


@jit
def column_reduce_kernel(M, N, dtype, kind, block_M, block_N, threads, splits=1, num_stages=0, fold=1):
    """A block goes down its columns; of several splits each gives a part, which a second launch combines.

    With stages it loads ahead through shared memory. Rows that start anywhere are taken `fold` at a time as
    one, so that all of these start at a multiple of it.
    """
    rows = T.dynamic("M") if M is None else M
    length = T.dynamic("n") if M is None else M * N

    @T.prim_func
    def main(x: T.Tensor((length,) if fold > 1 else (rows, N), dtype), y: T.Tensor((N,), dtype)):
        if fold > 1:
            columns_of_folded(x, y, length, N, kind, block_M, block_N, threads, fold)
        elif splits > 1:
            columns_in_splits(x, y, rows, N, kind, dtype, block_M, block_N, threads, splits, num_stages)
        else:
            with T.Kernel(T.ceildiv(N, block_N), threads=threads) as bx:
                column, total = bx * block_N, T.alloc_fragment((block_N,), "float32")
                steps = T.ceildiv(rows, block_M)
                reduce_down(x, total, 0, steps, column, rows, N, kind, dtype, block_M, block_N, num_stages)
                T.copy(total, y[column])

    return main
