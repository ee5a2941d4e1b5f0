"""Rows: softmax whole and online, its backward, the k largest, sums along one side, and casts to 8 bits by
rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tilebench
import tilebench.language as T
from tests.wellknown.case import Arrays, Case, Draw
from tilebench.library.near import Exact, near

LOG2E = 1.4426950408889634
E4M3_MOST = 448.0


@tilebench.jit
def softmax(M, N, block_M, dtype, threads=128):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            x = T.alloc_fragment((block_M, N), "float32")
            top = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            T.copy(X[bx * block_M, 0], x)
            T.reduce_max(x, top, dim=1)
            for i, j in T.Parallel(block_M, N):
                x[i, j] = T.exp(x[i, j] - top[i])
            T.reduce_sum(x, total, dim=1)
            for i, j in T.Parallel(block_M, N):
                Y[bx * block_M + i, j] = x[i, j] / total[i]

    return main


@tilebench.jit
def online_softmax(M, N, block_M, block_N, dtype, threads=128):
    """One pass for the logarithm of the sum, one that writes."""

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            x = T.alloc_fragment((block_M, block_N), dtype)
            weight = T.alloc_fragment((block_M, block_N), "float32")
            top = T.alloc_fragment((block_M,), dtype)
            lse = T.alloc_fragment((block_M,), "float32")
            part = T.alloc_fragment((block_M,), "float32")
            T.fill(lse, -T.infinity("float32"))
            for k in T.Pipelined(T.ceildiv(N, block_N), num_stages=2):
                for i, j in T.Parallel(block_M, block_N):
                    inside = k * block_N + j < N
                    x[i, j] = T.if_then_else(inside, X[bx * block_M + i, k * block_N + j], -T.infinity(dtype))
                T.reduce_max(x, top, dim=1, clear=True)
                for i, j in T.Parallel(block_M, block_N):
                    weight[i, j] = T.exp2(x[i, j] * LOG2E - top[i] * LOG2E)
                T.reduce_sum(weight, part, dim=1, clear=True)
                for i in T.Parallel(block_M):
                    lse[i] = top[i] * LOG2E + T.log2(T.exp2(lse[i] - top[i] * LOG2E) + part[i])
            for k in T.Pipelined(T.ceildiv(N, block_N), num_stages=2):
                T.copy(X[bx * block_M, k * block_N], x)
                for i, j in T.Parallel(block_M, block_N):
                    weight[i, j] = T.exp2(x[i, j] * LOG2E - lse[i])
                T.copy(weight, Y[bx * block_M, k * block_N])

    return main


def exact_softmax(xp: Any, a: Arrays, p: Mapping[str, Any]) -> Mapping[str, Exact]:
    x = near(xp, a["X"])
    weights = (x - xp.amax(a["X"], -1)[:, None]).exp()
    return {"Y": (weights / weights.sum(1, keepdims=True)).exact()}


@tilebench.jit
def softmax_backward(M, N, block_M, dtype, threads=128):
    @T.prim_func
    def main(Y: T.Tensor((M, N), dtype), dY: T.Tensor((M, N), dtype), dX: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            y = T.alloc_fragment((block_M, N), "float32")
            dy = T.alloc_fragment((block_M, N), "float32")
            work = T.alloc_fragment((block_M, N), "float32")
            along = T.alloc_fragment((block_M,), "float32")
            T.copy(Y[bx * block_M, 0], y)
            T.copy(dY[bx * block_M, 0], dy)
            for i, j in T.Parallel(block_M, N):
                work[i, j] = y[i, j] * dy[i, j]
            T.reduce_sum(work, along, dim=1)
            for i, j in T.Parallel(block_M, N):
                work[i, j] = y[i, j] * (dy[i, j] - along[i])
            T.copy(work, dX[bx * block_M, 0])

    return main


def exact_softmax_backward(xp: Any, a: Arrays, p: Mapping[str, Any]) -> Mapping[str, Exact]:
    y, dy = near(xp, a["Y"]), near(xp, a["dY"])
    return {"dX": (y * (dy - (y * dy).sum(1, keepdims=True))).exact()}


@tilebench.jit
def top_k(M, N, block_M, k, dtype, threads=128):
    """The k largest of each row, largest first; of equal ones the last first."""

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, k), dtype), Where: T.Tensor((M, k), "int32")):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            x = T.alloc_fragment((block_M, N), dtype)
            top = T.alloc_fragment((block_M,), dtype)
            spot = T.alloc_fragment((block_M, N), "int32")
            last = T.alloc_fragment((block_M,), "int32")
            T.copy(X[bx * block_M, 0], x)
            for turn in T.serial(k):
                T.reduce_max(x, top, dim=1, clear=True)
                for i, j in T.Parallel(block_M, N):
                    spot[i, j] = T.if_then_else(x[i, j] == top[i], j, -1)
                T.reduce_max(spot, last, dim=1, clear=True)
                for i, j in T.Parallel(block_M, N):
                    x[i, j] = T.if_then_else(j == last[i], -T.infinity(dtype), x[i, j])
                for i in T.Parallel(block_M):
                    Y[bx * block_M + i, turn] = top[i]
                    Where[bx * block_M + i, turn] = last[i]

    return main


def exact_top_k(xp: Any, a: Arrays, p: Mapping[str, Any]) -> Mapping[str, Exact]:
    x, rows = a["X"] + 0, xp.arange(p["M"])
    values, places = xp.zeros((p["M"], p["k"])), xp.zeros((p["M"], p["k"]), dtype=xp.int64)
    for turn in range(p["k"]):
        spots = xp.where(x == xp.amax(x, -1)[:, None], xp.arange(p["N"])[None, :], -1)
        places[:, turn] = xp.amax(spots, -1)
        values[:, turn] = x[rows, places[:, turn]]
        x[rows, places[:, turn]] = -xp.inf
    return {"Y": Exact(values), "Where": Exact(places)}


@tilebench.jit
def cast_by_rows(M, N, block_M, group, dtype, threads=128):
    """To float8_e4m3fn with one scale for `group` elements of a row."""

    @T.prim_func
    def main(
        X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), "float8_e4m3fn"),
        Scale: T.Tensor((M, T.ceildiv(N, group)), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(M, block_M), T.ceildiv(N, group), threads=threads) as (bx, by):
            x = T.alloc_fragment((block_M, group), "float32")
            narrow = T.alloc_fragment((block_M, group), "float8_e4m3fn")
            most = T.alloc_fragment((block_M,), "float32")
            T.copy(X[bx * block_M, by * group], x)
            T.reduce_absmax(x, most, dim=1)
            for i in T.Parallel(block_M):
                most[i] = T.max(most[i], 1e-4) / E4M3_MOST
                Scale[bx * block_M + i, by] = most[i]
            for i, j in T.Parallel(block_M, group):
                narrow[i, j] = T.clamp(x[i, j] / most[i], -E4M3_MOST, E4M3_MOST)
            T.copy(narrow, Y[bx * block_M, by * group])

    return main


def exact_cast_by_rows(xp: Any, a: Arrays, p: Mapping[str, Any]) -> Mapping[str, Exact]:
    m, n, group = p["M"], p["N"], p["group"]
    groups = -(-n // group)
    wide = xp.zeros((m, groups * group))
    wide[:, :n] = a["X"]
    x = wide.reshape(m, groups, group)
    most = near(xp, xp.clip(xp.amax(abs(x), -1), 1e-4, None)) / E4M3_MOST
    return {
        "Y": (near(xp, x) / most[..., None]).reshape(m, groups * group)[:, :n].exact(),
        "Scale": most.exact(),
    }


def case(
    kernel: Any, oracle: Any, shape: tuple[int, int], dtype: str, arrays: Any, native: Any = None,
    large: bool = False, **options: int,
) -> Case:  # fmt: skip
    parameters = {"M": shape[0], "N": shape[1], "dtype": dtype, **options}
    words = [f"{name}{value}" for name, value in options.items() if name != "threads"]
    name = " ".join([kernel.__name__, "x".join(map(str, shape)), *words, dtype])
    return Case(
        name, kernel, parameters, lambda draw: arrays(draw, shape, dtype, options), oracle, native, large
    )


def of_rows(draw: Draw, shape: Any, dtype: str, options: Any) -> Arrays:
    return {"X": draw.floats(*shape, dtype=dtype, low=-4, high=4), "Y": draw.output(*shape, dtype=dtype)}


def of_backward(draw: Draw, shape: Any, dtype: str, options: Any) -> Arrays:
    y, dy = draw.floats(*shape, dtype=dtype, low=0), draw.floats(*shape, dtype=dtype)
    return {"Y": y, "dY": dy, "dX": draw.output(*shape, dtype=dtype)}


def of_top_k(draw: Draw, shape: Any, dtype: str, options: Any) -> Arrays:
    m, k = shape[0], options["k"]
    # Sixteenths, so that some are equal.
    x = (draw.integers(*shape, low=-200, high=200) / 16).astype(draw.floats(1, dtype=dtype).dtype)
    return {"X": x, "Y": draw.output(m, k, dtype=dtype), "Where": draw.output(m, k, dtype="int32")}


def of_cast(draw: Draw, shape: Any, dtype: str, options: Any) -> Arrays:
    m, n = shape
    out = draw.output(m, n, dtype="float8_e4m3fn")
    scales = draw.output(m, -(-n // options["group"]), dtype="float32")
    return {"X": draw.floats(m, n, dtype=dtype, low=-3, high=3), "Y": out, "Scale": scales}


def torch_softmax(torch: Any, a: Arrays) -> Any:
    return lambda: torch.softmax(a["X"], 1)


def torch_top_k(torch: Any, a: Arrays) -> Any:
    return lambda: torch.topk(a["X"], a["Y"].shape[1], 1)


CASES = (
    case(softmax, exact_softmax, (5, 48), "float32", of_rows, block_M=4),
    case(softmax, exact_softmax, (7, 131), "float16", of_rows, block_M=2),
    case(softmax, exact_softmax, (3, 1000), "bfloat16", of_rows, block_M=1),
    case(online_softmax, exact_softmax, (5, 300), "float32", of_rows, block_M=4, block_N=128),
    case(online_softmax, exact_softmax, (3, 131), "float16", of_rows, block_M=2, block_N=48),
    case(online_softmax, exact_softmax, (3, 512), "bfloat16", of_rows, block_M=2, block_N=256),
    case(softmax_backward, exact_softmax_backward, (5, 48), "float32", of_backward, block_M=4),
    case(softmax_backward, exact_softmax_backward, (5, 131), "bfloat16", of_backward, block_M=2),
    case(top_k, exact_top_k, (5, 128), "float32", of_top_k, block_M=4, k=6),
    case(top_k, exact_top_k, (3, 100), "float16", of_top_k, block_M=2, k=4),
    case(top_k, exact_top_k, (3, 33), "bfloat16", of_top_k, block_M=1, k=8),
    case(cast_by_rows, exact_cast_by_rows, (9, 256), "float32", of_cast, block_M=4, group=128),
    case(cast_by_rows, exact_cast_by_rows, (9, 300), "bfloat16", of_cast, block_M=8, group=128),
    case(cast_by_rows, exact_cast_by_rows, (5, 100), "float16", of_cast, block_M=2, group=48),
    case(softmax, exact_softmax, (4096, 4096), "float16", of_rows, torch_softmax, True,
         block_M=1, threads=256),
    case(online_softmax, exact_softmax, (4096, 8192), "bfloat16", of_rows, torch_softmax, True,
         block_M=1, block_N=2048, threads=256),
    case(softmax_backward, exact_softmax_backward, (4096, 4096), "float16", of_backward, None, True,
         block_M=1, threads=256),
    case(top_k, exact_top_k, (4096, 128), "float32", of_top_k, torch_top_k, True, block_M=16, k=6),
    case(cast_by_rows, exact_cast_by_rows, (8192, 8192), "bfloat16", of_cast, None, True,
         block_M=8, group=128),
)  # fmt: skip
