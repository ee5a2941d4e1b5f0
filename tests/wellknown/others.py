"""Convolution as a product, products of a matrix with a vector, and with weights of four bits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tilebench
import tilebench.language as T
from tests.wellknown.case import Arrays, Case, Draw
from tilebench.library.near import Exact, near


@tilebench.jit
def convolution(
    N, H, W, C, F, size, stride, dilation, pad, block_M, block_N, block_K, dtype, word=False,
    num_stages=2, threads=128,
):  # fmt: skip
    """Rows are places of the output, columns are (kernel row, kernel column, channel)."""
    OH, OW = ((x + 2 * pad - dilation * (size - 1) - 1) // stride + 1 for x in (H, W))

    @T.prim_func
    def main(
        X: T.Tensor((N, H, W, C), dtype), Weight: T.Tensor((size * size * C, F), dtype),
        Y: T.Tensor((N * OH * OW, F), dtype),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(F, block_N), T.ceildiv(N * OH * OW, block_M), threads=threads) as (bx, by):
            x = T.alloc_shared((block_M, block_K), dtype)
            w = T.alloc_shared((block_K, block_N), dtype)
            y = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(y)
            for ko in T.Pipelined(T.ceildiv(size * size * C, block_K), num_stages=num_stages):
                if word:
                    T.im2col(X, x, by, ko, size, stride, dilation, pad)
                else:
                    for i, j in T.Parallel(block_M, block_K):
                        k, m = ko * block_K + j, by * block_M + i
                        row = m % (OH * OW) // OW * stride + k // C // size * dilation - pad
                        column = m % OW * stride + k // C % size * dilation - pad
                        inside = row >= 0 and column >= 0 and row < H and column < W
                        x[i, j] = T.if_then_else(inside, X[m // (OH * OW), row, column, k % C], 0)
                T.copy(Weight[ko * block_K, bx * block_N], w)
                T.gemm(x, w, y)
            T.copy(y, Y[by * block_M, bx * block_N])

    return main


def exact_convolution(xp: Any, a: Arrays, p: Mapping[str, Any]) -> Mapping[str, Exact]:
    n, h, w, c, size, stride = (p[name] for name in ("N", "H", "W", "C", "size", "stride"))
    pad, dilation = p["pad"], p["dilation"]
    oh, ow = ((x + 2 * pad - dilation * (size - 1) - 1) // stride + 1 for x in (h, w))
    padded = xp.zeros((n, h + 2 * pad, w + 2 * pad, c))
    padded[:, pad : pad + h, pad : pad + w] = a["X"]
    columns = xp.zeros((n, oh, ow, size * size, c))
    for tap in range(size * size):
        row, column = tap // size * dilation, tap % size * dilation
        view = padded[
            :, row : row + stride * (oh - 1) + 1 : stride, column : column + stride * (ow - 1) + 1 : stride
        ]
        columns[:, :, :, tap] = view
    return {"Y": (near(xp, columns.reshape(n * oh * ow, size * size * c)) @ a["Weight"]).exact()}


@tilebench.jit
def gemv_by_blocks(N, K, block_N, block_K, dtype, threads=128):
    """Tiles of the matrix, whose products are summed along rows at the end."""

    @T.prim_func
    def main(X: T.Tensor((K,), dtype), A: T.Tensor((N, K), dtype), Y: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), threads=threads) as bx:
            a = T.alloc_shared((block_N, block_K), dtype)
            x = T.alloc_shared((block_K,), dtype)
            product = T.alloc_fragment((block_N, block_K), "float32")
            total = T.alloc_fragment((block_N,), "float32")
            T.clear(product)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[bx * block_N, k * block_K], a)
                T.copy(X[k * block_K], x)
                for i, j in T.Parallel(block_N, block_K):
                    product[i, j] += T.cast(a[i, j], "float32") * x[j]
            T.reduce_sum(product, total, dim=1)
            T.copy(total, Y[bx * block_N])

    return main


@tilebench.jit
def gemv_split(N, K, block_N, block_K, splits, dtype, threads=128):
    """Parts of each sum in blocks of their own, added by atomics."""
    steps = -(-K // (block_K * splits))

    @T.prim_func
    def main(X: T.Tensor((K,), dtype), A: T.Tensor((N, K), dtype), Y: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), splits, threads=threads) as (bx, by):
            product = T.alloc_fragment((block_N, block_K), "float32")
            total = T.alloc_fragment((block_N,), "float32")
            T.clear(product)
            for k in T.serial(steps):
                for i, j in T.Parallel(block_N, block_K):
                    column = (by * steps + k) * block_K + j
                    product[i, j] += T.cast(A[bx * block_N + i, column], "float32") * X[column]
            T.reduce_sum(product, total, dim=1)
            for i in T.Parallel(block_N):
                T.atomic_add(Y[bx * block_N + i], total[i])

    return main


@tilebench.jit
def gemv_by_threads(N, K, block_N, reduce_threads, each, dtype):
    """Written for threads: vectors of their own, and sums that they add to in shared memory."""
    block_K = reduce_threads * each

    @T.prim_func
    def main(X: T.Tensor((K,), dtype), A: T.Tensor((N, K), dtype), Y: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), threads=(reduce_threads, block_N)) as bx:
            tk = T.get_thread_binding(0)
            tn = T.get_thread_binding(1)
            x = T.alloc_local((each,), dtype)
            a = T.alloc_local((each,), dtype)
            total = T.alloc_local((1,), "float32")
            sums = T.alloc_shared((block_N,), "float32")
            if tk == 0:
                sums[tn] = 0
            T.clear(total)
            for k in T.serial(T.ceildiv(K, block_K)):
                for j in T.vectorized(each):
                    x[j] = X[k * block_K + tk * each + j]
                    a[j] = A[bx * block_N + tn, k * block_K + tk * each + j]
                for j in T.serial(each):
                    total[0] += T.cast(x[j], "float32") * T.cast(a[j], "float32")
            T.atomic_add(sums[tn], total[0])
            if tk == 0:
                Y[bx * block_N + tn] = sums[tn]

    return main


def exact_gemv(xp: Any, a: Arrays, p: Mapping[str, Any]) -> Mapping[str, Exact]:
    return {"Y": (near(xp, a["A"]) @ near(xp, a["X"][:, None]))[:, 0].exact()}


@tilebench.jit
def gemm_of_int4(M, N, K, block_M, block_N, block_K, group, dtype, num_stages=2, threads=128):
    """Weights of four bits, two a byte, with a scale for `group` of a row: widened on the way to the
    product."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), "int4"),
        Scale: T.Tensor((N, T.ceildiv(K, group)), dtype), C: T.Tensor((M, N), dtype),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_s = T.alloc_shared((block_M, block_K), dtype)
            B_s = T.alloc_shared((block_N, block_K), "int4")
            B_w = T.alloc_shared((block_N, block_K), dtype)
            C_l = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_l)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, ko * block_K], A_s)
                T.copy(B[bx * block_N, ko * block_K], B_s)
                for i, j in T.Parallel(block_N, block_K):
                    B_w[i, j] = B_s[i, j] * Scale[bx * block_N + i, (ko * block_K + j) // group]
                T.gemm(A_s, B_w, C_l, transpose_B=True)
            T.copy(C_l, C[by * block_M, bx * block_N])

    return main


@tilebench.jit
def gemm_of_nibbles(M, N, K, block_M, block_N, block_K, dtype, num_stages=2, threads=128):
    """Weights of four bits in bytes of the kernel's own packing, taken apart by shifts; 8 stands for zero."""

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K // 2), "uint8"), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_s = T.alloc_shared((block_M, block_K), dtype)
            B_s = T.alloc_shared((block_N, block_K // 2), "uint8")
            B_w = T.alloc_fragment((block_N, block_K), dtype)
            B_t = T.alloc_shared((block_N, block_K), dtype)
            C_l = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_l)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, ko * block_K], A_s)
                T.copy(B[bx * block_N, ko * block_K // 2], B_s)
                for i, j in T.Parallel(block_N, block_K):
                    nibble = (B_s[i, j // 2] >> (4 * (j % 2))) & 15
                    B_w[i, j] = T.cast(T.cast(nibble, "int32") - 8, dtype)
                T.copy(B_w, B_t)
                T.gemm(A_s, B_t, C_l, transpose_B=True)
            T.copy(C_l, C[by * block_M, bx * block_N])

    return main


def exact_int4(xp: Any, a: Arrays, p: Mapping[str, Any]) -> Mapping[str, Exact]:
    if "group" in p:
        weights = near(xp, a["B"] * 1.0) * a["Scale"][:, xp.arange(p["K"]) // p["group"]]
        return {"C": (near(xp, a["A"]) @ weights.narrowed(p["dtype"]).T).exact()}
    nibbles = xp.stack([a["B"] & 15, a["B"] >> 4], -1).reshape(p["N"], p["K"])
    weights = near(xp, nibbles - 8.0)
    return {"C": (near(xp, a["A"]) @ weights.T).exact()}


def convolution_case(
    data: tuple[int, int, int, int, int], taps: tuple[int, int, int, int], block: tuple[int, int, int],
    dtype: str, large: bool = False, **options: Any,
) -> Case:  # fmt: skip
    n, h, w, c, f = data
    size, stride, dilation, pad = taps
    oh, ow = ((x + 2 * pad - dilation * (size - 1) - 1) // stride + 1 for x in (h, w))

    def arrays(draw: Draw) -> Arrays:
        x, weight = draw.floats(n, h, w, c, dtype=dtype), draw.floats(size * size * c, f, dtype=dtype)
        return {"X": x, "Weight": weight, "Y": draw.output(n * oh * ow, f, dtype=dtype)}

    def native(torch: Any, a: Arrays) -> Any:
        x = a["X"].permute(0, 3, 1, 2)
        weight = (
            a["Weight"]
            .reshape(size, size, c, f)
            .permute(3, 2, 0, 1)
            .contiguous(memory_format=torch.channels_last)
        )
        return lambda: torch.nn.functional.conv2d(x, weight, None, stride, pad, dilation)

    parameters = {
        **dict(zip(("N", "H", "W", "C", "F"), data, strict=True)),
        **dict(zip(("size", "stride", "dilation", "pad"), taps, strict=True)),
        **dict(zip(("block_M", "block_N", "block_K"), block, strict=True)), "dtype": dtype,
        **options,
    }  # fmt: skip
    kind = "convolution_im2col" if options.get("word") else "convolution"
    name = f"{kind} {'x'.join(map(str, data))} by {size}, {stride}, {dilation}, {pad} {dtype}"
    return Case(name, convolution, parameters, arrays, exact_convolution, native, large)


def gemv_case(kernel: Any, n: int, k: int, dtype: str, large: bool = False, **options: int) -> Case:
    def arrays(draw: Draw) -> Arrays:
        split = kernel is gemv_split
        y = draw.floats(n, dtype="float32", low=0, high=0) if split else draw.output(n, dtype=dtype)
        return {"X": draw.floats(k, dtype=dtype), "A": draw.floats(n, k, dtype=dtype), "Y": y}

    def native(torch: Any, a: Arrays) -> Any:
        return lambda: a["A"] @ a["X"]

    parameters = {"N": n, "K": k, "dtype": dtype, **options}
    name = f"{kernel.__name__} {n}x{k} {dtype}"
    return Case(name, kernel, parameters, arrays, exact_gemv, native, large)


def int4_case(
    kernel: Any,
    shape: tuple[int, int, int],
    block: tuple[int, int, int],
    dtype: str,
    large: bool = False,
    **options: int,
) -> Case:
    m, n, k = shape

    def arrays(draw: Draw) -> Arrays:
        a, c = draw.floats(m, k, dtype=dtype), draw.output(m, n, dtype=dtype)
        if "group" not in options:
            return {"A": a, "B": draw.integers(n, k // 2, dtype="uint8", high=256), "C": c}
        scale = draw.floats(n, -(-k // options["group"]), dtype=dtype)
        return {"A": a, "B": draw.integers(n, k, dtype="int4", low=-8), "Scale": scale, "C": c}

    parameters = {
        **dict(zip(("M", "N", "K"), shape, strict=True)),
        **dict(zip(("block_M", "block_N", "block_K"), block, strict=True)), "dtype": dtype, **options,
    }  # fmt: skip
    name = f"{kernel.__name__} {m}x{n}x{k} {dtype}"
    return Case(name, kernel, parameters, arrays, exact_int4, None, large)


CASES = (
    convolution_case((2, 8, 9, 16, 32), (3, 1, 1, 1), (32, 32, 32), "float16"),
    convolution_case((1, 9, 7, 5, 19), (3, 2, 1, 1), (16, 32, 16), "bfloat16"),
    convolution_case((1, 9, 9, 8, 16), (3, 1, 2, 2), (32, 16, 16), "float32"),
    convolution_case((2, 6, 6, 16, 16), (1, 1, 1, 0), (32, 16, 16), "float16"),
    convolution_case((2, 8, 9, 16, 32), (3, 1, 1, 1), (32, 32, 32), "float16", word=True),
    convolution_case((1, 9, 7, 5, 19), (3, 2, 2, 2), (16, 32, 16), "float32", word=True),
    gemv_case(gemv_by_blocks, 70, 200, "float16", block_N=16, block_K=64),
    gemv_case(gemv_by_blocks, 33, 100, "bfloat16", block_N=8, block_K=128),
    gemv_case(gemv_by_blocks, 5, 7, "float32", block_N=4, block_K=32),
    gemv_case(gemv_split, 70, 500, "float16", block_N=8, block_K=64, splits=3),
    gemv_case(gemv_split, 33, 100, "float32", block_N=16, block_K=16, splits=2),
    gemv_case(gemv_by_threads, 70, 200, "float16", block_N=4, reduce_threads=16, each=8),
    gemv_case(gemv_by_threads, 33, 101, "float32", block_N=2, reduce_threads=32, each=4),
    int4_case(gemm_of_int4, (33, 70, 128), (32, 32, 32), "float16", group=32),
    int4_case(gemm_of_int4, (17, 40, 90), (16, 32, 32), "bfloat16", group=16),
    int4_case(gemm_of_nibbles, (33, 70, 128), (32, 32, 32), "float16"),
    int4_case(gemm_of_nibbles, (17, 40, 90), (16, 32, 32), "bfloat16", num_stages=3),
    convolution_case((32, 64, 64, 128, 128), (3, 1, 1, 1), (128, 128, 32), "float16", True),
    gemv_case(gemv_by_blocks, 8192, 8192, "float16", True, block_N=4, block_K=1024, threads=128),
    gemv_case(gemv_split, 8192, 8192, "float16", True, block_N=4, block_K=1024, splits=4, threads=128),
    gemv_case(gemv_by_threads, 8192, 8192, "float16", True, block_N=4, reduce_threads=32, each=8),
    int4_case(gemm_of_int4, (256, 4096, 4096), (128, 128, 32), "float16", True, group=128),
    int4_case(gemm_of_nibbles, (256, 4096, 4096), (128, 128, 32), "float16", True),
)
