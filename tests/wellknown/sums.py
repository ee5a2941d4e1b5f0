"""Products whose work is shared out otherwise: split sums, sparse blocks, groups of rows, and vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import tilebench
import tilebench.language as T
from tests.wellknown.case import Arrays, Case, Draw
from tilebench.library.near import Exact, near


@tilebench.jit
def split_k(M, N, K, block_M, block_N, block_K, splits, dtype, out="float32", threads=128):
    """Parts of the sum in blocks of their own, added up by atomics."""
    steps = -(-K // (block_K * splits))

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), out)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), splits, threads=threads) as (bx, by, bz):
            A_s = T.alloc_shared((block_M, block_K), dtype)
            B_s = T.alloc_shared((block_K, block_N), dtype)
            C_l = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_l)
            for ko in T.Pipelined(steps, num_stages=2):
                T.copy(A[by * block_M, (bz * steps + ko) * block_K], A_s)
                T.copy(B[(bz * steps + ko) * block_K, bx * block_N], B_s)
                T.gemm(A_s, B_s, C_l)
            if out == "float32":
                T.atomic_add(C[by * block_M, bx * block_N], C_l)
            else:
                for i, j in T.Parallel(block_M, block_N):
                    T.atomic_add(C[by * block_M + i, bx * block_N + j], T.cast(C_l[i, j], out))

    return main


def exact_product(xp: Any, a: Arrays, p: Mapping[str, Any]) -> Mapping[str, Exact]:
    product = near(xp, a["A"]) @ a["B"]
    if "splits" not in p:
        return {"C": product.exact()}
    # A part and each sum up to it is rounded to the output; their sizes add up to no more than the terms'.
    size = p["splits"] * (abs(a["A"]) @ abs(a["B"]))
    return {"C": Exact(product.value, product.error + 2 * (near(xp, size).narrowed(p["out"]).error))}


@tilebench.jit
def split_k_parts(M, N, K, block_M, block_N, block_K, splits, dtype, threads=128):
    """Parts of the sum into a workspace; `sum_parts` adds them in order."""
    steps = -(-K // (block_K * splits))

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), P: T.Tensor((splits, M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), splits, threads=threads) as (bx, by, bz):
            A_s = T.alloc_shared((block_M, block_K), dtype)
            B_s = T.alloc_shared((block_K, block_N), dtype)
            C_l = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_l)
            for ko in T.Pipelined(steps, num_stages=2):
                T.copy(A[by * block_M, (bz * steps + ko) * block_K], A_s)
                T.copy(B[(bz * steps + ko) * block_K, bx * block_N], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, P[bz, by * block_M, bx * block_N])

    return main


def exact_parts(xp: Any, a: Arrays, p: Mapping[str, Any]) -> Mapping[str, Exact]:
    m, n, splits = p["M"], p["N"], p["splits"]
    length = -(-p["K"] // (p["block_K"] * splits)) * p["block_K"]
    value, error = xp.zeros((splits, m, n)), xp.zeros((splits, m, n))
    for part in range(splits):
        of = slice(part * length, (part + 1) * length)
        product = near(xp, a["A"][:, of]) @ a["B"][of]
        value[part], error[part] = product.value, product.error
    return {"P": Exact(value, error)}


@tilebench.jit
def sum_parts(M, N, splits, block_M, block_N, dtype, threads=128):
    @T.prim_func
    def main(P: T.Tensor((splits, M, N), "float32"), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            total = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(total)
            for part in range(splits):
                for i, j in T.Parallel(block_M, block_N):
                    total[i, j] += P[part, by * block_M + i, bx * block_N + j]
            T.copy(total, C[by * block_M, bx * block_N])

    return main


def exact_sum_parts(xp: Any, a: Arrays, p: Mapping[str, Any]) -> Mapping[str, Exact]:
    return {"C": near(xp, a["P"]).sum(0).exact()}


@tilebench.jit
def block_sparse(M, N, K, block_M, block_N, block_K, dtype, num_stages=2, threads=128):
    rows, columns, steps = -(-M // block_M), -(-N // block_N), -(-K // block_K)

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype),
        There: T.Tensor((rows, columns, steps), "bool"), C: T.Tensor((M, N), dtype),
    ):  # fmt: skip
        with T.Kernel(columns, rows, threads=threads) as (bx, by):
            A_s = T.alloc_shared((block_M, block_K), dtype)
            B_s = T.alloc_shared((block_K, block_N), dtype)
            C_l = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_l)
            for ko in T.Pipelined(steps, num_stages=num_stages):
                if There[by, bx, ko]:
                    T.copy(A[by * block_M, ko * block_K], A_s)
                    T.copy(B[ko * block_K, bx * block_N], B_s)
                    T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C[by * block_M, bx * block_N])

    return main


def exact_block_sparse(xp: Any, a: Arrays, p: Mapping[str, Any]) -> Mapping[str, Exact]:
    m, n, bk = p["M"], p["N"], p["block_K"]
    row, column = xp.arange(m) // p["block_M"], xp.arange(n) // p["block_N"]
    total = near(xp, xp.zeros((m, n)))
    for step in range(a["There"].shape[2]):
        of = slice(step * bk, (step + 1) * bk)
        there = a["There"][row[:, None], column[None, :], step] != 0
        total = total + (near(xp, a["A"][:, of]) @ a["B"][of]).where(there, 0.0)
    return {"C": total.exact()}


@tilebench.jit
def grouped(G, rows, N, K, tiles, block_M, block_N, block_K, tb, dtype, threads=128):
    """Rows in groups of any sizes, each by its own matrix; `Group` and `First` say of a tile whose rows it
    has."""

    @T.prim_func
    def main(
        A: T.Tensor((rows, K), dtype), B: T.Tensor((G, N, K) if tb else (G, K, N), dtype),
        Size: T.Tensor((G,), "int32"), Offset: T.Tensor((G,), "int32"),
        Group: T.Tensor((tiles,), "int32"), First: T.Tensor((tiles,), "int32"), C: T.Tensor((rows, N), dtype),
    ):  # fmt: skip
        with T.Kernel(tiles, T.ceildiv(N, block_N), threads=threads) as (bx, by):
            A_s = T.alloc_shared((block_M, block_K), dtype)
            B_s = T.alloc_shared((block_N, block_K) if tb else (block_K, block_N), dtype)
            C_l = T.alloc_fragment((block_M, block_N), "float32")
            group = Group[bx]
            first = First[bx]
            left = Size[group] - (first - Offset[group])
            T.clear(C_l)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[first : first + block_M, ko * block_K : (ko + 1) * block_K], A_s)
                if tb:
                    T.copy(
                        B[group, by * block_N : (by + 1) * block_N, ko * block_K : (ko + 1) * block_K], B_s
                    )
                else:
                    T.copy(
                        B[group, ko * block_K : (ko + 1) * block_K, by * block_N : (by + 1) * block_N], B_s
                    )
                T.gemm(A_s, B_s, C_l, transpose_B=tb)
            for i, j in T.Parallel(block_M, block_N):
                if i < left and by * block_N + j < N:
                    C[first + i, by * block_N + j] = C_l[i, j]

    return main


def exact_grouped(xp: Any, a: Arrays, p: Mapping[str, Any]) -> Mapping[str, Exact]:
    value, error = xp.zeros((p["rows"], p["N"])), xp.zeros((p["rows"], p["N"]))
    for group in range(p["G"]):
        of = slice(int(a["Offset"][group]), int(a["Offset"][group] + a["Size"][group]))
        matrix = a["B"][group].swapaxes(0, 1) if p["tb"] else a["B"][group]
        product = near(xp, a["A"][of]) @ matrix
        value[of], error[of] = product.value, product.error
    return {"C": Exact(value, error)}


@tilebench.jit
def grouped_backward(G, rows, M, N, block_M, block_N, block_K, most, dtype, threads=128):
    """The gradient of each group's matrix: a sum over the group's rows."""

    @T.prim_func
    def main(
        A: T.Tensor((rows, M), dtype), B: T.Tensor((rows, N), dtype), Size: T.Tensor((G,), "int32"),
        Offset: T.Tensor((G,), "int32"), C: T.Tensor((G, M, N), dtype),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(M, block_M), T.ceildiv(N, block_N), G, threads=threads) as (bx, by, bz):
            A_s = T.alloc_shared((block_K, block_M), dtype)
            B_s = T.alloc_shared((block_K, block_N), dtype)
            C_l = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_l)
            for ko in T.Pipelined(T.ceildiv(Size[bz], block_K), num_stages=2):
                for i, j in T.Parallel(block_K, block_M):
                    row = ko * block_K + i
                    A_s[i, j] = T.if_then_else(row < Size[bz], A[Offset[bz] + row, bx * block_M + j], 0)
                for i, j in T.Parallel(block_K, block_N):
                    row = ko * block_K + i
                    B_s[i, j] = T.if_then_else(row < Size[bz], B[Offset[bz] + row, by * block_N + j], 0)
                T.gemm(A_s, B_s, C_l, transpose_A=True)
            T.copy(C_l, C[bz, bx * block_M, by * block_N])

    return main


def exact_grouped_backward(xp: Any, a: Arrays, p: Mapping[str, Any]) -> Mapping[str, Exact]:
    shape = (p["G"], p["M"], p["N"])
    value, error = xp.zeros(shape), xp.zeros(shape)
    for group in range(p["G"]):
        of = slice(int(a["Offset"][group]), int(a["Offset"][group] + a["Size"][group]))
        product = near(xp, a["A"][of]).T @ a["B"][of]
        value[group], error[group] = product.value, product.error
    return {"C": Exact(value, error)}


def product_case(
    kernel: Any, oracle: Any, shape: tuple[int, int, int], block: tuple[int, int, int], dtype: str,
    large: bool = False, **options: Any,
) -> Case:  # fmt: skip
    m, n, k = shape
    out = options.get("out", "float32" if "splits" in options else dtype)

    def arrays(draw: Draw) -> Arrays:
        inputs = {"A": draw.floats(m, k, dtype=dtype), "B": draw.floats(k, n, dtype=dtype)}
        if kernel is block_sparse:
            counts = (-(-m // block[0]), -(-n // block[1]), -(-k // block[2]))
            inputs["There"] = draw.integers(*counts, high=2).astype(bool)
        if kernel is split_k_parts:
            return inputs | {"P": draw.output(options["splits"], m, n, dtype="float32")}
        if kernel is split_k:
            return inputs | {"C": draw.floats(m, n, dtype=out, low=0, high=0)}
        return inputs | {"C": draw.output(m, n, dtype=out)}

    def native(torch: Any, a: Arrays) -> Any:
        return lambda: a["A"] @ a["B"]

    words = [f"{name}{value}" for name, value in options.items() if name == "splits"]
    name = " ".join([kernel.__name__, f"{m}x{n}x{k}", *words, dtype, *([out] if out != dtype else ())])
    blocks = dict(zip(("block_M", "block_N", "block_K"), block, strict=True))
    parameters = {"M": m, "N": n, "K": k, **blocks, "dtype": dtype, **options}
    if kernel is split_k:
        parameters["out"] = out
    return Case(name, kernel, parameters, arrays, oracle, native if kernel is split_k else None, large)


def parts_case(shape: tuple[int, int, int], dtype: str, large: bool = False) -> Case:
    splits, m, n = shape

    def arrays(draw: Draw) -> Arrays:
        return {"P": draw.floats(*shape, dtype="float32"), "C": draw.output(m, n, dtype=dtype)}

    parameters = {"M": m, "N": n, "splits": splits, "block_M": 16, "block_N": 64, "dtype": dtype}
    name = f"sum_parts {splits} of {m}x{n} {dtype}"
    return Case(name, sum_parts, parameters, arrays, exact_sum_parts, None, large)


def grouped_case(
    sizes: tuple[int, ...], n: int, k: int, block: tuple[int, int, int], dtype: str, tb: bool = False,
    large: bool = False, backward: bool = False,
) -> Case:  # fmt: skip
    groups, rows, bm = len(sizes), sum(sizes), block[0]
    offsets = [sum(sizes[:i]) for i in range(groups)]
    tiles = [(g, offsets[g] + i) for g in range(groups) for i in range(0, sizes[g], bm)]
    size, offset = np.array(sizes, np.int32), np.array(offsets, np.int32)

    def arrays(draw: Draw) -> Arrays:
        group, first = (np.array([tile[i] for tile in tiles], np.int32) for i in (0, 1))
        return {
            "A": draw.floats(rows, k, dtype=dtype),
            "B": draw.floats(groups, *((n, k) if tb else (k, n)), dtype=dtype),
            "Size": size, "Offset": offset, "Group": group, "First": first,
            "C": draw.output(rows, n, dtype=dtype),
        }  # fmt: skip

    def backward_arrays(draw: Draw) -> Arrays:
        left, right = draw.floats(rows, k, dtype=dtype), draw.floats(rows, n, dtype=dtype)
        out = draw.output(groups, k, n, dtype=dtype)
        return {"A": left, "B": right, "Size": size, "Offset": offset, "C": out}

    blocks = dict(zip(("block_M", "block_N", "block_K"), block, strict=True))
    words = " ".join(["x".join(map(str, sizes)), f"by {k}x{n}", *(["NT"] if tb else ()), dtype])
    if backward:
        parameters = {"G": groups, "rows": rows, "M": k, "N": n, **blocks, "most": max(sizes), "dtype": dtype}
        return Case(
            f"grouped_backward {words}", grouped_backward, parameters, backward_arrays,
            exact_grouped_backward, None, large,
        )  # fmt: skip
    parameters = {
        "G": groups, "rows": rows, "N": n, "K": k, "tiles": len(tiles), **blocks, "tb": tb, "dtype": dtype,
    }  # fmt: skip
    return Case(f"grouped {words}", grouped, parameters, arrays, exact_grouped, None, large)


CASES = (
    product_case(split_k, exact_product, (50, 70, 300), (32, 32, 32), "float16", splits=3),
    product_case(split_k, exact_product, (33, 40, 200), (32, 32, 16), "bfloat16", splits=4, out="bfloat16"),
    product_case(split_k, exact_product, (33, 40, 200), (32, 32, 16), "float16", splits=4, out="float16"),
    product_case(split_k, exact_product, (17, 19, 100), (16, 16, 16), "float32", splits=2),
    product_case(split_k_parts, exact_parts, (50, 70, 300), (32, 32, 32), "float16", splits=3),
    product_case(split_k_parts, exact_parts, (17, 19, 100), (16, 32, 16), "float32", splits=4),
    parts_case((3, 50, 70), "float16"),
    parts_case((5, 17, 19), "float32"),
    product_case(block_sparse, exact_block_sparse, (96, 100, 200), (32, 32, 32), "float16"),
    product_case(block_sparse, exact_block_sparse, (33, 70, 90), (32, 48, 16), "bfloat16", num_stages=3),
    product_case(block_sparse, exact_block_sparse, (33, 70, 90), (16, 32, 32), "float32", num_stages=1),
    grouped_case((40, 1, 70), 70, 90, (32, 32, 32), "float16"),
    grouped_case((64, 0, 32), 48, 64, (32, 48, 32), "bfloat16", tb=True),
    grouped_case((5, 6, 7), 33, 35, (16, 32, 16), "float32"),
    grouped_case((40, 1, 70), 70, 90, (32, 32, 32), "float16", backward=True),
    grouped_case((64, 0, 33), 48, 64, (32, 48, 32), "bfloat16", backward=True),
    product_case(split_k, exact_product, (256, 256, 16384), (128, 128, 32), "float16", True, splits=32),
    product_case(
        block_sparse, exact_block_sparse, (2048, 2048, 2048), (128, 128, 32), "float16", True, threads=256
    ),
    grouped_case((4096, 100, 1000, 3000), 4096, 4096, (128, 128, 32), "float16", large=True),
    grouped_case((4096, 100, 1000, 3000), 2048, 2048, (128, 128, 32), "float16", large=True, backward=True),
)
