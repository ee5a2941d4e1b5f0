"""Attention forward: softmax(q k^T / sqrt(D)) v, without the scores in memory."""

from __future__ import annotations

import tilebench.language as T

from ...kernel import jit

LOG2E = 1.4426950408889634
LEAST = float("-inf")


@T.macro
def load_rows(x, order, batch, head, row, rows, tile):
    """Rows of one head."""
    if order:
        T.copy(x[batch, row : row + rows, head, :], tile)
    else:
        T.copy(x[batch, head, row : row + rows, :], tile)


@T.macro
def begin_scores(s, query, key, SK, causal, block_M, block_N):
    """What scores start from: zero, and minus infinity where a query does not see a key."""
    if causal:
        for i, j in T.Parallel(block_M, block_N):
            s[i, j] = T.if_then_else(key + j <= query + i and key + j < SK, 0.0, LEAST)
    elif SK % block_N:
        for i, j in T.Parallel(block_M, block_N):
            s[i, j] = T.if_then_else(key + j < SK, 0.0, LEAST)
    else:
        T.clear(s)


@T.macro
def take_scores(s, p, o, top, total, scale, D, block_M, block_N):
    """Weights of scores, and what was summed before under the new maximum.

    A row that has seen no key has the maximum minus infinity, of which nothing is subtracted.
    """
    before = T.alloc_fragment((block_M,), "float32")
    part = T.alloc_fragment((block_M,), "float32")
    base = T.alloc_fragment((block_M,), "float32")
    T.copy(top, before)
    T.reduce_max(s, top, dim=1, clear=False)
    for i in T.Parallel(block_M):
        base[i] = T.if_then_else(top[i] == LEAST, 0.0, top[i] * scale)
        before[i] = T.exp2(before[i] * scale - base[i])
    for i, j in T.Parallel(block_M, block_N):
        s[i, j] = T.exp2(s[i, j] * scale - base[i])
    T.reduce_sum(s, part, dim=1)
    for i in T.Parallel(block_M):
        total[i] = total[i] * before[i] + part[i]
    for i, j in T.Parallel(block_M, D):
        o[i, j] *= before[i]
    T.copy(s, p)


@jit
def attention_kernel(
    B, H, KV, SQ, SK, D, dtype, causal, q_order, k_order, v_order, o_order, block_M, block_N, num_stages,
    threads
):  # fmt: skip
    """A block has some queries of one head and goes over the keys."""
    scale = D**-0.5 * LOG2E
    past = SK - SQ
    batches = T.dynamic("B") if B is None else B

    def shape(heads, length, order):
        return (batches, length, heads, D) if order else (batches, heads, length, D)

    @T.prim_func
    def main(
        q: T.Tensor(shape(H, SQ, q_order), dtype), k: T.Tensor(shape(KV, SK, k_order), dtype),
        v: T.Tensor(shape(KV, SK, v_order), dtype), o: T.Tensor(shape(H, SQ, o_order), dtype),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(SQ, block_M), H, batches, threads=threads) as (bx, by, bz):
            q_s = T.alloc_shared((block_M, D), dtype)
            k_s = T.alloc_shared((block_N, D), dtype)
            v_s = T.alloc_shared((block_N, D), dtype)
            s = T.alloc_fragment((block_M, block_N), "float32")
            p = T.alloc_fragment((block_M, block_N), dtype)
            acc = T.alloc_fragment((block_M, D), "float32")
            top = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            load_rows(q, q_order, bz, by, bx * block_M, block_M, q_s)
            T.clear(acc)
            T.clear(total)
            T.fill(top, LEAST)
            last = T.ceildiv(SK, block_N)
            if causal:
                last = T.max(0, T.min(last, T.ceildiv((bx + 1) * block_M + past, block_N)))
            for kb in T.Pipelined(last, num_stages=num_stages):
                load_rows(k, k_order, bz, by // (H // KV), kb * block_N, block_N, k_s)
                load_rows(v, v_order, bz, by // (H // KV), kb * block_N, block_N, v_s)
                begin_scores(s, bx * block_M + past, kb * block_N, SK, causal, block_M, block_N)
                T.gemm(q_s, k_s, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                take_scores(s, p, acc, top, total, scale, D, block_M, block_N)
                T.gemm(p, v_s, acc, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(block_M, D):
                acc[i, j] = T.if_then_else(total[i] == 0.0, 0.0, acc[i, j] / total[i])
            if o_order:
                T.copy(acc, o[bz, bx * block_M : (bx + 1) * block_M, by, :])
            else:
                T.copy(acc, o[bz, by, bx * block_M : (bx + 1) * block_M, :])

    return main
