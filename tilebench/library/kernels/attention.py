"""Attention forward: softmax(q k^T / sqrt(D)) v, without the scores in memory."""

from __future__ import annotations

import tilebench.language as T

from ...kernel import jit

LOG2E = 1.4426950408889634
LEAST = float("-inf")
# How far a row's maximum may be above the reference of its weights, as a power of two: a float16 has room.
LAG = 8.0
# A side of the window on which a query sees every key.
ALL = -1


@T.macro
def load_rows(x, order, batch, head, row, rows, tile):
    """Rows of one head."""
    if order:
        T.copy(x[batch, row : row + rows, head, :], tile)
    else:
        T.copy(x[batch, head, row : row + rows, :], tile)


@T.macro
def store_rows(tile, x, order, batch, head, row, rows):
    """Rows of one head."""
    if order:
        T.copy(tile, x[batch, row : row + rows, head, :])
    else:
        T.copy(tile, x[batch, head, row : row + rows, :])


@T.macro
def seen_blocks(query, SK, left, right, block_M, block_N):
    """The first block of keys that a block of queries sees, and the one behind the last."""
    first = T.max(0, query - left) // block_N if left != ALL else 0
    last = T.ceildiv(SK, block_N)
    if right != ALL:
        last = T.max(first, T.min(last, T.ceildiv(query + block_M + right, block_N)))
    return first, last


@T.macro
def hide_scores(s, query, key, SK, left, right, block_M, block_N):
    """Minus infinity where a query does not see a key, in tiles where there is such a place: behind the last
    key that it sees, and before the first."""
    if right != ALL:
        if key + block_N > T.min(query + right + 1, SK):
            for i, j in T.Parallel(block_M, block_N):
                s[i, j] = T.if_then_else(key + j <= query + i + right and key + j < SK, s[i, j], LEAST)
    elif SK % block_N and key + block_N > SK:
        for i, j in T.Parallel(block_M, block_N):
            s[i, j] = T.if_then_else(key + j < SK, s[i, j], LEAST)
    if left != ALL and key + left < query + block_M - 1:
        for i, j in T.Parallel(block_M, block_N):
            s[i, j] = T.if_then_else(key + j + left >= query + i, s[i, j], LEAST)


@T.macro
def score(q, k, s, query, key, SK, left, right, block_M, block_N):
    """Scores of queries and keys, from the numbers of their first ones."""
    T.clear(s)
    T.gemm(q, k, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
    hide_scores(s, query, key, SK, left, right, block_M, block_N)


@T.macro
def take_scores(s, p, o, top, base, total, scale, D, block_M, block_N):
    """Weights of scores, and what was summed before under a new reference.

    Weights are powers of two relative to a reference of the row. It follows the maximum only where a weight
    would be more than 2^8: what was summed is left as it is in most steps. A row that has seen no key has the
    reference minus infinity, of which nothing is subtracted.
    """
    before = T.alloc_fragment((block_M,), "float32")
    part = T.alloc_fragment((block_M,), "float32")
    known = T.alloc_fragment((block_M,), "float32")
    T.reduce_max(s, top, dim=1, clear=False)
    for i in T.Parallel(block_M):
        before[i] = base[i]
        base[i] = T.if_then_else(top[i] * scale > base[i] + LAG, top[i] * scale, base[i])
        known[i] = T.if_then_else(base[i] == LEAST, 0.0, base[i])
        before[i] = T.exp2(before[i] - known[i])
    for i, j in T.Parallel(block_M, block_N):
        s[i, j] = T.exp2(s[i, j] * scale - known[i])
    T.reduce_sum(s, part, dim=1)
    for i in T.Parallel(block_M):
        total[i] = total[i] * before[i] + part[i]
    for i, j in T.Parallel(block_M, D):
        o[i, j] *= before[i]
    T.copy(s, p)


@T.macro
def divide_rows(o, total, D, block_M):
    """Rows by the sums of their weights; of a query that sees no key, zero."""
    for i in T.Parallel(block_M):
        total[i] = T.if_then_else(total[i] == 0.0, 0.0, 1.0 / total[i])
    for i, j in T.Parallel(block_M, D):
        o[i, j] *= total[i]


@jit
def attention_kernel(
    B, H, KV, SQ, SK, D, dtype, causal, q_order, k_order, v_order, o_order, block_M, block_N, num_stages,
    threads, held=False, left=ALL, right=ALL
):  # fmt: skip
    """A block has some queries of one head, `held` in registers, and goes over the keys that they see: `left`
    before each query's own place, and `right` behind it."""
    scale = D**-0.5 * LOG2E
    past = SK - SQ
    right = 0 if causal else right
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
            base = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            # The longest first: what ends last is short.
            row = (T.ceildiv(SQ, block_M) - 1 - bx if causal else bx) * block_M
            load_rows(q, q_order, bz, by, row, block_M, q_s)
            queries = T.alloc_fragment((block_M, D), dtype) if held else q_s
            if held:
                T.copy(q_s, queries)
            T.clear(acc)
            T.clear(total)
            T.fill(top, LEAST)
            T.fill(base, LEAST)
            first, last = seen_blocks(row + past, SK, left, right, block_M, block_N)
            for kb in T.Pipelined(first, last, num_stages=num_stages):
                load_rows(k, k_order, bz, by // (H // KV), kb * block_N, block_N, k_s)
                load_rows(v, v_order, bz, by // (H // KV), kb * block_N, block_N, v_s)
                score(queries, k_s, s, row + past, kb * block_N, SK, left, right, block_M, block_N)
                take_scores(s, p, acc, top, base, total, scale, D, block_M, block_N)
                T.gemm(p, v_s, acc, policy=T.GemmWarpPolicy.FullRow)
            divide_rows(acc, total, D, block_M)
            store_rows(acc, o, o_order, bz, by, row, block_M)

    return main
