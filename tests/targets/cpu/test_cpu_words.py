"""Words and scalar functions on the CPU against the reference: functions, integers, branches, boxes."""

from __future__ import annotations

import pytest

import tilebench
import tilebench.language as T
from tests.targets.cpu.test_cpu_kernels import ISAS, checked

FUNCTIONS = [
    "exp", "exp2", "log", "log2", "sqrt", "rsqrt", "tanh", "abs", "floor", "ceil", "sigmoid", "erf",
    "sin", "cos",
]  # fmt: skip
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@tilebench.jit
def unary(N, op, dtype):
    f = getattr(T, op)

    @T.prim_func
    def main(A: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, 64)) as bx:
            for i in T.Parallel(64):
                C[bx * 64 + i] = f(A[bx * 64 + i])

    return main


@tilebench.jit
def ints(N, dtype):
    @T.prim_func
    def main(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N, 8), dtype)):
        with T.Kernel(T.ceildiv(N, 64)) as bx:
            for i in T.Parallel(64):
                if bx * 64 + i < N:
                    C[bx * 64 + i, 0] = A[bx * 64 + i] // (B[bx * 64 + i] | 1)
                    C[bx * 64 + i, 1] = A[bx * 64 + i] % (B[bx * 64 + i] | 1)
                    C[bx * 64 + i, 2] = A[bx * 64 + i] // 3
                    C[bx * 64 + i, 3] = A[bx * 64 + i] % 7
                    C[bx * 64 + i, 4] = (A[bx * 64 + i] & B[bx * 64 + i]) | (A[bx * 64 + i] ^ 5)
                    C[bx * 64 + i, 5] = T.max(A[bx * 64 + i], B[bx * 64 + i]) - T.min(
                        A[bx * 64 + i], B[bx * 64 + i]
                    )
                    C[bx * 64 + i, 6] = A[bx * 64 + i] << 2
                    C[bx * 64 + i, 7] = A[bx * 64 + i] >> 1

    return main


@tilebench.jit
def branches(M, N, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), C: T.Tensor((M, N), dtype), F: T.Tensor((M, N), "bool")):
        with T.Kernel(T.ceildiv(M, 8)) as bx:
            S = T.alloc_shared((8, N), dtype)
            T.copy(A[bx * 8, 0], S)
            for i, j in T.Parallel(8, N):
                F[bx * 8 + i, j] = ((S[i, j] > 0) and (j % 3 != 1)) or (i == 2)
                if S[i, j] > 0.5:
                    S[i, j] = S[i, j] * 2.0
                else:
                    if j > 3:
                        S[i, j] = -S[i, j]
                    S[i, j] = S[i, j] + 1.0
            for j in T.serial(1, N, 3):
                S[0, j] = S[0, j - 1] + 1.0
            for j in T.unroll(4):
                S[1, j] = S[1, j] * 3.0
            T.copy(S, C[bx * 8, 0])

    return main


@tilebench.jit
def conv(N, W, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((N,), dtype), K: T.Tensor((W,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, 100)) as bx:
            acc = T.alloc_fragment((100,), "float32")
            T.clear(acc)
            for i in T.Parallel(100):
                for w in T.serial(W):
                    acc[i] = acc[i] + T.cast(A[bx * 100 + i + w - W // 2], "float32") * T.cast(
                        K[w], "float32"
                    )
            T.copy(acc, C[bx * 100])

    return main


@tilebench.jit
def boxes(M, N):
    @T.prim_func
    def main(
        A: T.Tensor((3, M, N), "float32"), C: T.Tensor((M, 3, N), "float32"), D: T.Tensor((N, M), "float32")
    ):
        with T.Kernel(3, T.ceildiv(M, 16)) as (z, by):
            S = T.alloc_shared((16, N), "float32")
            T.copy(A[z, by * 16 : by * 16 + 16, 0:N], S)
            T.copy(S, C[by * 16 : by * 16 + 16, z, 0:N])
            T.copy(A[z, by * 16 - 5, 0], S)
            if z == 1:
                for i, j in T.Parallel(16, N):
                    D[j, by * 16 + i] = S[i, j]

    return main


@tilebench.jit
def column(M, N, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), C: T.Tensor((N,), dtype), E: T.Tensor((M,), dtype)):
        with T.Kernel(T.ceildiv(N, 48)) as bx:
            X = T.alloc_fragment((M, 48), dtype)
            s = T.alloc_fragment((48,), dtype)
            T.copy(A[0, bx * 48], X)
            T.reduce_sum(X, s, dim=0)
            T.copy(s, C[bx * 48])
            if bx == 0:
                T.copy(A[0:M, 2], E[0:M])

    return main


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str, dtype: str) -> None:
    checked(unary, 150, name, dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(dtype: str) -> None:
    checked(ints, 150, dtype)
    checked(ints, 70, dtype, isa=ISAS[-1])


@pytest.mark.parametrize("isa", ISAS)
def test_forms(isa: str) -> None:
    checked(branches, 20, 37, isa=isa)
    checked(branches, 20, 37, "float16", isa=isa)
    checked(conv, 333, 7, isa=isa)
    checked(conv, 333, 7, "float16", isa=isa)
    checked(boxes, 50, 33, isa=isa)
    checked(column, 37, 100, isa=isa)
    checked(column, 37, 100, "int32", isa=isa)
