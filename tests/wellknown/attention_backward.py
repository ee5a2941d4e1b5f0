"""Attention backward: blocks of keys, dQ added up by atomics or by a kernel of its own over blocks of
queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tilebench
import tilebench.language as T
from tests.wellknown.attention import LOG2E, seen_keys, softmax_of
from tests.wellknown.case import Arrays, Case, Draw
from tilebench.library.near import Exact, Near, near


@tilebench.jit
def attention_backward(B, H, KV, S, D, block_M, block_N, dtype, causal=False, atomic=True, threads=128):
    """A block has `block_M` keys of a head of K and V, and goes over all queries of the heads that share
    it."""
    scale = D**-0.5
    group = H // KV

    @T.prim_func
    def main(
        Q: T.Tensor((B, S, H, D), dtype), K: T.Tensor((B, S, KV, D), dtype),
        V: T.Tensor((B, S, KV, D), dtype), dO: T.Tensor((B, S, H, D), dtype),
        Lse: T.Tensor((B, H, S), "float32"),
        Delta: T.Tensor((B, H, S), "float32"), dQ: T.Tensor((B, S, H, D), "float32"),
        dK: T.Tensor((B, S, KV, D), dtype), dV: T.Tensor((B, S, KV, D), dtype),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(S, block_M), KV, B, threads=threads) as (bx, by, bz):
            K_s = T.alloc_shared((block_M, D), dtype)
            V_s = T.alloc_shared((block_M, D), dtype)
            Q_s = T.alloc_shared((block_N, D), dtype)
            dO_s = T.alloc_shared((block_N, D), dtype)
            dS_s = T.alloc_shared((block_M, block_N), dtype)
            lse = T.alloc_shared((block_N,), "float32")
            delta = T.alloc_shared((block_N,), "float32")
            s = T.alloc_fragment((block_M, block_N), "float32")
            slope = T.alloc_fragment((block_M, block_N), "float32")
            p = T.alloc_fragment((block_M, block_N), dtype)
            dk = T.alloc_fragment((block_M, D), "float32")
            dv = T.alloc_fragment((block_M, D), "float32")
            dq = T.alloc_fragment((block_N, D), "float32")
            T.copy(K[bz, bx * block_M : (bx + 1) * block_M, by, :], K_s)
            T.copy(V[bz, bx * block_M : (bx + 1) * block_M, by, :], V_s)
            T.clear(dk)
            T.clear(dv)
            first = (bx * block_M) // block_N if causal else 0
            for member in T.serial(group):
                head = by * group + member
                for k in T.Pipelined(first, T.ceildiv(S, block_N), num_stages=2):
                    T.copy(Q[bz, k * block_N : (k + 1) * block_N, head, :], Q_s)
                    T.copy(dO[bz, k * block_N : (k + 1) * block_N, head, :], dO_s)
                    T.copy(Lse[bz, head, k * block_N : (k + 1) * block_N], lse)
                    T.copy(Delta[bz, head, k * block_N : (k + 1) * block_N], delta)
                    T.clear(s)
                    T.gemm(K_s, Q_s, s, transpose_B=True)
                    for i, j in T.Parallel(block_M, block_N):
                        key, query = bx * block_M + i, k * block_N + j
                        seen = key < S and query < S
                        if causal:
                            seen = seen and key <= query
                        weight = T.exp2(s[i, j] * (scale * LOG2E) - lse[j] * LOG2E)
                        s[i, j] = T.if_then_else(seen, weight, 0)
                    T.copy(s, p)
                    T.gemm(p, dO_s, dv)
                    T.clear(slope)
                    T.gemm(V_s, dO_s, slope, transpose_B=True)
                    for i, j in T.Parallel(block_M, block_N):
                        p[i, j] = s[i, j] * (slope[i, j] - delta[j]) * scale
                    T.gemm(p, Q_s, dk)
                    if atomic:
                        T.copy(p, dS_s)
                        T.clear(dq)
                        T.gemm(dS_s, K_s, dq, transpose_A=True)
                        for i, j in T.Parallel(block_N, D):
                            T.atomic_add(dQ[bz, k * block_N + i, head, j], dq[i, j])
            T.copy(dk, dK[bz, bx * block_M : (bx + 1) * block_M, by, :])
            T.copy(dv, dV[bz, bx * block_M : (bx + 1) * block_M, by, :])

    return main


@tilebench.jit
def attention_backward_queries(B, H, KV, S, D, block_M, block_N, dtype, causal=False, threads=128):
    """dQ without atomics: a block has `block_M` queries of a head and goes over the keys."""
    scale = D**-0.5

    @T.prim_func
    def main(
        Q: T.Tensor((B, S, H, D), dtype), K: T.Tensor((B, S, KV, D), dtype),
        V: T.Tensor((B, S, KV, D), dtype), dO: T.Tensor((B, S, H, D), dtype),
        Lse: T.Tensor((B, H, S), "float32"),
        Delta: T.Tensor((B, H, S), "float32"), dQ: T.Tensor((B, S, H, D), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(S, block_M), H, B, threads=threads) as (bx, by, bz):
            Q_s = T.alloc_shared((block_M, D), dtype)
            dO_s = T.alloc_shared((block_M, D), dtype)
            K_s = T.alloc_shared((block_N, D), dtype)
            V_s = T.alloc_shared((block_N, D), dtype)
            s = T.alloc_fragment((block_M, block_N), "float32")
            slope = T.alloc_fragment((block_M, block_N), "float32")
            p = T.alloc_fragment((block_M, block_N), dtype)
            dq = T.alloc_fragment((block_M, D), "float32")
            lse = T.alloc_fragment((block_M,), "float32")
            delta = T.alloc_fragment((block_M,), "float32")
            head = by // (H // KV)
            T.copy(Q[bz, bx * block_M : (bx + 1) * block_M, by, :], Q_s)
            T.copy(dO[bz, bx * block_M : (bx + 1) * block_M, by, :], dO_s)
            T.copy(Lse[bz, by, bx * block_M : (bx + 1) * block_M], lse)
            T.copy(Delta[bz, by, bx * block_M : (bx + 1) * block_M], delta)
            T.clear(dq)
            last = T.min(T.ceildiv((bx + 1) * block_M, block_N), T.ceildiv(S, block_N))
            for k in T.Pipelined(last if causal else T.ceildiv(S, block_N), num_stages=2):
                T.copy(K[bz, k * block_N : (k + 1) * block_N, head, :], K_s)
                T.copy(V[bz, k * block_N : (k + 1) * block_N, head, :], V_s)
                T.clear(s)
                T.gemm(Q_s, K_s, s, transpose_B=True)
                T.clear(slope)
                T.gemm(dO_s, V_s, slope, transpose_B=True)
                for i, j in T.Parallel(block_M, block_N):
                    query, key = bx * block_M + i, k * block_N + j
                    seen = key < S and query < S
                    if causal:
                        seen = seen and key <= query
                    weight = T.exp2(s[i, j] * (scale * LOG2E) - lse[i] * LOG2E)
                    p[i, j] = T.if_then_else(seen, weight * (slope[i, j] - delta[i]) * scale, 0)
                T.gemm(p, K_s, dq)
            T.copy(dq, dQ[bz, bx * block_M : (bx + 1) * block_M, by, :])

    return main


@tilebench.jit
def row_products(B, H, S, D, block_M, dtype, threads=128):
    """What backward needs of the forward's output: the sum of O * dO along each row."""

    @T.prim_func
    def main(
        Out: T.Tensor((B, S, H, D), dtype), dO: T.Tensor((B, S, H, D), dtype),
        Delta: T.Tensor((B, H, S), "float32"),
    ):  # fmt: skip
        with T.Kernel(H, T.ceildiv(S, block_M), B, threads=threads) as (bx, by, bz):
            o = T.alloc_fragment((block_M, D), dtype)
            do = T.alloc_fragment((block_M, D), dtype)
            product = T.alloc_fragment((block_M, D), "float32")
            delta = T.alloc_fragment((block_M,), "float32")
            T.copy(Out[bz, by * block_M : (by + 1) * block_M, bx, :], o)
            T.copy(dO[bz, by * block_M : (by + 1) * block_M, bx, :], do)
            for i, j in T.Parallel(block_M, D):
                product[i, j] = T.cast(o[i, j], "float32") * do[i, j]
            T.reduce_sum(product, delta, dim=1)
            T.copy(delta, Delta[bz, bx, by * block_M : (by + 1) * block_M])

    return main


