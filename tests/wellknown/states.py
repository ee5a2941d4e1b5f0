"""Mamba's chunks: the states that chunks of a sequence leave, and the outputs of chunks from the states
before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import tilebench
import tilebench.language as T
from tests.wellknown.attention import LOG2E
from tests.wellknown.case import Arrays, Case, Draw, numpy_dtype
from tilebench.library.near import Exact, Near, near


@tilebench.jit
def chunk_state(B, S, H, G, P, N, chunk, block_M, block_N, block_K, dtype, threads=128):
    """For each chunk and head the sum over its steps of x times B, shrunk to the chunk's end."""
    chunks = S // chunk

    @T.prim_func
    def main(
        Bs: T.Tensor((B, S, G, N), dtype), X: T.Tensor((B, S, H, P), dtype),
        Dt: T.Tensor((B, H, chunks, chunk), dtype), Sums: T.Tensor((B, H, chunks, chunk), dtype),
        Out: T.Tensor((B, chunks, H, P, N), dtype),
    ):  # fmt: skip
        with T.Kernel(H, T.ceildiv(P, block_M) * T.ceildiv(N, block_N), B * chunks, threads=threads) as (
            bz,
            bx,
            by,
        ):
            x_s = T.alloc_shared((block_K, block_M), dtype)
            x_t = T.alloc_fragment((block_M, block_K), dtype)
            x_l = T.alloc_fragment((block_K, block_M), dtype)
            b_s = T.alloc_shared((block_K, block_N), dtype)
            dt = T.alloc_shared((block_K,), dtype)
            sums = T.alloc_shared((block_K,), dtype)
            scale = T.alloc_fragment((block_K,), "float32")
            o = T.alloc_fragment((block_M, block_N), "float32")
            batch = by % B
            part = by // B
            m = bx // T.ceildiv(N, block_N)
            n = bx % T.ceildiv(N, block_N)
            end = T.cast(Sums[batch, bz, part, chunk - 1], "float32")
            T.clear(o)
            for k in T.Pipelined(T.ceildiv(chunk, block_K), num_stages=2):
                first = part * chunk + k * block_K
                T.copy(X[batch, first : first + block_K, bz, m * block_M : (m + 1) * block_M], x_s)
                T.copy(Sums[batch, bz, part, k * block_K : (k + 1) * block_K], sums)
                T.copy(Dt[batch, bz, part, k * block_K : (k + 1) * block_K], dt)
                for i in T.Parallel(block_K):
                    scale[i] = T.exp2((end - sums[i]) * LOG2E) * dt[i]
                T.copy(x_s, x_l)
                for i, j in T.Parallel(block_M, block_K):
                    x_t[i, j] = x_s[j, i] * scale[j]
                T.copy(
                    Bs[batch, first : first + block_K, bz // (H // G), n * block_N : (n + 1) * block_N], b_s
                )
                T.gemm(x_t, b_s, o)
            T.copy(o, Out[batch, part, bz, m * block_M : (m + 1) * block_M, n * block_N : (n + 1) * block_N])

    return main


def by_chunks(xp: Any, a: Arrays, p: Mapping[str, Any], name: str) -> Near:
    """(batch, chunk, head, step, ...) of an array over (batch, sequence, head or group, ...)."""
    b, chunk = p["B"], p["chunk"]
    x = a[name]
    x = x.reshape(b, p["S"] // chunk, chunk, *x.shape[2:]).swapaxes(2, 3)
    if x.shape[2] != p["H"]:
        x = x[:, :, xp.arange(p["H"]) // (p["H"] // p["G"])]
    return near(xp, x)


def exact_chunk_state(xp: Any, a: Arrays, p: Mapping[str, Any]) -> Mapping[str, Exact]:
    x, b = by_chunks(xp, a, p, "X"), by_chunks(xp, a, p, "Bs")
    sums, dt = (near(xp, a[name].swapaxes(1, 2)) for name in ("Sums", "Dt"))
    scale = (sums[..., -1:] - sums).exp() * dt
    return {"Out": ((x * scale[..., None]).narrowed(p["dtype"]).T @ b).exact()}


@tilebench.jit
def chunk_scan(B, S, H, G, P, N, chunk, block_M, block_N, block_K, dtype, threads=128):
    """What a chunk puts out: C by the state before it, its own steps by CB, and x through D."""
    chunks = S // chunk

    @T.prim_func
    def main(
        CB: T.Tensor((B, chunks, G, chunk, chunk), dtype), X: T.Tensor((B, S, H, P), dtype),
        Dt: T.Tensor((B, H, chunks, chunk), dtype), Sums: T.Tensor((B, H, chunks, chunk), dtype),
        C: T.Tensor((B, S, G, N), dtype), State: T.Tensor((B, chunks, H, P, N), dtype),
        D: T.Tensor((H,), dtype), Out: T.Tensor((B, S, H, P), dtype),
    ):  # fmt: skip
        with T.Kernel(H, T.ceildiv(chunk, block_M) * T.ceildiv(P, block_N), B * chunks, threads=threads) as (
            bz,
            bx,
            by,
        ):
            o = T.alloc_fragment((block_M, block_N), "float32")
            cb_s = T.alloc_shared((block_M, block_K), dtype)
            cb = T.alloc_fragment((block_M, block_K), dtype)
            sums_k = T.alloc_fragment((block_K,), "float32")
            sums_m = T.alloc_fragment((block_M,), "float32")
            dt = T.alloc_fragment((block_K,), "float32")
            x_s = T.alloc_shared((block_K, block_N), dtype)
            c_s = T.alloc_shared((block_M, N), dtype)
            state_s = T.alloc_shared((block_N, N), dtype)
            x_own = T.alloc_shared((block_M, block_N), dtype)
            batch = by % B
            part = by // B
            m = bx // T.ceildiv(P, block_N)
            n = bx % T.ceildiv(P, block_N)
            first = part * chunk + m * block_M
            T.copy(Sums[batch, bz, part, m * block_M : (m + 1) * block_M], sums_m)
            T.copy(C[batch, first : first + block_M, bz // (H // G), 0:N], c_s)
            T.copy(State[batch, part, bz, n * block_N : (n + 1) * block_N, 0:N], state_s)
            T.clear(o)
            T.gemm(c_s, state_s, o, transpose_B=True)
            for i, j in T.Parallel(block_M, block_N):
                o[i, j] *= T.exp2(sums_m[i] * LOG2E)
            for k in T.Pipelined(T.ceildiv((m + 1) * block_M, block_K), num_stages=2):
                T.copy(
                    CB[
                        batch,
                        part,
                        bz // (H // G),
                        m * block_M : (m + 1) * block_M,
                        k * block_K : (k + 1) * block_K,
                    ],
                    cb_s,
                )
                T.copy(cb_s, cb)
                T.copy(Sums[batch, bz, part, k * block_K : (k + 1) * block_K], sums_k)
                T.copy(Dt[batch, bz, part, k * block_K : (k + 1) * block_K], dt)
                for i, j in T.Parallel(block_M, block_K):
                    shrunk = cb[i, j] * T.exp2((sums_m[i] - sums_k[j]) * LOG2E) * dt[j]
                    cb[i, j] = T.if_then_else(m * block_M + i >= k * block_K + j, shrunk, 0)
                start = part * chunk + k * block_K
                T.copy(X[batch, start : start + block_K, bz, n * block_N : (n + 1) * block_N], x_s)
                T.gemm(cb, x_s, o)
            T.copy(X[batch, first : first + block_M, bz, n * block_N : (n + 1) * block_N], x_own)
            for i, j in T.Parallel(block_M, block_N):
                o[i, j] += x_own[i, j] * D[bz]
            T.copy(o, Out[batch, first : first + block_M, bz, n * block_N : (n + 1) * block_N])

    return main


def exact_chunk_scan(xp: Any, a: Arrays, p: Mapping[str, Any]) -> Mapping[str, Exact]:
    x, c = by_chunks(xp, a, p, "X"), by_chunks(xp, a, p, "C")
    sums, dt = (near(xp, a[name].swapaxes(1, 2)) for name in ("Sums", "Dt"))
    head = xp.arange(p["H"]) // (p["H"] // p["G"])
    step = xp.arange(p["chunk"])
    before = c @ near(xp, a["State"]).T * sums.exp()[..., None]
    past = step[:, None] >= step[None, :]
    shrink = (sums[..., :, None] - sums[..., None, :]).where(past, 0.0).exp() * dt[..., None, :]
    own = (near(xp, a["CB"][:, :, head]) * shrink).where(past, 0.0).narrowed(p["dtype"]) @ x
    out = before + own + (x * a["D"][:, None, None]).narrowed(p["dtype"])
    return {"Out": out.swapaxes(2, 3).reshape(p["B"], p["S"], p["H"], p["P"]).exact()}


def case(
    kernel: Any, oracle: Any, sizes: tuple[int, ...], block: tuple[int, int, int], dtype: str,
    large: bool = False, **options: int,
) -> Case:  # fmt: skip
    b, s, h, g, p, n, chunk = sizes
    chunks = s // chunk

    def arrays(draw: Draw) -> Arrays:
        x = draw.floats(b, s, h, p, dtype=dtype)
        dt = draw.floats(b, h, chunks, chunk, dtype=dtype, low=0)
        steps = -dt.astype(np.float32) / 8
        sums = np.cumsum(steps, axis=-1).astype(numpy_dtype(dtype))
        if kernel is chunk_state:
            out = draw.output(b, chunks, h, p, n, dtype=dtype)
            return {"Bs": draw.floats(b, s, g, n, dtype=dtype), "X": x, "Dt": dt, "Sums": sums, "Out": out}
        return {
            "CB": draw.floats(b, chunks, g, chunk, chunk, dtype=dtype), "X": x, "Dt": dt, "Sums": sums,
            "C": draw.floats(b, s, g, n, dtype=dtype), "State": draw.floats(b, chunks, h, p, n, dtype=dtype),
            "D": draw.floats(h, dtype=dtype), "Out": draw.output(b, s, h, p, dtype=dtype),
        }  # fmt: skip

    names = ("B", "S", "H", "G", "P", "N", "chunk")
    blocks = dict(zip(("block_M", "block_N", "block_K"), block, strict=True))
    parameters = {**dict(zip(names, sizes, strict=True)), **blocks, "dtype": dtype, **options}
    name = f"{kernel.__name__} {b}x{s}x{h}x{p} by {chunk} {dtype}"
    return Case(name, kernel, parameters, arrays, oracle, None, large)


CASES = (
    case(chunk_state, exact_chunk_state, (1, 128, 2, 1, 32, 48, 64), (32, 32, 32), "float16"),
    case(chunk_state, exact_chunk_state, (2, 96, 2, 2, 40, 33, 48), (32, 32, 16), "bfloat16"),
    case(chunk_state, exact_chunk_state, (1, 64, 1, 1, 32, 32, 32), (32, 32, 16), "float32"),
    case(chunk_scan, exact_chunk_scan, (1, 128, 2, 1, 32, 32, 64), (32, 32, 32), "float16"),
    case(chunk_scan, exact_chunk_scan, (2, 96, 2, 2, 48, 16, 48), (16, 32, 16), "bfloat16"),
    case(chunk_scan, exact_chunk_scan, (1, 64, 1, 1, 32, 32, 32), (16, 32, 32), "float32"),
    case(chunk_state, exact_chunk_state, (4, 4096, 32, 1, 64, 128, 256), (64, 128, 64), "float16", True),
    case(chunk_scan, exact_chunk_scan, (4, 4096, 32, 1, 64, 128, 256), (64, 64, 64), "float16", True),
)
