# ruff: noqa: E501 -- stages are one statement a line
"""Whole kernels from `tile` through every pass of the GPU road, run in the simulator against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.passes.lowering import ceildiv, random
from tests.simulated import card_road, card_words, run_threaded
from tilebench.ir import Function, parse_function, print_function, verify
from tilebench.passes.context import Context
from tilebench.passes.pipeline import COMMON
from tilebench.targets.cuda.compiler.nvrtc import compile_cuda
from tilebench.targets.cuda.machines import machine_of
from tilebench.targets.cuda.text.render import render


def down(text: str, arch: str = "sm_80") -> Function:
    """`threaded`, with every stage checked and printed back on the way."""
    function, context = parse_function(text, card_words()), Context(machine_of(arch))
    for row in (*COMMON, *card_road()):
        for _, step in row.passes:
            function = step(function, context)
        verify(function, row.forms)
        assert parse_function(print_function(function).text, card_words()) == function
    return function


def run(text: str, **arrays: Any) -> None:
    run_threaded(down(text), arrays, warp=32)


def attention(
    s: int, d: int, bm: int, bn: int, *, dtype: str, threads: int, causal: bool, stages: int
) -> str:
    seen = f"bx * {bm} + i >= k * {bn} + j and " if causal else ""
    return f"""@T.prim_func
def attention(Q: T.Tensor(({s}, {d}), T.{dtype}), K: T.Tensor(({s}, {d}), T.{dtype}), V: T.Tensor(({s}, {d}), T.{dtype}), O: T.Tensor(({s}, {d}), T.{dtype})):
    with T.Kernel({ceildiv(s, bm)}, threads={threads}) as bx:
        Q_s = T.alloc_shared(({bm}, {d}), T.{dtype})
        K_s = T.alloc_shared(({bn}, {d}), T.{dtype})
        V_s = T.alloc_shared(({bn}, {d}), T.{dtype})
        x = T.alloc_fragment(({bm}, {bn}), T.float32)
        p = T.alloc_fragment(({bm}, {bn}), T.{dtype})
        o = T.alloc_fragment(({bm}, {d}), T.float32)
        m = T.alloc_fragment(({bm},), T.float32)
        m_old = T.alloc_fragment(({bm},), T.float32)
        scale = T.alloc_fragment(({bm},), T.float32)
        row = T.alloc_fragment(({bm},), T.float32)
        total = T.alloc_fragment(({bm},), T.float32)
        T.copy(Q[bx * {bm}, 0], Q_s)
        T.fill(o, T.float32(0))
        T.fill(total, T.float32(0))
        T.fill(m, T.float32(-1e30))
        for k in T.Pipelined({ceildiv(s, bn)}, num_stages={stages}):
            T.copy(K[k * {bn}, 0], K_s)
            T.gemm(Q_s, K_s, x, transpose_B=True, clear_accum=True)
            for i, j in T.Parallel({bm}, {bn}):
                x[i, j] = T.if_then_else({seen}k * {bn} + j < {s}, x[i, j], T.float32("-inf"))
            T.copy(m, m_old)
            T.reduce_max(x, m, dim=1, clear=False)
            for i in T.Parallel({bm}):
                scale[i] = T.exp(m_old[i] - m[i])
            for i__2, j__2 in T.Parallel({bm}, {bn}):
                x[i__2, j__2] = T.exp(x[i__2, j__2] - m[i__2])
            T.reduce_sum(x, row, dim=1)
            for i__3 in T.Parallel({bm}):
                total[i__3] = total[i__3] * scale[i__3] + row[i__3]
            T.copy(x, p)
            for i__4, j__4 in T.Parallel({bm}, {d}):
                o[i__4, j__4] = o[i__4, j__4] * scale[i__4]
            T.copy(V[k * {bn}, 0], V_s)
            T.gemm(p, V_s, o)
        for i__5, j__5 in T.Parallel({bm}, {d}):
            o[i__5, j__5] = o[i__5, j__5] / total[i__5]
        T.copy(o, O[bx * {bm}, 0])
"""


@pytest.mark.parametrize(
    ("s", "d", "bm", "bn", "options"),
    [
        (64, 32, 32, 32, {"dtype": "float16", "threads": 128, "causal": False, "stages": 2}),
        (70, 32, 32, 32, {"dtype": "float16", "threads": 128, "causal": True, "stages": 2}),
        (33, 16, 16, 24, {"dtype": "float32", "threads": 64, "causal": False, "stages": 3}),
    ],
)
def test_attention(s: int, d: int, bm: int, bn: int, options: dict[str, Any]) -> None:
    dtype = np.dtype(options["dtype"])
    q, k, v = (random((s, d), dtype, seed) for seed in range(3))
    out = np.zeros((s, d), dtype)
    run(attention(s, d, bm, bn, **options), Q=q, K=k, V=v, O=out)
    x = q.astype(np.float64) @ k.astype(np.float64).T
    if options["causal"]:
        x = np.where(np.tril(np.ones((s, s))) > 0, x, -np.inf)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    wanted = (e / e.sum(axis=1, keepdims=True)) @ v.astype(np.float64)
    # p is rounded to the operands' type before the second product, the result once more.
    bound = 2.0**-10 if dtype == np.float16 else 2.0**-20
    assert np.abs(out.astype(np.float64) - wanted).max() <= bound


def test_attention_compiles_without_spills() -> None:
    text = attention(256, 64, 64, 64, dtype="float16", threads=128, causal=True, stages=2)
    for arch in ("sm_75", "sm_90a"):
        found = compile_cuda(render(down(text, arch), machine_of(arch)).text, machine_of(arch)).resources[
            "attention"
        ]
        assert (found.spill_store_bytes, found.stack_bytes) == (0, 0)


def test_layer_norm_of_rows_that_no_vector_divides() -> None:
    m, n = 45, 77
    x, w, y = random((m, n), np.float16, 3), random((n,), np.float16, 4), np.zeros((m, n), np.float16)
    run(
        f"""@T.prim_func