def exact_row_products(xp: Any, a: Arrays, p: Mapping[str, Any]) -> Mapping[str, Exact]:
    return {"Delta": (near(xp, a["Out"]) * a["dO"]).sum(-1).swapaxes(1, 2).exact()}


def exact_backward(xp: Any, a: Arrays, p: Mapping[str, Any]) -> Mapping[str, Exact]:
    """From Lse and Delta as the forward gives them, which count as exact."""
    group, dtype, scale = p["H"] // p["KV"], p["dtype"], p["D"] ** -0.5
    head = xp.arange(p["H"]) // group
    q, k, v, do = (near(xp, a[name]).swapaxes(1, 2) for name in ("Q", "K", "V", "dO"))
    k, v = k[:, head], v[:, head]
    seen = seen_keys(xp, {**p, "SQ": p["S"], "SK": p["S"]}, None)
    lse, delta = a["Lse"][..., None], a["Delta"][..., None]
    weights = (q @ k.T * scale - lse).where(seen, 0.0).exp().where(seen, 0.0)
    slopes = (weights * (do @ v.T - delta) * scale).narrowed(dtype)

    def shared(x: Near) -> Any:
        """Sums over the heads that share keys, and back to (batch, sequence, head, dim)."""
        x = x.reshape(p["B"], p["KV"], group, p["S"], p["D"]).sum(2)
        return x.swapaxes(1, 2).exact()

    dq = (slopes @ k).swapaxes(1, 2).exact()
    right = {"dQ": dq, "dK": shared(slopes.T @ q), "dV": shared(weights.narrowed(dtype).T @ do)}
    if "dK" not in a:
        return {"dQ": dq}
    return right if p.get("atomic", True) else {"dK": right["dK"], "dV": right["dV"]}


