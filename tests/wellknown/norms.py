"""RMSNorm and LayerNorm, forward and backward: rows that a block holds whole, sums of columns by atomics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tilebench
import tilebench.language as T
from tests.wellknown.case import Arrays, Case, Draw
from tilebench.library.near import Exact, Near, near

EPS = 1e-5


@tilebench.jit
def rms_norm(M, N, block_M, dtype, threads=128):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), G: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            x = T.alloc_fragment((block_M, N), "float32")
            square = T.alloc_fragment((block_M, N), "float32")
            rstd = T.alloc_fragment((block_M,), "float32")
            T.copy(X[bx * block_M, 0], x)
            for i, j in T.Parallel(block_M, N):
                square[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(square, rstd, dim=1)
            for i in T.Parallel(block_M):
                rstd[i] = T.rsqrt(rstd[i] / N + EPS)
            for i, j in T.Parallel(block_M, N):
                x[i, j] = x[i, j] * rstd[i] * G[j]
            T.copy(x, Y[bx * block_M, 0])

    return main


@tilebench.jit
def rms_norm_in_parts(M, N, block_M, block_N, dtype, threads=128):
    """Rows too long for a block: read twice, in parts."""

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), G: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            part = T.alloc_shared((block_M, block_N), dtype)
            square = T.alloc_fragment((block_M, block_N), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            T.clear(total)
            for k in T.Pipelined(T.ceildiv(N, block_N), num_stages=2):
                T.copy(X[bx * block_M, k * block_N], part)
                for i, j in T.Parallel(block_M, block_N):
                    square[i, j] = T.cast(part[i, j], "float32") * part[i, j]
                T.reduce_sum(square, total, dim=1, clear=False)
            for i in T.Parallel(block_M):
                total[i] = T.rsqrt(total[i] / N + EPS)
            for k in T.serial(T.ceildiv(N, block_N)):
                T.copy(X[bx * block_M, k * block_N], part)
                for i, j in T.Parallel(block_M, block_N):
                    part[i, j] = part[i, j] * total[i] * G[k * block_N + j]
                T.copy(part, Y[bx * block_M, k * block_N])

    return main


def rstd_of(x: Near) -> Near:
    return ((x * x).mean(1, keepdims=True) + EPS).rsqrt()


def exact_rms_norm(xp: Any, a: Arrays, p: Mapping[str, Any]) -> Mapping[str, Exact]:
    x = near(xp, a["X"])
    return {"Y": (x * rstd_of(x) * a["G"]).exact()}


@tilebench.jit
def rms_norm_backward(M, N, block_M, dtype, threads=128):
    @T.prim_func
    def main(
        X: T.Tensor((M, N), dtype), G: T.Tensor((N,), dtype), dY: T.Tensor((M, N), dtype),
        dX: T.Tensor((M, N), dtype), dG: T.Tensor((N,), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            x = T.alloc_fragment((block_M, N), "float32")
            dy = T.alloc_fragment((block_M, N), "float32")
            work = T.alloc_fragment((block_M, N), "float32")
            rstd = T.alloc_fragment((block_M,), "float32")
            slope = T.alloc_fragment((block_M,), "float32")
            column = T.alloc_fragment((N,), "float32")
            T.copy(X[bx * block_M, 0], x)
            T.copy(dY[bx * block_M, 0], dy)
            for i, j in T.Parallel(block_M, N):
                work[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(work, rstd, dim=1)
            for i in T.Parallel(block_M):
                rstd[i] = T.rsqrt(rstd[i] / N + EPS)
            for i, j in T.Parallel(block_M, N):
                work[i, j] = dy[i, j] * x[i, j] * rstd[i]
            T.reduce_sum(work, column, dim=0)
            for j in T.Parallel(N):
                T.atomic_add(dG[j], column[j])
            for i, j in T.Parallel(block_M, N):
                work[i, j] = work[i, j] * G[j]
            T.reduce_sum(work, slope, dim=1)
            for i, j in T.Parallel(block_M, N):
                dx = dy[i, j] * G[j] - x[i, j] * rstd[i] * (slope[i] / N)
                dX[bx * block_M + i, j] = dx * rstd[i]

    return main


def exact_rms_norm_backward(xp: Any, a: Arrays, p: Mapping[str, Any]) -> Mapping[str, Exact]:
    x, dy = near(xp, a["X"]), near(xp, a["dY"])
    rstd = rstd_of(x)
    hat, slope = x * rstd, dy * a["G"]
    dx = (slope - hat * (slope * hat).mean(1, keepdims=True)) * rstd
    return {"dX": dx.exact(), "dG": (dy * hat).sum(0).exact()}


@tilebench.jit
def layer_norm(M, N, block_M, dtype, threads=128):
    @T.prim_func
    def main(
        X: T.Tensor((M, N), dtype), G: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype),
        Y: T.Tensor((M, N), dtype), Mean: T.Tensor((M,), "float32"), Rstd: T.Tensor((M,), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            x = T.alloc_fragment((block_M, N), "float32")
            square = T.alloc_fragment((block_M, N), "float32")
            mean = T.alloc_fragment((block_M,), "float32")
            rstd = T.alloc_fragment((block_M,), "float32")
            T.copy(X[bx * block_M, 0], x)
            T.reduce_sum(x, mean, dim=1)
            for i in T.Parallel(block_M):
                mean[i] /= N
            for i, j in T.Parallel(block_M, N):
                x[i, j] -= mean[i]
                square[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(square, rstd, dim=1)
            for i in T.Parallel(block_M):
                rstd[i] = T.rsqrt(rstd[i] / N + EPS)
            for i, j in T.Parallel(block_M, N):
                Y[bx * block_M + i, j] = x[i, j] * rstd[i] * G[j] + B[j]
            T.copy(mean, Mean[bx * block_M])
            T.copy(rstd, Rstd[bx * block_M])

    return main


def exact_layer_norm(xp: Any, a: Arrays, p: Mapping[str, Any]) -> Mapping[str, Exact]:
    x = near(xp, a["X"])
    mean = x.mean(1, keepdims=True)
    rstd = rstd_of(x - mean)
    return {
        "Y": ((x - mean) * rstd * a["G"] + a["B"]).exact(),
        "Mean": mean[:, 0].exact(),
        "Rstd": rstd[:, 0].exact(),
    }


@tilebench.jit
def layer_norm_backward(M, N, block_M, dtype, threads=128):
    @T.prim_func
    def main(
        X: T.Tensor((M, N), dtype), G: T.Tensor((N,), dtype), dY: T.Tensor((M, N), dtype),
        Mean: T.Tensor((M,), "float32"), Rstd: T.Tensor((M,), "float32"),
        dX: T.Tensor((M, N), dtype), dG: T.Tensor((N,), "float32"), dB: T.Tensor((N,), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            hat = T.alloc_fragment((block_M, N), "float32")
            dy = T.alloc_fragment((block_M, N), "float32")
            work = T.alloc_fragment((block_M, N), "float32")
            along = T.alloc_fragment((block_M,), "float32")
            level = T.alloc_fragment((block_M,), "float32")
            column = T.alloc_fragment((N,), "float32")
            T.copy(X[bx * block_M, 0], hat)
            T.copy(dY[bx * block_M, 0], dy)
            for i, j in T.Parallel(block_M, N):
                hat[i, j] = (hat[i, j] - Mean[bx * block_M + i]) * Rstd[bx * block_M + i]
                work[i, j] = dy[i, j] * hat[i, j]
            T.reduce_sum(work, column, dim=0)
            for j in T.Parallel(N):
                T.atomic_add(dG[j], column[j])
            T.reduce_sum(dy, column, dim=0)
            for j in T.Parallel(N):
                T.atomic_add(dB[j], column[j])
            for i, j in T.Parallel(block_M, N):
                work[i, j] *= G[j]
                dy[i, j] *= G[j]
            T.reduce_sum(work, along, dim=1)
            T.reduce_sum(dy, level, dim=1)
            for i, j in T.Parallel(block_M, N):
                dx = dy[i, j] - (hat[i, j] * along[i] + level[i]) / N
                dX[bx * block_M + i, j] = dx * Rstd[bx * block_M + i]

    return main


def exact_layer_norm_backward(xp: Any, a: Arrays, p: Mapping[str, Any]) -> Mapping[str, Exact]:
    x, dy = near(xp, a["X"]), near(xp, a["dY"])
    rstd = a["Rstd"][:, None]
    hat, slope = (x - a["Mean"][:, None]) * rstd, dy * a["G"]
    dx = slope - hat * (slope * hat).mean(1, keepdims=True) - slope.mean(1, keepdims=True)
    return {"dX": (dx * rstd).exact(), "dG": (dy * hat).sum(0).exact(), "dB": dy.sum(0).exact()}


def forward(
    kernel: Any, oracle: Any, shape: tuple[int, int], dtype: str, large: bool = False, **blocks: int
) -> Case:
    m, n = shape
    layer = kernel is layer_norm

    def arrays(draw: Draw) -> Arrays:
        inputs = {"X": draw.floats(m, n, dtype=dtype, low=-2, high=3), "G": draw.floats(n, dtype=dtype)}
        if layer:
            inputs["B"] = draw.floats(n, dtype=dtype)
        outputs = {"Y": draw.output(m, n, dtype=dtype)}
        if layer:
            outputs |= {"Mean": draw.output(m, dtype="float32"), "Rstd": draw.output(m, dtype="float32")}
        return inputs | outputs

    def native(torch: Any, a: Arrays) -> Any:
        if layer:
            return lambda: torch.nn.functional.layer_norm(a["X"], (n,), a["G"], a["B"], EPS)
        return lambda: torch.nn.functional.rms_norm(a["X"], (n,), a["G"], EPS)

    name = f"{kernel.__name__} {m}x{n} {dtype}"
    parameters = {"M": m, "N": n, "dtype": dtype, **blocks}
    return Case(name, kernel, parameters, arrays, oracle, native, large)


def backward(
    kernel: Any, oracle: Any, shape: tuple[int, int], dtype: str, large: bool = False, **blocks: int
) -> Case:
    m, n = shape
    layer = kernel is layer_norm_backward

    def arrays(draw: Draw) -> Arrays:
        x, g, dy = (draw.floats(*s, dtype=dtype) for s in ((m, n), (n,), (m, n)))
        out = {"dX": draw.output(m, n, dtype=dtype), "dG": draw.floats(n, dtype="float32", low=0, high=0)}
        if not layer:
            return {"X": x, "G": g, "dY": dy, **out}
        rows = {name: draw.floats(m, dtype="float32", low=0.5, high=2) for name in ("Mean", "Rstd")}
        return {"X": x, "G": g, "dY": dy, **rows, **out, "dB": 0 * out["dG"]}

    name = f"{kernel.__name__} {m}x{n} {dtype}"
    parameters = {"M": m, "N": n, "dtype": dtype, **blocks}
    return Case(name, kernel, parameters, arrays, oracle, None, large)


SHAPES = (
    ((5, 48), "float32", 4),
    ((7, 100), "float16", 2),
    ((3, 257), "bfloat16", 2),
    ((16, 256), "float16", 4),
)
CASES = (
    *(forward(rms_norm, exact_rms_norm, s, d, block_M=b) for s, d, b in SHAPES),
    *(forward(layer_norm, exact_layer_norm, s, d, block_M=b) for s, d, b in SHAPES),
    *(backward(rms_norm_backward, exact_rms_norm_backward, s, d, block_M=b) for s, d, b in SHAPES),
    *(backward(layer_norm_backward, exact_layer_norm_backward, s, d, block_M=b) for s, d, b in SHAPES),
    forward(rms_norm_in_parts, exact_rms_norm, (5, 300), "float16", block_M=4, block_N=128),
    forward(rms_norm_in_parts, exact_rms_norm, (5, 301), "float32", block_M=2, block_N=96),
    forward(rms_norm, exact_rms_norm, (4096, 8192), "float16", True, block_M=1, threads=512),
    forward(layer_norm, exact_layer_norm, (4096, 8192), "float16", True, block_M=1, threads=512),
    backward(
        rms_norm_backward, exact_rms_norm_backward, (4096, 4096), "float16", True, block_M=4, threads=512
    ),
    backward(
        layer_norm_backward, exact_layer_norm_backward, (4096, 4096), "float16", True, block_M=4, threads=512
    ),
)