def layer_norm(X: T.Tensor(({m}, {n}), T.float16), W: T.Tensor(({n},), T.float16), Y: T.Tensor(({m}, {n}), T.float16)):
    with T.Kernel({ceildiv(m, 4)}, threads=128) as bx:
        x = T.alloc_fragment((4, {n}), T.float32)
        d = T.alloc_fragment((4, {n}), T.float32)
        mean = T.alloc_fragment((4,), T.float32)
        var = T.alloc_fragment((4,), T.float32)
        T.copy(X[bx * 4, 0], x)
        T.reduce_sum(x, mean, dim=1)
        for i, j in T.Parallel(4, {n}):
            x[i, j] = x[i, j] - mean[i] / T.float32({n})
        for i__2, j__2 in T.Parallel(4, {n}):
            d[i__2, j__2] = x[i__2, j__2] * x[i__2, j__2]
        T.reduce_sum(d, var, dim=1)
        for i__3, j__3 in T.Parallel(4, {n}):
            if bx * 4 + i__3 < {m}:
                Y[bx * 4 + i__3, j__3] = T.cast(x[i__3, j__3] * T.rsqrt(var[i__3] / T.float32({n}) + T.float32(1e-05)) * T.cast(W[j__3], T.float32), T.float16)
""",
        X=x, W=w, Y=y,
    )  # fmt: skip
    wide = x.astype(np.float64)
    wanted = (wide - wide.mean(axis=1, keepdims=True)) / np.sqrt(wide.var(axis=1, keepdims=True) + 1e-5) * w
    assert np.allclose(y.astype(np.float64), wanted, rtol=2.0**-10, atol=2.0**-12)


def test_transpose_column_sum_and_one_row_a_block() -> None:
    m, n = 45, 77
    a, b, c = random((m, n), np.float32, 1), np.zeros((n, m), np.float32), np.zeros((n,), np.float32)
    run(
        f"""@T.prim_func
def transpose(A: T.Tensor(({m}, {n}), T.float32), B: T.Tensor(({n}, {m}), T.float32)):
    with T.Kernel({ceildiv(n, 32)}, {ceildiv(m, 32)}, threads=128) as (bx, by):
        S = T.alloc_shared((32, 32), T.float32)
        T.copy(A[by * 32, bx * 32], S)
        for i, j in T.Parallel(32, 32):
            B[bx * 32 + i, by * 32 + j] = S[j, i]
""",
        A=a, B=b,
    )  # fmt: skip
    assert np.array_equal(b, a.T)
    run(
        f"""@T.prim_func
def column_sum(A: T.Tensor(({m}, {n}), T.float32), C: T.Tensor(({n},), T.float32)):
    with T.Kernel({ceildiv(n, 32)}, threads=128) as bx:
        x = T.alloc_fragment((16, 32), T.float32)
        s = T.alloc_fragment((32,), T.float32)
        T.fill(s, T.float32(0))
        for k in T.serial({ceildiv(m, 16)}):
            T.copy(A[k * 16, bx * 32], x)
            T.reduce_sum(x, s, dim=0, clear=False)
        T.copy(s, C[bx * 32])
""",
        A=a, C=c,
    )  # fmt: skip
    assert np.allclose(c, a.sum(axis=0), atol=1e-5)
    wide, top = random((3, 5000), np.float32, 7), np.zeros((3,), np.float32)
    run(
        """@T.prim_func
def row_max(A: T.Tensor((3, 5000), T.float32), Y: T.Tensor((3,), T.float32)):
    with T.Kernel(3, threads=256) as bx:
        x = T.alloc_fragment((1, 5000), T.float32)
        y = T.alloc_fragment((1,), T.float32)
        T.copy(A[bx, 0], x)
        T.reduce_max(x, y, dim=1)
        T.copy(y, Y[bx])
""",
        A=wide, Y=top,
    )  # fmt: skip
    assert np.array_equal(top, wide.max(axis=1))


def test_tiles_taken_in_turns_with_a_branch_in_the_loop() -> None:
    a, out = random((70, 64), np.float32), np.zeros((70, 64), np.float32)
    run(
        """@T.prim_func
def turns(A: T.Tensor((70, 64), T.float32), C: T.Tensor((70, 64), T.float32)):
    with T.Kernel(2, threads=64) as bx:
        S = T.alloc_shared((16, 64), T.float32)
        n = T.alloc_var(T.int32, init=0)
        for t in T.serial(5):
            if t % 2 == bx:
                T.copy(A[t * 16, 0], S)
                for i, j in T.Parallel(16, 64):
                    S[i, j] = S[i, j] * T.float32(2)
                T.copy(S, C[t * 16, 0])
            n = n + 1
""",
        A=a, C=out,
    )  # fmt: skip
    assert np.array_equal(out, a * 2)
