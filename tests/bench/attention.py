"""Attention as users write it, forward and backward: what the benchmarks of compiling and of the CPU take.

The forward kernel streams keys and values past a block of queries and keeps a running maximum and sum
(online softmax, base 2). The backward kernel streams queries past a block of keys and adds its share of
dQ with atomics.
"""

from __future__ import annotations

from typing import Any

import tilebench
import tilebench.language as T

LOG2E = 1.44269504


@tilebench.jit
def forward(
    heads: int, seq: int, dim: int, block_M: int, block_N: int, causal: bool = False,
    dtype: str = "float32", stages: int = 2, threads: int = 128,
) -> Any:  # fmt: skip
    scale = dim**-0.5 * LOG2E

    @T.prim_func
    def attention(
        Q: T.Tensor((heads, seq, dim), dtype),
        K: T.Tensor((heads, seq, dim), dtype),
        V: T.Tensor((heads, seq, dim), dtype),
        out: T.Tensor((heads, seq, dim), dtype),
    ):
        with T.Kernel(T.ceildiv(seq, block_M), heads, threads=threads) as (bx, by):
            Q_s = T.alloc_shared((block_M, dim), dtype)
            K_s = T.alloc_shared((block_N, dim), dtype)
            V_s = T.alloc_shared((block_N, dim), dtype)
            scores = T.alloc_fragment((block_M, block_N), "float32")
            weights = T.alloc_fragment((block_M, block_N), dtype)
            acc = T.alloc_fragment((block_M, dim), "float32")
            top = T.alloc_fragment((block_M,), "float32")
            top_before = T.alloc_fragment((block_M,), "float32")
            shrink = T.alloc_fragment((block_M,), "float32")
            row_sum = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            T.copy(Q[by, bx * block_M, 0], Q_s)
            T.clear(acc)
            T.clear(total)
            T.fill(top, -T.infinity("float32"))
            last = T.min(T.ceildiv(seq, block_N), T.ceildiv((bx + 1) * block_M, block_N))
            for ko in T.Pipelined(last if causal else T.ceildiv(seq, block_N), num_stages=stages):
                T.copy(K[by, ko * block_N, 0], K_s)
                for i, j in T.Parallel(block_M, block_N):
                    if causal:
                        inside = bx * block_M + i >= ko * block_N + j
                        scores[i, j] = T.if_then_else(inside, 0.0, -T.infinity("float32"))
                    else:
                        inside = ko * block_N + j < seq
                        scores[i, j] = T.if_then_else(inside, 0.0, -T.infinity("float32"))
                T.gemm(Q_s, K_s, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(top, top_before)
                T.reduce_max(scores, top, dim=1, clear=False)
                for i in T.Parallel(block_M):
                    shrink[i] = T.exp2(top_before[i] * scale - top[i] * scale)
                for i, j in T.Parallel(block_M, block_N):
                    scores[i, j] = T.exp2(scores[i, j] * scale - top[i] * scale)
                T.reduce_sum(scores, row_sum, dim=1)
                for i in T.Parallel(block_M):
                    total[i] = total[i] * shrink[i] + row_sum[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(block_M, dim):
                    acc[i, j] *= shrink[i]
                T.copy(V[by, ko * block_N, 0], V_s)
                T.gemm(weights, V_s, acc, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(block_M, dim):
                acc[i, j] /= total[i]
            T.copy(acc, out[by, bx * block_M, 0])

    return attention


@tilebench.jit
def backward(
    heads: int, seq: int, dim: int, block_M: int, block_N: int, causal: bool = False,
    dtype: str = "float32", stages: int = 2, threads: int = 128,
) -> Any:  # fmt: skip
    scale = dim**-0.5

    @T.prim_func
    def gradients(
        Q: T.Tensor((heads, seq, dim), dtype),
        K: T.Tensor((heads, seq, dim), dtype),
        V: T.Tensor((heads, seq, dim), dtype),
        dO: T.Tensor((heads, seq, dim), dtype),
        lse: T.Tensor((heads, seq), "float32"),
        delta: T.Tensor((heads, seq), "float32"),
        dQ: T.Tensor((heads, seq, dim), "float32"),
        dK: T.Tensor((heads, seq, dim), dtype),
        dV: T.Tensor((heads, seq, dim), dtype),
    ):
        with T.Kernel(T.ceildiv(seq, block_M), heads, threads=threads) as (bx, by):
            K_s = T.alloc_shared((block_M, dim), dtype)
            V_s = T.alloc_shared((block_M, dim), dtype)
            Q_s = T.alloc_shared((block_N, dim), dtype)
            dO_s = T.alloc_shared((block_N, dim), dtype)
            lse_s = T.alloc_shared((block_N,), "float32")
            delta_s = T.alloc_shared((block_N,), "float32")
            dS_s = T.alloc_shared((block_M, block_N), dtype)
            P = T.alloc_fragment((block_M, block_N), "float32")
            dP = T.alloc_fragment((block_M, block_N), "float32")
            P_narrow = T.alloc_fragment((block_M, block_N), dtype)
            dS = T.alloc_fragment((block_M, block_N), dtype)
            dv = T.alloc_fragment((block_M, dim), "float32")
            dk = T.alloc_fragment((block_M, dim), "float32")
            dq = T.alloc_fragment((block_N, dim), "float32")
            T.copy(K[by, bx * block_M, 0], K_s)
            T.copy(V[by, bx * block_M, 0], V_s)
            T.clear(dv)
            T.clear(dk)
            first = T.floordiv(bx * block_M, block_N) if causal else 0
            for ko in T.Pipelined(first, T.ceildiv(seq, block_N), num_stages=stages):
                T.copy(Q[by, ko * block_N, 0], Q_s)
                T.clear(P)
                T.gemm(K_s, Q_s, P, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(lse[by, ko * block_N], lse_s)
                for i, j in T.Parallel(block_M, block_N):
                    P[i, j] = T.exp2(P[i, j] * (scale * LOG2E) - lse_s[j])
                if causal:
                    for i, j in T.Parallel(block_M, block_N):
                        P[i, j] = T.if_then_else(bx * block_M + i <= ko * block_N + j, P[i, j], 0.0)
                T.copy(dO[by, ko * block_N, 0], dO_s)
                T.clear(dP)
                T.gemm(V_s, dO_s, dP, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(P, P_narrow)
                T.gemm(P_narrow, dO_s, dv, policy=T.GemmWarpPolicy.FullRow)
                T.copy(delta[by, ko * block_N], delta_s)
                for i, j in T.Parallel(block_M, block_N):
                    dS[i, j] = P[i, j] * (dP[i, j] - delta_s[j]) * scale
                T.gemm(dS, Q_s, dk, policy=T.GemmWarpPolicy.FullRow)
                T.copy(dS, dS_s)
                T.clear(dq)
                T.gemm(dS_s, K_s, dq, transpose_A=True)
                for i, j in T.Parallel(block_N, dim):
                    T.atomic_add(dQ[by, ko * block_N + i, j], dq[i, j])
            T.copy(dv, dV[by, bx * block_M, 0])
            T.copy(dk, dK[by, bx * block_M, 0])

    return gradients
