"""Products of matrices: operands in either order, epilogues with bias and activation, split and sparse
sums."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tilebench
import tilebench.language as T
from tests.wellknown.case import Arrays, Case, Draw, sum_error
from tilebench.library.near import SINGLE, UNIT, Exact


@tilebench.jit
def gemm(
    M, N, K, block_M, block_N, block_K, ta, tb, dtype, accum, out, bias=False, activation="",
    num_stages=2, threads=128,
):  # fmt: skip
    @T.prim_func
    def main(
        A: T.Tensor((K, M) if ta else (M, K), dtype),
        B: T.Tensor((N, K) if tb else (K, N), dtype),
        V: T.Tensor((N,), out),
        C: T.Tensor((M, N), out),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_s = T.alloc_shared((block_K, block_M) if ta else (block_M, block_K), dtype)
            B_s = T.alloc_shared((block_N, block_K) if tb else (block_K, block_N), dtype)
            C_l = T.alloc_fragment((block_M, block_N), accum)
            T.clear(C_l)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                if ta:
                    T.copy(A[ko * block_K, by * block_M], A_s)
                else:
                    T.copy(A[by * block_M, ko * block_K], A_s)
                if tb:
                    T.copy(B[bx * block_N, ko * block_K], B_s)
                else:
                    T.copy(B[ko * block_K, bx * block_N], B_s)
                T.gemm(A_s, B_s, C_l, transpose_A=ta, transpose_B=tb)
            if bias:
                for i, j in T.Parallel(block_M, block_N):
                    C_l[i, j] += V[bx * block_N + j]
            if activation == "relu":
                for i, j in T.Parallel(block_M, block_N):
                    C_l[i, j] = T.max(C_l[i, j], 0)
            if activation == "sigmoid":
                for i, j in T.Parallel(block_M, block_N):
                    C_l[i, j] = C_l[i, j] / (1.0 + T.exp(-C_l[i, j]))
            T.copy(C_l, C[by * block_M, bx * block_N])

    return main


def exact_gemm(xp: Any, a: Arrays, p: Mapping[str, Any]) -> Mapping[str, Exact]:
    left = a["A"].swapaxes(0, 1) if p["ta"] else a["A"]
    right = a["B"].swapaxes(0, 1) if p["tb"] else a["B"]
    if p["accum"] == "int32":
        return {"C": Exact((left * 1.0) @ (right * 1.0))}
    value = left @ right
    error = sum_error(p["K"], abs(left) @ abs(right), UNIT[p["accum"]])
    if p.get("bias"):
        value = value + a["V"]
        error = error + SINGLE * (abs(value) + error)
    if p.get("activation") == "relu":
        value = value * (value > 0)
    if p.get("activation") == "sigmoid":
        # The slope of x * sigmoid(x) is below 1.1; exp, the sum and the division round.
        value = value / (1 + xp.exp(-value))
        error = 1.1 * error + 16 * SINGLE * abs(value)
    return {"C": Exact(value, error)}


def case(
    name: str, shape: tuple[int, int, int], block: tuple[int, int, int], dtype: str = "float16",
    out: str = "float16", accum: str = "float32", ta: bool = False, tb: bool = False, large: bool = False,
    **options: Any,
) -> Case:  # fmt: skip
    m, n, k = shape

    def arrays(draw: Draw) -> Arrays:
        def operand(*extents: int) -> Any:
            if dtype in UNIT:
                return draw.floats(*extents, dtype=dtype)
            return draw.integers(*extents, dtype=dtype, low=-8 if dtype[0] == "i" else 0)

        left = operand(k, m) if ta else operand(m, k)
        right = operand(n, k) if tb else operand(k, n)
        row = draw.floats(n, dtype=out) if out in UNIT else draw.integers(n, dtype=out)
        return {"A": left, "B": right, "V": row, "C": draw.output(m, n, dtype=out)}

    def native(torch: Any, a: Arrays) -> Any:
        left, right = a["A"].T if ta else a["A"], a["B"].T if tb else a["B"]
        return lambda: left @ right

    parameters = {
        "M": m, "N": n, "K": k, "block_M": block[0], "block_N": block[1], "block_K": block[2],
        "ta": ta, "tb": tb, "dtype": dtype, "accum": accum, "out": out, **options,
    }  # fmt: skip
    with_native = native if dtype in ("float16", "bfloat16", "float32") else None
    return Case(name, gemm, parameters, arrays, exact_gemm, with_native, large)


CASES = (
    *(
        case(f"gemm {name} {dtype}", (50, 70, 90), (32, 64, 32), dtype, dtype, ta=ta, tb=tb)
        for name, ta, tb in (("NN", 0, 0), ("NT", 0, 1), ("TN", 1, 0), ("TT", 1, 1))
        for dtype in ("float16", "bfloat16", "float32")
    ),
    *(
        case(f"gemm {name} int8", (50, 70, 90), (32, 64, 32), "int8", "int32", "int32", ta=ta, tb=tb)
        for name, ta, tb in (("NT", 0, 1), ("TN", 1, 0))
    ),
    case("gemm NT float8", (50, 70, 90), (32, 64, 32), "float8_e4m3fn", "float32", tb=True),
    case("gemm float64", (50, 70, 90), (32, 32, 16), "float64", "float64", "float64"),
    case("gemm float16 sums", (50, 70, 40), (32, 32, 16), "float16", "float16", "float16"),
    case("gemm of one", (1, 1, 1), (16, 16, 16), "float16", "float16"),
    case("gemm of odd blocks", (37, 45, 53), (48, 24, 20), "float16", "float32"),
    case("gemm bias relu", (50, 70, 90), (32, 64, 32), bias=True, activation="relu"),
    case(
        "gemm bias silu", (50, 70, 90), (64, 32, 64), "bfloat16", "bfloat16", bias=True, activation="sigmoid"
    ),
)
