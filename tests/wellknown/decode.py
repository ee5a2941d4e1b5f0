"""Decoding: few queries over many keys, split over blocks and combined; and with a latent that is key and
value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tilebench
import tilebench.language as T
from tests.wellknown.attention import LOG2E
from tests.wellknown.case import Arrays, Case, Draw
from tilebench.library.near import Exact, Near, near

LEAST = -1e30


@tilebench.jit
def decode_split(B, H, KV, S, D, splits, block_H, block_N, dtype, threads=128):
    """Each block has the heads that share keys, and its part of the keys: an output and a logarithm of its
    sum."""
    scale = D**-0.5 * LOG2E
    group = H // KV
    steps = -(-S // (block_N * splits))

    @T.prim_func
    def main(
        Q: T.Tensor((B, H, D), dtype), K: T.Tensor((B, S, KV, D), dtype), V: T.Tensor((B, S, KV, D), dtype),
        Seen: T.Tensor((B, S, KV), "uint8"), Part: T.Tensor((B, H, splits, D), dtype),
        Lse: T.Tensor((B, H, splits), "float32"),
    ):  # fmt: skip
        with T.Kernel(B, KV, splits, threads=threads) as (bx, by, bz):
            Q_s = T.alloc_shared((block_H, D), dtype)
            K_s = T.alloc_shared((block_N, D), dtype)
            V_s = T.alloc_shared((block_N, D), dtype)
            mask = T.alloc_fragment((block_N,), "uint8")
            s = T.alloc_fragment((block_H, block_N), "float32")
            p = T.alloc_fragment((block_H, block_N), dtype)
            o = T.alloc_fragment((block_H, D), "float32")
            top = T.alloc_fragment((block_H,), "float32")
            before = T.alloc_fragment((block_H,), "float32")
            shrink = T.alloc_fragment((block_H,), "float32")
            part = T.alloc_fragment((block_H,), "float32")
            total = T.alloc_fragment((block_H,), "float32")
            T.copy(Q[bx, by * group : by * group + block_H, :], Q_s)
            T.clear(o)
            T.clear(total)
            T.fill(top, LEAST)
            for k in T.Pipelined(steps, num_stages=2):
                first = (bz * steps + k) * block_N
                T.copy(K[bx, first : first + block_N, by, :], K_s)
                T.copy(V[bx, first : first + block_N, by, :], V_s)
                T.copy(Seen[bx, first : first + block_N, by], mask)
                T.clear(s)
                T.gemm(Q_s, K_s, s, transpose_B=True)
                for i, j in T.Parallel(block_H, block_N):
                    s[i, j] = T.if_then_else(mask[j] != 0 and first + j < S, s[i, j] * scale, LEAST)
                T.copy(top, before)
                T.reduce_max(s, top, dim=1, clear=False)
                for i in T.Parallel(block_H):
                    shrink[i] = T.exp2(before[i] - top[i])
                for i, j in T.Parallel(block_H, block_N):
                    s[i, j] = T.exp2(s[i, j] - top[i])
                T.reduce_sum(s, part, dim=1)
                for i in T.Parallel(block_H):
                    total[i] = total[i] * shrink[i] + part[i]
                for i, j in T.Parallel(block_H, D):
                    o[i, j] *= shrink[i]
                T.copy(s, p)
                T.gemm(p, V_s, o)
            for i, j in T.Parallel(block_H, D):
                o[i, j] /= total[i]
            for i in T.Parallel(block_H):
                total[i] = T.log2(total[i]) + top[i]
            for i in T.Parallel(block_H):
                if i < group:
                    Lse[bx, by * group + i, bz] = total[i]
            for i, j in T.Parallel(block_H, D):
                if i < group:
                    Part[bx, by * group + i, bz, j] = o[i, j]

    return main


@tilebench.jit
def decode_combine(B, H, D, splits, dtype, threads=128):
    @T.prim_func
    def main(
        Part: T.Tensor((B, H, splits, D), dtype), Lse: T.Tensor((B, H, splits), "float32"),
        Out: T.Tensor((B, H, D), dtype),
    ):  # fmt: skip
        with T.Kernel(H, B, threads=threads) as (by, bz):
            part = T.alloc_fragment((D,), dtype)
            o = T.alloc_fragment((D,), "float32")
            lse = T.alloc_fragment((splits,), "float32")
            top = T.alloc_fragment((1,), "float32")
            total = T.alloc_var("float32")
            share = T.alloc_var("float32")
            T.copy(Lse[bz, by, 0:splits], lse)
            T.reduce_max(lse, top, dim=0)
            T.clear(o)
            total = 0.0
            for k in T.serial(splits):
                total += T.exp2(Lse[bz, by, k] - top[0])
            for k in T.serial(splits):
                share = T.exp2(Lse[bz, by, k] - top[0]) / total
                T.copy(Part[bz, by, k, 0:D], part)
                for i in T.Parallel(D):
                    o[i] += part[i] * share
            T.copy(o, Out[bz, by, 0:D])

    return main


def attended(xp: Any, scores: Near, seen: Any, values: Near, dtype: str) -> tuple[Near, Near]:
    """The output and the logarithm to the base of 2 of the sum, over keys along the last axis of the
    scores."""
    top = xp.amax(xp.where(seen, scores.value, LEAST), -1)[..., None]
    weights = (scores - top).where(seen, 0.0).exp().where(seen, 0.0)
    total = weights.sum(-1, keepdims=True)
    return weights.narrowed(dtype) @ values / total, (total.log() + top) * LOG2E


def exact_decode_split(xp: Any, a: Arrays, p: Mapping[str, Any]) -> Mapping[str, Exact]:
    b, h, kv, d, splits = (p[name] for name in ("B", "H", "KV", "D", "splits"))
    length = -(-p["S"] // (p["block_N"] * splits)) * p["block_N"]
    head = xp.arange(h) // (h // kv)
    q = near(xp, a["Q"][:, :, None, :])
    out, out_error = xp.zeros((b, h, splits, d)), xp.zeros((b, h, splits, d))
    lse, lse_error = xp.zeros((b, h, splits)), xp.zeros((b, h, splits))
    for part in range(splits):
        of = slice(part * length, (part + 1) * length)
        k, v = (near(xp, a[name][:, of].swapaxes(1, 2)[:, head]) for name in "KV")
        seen = (a["Seen"][:, of].swapaxes(1, 2)[:, head] != 0)[:, :, None, :]
        rows, logs = attended(xp, q @ k.T * d**-0.5, seen, v, p["dtype"])
        out[:, :, part], out_error[:, :, part] = rows.value[:, :, 0], rows.error[:, :, 0]
        lse[:, :, part], lse_error[:, :, part] = logs.value[:, :, 0, 0], logs.error[:, :, 0, 0]
    return {"Part": Exact(out, out_error), "Lse": Exact(lse, lse_error)}


def exact_decode_combine(xp: Any, a: Arrays, p: Mapping[str, Any]) -> Mapping[str, Exact]:
    lse = near(xp, a["Lse"])
    shares = ((lse - xp.amax(a["Lse"], -1)[..., None]) / LOG2E).exp()
    shares = shares / shares.sum(-1, keepdims=True)
    return {"Out": (near(xp, a["Part"]) * shares[..., None]).sum(2).exact()}


@tilebench.jit
def latent_decode(B, H, S, D, R, block_H, block_N, dtype, threads=128):
    """Multi-head latent attention: one latent of D numbers is key and value of all heads, and R more turn
    with it."""
    scale = (D + R) ** -0.5 * LOG2E

    @T.prim_func
    def main(
        Q: T.Tensor((B, H, D), dtype), Q_r: T.Tensor((B, H, R), dtype), C: T.Tensor((B, S, D), dtype),
        K_r: T.Tensor((B, S, R), dtype), Out: T.Tensor((B, H, D), dtype),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(H, block_H), B, threads=threads) as (bx, by):
            Q_s = T.alloc_shared((block_H, D), dtype)
            Qr_s = T.alloc_shared((block_H, R), dtype)
            C_s = T.alloc_shared((block_N, D), dtype)
            Kr_s = T.alloc_shared((block_N, R), dtype)
            p = T.alloc_shared((block_H, block_N), dtype)
            s = T.alloc_fragment((block_H, block_N), "float32")
            o = T.alloc_fragment((block_H, D), "float32")
            top = T.alloc_fragment((block_H,), "float32")
            before = T.alloc_fragment((block_H,), "float32")
            shrink = T.alloc_fragment((block_H,), "float32")
            part = T.alloc_fragment((block_H,), "float32")
            total = T.alloc_fragment((block_H,), "float32")
            T.copy(Q[by, bx * block_H, 0], Q_s)
            T.copy(Q_r[by, bx * block_H, 0], Qr_s)
            T.clear(o)
            T.clear(total)
            T.fill(top, LEAST)
            for k in T.Pipelined(T.ceildiv(S, block_N), num_stages=2):
                T.copy(C[by, k * block_N, 0], C_s)
                T.copy(K_r[by, k * block_N, 0], Kr_s)
                T.gemm(Q_s, C_s, s, transpose_B=True, clear_accum=True, policy=T.GemmWarpPolicy.FullCol)
                T.gemm(Qr_s, Kr_s, s, transpose_B=True, policy=T.GemmWarpPolicy.FullCol)
                for i, j in T.Parallel(block_H, block_N):
                    s[i, j] = T.if_then_else(k * block_N + j < S, s[i, j] * scale, LEAST)
                T.copy(top, before)
                T.reduce_max(s, top, dim=1, clear=False)
                for i in T.Parallel(block_H):
                    shrink[i] = T.exp2(before[i] - top[i])
                for i, j in T.Parallel(block_H, block_N):
                    s[i, j] = T.exp2(s[i, j] - top[i])
                T.reduce_sum(s, part, dim=1)
                T.copy(s, p)
                for i in T.Parallel(block_H):
                    total[i] = total[i] * shrink[i] + part[i]
                for i, j in T.Parallel(block_H, D):
                    o[i, j] *= shrink[i]
                T.gemm(p, C_s, o, policy=T.GemmWarpPolicy.FullCol)
            for i, j in T.Parallel(block_H, D):
                o[i, j] /= total[i]
            T.copy(o, Out[by, bx * block_H, 0])

    return main


def exact_latent_decode(xp: Any, a: Arrays, p: Mapping[str, Any]) -> Mapping[str, Exact]:
    latent, turned = near(xp, a["C"]), near(xp, a["K_r"])
    scores = (near(xp, a["Q"]) @ latent.T + near(xp, a["Q_r"]) @ turned.T) * (p["D"] + p["R"]) ** -0.5
    return {"Out": attended(xp, scores, scores.value == scores.value, latent, p["dtype"])[0].exact()}


def split_case(
    heads: tuple[int, int, int], keys: tuple[int, int, int], block_N: int, dtype: str, large: bool = False
) -> Case:
    (b, h, kv), (s, d, splits) = heads, keys

    def arrays(draw: Draw) -> Arrays:
        seen = draw.integers(b, s, kv, dtype="uint8", high=2)
        seen[:, ::7] = 1
        return {
            "Q": draw.floats(b, h, d, dtype=dtype, low=-2, high=2),
            "K": draw.floats(b, s, kv, d, dtype=dtype),
            "V": draw.floats(b, s, kv, d, dtype=dtype), "Seen": seen,
            "Part": draw.output(b, h, splits, d, dtype=dtype),
            "Lse": draw.output(b, h, splits, dtype="float32"),
        }  # fmt: skip

    parameters = {
        "B": b, "H": h, "KV": kv, "S": s, "D": d, "splits": splits, "block_H": max(16, h // kv),
        "block_N": block_N, "dtype": dtype,
    }  # fmt: skip
    name = f"decode_split {h}/{kv} heads {s}x{d} in {splits} {dtype}"
    return Case(name, decode_split, parameters, arrays, exact_decode_split, None, large)


def combine_case(shape: tuple[int, int, int, int], dtype: str, large: bool = False) -> Case:
    b, h, splits, d = shape

    def arrays(draw: Draw) -> Arrays:
        lse = draw.floats(b, h, splits, dtype="float32", low=-3, high=8)
        return {
            "Part": draw.floats(b, h, splits, d, dtype=dtype),
            "Lse": lse,
            "Out": draw.output(b, h, d, dtype=dtype),
        }

    parameters = {"B": b, "H": h, "D": d, "splits": splits, "dtype": dtype}
    name = f"decode_combine {h} heads {splits}x{d} {dtype}"
    return Case(name, decode_combine, parameters, arrays, exact_decode_combine, None, large)


def latent_case(
    shape: tuple[int, int, int, int, int],
    block: tuple[int, int],
    dtype: str,
    large: bool = False,
    **options: int,
) -> Case:
    b, h, s, d, r = shape

    def arrays(draw: Draw) -> Arrays:
        q, q_r = (draw.floats(b, h, x, dtype=dtype) for x in (d, r))
        c, k_r = (draw.floats(b, s, x, dtype=dtype) for x in (d, r))
        return {"Q": q, "Q_r": q_r, "C": c, "K_r": k_r, "Out": draw.output(b, h, d, dtype=dtype)}

    parameters = {
        "B": b, "H": h, "S": s, "D": d, "R": r, "block_H": block[0], "block_N": block[1], "dtype": dtype,
        **options,
    }  # fmt: skip
    name = f"latent_decode {h} heads {s}x{d}+{r} {dtype}"
    return Case(name, latent_decode, parameters, arrays, exact_latent_decode, None, large)


CASES = (
    split_case((2, 4, 2), (200, 32, 3), 32, "float16"),
    split_case((1, 16, 1), (100, 64, 2), 16, "bfloat16"),
    split_case((1, 3, 1), (70, 16, 2), 16, "float32"),
    combine_case((2, 3, 4, 48), "float16"),
    combine_case((1, 2, 7, 33), "float32"),
    latent_case((1, 20, 70, 64, 16), (16, 32), "float16"),
    latent_case((2, 16, 65, 128, 32), (16, 16), "bfloat16"),
    split_case((8, 32, 8), (8192, 128, 16), 64, "float16", True),
    combine_case((8, 32, 16, 128), "float16", True),
    latent_case((8, 128, 4096, 512, 64), (64, 64), "float16", True, threads=256),
)
