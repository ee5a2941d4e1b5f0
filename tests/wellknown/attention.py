"""Attention forward: both layouts, causal, grouped heads, a sliding window, sinks, and blocks left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import tilebench
import tilebench.language as T
from tests.wellknown.case import Arrays, Case, Draw
from tilebench.library.near import Exact, Near, near

LOG2E = 1.4426950408889634
LEAST = -1e30


@tilebench.jit
def attention(
    B, H, KV, SQ, SK, D, block_M, block_N, layout, dtype, causal=False, window=0, sink=False, sparse=False,
    num_stages=2, threads=128,
):  # fmt: skip
    """Heads of Q share those of K and V; the last query sees the last key, and `window` keys in all where
    given."""
    scale = D**-0.5 * LOG2E
    q_shape = (B, SQ, H, D) if layout == "bshd" else (B, H, SQ, D)
    k_shape = (B, SK, KV, D) if layout == "bshd" else (B, KV, SK, D)
    past = SK - SQ
    rows, columns = -(-SQ // block_M), -(-SK // block_N)

    @T.prim_func
    def main(
        Q: T.Tensor(q_shape, dtype), K: T.Tensor(k_shape, dtype), V: T.Tensor(k_shape, dtype),
        Sink: T.Tensor((H,), "float32"), Seen: T.Tensor((B, H, rows, columns), "int8"),
        Out: T.Tensor(q_shape, dtype), Lse: T.Tensor((B, H, SQ), "float32"),
    ):  # fmt: skip
        with T.Kernel(rows, H, B, threads=threads) as (bx, by, bz):
            Q_s = T.alloc_shared((block_M, D), dtype)
            K_s = T.alloc_shared((block_N, D), dtype)
            V_s = T.alloc_shared((block_N, D), dtype)
            s = T.alloc_fragment((block_M, block_N), "float32")
            p = T.alloc_fragment((block_M, block_N), dtype)
            o = T.alloc_fragment((block_M, D), "float32")
            top = T.alloc_fragment((block_M,), "float32")
            before = T.alloc_fragment((block_M,), "float32")
            shrink = T.alloc_fragment((block_M,), "float32")
            part = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            head = by // (H // KV)
            if layout == "bshd":
                T.copy(Q[bz, bx * block_M : (bx + 1) * block_M, by, :], Q_s)
            else:
                T.copy(Q[bz, by, bx * block_M : (bx + 1) * block_M, :], Q_s)
            T.clear(o)
            T.clear(total)
            T.fill(top, LEAST)
            first = T.max(0, (bx * block_M + past - window + 1) // block_N) if window else 0
            last = T.min(columns, T.ceildiv((bx + 1) * block_M + past, block_N)) if causal else columns
            for k in T.Pipelined(first, last, num_stages=num_stages):
                if not sparse or Seen[bz, by, bx, k] != 0:
                    if layout == "bshd":
                        T.copy(K[bz, k * block_N : (k + 1) * block_N, head, :], K_s)
                        T.copy(V[bz, k * block_N : (k + 1) * block_N, head, :], V_s)
                    else:
                        T.copy(K[bz, head, k * block_N : (k + 1) * block_N, :], K_s)
                        T.copy(V[bz, head, k * block_N : (k + 1) * block_N, :], V_s)
                    for i, j in T.Parallel(block_M, block_N):
                        query, key = bx * block_M + i + past, k * block_N + j
                        seen = key < SK
                        if causal:
                            seen = seen and key <= query
                        if window:
                            seen = seen and key > query - window
                        s[i, j] = T.if_then_else(seen, 0, LEAST)
                    T.gemm(Q_s, K_s, s, transpose_B=True)
                    T.copy(top, before)
                    T.reduce_max(s, top, dim=1, clear=False)
                    for i in T.Parallel(block_M):
                        shrink[i] = T.exp2((before[i] - top[i]) * scale)
                    for i, j in T.Parallel(block_M, block_N):
                        s[i, j] = T.exp2((s[i, j] - top[i]) * scale)
                    T.reduce_sum(s, part, dim=1)
                    for i in T.Parallel(block_M):
                        total[i] = total[i] * shrink[i] + part[i]
                    for i, j in T.Parallel(block_M, D):
                        o[i, j] *= shrink[i]
                    T.copy(s, p)
                    T.gemm(p, V_s, o)
            if sink:
                for i in T.Parallel(block_M):
                    total[i] += T.exp2(Sink[by] * LOG2E - top[i] * scale)
            for i, j in T.Parallel(block_M, D):
                o[i, j] /= total[i]
            for i in T.Parallel(block_M):
                total[i] = T.log(total[i]) + top[i] * scale / LOG2E
            T.copy(total, Lse[bz, by, bx * block_M])
            if layout == "bshd":
                T.copy(o, Out[bz, bx * block_M : (bx + 1) * block_M, by, :])
            else:
                T.copy(o, Out[bz, by, bx * block_M : (bx + 1) * block_M, :])

    return main


def seen_keys(xp: Any, p: Mapping[str, Any], blocks: Any) -> Any:
    """(batch, head, query, key): which key takes part."""
    query, key = xp.arange(p["SQ"])[:, None] + (p["SK"] - p["SQ"]), xp.arange(p["SK"])[None, :]
    seen = (key >= 0) & (query >= query)
    if p.get("causal"):
        seen = seen & (key <= query)
    if p.get("window"):
        seen = seen & (key > query - p["window"])
    if p.get("sparse"):
        row, column = xp.arange(p["SQ"]) // p["block_M"], xp.arange(p["SK"]) // p["block_N"]
        seen = seen & (blocks[:, :, row[:, None], column[None, :]] != 0)
    return seen + xp.zeros((p["B"], p["H"], 1, 1), dtype=xp.bool)


def softmax_of(s: Near, seen: Any, sink: Any = None) -> tuple[Near, Near, Near]:
    """exp(s - top), its sums with that of the sink, and their logarithms, of scores along the last axis."""
    xp = s.xp
    top = xp.amax(xp.where(seen, s.value, LEAST), -1)[..., None]
    weights = (s - top).where(seen, 0.0).exp().where(seen, 0.0)
    total = weights.sum(-1, keepdims=True)
    if sink is not None:
        total = total + (near(xp, sink[None, :, None, None]) - top).exp()
    return weights, total, total.log() + top


def exact_attention(xp: Any, a: Arrays, p: Mapping[str, Any]) -> Mapping[str, Exact]:
    bshd = p["layout"] == "bshd"
    q, k, v = (near(xp, a[name]) for name in "QKV")
    if bshd:
        q, k, v = (x.swapaxes(1, 2) for x in (q, k, v))
    head = xp.arange(p["H"]) // (p["H"] // p["KV"])
    k, v = k[:, head], v[:, head]
    scores = q @ k.T * (p["D"] ** -0.5)
    weights, total, lse = softmax_of(
        scores, seen_keys(xp, p, a["Seen"]), a["Sink"] if p.get("sink") else None
    )
    o = weights.narrowed(p["dtype"]) @ v / total
    return {"Out": (o.swapaxes(1, 2) if bshd else o).exact(), "Lse": lse[..., 0].exact()}


def case(
    layout: str, heads: tuple[int, int, int], lengths: tuple[int, int, int], block: tuple[int, int],
    dtype: str = "float16", large: bool = False, **options: Any,
) -> Case:  # fmt: skip
    (b, h, kv), (sq, sk, d), (bm, bn) = heads, lengths, block
    rows, columns = -(-sq // bm), -(-sk // bn)

    def arrays(draw: Draw) -> Arrays:
        def tensor(heads: int, length: int) -> Any:
            shape = (b, length, heads, d) if layout == "bshd" else (b, heads, length, d)
            return draw.floats(*shape, dtype=dtype, low=-2, high=2)

        seen = draw.integers(b, h, rows, columns, dtype="int8", high=2)
        # Every query sees a key: its own block.
        own = np.minimum((np.arange(rows) * bm + sk - sq) // bn, columns - 1)
        seen[:, :, np.arange(rows), own] = 1
        q, k, v = tensor(h, sq), tensor(kv, sk), tensor(kv, sk)
        sink = draw.floats(h, dtype="float32", high=3)
        out = draw.output(*q.shape, dtype=dtype)
        lse = draw.output(b, h, sq, dtype="float32")
        return {"Q": q, "K": k, "V": v, "Sink": sink, "Seen": seen, "Out": out, "Lse": lse}

    def native(torch: Any, a: Arrays) -> Any:
        q, k, v = (a[name].transpose(1, 2) if layout == "bshd" else a[name] for name in "QKV")
        call = torch.nn.functional.scaled_dot_product_attention
        return lambda: call(q, k, v, is_causal=bool(options.get("causal")), enable_gqa=h != kv)

    parameters = {
        "B": b, "H": h, "KV": kv, "SQ": sq, "SK": sk, "D": d, "block_M": bm, "block_N": bn, "layout": layout,
        "dtype": dtype, **options,
    }  # fmt: skip
    words = [k if v is True else f"{k}{v}" for k, v in options.items() if k not in ("threads", "num_stages")]
    name = " ".join(["attention", layout, *words, f"{h}/{kv} heads", f"{sq}x{sk}x{d}", dtype])
    plain = not {"window", "sink", "sparse"} & options.keys()
    return Case(name, attention, parameters, arrays, exact_attention, native if plain else None, large)


CASES = (
    case("bshd", (2, 2, 2), (64, 64, 32), (32, 32)),
    case("bshd", (1, 2, 1), (50, 70, 16), (32, 32), "bfloat16", causal=True),
    case("bshd", (1, 2, 2), (64, 64, 64), (64, 32), "float32", causal=True),
    case("bshd", (1, 4, 2), (64, 96, 32), (32, 32), causal=True, num_stages=1),
    case("bhsd", (1, 2, 2), (70, 70, 48), (32, 48)),
    case("bhsd", (1, 2, 1), (33, 97, 32), (32, 32), "bfloat16", causal=True),
    case("bhsd", (1, 2, 1), (90, 90, 32), (32, 32), causal=True, window=40),
    case("bhsd", (1, 2, 2), (90, 90, 32), (32, 32), causal=True, sink=True),
    case("bhsd", (1, 4, 2), (60, 90, 32), (32, 32), "bfloat16", causal=True, window=33, sink=True),
    case("bhsd", (1, 2, 2), (100, 100, 32), (32, 32), causal=True, sparse=True),
    case("bshd", (1, 2, 1), (64, 128, 16), (32, 32), "float32", sparse=True),
    case("bshd", (1, 1, 1), (1, 1, 16), (16, 16)),
    case("bshd", (4, 16, 16), (2048, 2048, 128), (128, 64), large=True, threads=256),
    case("bshd", (4, 16, 16), (2048, 2048, 128), (128, 64), large=True, causal=True, threads=256),
    case("bhsd", (4, 32, 8), (2048, 2048, 128), (128, 64), "bfloat16", large=True, causal=True, threads=256),
)
