"""Kernels that the tests of the CPU target run."""

from __future__ import annotations

import tilebench
import tilebench.language as T


@tilebench.jit
def add(M, N, block_M, block_N, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M)) as (bx, by):
            for i, j in T.Parallel(block_M, block_N):
                C[by * block_M + i, bx * block_N + j] = (
                    A[by * block_M + i, bx * block_N + j] + B[by * block_M + i, bx * block_N + j]
                )

    return main


@tilebench.jit
def gemm(
    M,
    N,
    K,
    block_M,
    block_N,
    block_K,
    dtype="float32",
    accum="float32",
    out="float32",
    ta=False,
    tb=False,
    stages=2,
):
    @T.prim_func
    def main(
        A: T.Tensor((K, M) if ta else (M, K), dtype),
        B: T.Tensor((N, K) if tb else (K, N), dtype),
        C: T.Tensor((M, N), out),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M)) as (bx, by):
            A_s = T.alloc_shared((block_K, block_M) if ta else (block_M, block_K), dtype)
            B_s = T.alloc_shared((block_N, block_K) if tb else (block_K, block_N), dtype)
            C_l = T.alloc_fragment((block_M, block_N), accum)
            T.clear(C_l)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=stages):
                if ta:
                    T.copy(A[ko * block_K, by * block_M], A_s)
                else:
                    T.copy(A[by * block_M, ko * block_K], A_s)
                if tb:
                    T.copy(B[bx * block_N, ko * block_K], B_s)
                else:
                    T.copy(B[ko * block_K, bx * block_N], B_s)
                T.gemm(A_s, B_s, C_l, transpose_A=ta, transpose_B=tb)
            T.copy(C_l, C[by * block_M, bx * block_N])

    return main


@tilebench.jit
def gemm_bias_relu(M, N, K, block_M, block_N, block_K, clear=True):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float32"),
        B: T.Tensor((K, N), "float32"),
        bias: T.Tensor((N,), "float32"),
        C: T.Tensor((M, N), "float32"),
        S: T.Tensor((M,), "float32"),
    ):
        with T.Kernel(T.ceildiv(M, block_M)) as by:
            A_s = T.alloc_shared((block_M, block_K), "float32")
            B_s = T.alloc_shared((block_K, block_N), "float32")
            C_l = T.alloc_fragment((block_M, block_N), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            T.clear(total)
            for bx in T.serial(T.ceildiv(N, block_N)):
                for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                    T.copy(A[by * block_M, ko * block_K], A_s)
                    T.copy(B[ko * block_K, bx * block_N], B_s)
                    T.gemm(A_s, B_s, C_l, clear_accum=ko == 0)
                for i, j in T.Parallel(block_M, block_N):
                    C_l[i, j] = T.max(C_l[i, j] + bias[bx * block_N + j], 0.0)
                T.reduce_sum(C_l, total, dim=1, clear=False)
                T.copy(C_l, C[by * block_M, bx * block_N])
            T.copy(total, S[by * block_M])

    return main


@tilebench.jit
def softmax(M, N, block_M, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            X = T.alloc_fragment((block_M, N), "float32")
            mx = T.alloc_fragment((block_M,), "float32")
            sm = T.alloc_fragment((block_M,), "float32")
            T.copy(A[bx * block_M, 0], X)
            T.reduce_max(X, mx, dim=1)
            for i, j in T.Parallel(block_M, N):
                X[i, j] = T.exp(X[i, j] - mx[i])
            T.reduce_sum(X, sm, dim=1)
            for i, j in T.Parallel(block_M, N):
                X[i, j] = X[i, j] / sm[i]
            T.copy(X, C[bx * block_M, 0])

    return main


@tilebench.jit
def rowsum(M, N, block_M, block_N, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), C: T.Tensor((M,), dtype)):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            X = T.alloc_fragment((block_M, block_N), dtype)
            acc = T.alloc_fragment((block_M,), dtype)
            T.clear(acc)
            for k in T.serial(T.ceildiv(N, block_N)):
                T.copy(A[bx * block_M, k * block_N], X)
                T.reduce_sum(X, acc, dim=1, clear=False)
            T.copy(acc, C[bx * block_M])

    return main


@tilebench.jit
def reduce3(A0, A1, A2, dim, kind, dtype="float32"):
    rest = [A0, A1, A2]
    del rest[dim]

    @T.prim_func
    def main(A: T.Tensor((A0, A1, A2), dtype), C: T.Tensor(tuple(rest), dtype)):
        with T.Kernel(1) as bx:
            X = T.alloc_shared((A0, A1, A2), dtype)
            Y = T.alloc_fragment(tuple(rest), dtype)
            T.copy(A[0, 0, 0], X)
            if kind == "sum":
                T.reduce_sum(X, Y, dim=dim)
            elif kind == "max":
                T.reduce_max(X, Y, dim=dim)
            else:
                T.reduce_min(X, Y, dim=dim)
            T.copy(Y, C[bx * 0, 0])

    return main


@tilebench.jit
def transpose(M, N, block, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), C: T.Tensor((N, M), dtype)):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block)) as (bx, by):
            X = T.alloc_shared((block, block), dtype)
            T.copy(A[by * block, bx * block], X)
            for i, j in T.Parallel(block, block):
                C[bx * block + i, by * block + j] = X[j, i]

    return main


@tilebench.jit
def gather(N, M, block):
    @T.prim_func
    def main(table: T.Tensor((M,), "float32"), index: T.Tensor((N,), "int32"), C: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block)) as bx:
            for i in T.Parallel(block):
                C[bx * block + i] = table[index[bx * block + i]]

    return main


@tilebench.jit
def stencil(N, block):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block)) as bx:
            for i in T.Parallel(block):
                C[bx * block + i] = A[bx * block + i - 1] + 2.0 * A[bx * block + i] + A[bx * block + i + 1]

    return main


