"""Several launches in one call, with memory of their own between them: split sums and split decoding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tilebench
import tilebench.language as T
from tests.wellknown.attention import LOG2E
from tests.wellknown.case import Arrays, Case, Draw
from tests.wellknown.decode import LEAST, attended
from tilebench.library.near import Exact, near


@tilebench.jit
def split_k_in_one(M, N, K, block_M, block_N, block_K, splits, dtype, threads=128):
    """Parts of the sum into a workspace, and a second launch that adds them in order."""
    steps = -(-K // (block_K * splits))

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        parts = T.alloc_global((splits, M, N), "float32")
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), splits, threads=threads) as (bx, by, bz):
            A_s = T.alloc_shared((block_M, block_K), dtype)
            B_s = T.alloc_shared((block_K, block_N), dtype)
            C_l = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_l)
            for ko in T.Pipelined(steps, num_stages=2):
                T.copy(A[by * block_M, (bz * steps + ko) * block_K], A_s)
                T.copy(B[(bz * steps + ko) * block_K, bx * block_N], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, parts[bz, by * block_M, bx * block_N])
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            total = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(total)
            for part in T.serial(splits):
                for i, j in T.Parallel(block_M, block_N):
                    total[i, j] += parts[part, by * block_M + i, bx * block_N + j]
            T.copy(total, C[by * block_M, bx * block_N])

    return main


def exact_split_k(xp: Any, a: Arrays, p: Mapping[str, Any]) -> Mapping[str, Exact]:
    return {"C": (near(xp, a["A"]) @ a["B"]).exact()}


@tilebench.jit
def decode(B, H, S, D, splits, block_N, dtype, threads=128):
    """One query a head: blocks of heads over parts of the keys, then the parts by their sums."""
    scale = D**-0.5 * LOG2E
    rows = max(16, H)
    steps = -(-S // (block_N * splits))

    @T.prim_func
    def main(
        Q: T.Tensor((B, H, D), dtype), K: T.Tensor((B, S, D), dtype), V: T.Tensor((B, S, D), dtype),
        Out: T.Tensor((B, H, D), dtype),
    ):  # fmt: skip
        parts = T.alloc_global((B, splits, rows, D), "float32")
        sums = T.alloc_global((B, splits, rows), "float32")
        with T.Kernel(splits, B, threads=threads) as (bx, by):
            Q_s = T.alloc_shared((rows, D), dtype)
            K_s = T.alloc_shared((block_N, D), dtype)
            V_s = T.alloc_shared((block_N, D), dtype)
            s = T.alloc_fragment((rows, block_N), "float32")
            p = T.alloc_fragment((rows, block_N), dtype)
            o = T.alloc_fragment((rows, D), "float32")
            top = T.alloc_fragment((rows,), "float32")
            before = T.alloc_fragment((rows,), "float32")
            part = T.alloc_fragment((rows,), "float32")
            total = T.alloc_fragment((rows,), "float32")
            T.copy(Q[by, 0:rows, :], Q_s)
            T.clear(o)
            T.clear(total)
            T.fill(top, LEAST)
            for k in T.Pipelined(steps, num_stages=2):
                first = (bx * steps + k) * block_N
                T.copy(K[by, first : first + block_N, :], K_s)
                T.copy(V[by, first : first + block_N, :], V_s)
                T.gemm(Q_s, K_s, s, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(rows, block_N):
                    s[i, j] = T.if_then_else(first + j < S, s[i, j] * scale, LEAST)
                T.copy(top, before)
                T.reduce_max(s, top, dim=1, clear=False)
                for i, j in T.Parallel(rows, block_N):
                    s[i, j] = T.exp2(s[i, j] - top[i])
                T.reduce_sum(s, part, dim=1)
                for i in T.Parallel(rows):
                    before[i] = T.exp2(before[i] - top[i])
                    total[i] = total[i] * before[i] + part[i]
                for i, j in T.Parallel(rows, D):
                    o[i, j] *= before[i]
                T.copy(s, p)
                T.gemm(p, V_s, o)
            for i, j in T.Parallel(rows, D):
                parts[by, bx, i, j] = o[i, j] / total[i]
            for i in T.Parallel(rows):
                sums[by, bx, i] = T.log2(total[i]) + top[i]
        with T.Kernel(H, B, threads=32) as (bx, by):
            row = T.alloc_fragment((D,), "float32")
            most = T.alloc_var("float32")
            whole = T.alloc_var("float32")
            most = LEAST
            for k in T.serial(splits):
                most = T.max(most, sums[by, k, bx])
            whole = 0.0
            T.clear(row)
            for k in T.serial(splits):
                whole += T.exp2(sums[by, k, bx] - most)
                for i in T.Parallel(D):
                    row[i] += parts[by, k, bx, i] * T.exp2(sums[by, k, bx] - most)
            for i in T.Parallel(D):
                Out[by, bx, i] = row[i] / whole

    return main


def exact_decode(xp: Any, a: Arrays, p: Mapping[str, Any]) -> Mapping[str, Exact]:
    scores = near(xp, a["Q"]) @ near(xp, a["K"]).T * p["D"] ** -0.5
    out, _ = attended(xp, scores, scores.value == scores.value, near(xp, a["V"]), p["dtype"])
    return {"Out": out.exact()}


def split_case(
    shape: tuple[int, int, int], block: tuple[int, int, int], splits: int, dtype: str, large: bool = False
) -> Case:
    m, n, k = shape

    def arrays(draw: Draw) -> Arrays:
        a, b = draw.floats(m, k, dtype=dtype), draw.floats(k, n, dtype=dtype)
        return {"A": a, "B": b, "C": draw.output(m, n, dtype=dtype)}

    def native(torch: Any, a: Arrays) -> Any:
        return lambda: a["A"] @ a["B"]

    blocks = dict(zip(("block_M", "block_N", "block_K"), block, strict=True))
    parameters = {"M": m, "N": n, "K": k, **blocks, "splits": splits, "dtype": dtype}
    name = f"split_k_in_one {m}x{n}x{k} in {splits} {dtype}"
    return Case(name, split_k_in_one, parameters, arrays, exact_split_k, native, large)


def decode_case(
    shape: tuple[int, int, int, int], splits: int, block_N: int, dtype: str, large: bool = False
) -> Case:
    b, h, s, d = shape

    def arrays(draw: Draw) -> Arrays:
        q, k, v = (draw.floats(*each, dtype=dtype) for each in ((b, h, d), (b, s, d), (b, s, d)))
        return {"Q": q, "K": k, "V": v, "Out": draw.output(b, h, d, dtype=dtype)}

    parameters = {"B": b, "H": h, "S": s, "D": d, "splits": splits, "block_N": block_N, "dtype": dtype}
    name = f"decode {h} heads {s}x{d} in {splits} {dtype}"
    return Case(name, decode, parameters, arrays, exact_decode, None, large)


CASES = (
    split_case((50, 70, 300), (32, 32, 32), 3, "float16"),
    split_case((17, 19, 100), (16, 32, 16), 4, "float32"),
    decode_case((2, 5, 150, 32), 3, 16, "float16"),
    decode_case((1, 20, 70, 48), 2, 32, "bfloat16"),
    split_case((256, 256, 16384), (128, 128, 32), 32, "float16", True),
    decode_case((16, 16, 8192, 128), 16, 64, "float16", True),
)
