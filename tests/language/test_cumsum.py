"""`T.cumsum` on every target: against NumPy, in place, reversed, along each dimension, of many dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.simulated import run_threaded
from tilebench.errors import DTypeError, ShapeError


@tilebench.jit
def running_sums(M, N, dim, reverse, dtype="float32", accum="float32", threads=64, place="fragment"):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), accum)):
        with T.Kernel(1, threads=threads) as bx:
            if place == "fragment":
                X = T.alloc_fragment((M, N), dtype)
                Y = T.alloc_fragment((M, N), accum)
            else:
                X = T.alloc_shared((M, N), dtype)
                Y = T.alloc_shared((M, N), accum)
            T.copy(A, X)
            T.cumsum(X, Y, dim=dim, reverse=reverse)
            T.copy(Y, B)

    return main


@tilebench.jit
def in_place(N, threads=128):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=threads) as bx:
            X = T.alloc_fragment((N,), "float32")
            T.copy(A, X)
            T.cumsum(X)
            T.copy(X, B)

    return main


def run(kernel: Any, *arrays: Any) -> None:
    """On the CPU, or in the simulator, with a cubin made."""
    if kernel.target.startswith("cpu"):
        kernel(*arrays)
        return
    kernel.stage("ptx")
    function = kernel.compilation.functions["threaded"]
    run_threaded(function, dict(zip((p.name for p in function.params), arrays, strict=True)), warp=32)


def expected(a: Any, dim: int, reverse: bool, dtype: Any) -> Any:
    turned = np.flip(a, dim) if reverse else a
    sums = np.cumsum(turned.astype(np.float64 if a.dtype.kind == "f" else np.int64), axis=dim)
    return (np.flip(sums, dim) if reverse else sums).astype(dtype)


TARGETS = ["cpu", "cuda:sm_80"]
# Few long lines are summed by warps, many short ones by threads; extents of 1; one warp; odd sizes.
SHAPES = [(3, 200, 64), (70, 5, 64), (1, 33, 32), (4, 1, 32), (130, 7, 32), (17, 64, 96)]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize(("m", "n", "threads"), SHAPES)
def test_against_numpy(target: str, m: int, n: int, threads: int, dim: int, reverse: bool) -> None:
    kernel = running_sums.using(target=target)(m, n, dim, reverse, threads=threads)
    a = np.random.default_rng(1).standard_normal((m, n)).astype(np.float32)
    b = np.full_like(a, np.nan)
    run(kernel, a, b)
    np.testing.assert_allclose(b, expected(a, dim, reverse, np.float32), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("place", ["fragment", "shared"])
@pytest.mark.parametrize(
    ("dtype", "accum"),
    [("int8", "int32"), ("float16", "float16"), ("float16", "float32"), ("int32", "int32")],
)
def test_dtypes_and_memories(target: str, place: str, dtype: str, accum: str) -> None:
    a = np.random.default_rng(2).integers(-100, 100, (6, 90)).astype(dtype)
    b = np.zeros((6, 90), accum)
    run(running_sums.using(target=target)(6, 90, 1, False, dtype, accum, place=place), a, b)
    # 90 int8 of about 100 leave the range of int8, so they are summed in int32; float16 in float32.
    np.testing.assert_array_equal(b, expected(a, 1, False, accum))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("n", [1, 32, 1000])
def test_in_place(target: str, n: int) -> None:
    a = np.arange(n, dtype=np.float32)
    b = np.full_like(a, np.nan)
    run(in_place.using(target=target)(n), a, b)
    assert np.array_equal(b, np.cumsum(a))


def test_the_reference_checks_it_with_a_bound_and_counts_its_work() -> None:
    kernel = running_sums.using(target="cpu")(3, 200, 1, False)
    report = kernel.check()
    assert report.ok, report
    assert kernel.record().flops == 600


def test_what_does_not_fit_is_refused_at_its_line() -> None:
    def other_shape():
        @T.prim_func
        def main(A: T.Tensor((4, 4), "float32")):
            with T.Kernel(1) as bx:
                X = T.alloc_fragment((4, 4), "float32")
                Y = T.alloc_fragment((4, 5), "float32")
                T.cumsum(X, Y)

        return main

    def other_kind():
        @T.prim_func
        def main(A: T.Tensor((4, 4), "float32")):
            with T.Kernel(1) as bx:
                X = T.alloc_fragment((4, 4), "float32")
                Y = T.alloc_fragment((4, 4), "int32")
                T.cumsum(X, Y)

        return main

    with pytest.raises(ShapeError, match="gives a tile of the same shape") as caught:
        tilebench.jit(other_shape).using(target="cpu")()
    assert "T.cumsum(X, Y)" in str(caught.value)
    with pytest.raises(DTypeError, match=r"T\.cumsum of float32 cannot give int32"):
        tilebench.jit(other_kind).using(target="cpu")()