@tilebench.jit
def cast(N, block, source, target):
    @T.prim_func
    def main(A: T.Tensor((N,), source), C: T.Tensor((N,), target)):
        with T.Kernel(T.ceildiv(N, block)) as bx:
            for i in T.Parallel(block):
                C[bx * block + i] = T.cast(A[bx * block + i], target)

    return main


@tilebench.jit
def collatz(N, block, most):
    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), C: T.Tensor((N,), "int32")):
        with T.Kernel(T.ceildiv(N, block)) as bx:
            for i in T.Parallel(block):
                x = T.alloc_var("int32", 0)
                steps = T.alloc_var("int32", 0)
                x = A[bx * block + i]
                steps = 0
                for _ in T.serial(most):
                    if x > 1:
                        if x % 2 == 0:
                            x = x // 2
                        else:
                            x = 3 * x + 1
                        steps = steps + 1
                C[bx * block + i] = steps

    return main


@tilebench.jit
def scalars(N, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(1) as _:
            X = T.alloc_shared((N,), dtype)
            T.copy(A[0], X)
            for i in T.serial(1, N):
                X[i] = X[i] + X[i - 1]
            T.copy(X, C[0])

    return main


@tilebench.jit
def attention(S, D, block_M, block_N, causal=False, dtype="float32"):
    scale = 1.0 / D**0.5

    @T.prim_func
    def main(
        Q: T.Tensor((S, D), dtype),
        K: T.Tensor((S, D), dtype),
        V: T.Tensor((S, D), dtype),
        out: T.Tensor((S, D), dtype),
    ):
        with T.Kernel(T.ceildiv(S, block_M)) as bx:
            Q_s = T.alloc_shared((block_M, D), dtype)
            K_s = T.alloc_shared((block_N, D), dtype)
            V_s = T.alloc_shared((block_N, D), dtype)
            scores = T.alloc_fragment((block_M, block_N), "float32")
            weights = T.alloc_fragment((block_M, block_N), dtype)
            acc = T.alloc_fragment((block_M, D), "float32")
            m_old = T.alloc_fragment((block_M,), "float32")
            m_new = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            part = T.alloc_fragment((block_M,), "float32")
            T.copy(Q[bx * block_M, 0], Q_s)
            T.clear(acc)
            T.clear(total)
            T.fill(m_new, -1e30)
            for k in T.Pipelined(T.ceildiv(S, block_N), num_stages=2):
                T.copy(K[k * block_N, 0], K_s)
                for i, j in T.Parallel(block_M, block_N):
                    scores[i, j] = T.if_then_else(k * block_N + j < S, 0.0, -1e30)
                T.gemm(Q_s, K_s, scores, transpose_B=True)
                T.copy(m_new, m_old)
                T.reduce_max(scores, m_new, dim=1, clear=False)
                for i, j in T.Parallel(block_M, block_N):
                    scores[i, j] = T.exp(scores[i, j] * scale - m_new[i] * scale)
                T.reduce_sum(scores, part, dim=1)
                for i in T.Parallel(block_M):
                    total[i] = total[i] * T.exp(m_old[i] * scale - m_new[i] * scale) + part[i]
                for i, j in T.Parallel(block_M, D):
                    acc[i, j] = acc[i, j] * T.exp(m_old[i] * scale - m_new[i] * scale)
                T.copy(scores, weights)
                T.copy(V[k * block_N, 0], V_s)
                T.gemm(weights, V_s, acc)
            for i, j in T.Parallel(block_M, D):
                acc[i, j] = acc[i, j] / total[i]
            T.copy(acc, out[bx * block_M, 0])

    return main


@tilebench.jit
def divide_rows(M, N):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), D: T.Tensor((M,), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(M) as bx:
            X = T.alloc_fragment((1, N), "float32")
            d = T.alloc_fragment((1,), "float32")
            T.copy(A[bx, 0], X)
            T.copy(D[bx], d)
            for i, j in T.Parallel(1, N):
                X[i, j] = X[i, j] / d[i]
            T.copy(X, C[bx, 0])

    return main


@tilebench.jit
def normalized(M, N, block_M, dtype="float32"):
    """Each row less its mean, over its deviation; the deviations too."""

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), C: T.Tensor((M, N), dtype), D: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            X = T.alloc_fragment((block_M, N), "float32")
            S = T.alloc_fragment((block_M, N), "float32")
            mean = T.alloc_fragment((block_M,), "float32")
            square = T.alloc_fragment((block_M,), "float32")
            T.copy(A[bx * block_M, 0], X)
            T.reduce_sum(X, mean, dim=1)
            for i, j in T.Parallel(block_M, N):
                X[i, j] = X[i, j] - mean[i] / N
            for i, j in T.Parallel(block_M, N):
                S[i, j] = X[i, j] * X[i, j]
            T.reduce_sum(S, square, dim=1)
            for i in T.Parallel(block_M):
                square[i] = T.sqrt(square[i] / N + 1e-5)
            for i, j in T.Parallel(block_M, N):
                X[i, j] = X[i, j] / square[i]
            T.copy(X, C[bx * block_M, 0])
            T.copy(square, D[bx * block_M])

    return main


@tilebench.jit
def column_sums(M, N, block_M):
    """A tile that keeps its values from one turn to the next."""

    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), C: T.Tensor((block_M, N), "float32")):
        with T.Kernel(1):
            total = T.alloc_fragment((block_M, N), "float32")
            T.clear(total)
            for k in T.serial(T.ceildiv(M, block_M)):
                for i, j in T.Parallel(block_M, N):
                    total[i, j] = total[i, j] + A[k * block_M + i, j]
            T.copy(total, C)

    return main
