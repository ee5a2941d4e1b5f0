"""Transposing a matrix."""

from __future__ import annotations

import tilebench.language as T

from ...kernel import jit


@T.macro
def through_shared(x, y, row, column, dtype, block_M, block_N):
    """Tiles go through shared memory, so that both sides are met along their rows."""
    tile = T.alloc_shared((block_M, block_N), dtype)
    T.copy(x[row, column], tile)
    for i, j in T.Parallel(block_N, block_M):
        y[column + i, row + j] = tile[j, i]


@T.macro
def through_registers(x, y, row, column, dtype, block_M, block_N, side):
    """A thread turns a square of `side` rows and columns, which are whole accesses on both sides.

    A warp has four squares along a row and eight along a column: it reads 64 bytes of each row together and
    writes 128.
    """
    tile = T.alloc_fragment((block_M, block_N), dtype)
    turned = T.alloc_fragment((block_N, block_M), dtype)
    down = block_M // side
    T.annotate_layout(
        {
            tile: T.Fragment(
                (block_M, block_N),
                forward_fn=lambda i, j: (
                    (j // side // 4 * down + i // side) * 4 + j // side % 4, (i % side) * side + j % side
                ),
            ),
            turned: T.Fragment(
                (block_N, block_M),
                forward_fn=lambda j, i: (
                    (j // side // 4 * down + i // side) * 4 + j // side % 4, (j % side) * side + i % side
                ),
            ),
        }
    )  # fmt: skip
    T.copy(x[row, column], tile)
    for i, j in T.Parallel(block_N, block_M):
        turned[i, j] = tile[j, i]
    T.copy(turned, y[column, row])


@jit
def transpose_kernel(M, N, dtype, block_M, block_N, threads, side):
    """Squares of `side` elements in registers, or, where it is zero, tiles in shared memory."""

    @T.prim_func
    def main(x: T.Tensor((M, N), dtype), y: T.Tensor((N, M), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            if side:
                through_registers(x, y, by * block_M, bx * block_N, dtype, block_M, block_N, side)
            else:
                through_shared(x, y, by * block_M, bx * block_N, dtype, block_M, block_N)

    return main
