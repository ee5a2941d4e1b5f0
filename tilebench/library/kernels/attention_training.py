"""Attention for training: the forward that keeps what the backward needs of it, the backward, and what stands
around it.

The forward leaves the logarithm L of each query's sum of weights (plus infinity where it sees no key), from
which the backward makes the weights again: P = exp(S scale - L). With the gradient g of the result o, delta =
sum(g o) of a query, dP = g v^T and dS = P (dP - delta), the gradients are dv = P^T g, dk = scale dS^T q and
dq = scale dS k. Blocks of keys add their parts of dq up in float32, in no fixed order.
"""

from __future__ import annotations

import tilebench.language as T

from ...kernel import jit
from .attention import ALL, LEAST, LOG2E, divide_rows, load_rows, score, seen_blocks, store_rows, take_scores

NONE_SEEN = float("inf")
# Rows of numbers for queries are as long as whole blocks of these.
ROWS = 128


def padded(length: int) -> int:
    """Numbers of a head's queries, with those behind them: any block of queries is whole."""
    return -(-length // ROWS) * ROWS


@T.macro
def keep_logarithms(kept, base, total, block_M):
    """Logarithms of sums of weights, which are relative to a reference to the base of 2."""
    for i in T.Parallel(block_M):
        logarithm = T.log(total[i]) + base[i] * (1.0 / LOG2E)
        kept[i] = T.if_then_else(total[i] == 0.0, NONE_SEEN, logarithm)


@jit
def attention_saving_kernel(
    B, H, KV, SQ, SK, D, dtype, causal, q_order, k_order, v_order, o_order, block_M, block_N, num_stages,
    threads, left=ALL, right=ALL
):  # fmt: skip
    """Attention forward, and the logarithm of each query's sum."""
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
        lse: T.Tensor((batches, H, SQ), "float32"),
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
            T.clear(acc)
            T.clear(total)
            T.fill(top, LEAST)
            T.fill(base, LEAST)
            first, last = seen_blocks(row + past, SK, left, right, block_M, block_N)
            for kb in T.Pipelined(first, last, num_stages=num_stages):
                load_rows(k, k_order, bz, by // (H // KV), kb * block_N, block_N, k_s)
                load_rows(v, v_order, bz, by // (H // KV), kb * block_N, block_N, v_s)
                score(q_s, k_s, s, row + past, kb * block_N, SK, left, right, block_M, block_N)
                take_scores(s, p, acc, top, base, total, scale, D, block_M, block_N)
                T.gemm(p, v_s, acc, policy=T.GemmWarpPolicy.FullRow)
            keep_logarithms(top, base, total, block_M)
            divide_rows(acc, total, D, block_M)
            T.copy(top, lse[bz, by, row : row + block_M])
            store_rows(acc, o, o_order, bz, by, row, block_M)

    return main


@jit
def attention_before_kernel(B, H, SQ, D, dtype, o_order, g_order, block_M, threads):
    """In front of the backward: of each query delta = sum(g o) and its logarithm to the base of 2, and zeros
    that dq is added up in. Numbers behind the queries are zero: no gradient comes of what is zero there."""
    batches = T.dynamic("B") if B is None else B

    def shape(order):
        return (batches, SQ, H, D) if order else (batches, H, SQ, D)

    @T.prim_func
    def main(
        o: T.Tensor(shape(o_order), dtype), g: T.Tensor(shape(g_order), dtype),
        lse: T.Tensor((batches, H, SQ), "float32"), lse2: T.Tensor((batches, H, padded(SQ)), "float32"),
        delta: T.Tensor((batches, H, padded(SQ)), "float32"), sums: T.Tensor((batches, H, SQ, D), "float32"),
    ):  # fmt: skip
        with T.Kernel(padded(SQ) // block_M, H, batches, threads=threads) as (bx, by, bz):
            o_l = T.alloc_fragment((block_M, D), dtype)
            g_l = T.alloc_fragment((block_M, D), dtype)
            both = T.alloc_fragment((block_M, D), "float32")
            sum_l = T.alloc_fragment((block_M,), "float32")
            zero = T.alloc_fragment((block_M, D), "float32")
            load_rows(o, o_order, bz, by, bx * block_M, block_M, o_l)
            load_rows(g, g_order, bz, by, bx * block_M, block_M, g_l)
            for i, j in T.Parallel(block_M, D):
                both[i, j] = T.cast(o_l[i, j], "float32") * T.cast(g_l[i, j], "float32")
            T.reduce_sum(both, sum_l, dim=1)
            T.copy(sum_l, delta[bz, by, bx * block_M : (bx + 1) * block_M])
            T.copy(lse[bz, by, bx * block_M : (bx + 1) * block_M], sum_l)
            for i in T.Parallel(block_M):
                sum_l[i] *= LOG2E
            T.copy(sum_l, lse2[bz, by, bx * block_M : (bx + 1) * block_M])
            T.clear(zero)
            T.copy(zero, sums[bz, by, bx * block_M : (bx + 1) * block_M, :])

    return main


@T.macro
def seeing_blocks(key, SQ, left, right, block_M, block_N):
    """The first block of queries that sees a block of keys, and the one behind the last. `key` is the
    place of the first key, counted from that of the first query."""
    blocks = -(-SQ // block_M)
    first = T.min(blocks, T.max(0, key - right) // block_M) if right != ALL else 0
    last = blocks
    if left != ALL:
        last = T.max(first, T.min(blocks, T.ceildiv(key + block_N + left, block_M)))
    return first, last


@T.macro
def load_numbers(lse2, delta, batch, head, row, rows, lse_s, delta_s):
    """The numbers of a block of queries."""
    T.copy(lse2[batch, head, row : row + rows], lse_s)
    T.copy(delta[batch, head, row : row + rows], delta_s)


@T.macro
def multiply_rows(a, b, c):
    T.gemm(a, b, c, transpose_B=True, clear_accum=True, policy=T.GemmWarpPolicy.FullRow)


@T.macro
def make_weights(s, lse, scale, query, key, left, right, SK, block_N, block_M):
    """Weights of scores, (keys, queries); 0 where a query does not see a key."""
    for i, j in T.Parallel(block_N, block_M):
        s[i, j] = T.exp2(s[i, j] * scale - lse[j])
    if right != ALL and key + block_N > query + right + 1:
        for i, j in T.Parallel(block_N, block_M):
            s[i, j] = T.if_then_else(key + i <= query + j + right, s[i, j], 0.0)
    if left != ALL and key + left < query + block_M - 1:
        for i, j in T.Parallel(block_N, block_M):
            s[i, j] = T.if_then_else(key + i + left >= query + j, s[i, j], 0.0)
    if SK % block_N and key + block_N > SK:
        for i, j in T.Parallel(block_N, block_M):
            s[i, j] = T.if_then_else(key + i < SK, s[i, j], 0.0)


@T.macro
def clear_both(a, b):
    T.clear(a)
    T.clear(b)


@T.macro
def add_values(s, g_s, dv_l, block_M, block_N, dtype):
    """A part of dv, of weights."""
    p = T.alloc_fragment((block_N, block_M), dtype)
    T.copy(s, p)
    T.gemm(p, g_s, dv_l, policy=T.GemmWarpPolicy.FullRow)


@T.macro
def add_gradients(s, dp, delta_s, k_s, q_s, dk_l, sums, step, D, block_M, block_N, dtype):
    """dS of the weights and dP, and of it a part of dk and this block of keys' part of dq.

    The product with what other threads made of dS comes first: the other one is under way while dq goes out.
    """
    ds = T.alloc_fragment((block_N, block_M), dtype)
    ds_s = T.alloc_shared((2, block_N, block_M), dtype)
    dq_l = T.alloc_fragment((block_M, D), "float32")
    for i, j in T.Parallel(block_N, block_M):
        ds[i, j] = s[i, j] * (dp[i, j] - delta_s[j])
    T.copy(ds, ds_s[step % 2, :, :])
    T.gemm(ds_s[step % 2, :, :], k_s, dq_l, transpose_A=True, clear_accum=True)
    T.gemm(ds, q_s, dk_l, policy=T.GemmWarpPolicy.FullRow)
    T.atomic_add(sums, dq_l)


@T.macro
def store_scaled(tile, scale, x, order, batch, head, row, D, rows):
    """Rows of one head times a number, to memory."""
    for i, j in T.Parallel(rows, D):
        tile[i, j] *= scale
    store_rows(tile, x, order, batch, head, row, rows)


@jit
def attention_backward_kernel(
    B, H, KV, SQ, SK, D, dtype, causal, q_order, k_order, v_order, g_order, block_M, block_N, num_stages,
    threads, left=ALL, right=ALL
):  # fmt: skip
    """A block has some keys of a head of k and v, and goes over the queries that see them, of all heads that
    share them."""
    past, group = SK - SQ, H // KV
    right = 0 if causal else right
    batches = T.dynamic("B") if B is None else B

    def shape(heads, length, order):
        return (batches, length, heads, D) if order else (batches, heads, length, D)

    @T.prim_func
    def main(
        q: T.Tensor(shape(H, SQ, q_order), dtype), k: T.Tensor(shape(KV, SK, k_order), dtype),
        v: T.Tensor(shape(KV, SK, v_order), dtype), g: T.Tensor(shape(H, SQ, g_order), dtype),
        lse2: T.Tensor((batches, H, padded(SQ)), "float32"),
        delta: T.Tensor((batches, H, padded(SQ)), "float32"),
        sums: T.Tensor((batches, H, SQ, D), "float32"), dk: T.Tensor(shape(KV, SK, k_order), dtype),
        dv: T.Tensor(shape(KV, SK, v_order), dtype),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(SK, block_N), KV, batches, threads=threads) as (bx, by, bz):
            k_s = T.alloc_shared((block_N, D), dtype)
            v_s = T.alloc_shared((block_N, D), dtype)
            q_s = T.alloc_shared((block_M, D), dtype)
            g_s = T.alloc_shared((block_M, D), dtype)
            lse_s = T.alloc_shared((block_M,), "float32")
            delta_s = T.alloc_shared((block_M,), "float32")
            s = T.alloc_fragment((block_N, block_M), "float32")
            dp = T.alloc_fragment((block_N, block_M), "float32")
            dk_l = T.alloc_fragment((block_N, D), "float32")
            dv_l = T.alloc_fragment((block_N, D), "float32")
            key = bx * block_N
            load_rows(k, k_order, bz, by, key, block_N, k_s)
            load_rows(v, v_order, bz, by, key, block_N, v_s)
            clear_both(dk_l, dv_l)
            first, last = seeing_blocks(key - past, SQ, left, right, block_M, block_N)
            for step in T.Pipelined((last - first) * group, num_stages=num_stages):
                head = by * group + step // (last - first) if group > 1 else by
                query = (first + step % (last - first) if group > 1 else first + step) * block_M
                load_rows(q, q_order, bz, head, query, block_M, q_s)
                load_rows(g, g_order, bz, head, query, block_M, g_s)
                load_numbers(lse2, delta, bz, head, query, block_M, lse_s, delta_s)
                multiply_rows(k_s, q_s, s)
                multiply_rows(v_s, g_s, dp)
                make_weights(s, lse_s, D**-0.5 * LOG2E, query + past, key, left, right, SK, block_N, block_M)
                add_values(s, g_s, dv_l, block_M, block_N, dtype)
                to = sums[bz, head, query : query + block_M, :]
                add_gradients(s, dp, delta_s, k_s, q_s, dk_l, to, step, D, block_M, block_N, dtype)
            store_scaled(dk_l, D**-0.5, dk, k_order, bz, by, key, D, block_N)
            store_rows(dv_l, dv, v_order, bz, by, key, block_N)

    return main


@jit
def attention_after_kernel(B, H, SQ, D, dtype, q_order, block_M, threads):
    """Behind the backward: dq of its sums."""
    batches = T.dynamic("B") if B is None else B
    shape = (batches, SQ, H, D) if q_order else (batches, H, SQ, D)

    @T.prim_func
    def main(sums: T.Tensor((batches, H, SQ, D), "float32"), dq: T.Tensor(shape, dtype)):
        with T.Kernel(T.ceildiv(SQ, block_M), H, batches, threads=threads) as (bx, by, bz):
            dq_l = T.alloc_fragment((block_M, D), "float32")
            load_rows(sums, 0, bz, by, bx * block_M, block_M, dq_l)
            store_scaled(dq_l, D**-0.5, dq, q_order, bz, by, bx * block_M, D, block_M)

    return main
