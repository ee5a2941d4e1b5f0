"""Attention of one query a sequence over the keys that are kept of it, in parts over the context, and their
join.

The heads that share a head of k and v are the rows of the products. A part leaves its result and the
logarithm to the base of 2 of its sum of weights (minus infinity where it has no key); the join weighs the
parts by them. Whatever lies behind a sequence's length is never used, also where it is no number.
"""

from __future__ import annotations

from math import gcd

import tilebench.language as T

from ...kernel import jit
from .attention import LEAST, LOG2E

# More copies than these, each a few keys, are a loop that nothing runs ahead of.
MOST_PAGES = 8


def keys_at_a_time(page: int, block_N: int) -> int:
    """Keys of a block: as many as a schedule says, or fewer, so that they are whole pages or a page whole
    blocks."""
    fits = not page or page % block_N == 0 or block_N % page == 0
    return block_N if fits else gcd(page, block_N)


@T.macro
def load_keys(x, table, batch, head, first, page, order, block_N, tile):
    """Keys from `first` on of a sequence: of its own memory, or of the pages that the table names."""
    if page == 0:
        if order:
            T.copy(x[batch, first : first + block_N, head, :], tile)
        else:
            T.copy(x[batch, head, first : first + block_N, :], tile)
    elif page >= block_N:
        T.copy(x[table[batch, first // page], first % page : first % page + block_N, head, :], tile)
    elif block_N // page <= MOST_PAGES:
        load_pages(x, table, batch, head, first // page, page, 0, block_N // page, tile)
    else:
        for n in T.serial(block_N // page):
            T.copy(x[table[batch, first // page + n], 0:page, head, :], tile[n * page : (n + 1) * page, :])


@T.macro
def load_pages(x, table, batch, head, number, page, done, count, tile):
    """Whole pages, one behind the other in the tile."""
    T.copy(x[table[batch, number + done], 0:page, head, :], tile[done * page : (done + 1) * page, :])
    if done + 1 < count:
        load_pages(x, table, batch, head, number, page, done + 1, count, tile)


@T.macro
def take_keys(s, p_s, v_s, o, top, total, scale, D, block_H, block_N):
    """Add keys' part by their scores, and what was summed before under the new maximum."""
    before = T.alloc_fragment((block_H,), "float32")
    base = T.alloc_fragment((block_H,), "float32")
    sums = T.alloc_fragment((block_H,), "float32")
    T.copy(top, before)
    T.reduce_max(s, top, dim=1, clear=False)
    for i in T.Parallel(block_H):
        base[i] = T.if_then_else(top[i] == LEAST, 0.0, top[i] * scale)
        before[i] = T.exp2(before[i] * scale - base[i])
    for i, j in T.Parallel(block_H, block_N):
        s[i, j] = T.exp2(s[i, j] * scale - base[i])
    T.copy(s, p_s)
    T.reduce_sum(s, sums, dim=1)
    for i in T.Parallel(block_H):
        total[i] = total[i] * before[i] + sums[i]
    for i, j in T.Parallel(block_H, D):
        o[i, j] *= before[i]
    T.gemm(p_s, v_s, o, policy=T.GemmWarpPolicy.FullCol)


@T.macro
def leave_out(s, v_s, count, D, block_H, block_N):
    """Scores and values behind the first `count` keys are nothing, whatever they are in memory."""
    for i, j in T.Parallel(block_H, block_N):
        s[i, j] = T.if_then_else(j < count, s[i, j], LEAST)
    for i, j in T.Parallel(block_N, D):
        v_s[i, j] = T.if_then_else(i < count, v_s[i, j], 0)


@T.macro
def store_part(o, top, total, part, lse, number, batch, head, row, group, scale, alone, D, block_H):
    """What a part gives for the heads from `head + row` on, of `group` from `head` on."""
    for i, j in T.Parallel(block_H, D):
        o[i, j] = T.if_then_else(total[i] == 0.0, 0.0, o[i, j] / total[i])
    for i in T.Parallel(block_H):
        total[i] = T.log2(total[i]) + top[i] * scale
    for i, j in T.Parallel(block_H, D):
        if row + i < group:
            part[number, batch, head + row + i, j] = o[i, j]
    for i in T.Parallel(block_H):
        if row + i < group and not alone:
            lse[number, batch, head + row + i] = total[i]


@jit
def decode_kernel(
    B, H, KV, S, D, dtype, k_order, v_order, page, has_lengths, alone, block_H, block_N, num_stages, threads
):  # fmt: skip
    """A block has the heads of one head of k and v, and a part of one sequence's keys.

    `page` is the number of keys of a page; 0 where each sequence has memory of its own, for S keys. `alone`
    is a part that is the whole, whose result needs no join.
    """
    scale, group, keys = D**-0.5 * LOG2E, H // KV, keys_at_a_time(page, block_N)
    blocks = -(-group // block_H)
    batches = T.dynamic("B") if B is None else B
    parts = 1 if alone else T.dynamic("parts")
    pages, most = (T.dynamic("P"), T.dynamic("most")) if page else (1, 1)
    room = most * page if page else T.dynamic("S") if S is None else S

    def shape(order):
        if page:
            return (pages, page, KV, D)
        return (batches, room, KV, D) if order else (batches, KV, room, D)

    @T.prim_func
    def main(
        q: T.Tensor((batches, H, D), dtype), k: T.Tensor(shape(k_order), dtype),
        v: T.Tensor(shape(v_order), dtype), lengths: T.Tensor((batches,), "int32"),
        table: T.Tensor((batches, most), "int32"),
        part: T.Tensor((parts, batches, H, D), dtype if alone else "float32"),
        lse: T.Tensor((parts, batches, H), "float32"),
    ):  # fmt: skip
        with T.Kernel(parts, KV * blocks, batches, threads=threads) as (bx, by, bz):
            q_s = T.alloc_shared((block_H, D), dtype)
            k_s = T.alloc_shared((keys, D), dtype)
            v_s = T.alloc_shared((keys, D), dtype)
            p_s = T.alloc_shared((block_H, keys), dtype)
            s = T.alloc_fragment((block_H, keys), "float32")
            o = T.alloc_fragment((block_H, D), "float32")
            top = T.alloc_fragment((block_H,), "float32")
            total = T.alloc_fragment((block_H,), "float32")
            head, row = by // blocks, by % blocks * block_H
            # Rows behind the group are other heads' or outside, and are not stored.
            T.copy(q[bz, head * group + row : head * group + row + block_H, :], q_s)
            T.clear(o)
            T.clear(total)
            T.fill(top, LEAST)
            length = T.max(0, T.min(room, lengths[bz])) if has_lengths else room
            share = T.ceildiv(T.ceildiv(length, keys), parts)
            start = bx * share
            for n in T.Pipelined(T.min(share, length // keys - start), num_stages=num_stages):
                first = (start + n) * keys
                load_keys(k, table, bz, head, first, page, k_order, keys, k_s)
                load_keys(v, table, bz, head, first, page, v_order, keys, v_s)
                T.gemm(q_s, k_s, s, transpose_B=True, clear_accum=True, policy=T.GemmWarpPolicy.FullCol)
                take_keys(s, p_s, v_s, o, top, total, scale, D, block_H, keys)
            rest = length // keys * keys
            if rest < length and start * keys <= rest and rest < (start + share) * keys:
                k_t = T.alloc_shared((keys, D), dtype)
                v_t = T.alloc_shared((keys, D), dtype)
                load_keys(k, table, bz, head, rest, page, k_order, keys, k_t)
                load_keys(v, table, bz, head, rest, page, v_order, keys, v_t)
                T.gemm(q_s, k_t, s, transpose_B=True, clear_accum=True, policy=T.GemmWarpPolicy.FullCol)
                leave_out(s, v_t, length - rest, D, block_H, keys)
                take_keys(s, p_s, v_t, o, top, total, scale, D, block_H, keys)
            store_part(o, top, total, part, lse, bx, bz, head * group, row, group, scale, alone, D, block_H)

    return main


@jit
def decode_join_kernel(B, H, D, dtype, most, threads):
    """A block has a head: its parts, at most `most`, weighed by their sums."""
    batches = T.dynamic("B") if B is None else B
    parts = T.dynamic("parts")

    @T.prim_func
    def main(
        part: T.Tensor((parts, batches, H, D), "float32"), lse: T.Tensor((parts, batches, H), "float32"),
        o: T.Tensor((batches, H, D), dtype),
    ):  # fmt: skip
        with T.Kernel(H, batches, threads=threads) as (bx, by):
            weight = T.alloc_fragment((most,), "float32")
            top = T.alloc_fragment((1,), "float32")
            total = T.alloc_fragment((1,), "float32")
            parts_l = T.alloc_fragment((most, D), "float32")
            o_l = T.alloc_fragment((D,), "float32")
            T.copy(part[0:most, by, bx, :], parts_l)
            for i in T.Parallel(most):
                weight[i] = T.if_then_else(i < parts, lse[i, by, bx], LEAST)
            T.reduce_max(weight, top, dim=0)
            for i in T.Parallel(most):
                weight[i] = T.if_then_else(weight[i] == LEAST, 0.0, T.exp2(weight[i] - top[0]))
            T.reduce_sum(weight, total, dim=0)
            for i, j in T.Parallel(most, D):
                parts_l[i, j] = T.if_then_else(weight[i] == 0.0, 0.0, parts_l[i, j] * weight[i])
            T.reduce_sum(parts_l, o_l, dim=0)
            for j in T.Parallel(D):
                o_l[j] = T.if_then_else(total[0] == 0.0, 0.0, o_l[j] / total[0])
            T.copy(o_l, o[by, bx, :])

    return main
