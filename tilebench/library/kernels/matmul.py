"""Products of matrices, with what follows them: bias, activation, residual."""

from __future__ import annotations

import tilebench.language as T

from ...kernel import jit
from .activations import activated


@jit
def matmul_kernel(
    M, N, K, dtype, a_order, b_order, has_bias, has_residual, activation, block_M, block_N, block_K,
    num_stages, threads, panels=0,
):  # fmt: skip
    """C = activation(A B + bias) + residual. An operand of order 1 lies transposed in memory."""
    accumulated = "float64" if dtype == "float64" else "float32"
    rows = T.dynamic("M") if M is None else M

    @T.prim_func
    def main(
        a: T.Tensor((K, rows) if a_order else (rows, K), dtype),
        b: T.Tensor((N, K) if b_order else (K, N), dtype),
        bias: T.Tensor((N if has_bias else 1,), dtype),
        residual: T.Tensor((rows, N) if has_residual else (1, 1), dtype), c: T.Tensor((rows, N), dtype),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(rows, block_M), threads=threads) as (bx, by):
            a_s = T.alloc_shared((block_K, block_M) if a_order else (block_M, block_K), dtype)
            b_s = T.alloc_shared((block_N, block_K) if b_order else (block_K, block_N), dtype)
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
                T.gemm(a_s, b_s, acc, transpose_A=bool(a_order), transpose_B=bool(b_order))
            if has_bias:
                for i, j in T.Parallel(block_M, block_N):
                    acc[i, j] += bias[bx * block_N + j]
            activated(acc, activation, dtype, block_M, block_N)
            if has_residual:
                for i, j in T.Parallel(block_M, block_N):
                    acc[i, j] += residual[by * block_M + i, bx * block_N + j]
            T.copy(acc, c[by * block_M, bx * block_N])

    return main
