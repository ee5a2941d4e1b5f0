"""Products of 8-bit numbers, with a scale for each operand or for each of its rows and columns."""

from __future__ import annotations

import tilebench.language as T

from ...kernel import jit


@T.macro
def by_one(total, scale, block_M, block_N):
    """A tile times a number."""
    for i, j in T.Parallel(block_M, block_N):
        total[i, j] *= scale


@T.macro
def by_rows(total, scale, first, each, block_M, block_N):
    """A tile times a number for each of its rows, or for all."""
    for i, j in T.Parallel(block_M, block_N):
        total[i, j] *= scale[first + i if each else 0]


@T.macro
def by_columns(total, scale, first, each, block_M, block_N):
    """A tile times a number for each of its columns, or for all."""
    for i, j in T.Parallel(block_M, block_N):
        total[i, j] *= scale[first + j if each else 0]


@jit
def scaled_matmul_kernel(
    M, N, K, dtype, b_dtype, out_dtype, a_order, b_order, has_scale_a, has_scale_b, scale_a_each,
    scale_b_each, fast_accum, block_M, block_N, block_K, num_stages, threads, panels=0,
):  # fmt: skip
    """C = (A B) scale_a scale_b. An operand of order 1 lies transposed in memory."""
    accumulated = "int32" if dtype in ("int8", "uint8") else "float32"

    @T.prim_func
    def main(
        a: T.Tensor((K, M) if a_order else (M, K), dtype),
        b: T.Tensor((N, K) if b_order else (K, N), b_dtype),
        scale_a: T.Tensor((M if scale_a_each else 1,), "float32"),
        scale_b: T.Tensor((N if scale_b_each else 1,), "float32"), c: T.Tensor((M, N), out_dtype),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            a_s = T.alloc_shared((block_K, block_M) if a_order else (block_M, block_K), dtype)
            b_s = T.alloc_shared((block_N, block_K) if b_order else (block_K, block_N), b_dtype)
            acc = T.alloc_fragment((block_M, block_N), accumulated)
            if panels:
                T.use_swizzle(panels)
            T.clear(acc)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                if a_order:
                    T.copy(a[ko * block_K, by * block_M], a_s)
                else:
                    T.copy(a[by * block_M, ko * block_K], a_s)
                if b_order:
                    T.copy(b[bx * block_N, ko * block_K], b_s)
                else:
                    T.copy(b[ko * block_K, bx * block_N], b_s)
                T.gemm(a_s, b_s, acc, bool(a_order), bool(b_order), fast_accum=fast_accum)
            if accumulated == "float32" or not (has_scale_a or has_scale_b):
                total = acc
            else:
                total = T.alloc_fragment((block_M, block_N), "float32")
                T.copy(acc, total)
            if has_scale_a and has_scale_b and not scale_a_each and not scale_b_each:
                by_one(total, scale_a[0] * scale_b[0], block_M, block_N)
            else:
                if has_scale_a:
                    by_rows(total, scale_a, by * block_M, scale_a_each, block_M, block_N)
                if has_scale_b:
                    by_columns(total, scale_b, bx * block_N, scale_b_each, block_M, block_N)
            T.copy(total, c[by * block_M, bx * block_N])

    return main
