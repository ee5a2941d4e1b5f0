"""Products by blocks that stay: each takes tile after tile, or an even share of all steps along k."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tilebench
import tilebench.language as T
from tests.wellknown.case import Arrays, Case, Draw, sum_error
from tilebench.library.near import Exact


@tilebench.jit
def persistent(M, N, K, block_M, block_N, block_K, workers, by_hand, dtype, num_stages=2):
    tiles_m, tiles_n = T.ceildiv(M, block_M), T.ceildiv(N, block_N)

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(workers, threads=128) as worker:
            A_s = T.alloc_shared((block_M, block_K), dtype)
            B_s = T.alloc_shared((block_K, block_N), dtype)
            C_l = T.alloc_fragment((block_M, block_N), "float32")
            if by_hand:
                sched = T.PersistentTileScheduler(tiles_m, tiles_n, swizzle_size=2)
                sched.init(worker)
                while sched.valid():
                    row, column = sched.m_idx * block_M, sched.n_idx * block_N
                    T.clear(C_l)
                    for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                        T.copy(A[row, ko * block_K], A_s)
                        T.copy(B[ko * block_K, column], B_s)
                        T.gemm(A_s, B_s, C_l)
                    T.copy(C_l, C[row, column])
                    sched.next_tile()
            else:
                for bm, bn in T.Persistent([tiles_m, tiles_n], workers, worker, group_size=2):
                    T.clear(C_l)
                    for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                        T.copy(A[bm * block_M, ko * block_K], A_s)
                        T.copy(B[ko * block_K, bn * block_N], B_s)
                        T.gemm(A_s, B_s, C_l)
                    T.copy(C_l, C[bm * block_M, bn * block_N])

    return main


@tilebench.jit
def stream_k(M, N, K, block_M, block_N, block_K, workers, dtype, num_stages=2):
    """All steps of all tiles in a row, cut evenly: a tile that two workers share is added up in memory."""
    across, steps = T.ceildiv(N, block_N), T.ceildiv(K, block_K)
    total = T.ceildiv(M, block_M) * across * steps
    share, more = total // workers, total % workers

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(workers, threads=64) as worker:
            A_s = T.alloc_shared((block_M, block_K), dtype)
            B_s = T.alloc_shared((block_N, block_K), dtype)
            C_l = T.alloc_fragment((block_M, block_N), "float32")
            now = T.alloc_local((1,), "int32")
            now[0] = worker * share + T.min(worker, more)
            last = (worker + 1) * share + T.min(worker + 1, more)
            while now[0] < last:
                first = now[0] % steps
                count = T.min(steps - first, last - now[0])
                row, column = now[0] // steps // across * block_M, now[0] // steps % across * block_N
                T.clear(C_l)
                for k in T.Pipelined(count, num_stages=num_stages):
                    T.copy(A[row, (first + k) * block_K], A_s)
                    T.copy(B[column, (first + k) * block_K], B_s)
                    T.gemm(A_s, B_s, C_l, transpose_B=True)
                if count == steps:
                    T.copy(C_l, C[row, column])
                else:
                    for i, j in T.Parallel(block_M, block_N):
                        T.atomic_add(C[row + i, column + j], C_l[i, j])
                now[0] = now[0] + count

    return main


def exact_persistent(xp: Any, a: Arrays, p: Mapping[str, Any]) -> Mapping[str, Exact]:
    return {"C": Exact(a["A"] @ a["B"], sum_error(p["K"], abs(a["A"]) @ abs(a["B"])))}


def exact_stream_k(xp: Any, a: Arrays, p: Mapping[str, Any]) -> Mapping[str, Exact]:
    right = a["B"].swapaxes(0, 1)
    # One more rounding for each worker that adds to a tile.
    terms = p["K"] + p["workers"]
    return {"C": Exact(a["A"] @ right, sum_error(terms, abs(a["A"]) @ abs(right)))}


def case(
    name: str, kernel: Any, shape: tuple[int, int, int], block: tuple[int, int, int], workers: int,
    dtype: str = "float16", **options: Any,
) -> Case:  # fmt: skip
    (m, n, k), summed = shape, kernel is stream_k

    def arrays(draw: Draw) -> Arrays:
        out = draw.output(m, n, dtype="float32" if summed else dtype)
        if summed:
            out[:] = 0
        right = draw.floats(n, k, dtype=dtype) if summed else draw.floats(k, n, dtype=dtype)
        return {"A": draw.floats(m, k, dtype=dtype), "B": right, "C": out}

    parameters = {
        "M": m, "N": n, "K": k, "block_M": block[0], "block_N": block[1], "block_K": block[2],
        "workers": workers, "dtype": dtype, **options,
    }  # fmt: skip
    return Case(name, kernel, parameters, arrays, exact_stream_k if summed else exact_persistent)


CASES = (
    case("gemm persistent", persistent, (96, 160, 64), (32, 32, 32), 4, by_hand=False),
    case("gemm persistent odd", persistent, (70, 100, 50), (32, 48, 16), 5, "float32", by_hand=False),
    case("gemm persistent few tiles", persistent, (30, 20, 40), (32, 32, 16), 3, "bfloat16", by_hand=False),
    case("gemm persistent by a scheduler", persistent, (70, 100, 50), (32, 32, 16), 4, by_hand=True),
    case("gemm stream-K", stream_k, (64, 96, 160), (32, 32, 32), 4),
    case("gemm stream-K odd", stream_k, (50, 70, 90), (32, 32, 16), 7, "bfloat16"),
    case("gemm stream-K short", stream_k, (20, 20, 40), (32, 32, 32), 3, "float32"),
)
