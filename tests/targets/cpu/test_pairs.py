"""Products of bfloat16 by dot products of pairs: odd sizes, and what the instruction would lose."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.bench import attention
from tests.targets.cpu import kernels
from tilebench.targets.cpu.machine import host_isa
from tilebench.targets.cpu.microkernel.pairs import has_pairs

pytestmark = pytest.mark.skipif(not has_pairs(host_isa()), reason="this processor has no products of pairs")


def _operands(m: int, n: int, k: int, tb: bool, scale: float = 1.0) -> tuple[Any, Any]:
    rng = np.random.default_rng(m * n + k)
    a = (rng.standard_normal((m, k)) * scale).astype(ml_dtypes.bfloat16)
    b = rng.standard_normal((n, k) if tb else (k, n)).astype(ml_dtypes.bfloat16)
    return a, b


def _run(a: Any, b: Any, block: tuple[int, int, int], tb: bool, out: str = "float32") -> Any:
    (m, k), n = a.shape, b.shape[0] if tb else b.shape[1]
    c = np.full((m, n), np.nan, np.float32).astype(ml_dtypes.bfloat16 if out == "bfloat16" else out)
    kernel = kernels.gemm.using(target="cpu")(m, n, k, *block, dtype="bfloat16", out=out, tb=tb)
    assert "pairs=True" in kernel.stage("loops")
    kernel(a, b, c)
    return c


def _check(a: Any, b: Any, c: Any, tb: bool, u: float = 2.0**-24) -> None:
    """Each element within the bound of a sum in float32, which has no room for what is taken as zero."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    b = b.T if tb else b
    bound = (a.shape[1] + 2) * u * (np.abs(a) @ np.abs(b)) + 2.0**-149 * a.shape[1]
    wrong = np.abs(c.astype(np.float64) - a @ b) - bound
    assert wrong.max() <= 0, wrong.max()


@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize(
    ("shape", "block"),
    [
        ((64, 64, 64), (64, 64, 32)),
        ((1, 64, 32), (1, 64, 32)),
        ((70, 100, 97), (32, 64, 32)),  # nothing divides, k ends odd
        ((130, 200, 33), (64, 128, 33)),  # an odd depth
        ((33, 17, 1), (16, 16, 1)),  # one product each
        ((96, 80, 300), (96, 48, 50)),
    ],
)
def test_sizes(shape: tuple[int, int, int], block: tuple[int, int, int], tb: bool) -> None:
    a, b = _operands(*shape, tb)
    _check(a, b, _run(a, b, block, tb), tb)


@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize("k", [96, 97])
def test_what_the_instruction_takes_as_zero(k: int, tb: bool) -> None:
    """Subnormal elements, products and sums: dot products of pairs flush all of these."""
    a, b = _operands(40, 70, k, tb)
    a[3] = a[3] * np.float32(2.0**-130)  # subnormal elements by large ones
    (b if tb else b.T)[5] = ((b if tb else b.T)[5].astype(np.float32) * 2.0**100).astype(b.dtype)
    a[7] = (a[7].astype(np.float32) * 2.0**-70).astype(a.dtype)  # products below what is normal
    (b if tb else b.T)[9] = ((b if tb else b.T)[9].astype(np.float32) * 2.0**-70).astype(b.dtype)
    c = _run(a, b, (40, 70, 32), tb)
    assert c[3, 5] != 0
    assert c[7, 9] != 0
    _check(a, b, c, tb)


def test_infinity_and_nan() -> None:
    a, b = np.ones((32, 64), ml_dtypes.bfloat16), np.ones((64, 64), ml_dtypes.bfloat16)
    a[2, 7], a[3, 8], b[9, 4] = np.inf, np.nan, -np.inf
    c = _run(a, b, (32, 64, 32), False)
    with np.errstate(invalid="ignore"):
        wanted = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_array_equal(c, wanted)