def host_lse(p: Mapping[str, Any], a: Arrays) -> Arrays:
    """Lse and Delta of these arrays, as the forward leaves them."""
    import numpy as np

    head = np.arange(p["H"]) // (p["H"] // p["KV"])
    q, k, v, do = (near(np, a[name].astype(np.float64)).swapaxes(1, 2) for name in ("Q", "K", "V", "dO"))
    k, v = k[:, head], v[:, head]
    seen = seen_keys(np, {**p, "SQ": p["S"], "SK": p["S"]}, None)
    weights, total, lse = softmax_of(q @ k.T * p["D"] ** -0.5, seen)
    delta = (weights.value @ v.value / total.value * do.value).sum(-1)
    return {"Lse": lse.value[..., 0].astype(np.float32), "Delta": delta.astype(np.float32)}


def case(
    kernel: Any, heads: tuple[int, int, int], length: tuple[int, int], block: tuple[int, int], dtype: str,
    large: bool = False, **options: Any,
) -> Case:  # fmt: skip
    (b, h, kv), (s, d) = heads, length
    parameters = {
        "B": b, "H": h, "KV": kv, "S": s, "D": d, "block_M": block[0], "block_N": block[1], "dtype": dtype,
        **options,
    }  # fmt: skip

    def arrays(draw: Draw) -> Arrays:
        q, do = (draw.floats(b, s, h, d, dtype=dtype) for _ in range(2))
        k, v = (draw.floats(b, s, kv, d, dtype=dtype) for _ in range(2))
        inputs = {"Q": q, "K": k, "V": v, "dO": do}
        inputs |= host_lse(parameters, inputs)
        if kernel is attention_backward_queries:
            return {**inputs, "dQ": draw.output(b, s, h, d, dtype="float32")}
        dq = draw.floats(b, s, h, d, dtype="float32", low=0, high=0)
        return {**inputs, "dQ": dq, **{name: draw.output(b, s, kv, d, dtype=dtype) for name in ("dK", "dV")}}

    words = [k if v is True else f"{k}{v}" for k, v in options.items() if k != "threads"]
    name = " ".join([kernel.__name__, *words, f"{h}/{kv} heads", f"{s}x{d}", dtype])
    return Case(name, kernel, parameters, arrays, exact_backward, None, large)


def products_case(shape: tuple[int, int, int, int], dtype: str) -> Case:
    b, h, s, d = shape

    def arrays(draw: Draw) -> Arrays:
        o, do = (draw.floats(b, s, h, d, dtype=dtype) for _ in range(2))
        return {"Out": o, "dO": do, "Delta": draw.output(b, h, s, dtype="float32")}

    parameters = {"B": b, "H": h, "S": s, "D": d, "block_M": 32, "dtype": dtype}
    return Case(f"row_products {s}x{d} {dtype}", row_products, parameters, arrays, exact_row_products)


CASES = (
    products_case((1, 2, 50, 40), "float16"),
    products_case((2, 1, 33, 64), "float32"),
    case(attention_backward, (1, 2, 2), (64, 32), (32, 32), "float16"),
    case(attention_backward, (1, 2, 1), (50, 32), (32, 32), "bfloat16", causal=True),
    case(attention_backward, (1, 2, 2), (70, 16), (32, 16), "float32", causal=True),
    case(attention_backward, (1, 4, 2), (70, 32), (32, 32), "float16", causal=True, atomic=False),
    case(attention_backward_queries, (1, 4, 2), (70, 32), (32, 32), "float16", causal=True),
    case(attention_backward_queries, (1, 2, 2), (64, 48), (32, 32), "bfloat16"),
    case(attention_backward, (2, 16, 16), (1024, 64), (64, 64), "float16", True, causal=True),
    case(attention_backward, (2, 16, 4), (1024, 128), (64, 32), "bfloat16", True, threads=256),
    case(attention_backward_queries, (2, 16, 16), (1024, 64), (64, 64), "float16", True, causal=True),
)