def test_a_narrow_result() -> None:
    a, b = _operands(64, 64, 64, False)
    c = _run(a, b, (32, 64, 32), False, out="bfloat16")
    wanted = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(c.astype(np.float32), wanted, rtol=2**-8, atol=1e-4)


@tilebench.jit(target="cpu")
def two_products(M, N, K, second):
    """B multiplies twice; `second` says which way round the other time."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "bfloat16"), B: T.Tensor((K, K), "bfloat16"), C: T.Tensor((M, K), "float32")
    ):
        with T.Kernel(1) as bx:
            A_s = T.alloc_shared((M, K), "bfloat16")
            B_s = T.alloc_shared((K, K), "bfloat16")
            C_l = T.alloc_fragment((M, K), "float32")
            T.copy(A, A_s)
            T.copy(B, B_s)
            T.clear(C_l)
            T.gemm(A_s, B_s, C_l)
            T.gemm(A_s, B_s, C_l, transpose_B=second)
            T.copy(C_l, C)

    return main


@pytest.mark.parametrize("second", [False, True])
def test_a_tile_that_lies_in_pairs_does_so_for_all(second: bool) -> None:
    a, b = _operands(20, 64, 64, False)
    c = np.empty((20, 64), np.float32)
    kernel = two_products(20, 64, 64, second)
    assert ("pairs=True" in kernel.stage("loops")) is not second
    kernel(a, b, c)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    np.testing.assert_allclose(c, wide_a @ wide_b + wide_a @ (wide_b.T if second else wide_b), atol=1e-4)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("seq", [128, 101])
def test_attention(seq: int, causal: bool) -> None:
    """Weights of attention are as small as can be; keys past the end are zeros in the tile."""
    rng = np.random.default_rng(seq)
    q, k, v = ((rng.standard_normal((2, seq, 64)) * 4).astype(ml_dtypes.bfloat16) for _ in range(3))
    out = np.empty_like(q)
    kernel = attention.forward.using(target="cpu")(2, seq, 64, 32, 64, causal, dtype="bfloat16")
    kernel(q, k, v, out)
    text = kernel.stage("loops")
    assert text.count("pairs=True") == 2
    assert ("fill=True" in text) is (seq % 64 != 0)
    wide = [each.astype(np.float64) for each in (q, k, v)]
    scores = wide[0] @ wide[1].transpose(0, 2, 1) / 8
    if causal:
        scores = np.where(np.tri(seq, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = weights / weights.sum(-1, keepdims=True) @ wide[2]
    np.testing.assert_allclose(out.astype(np.float64), wanted, rtol=0.02, atol=0.03)


@tilebench.jit
def beyond(M, N, K, blocks, tb):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), "bfloat16"), B: T.Tensor((N, K) if tb else (K, N), "bfloat16"),
        C: T.Tensor((M, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(blocks, blocks) as (bx, by):
            A_s = T.alloc_shared((32, 64), "bfloat16")
            B_s = T.alloc_shared((64, 64), "bfloat16")
            C_l = T.alloc_fragment((32, 64), "float32")
            T.clear(C_l)
            for ko in T.Pipelined(blocks, num_stages=2):
                T.copy(A[by * 32, ko * 64], A_s)
                if tb:
                    T.copy(B[bx * 64, ko * 64], B_s)
                else:
                    T.copy(B[ko * 64, bx * 64], B_s)
                T.gemm(A_s, B_s, C_l, transpose_B=tb)
            T.copy(C_l, C[by * 32, bx * 64])

    return main


@pytest.mark.parametrize("tb", [False, True])
def test_tiles_wholly_beyond_an_array_are_empty(tb: bool) -> None:
    """Six blocks each way where two have elements, and six steps where K has three."""
    m, n, k = 33, 70, 133
    a, b = _operands(m, n, k, tb)
    c = np.full((m, n), np.nan, np.float32)
    beyond(m, n, k, 6, tb)(a, b, c)
    _check(a, b, c, tb)
