"""Whole kernels on the CPU, against NumPy and against the reference, whose bounds forgive nothing."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.targets.cpu import kernels
from tilebench.ir import parse_function
from tilebench.targets import manifest
from tilebench.targets.cpu.machine import Isa, host_isa, named_isa

DTYPES = [
    "float32", "float16", "bfloat16", "float64", "int8", "int16", "int32", "int64",
    "uint8", "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2",
]  # fmt: skip


def runnable(isa: Isa) -> bool:
    """Whether code for the instruction set runs here."""
    return isa.triple == host_isa().triple and isa.has <= host_isa().has


# Instruction sets of which this machine's is a superset (all of them on a server of the last years).
ISAS = [each for each in ("", "x86-64-v3", "x86-64") if not each or runnable(named_isa(each))]


def checked(kernel: Any, *values: Any, seed: int = 1, isa: str = "", **named: Any) -> Any:
    """The compiled kernel, its result within the error bound of every element, its stages read back."""
    made = kernel.using(target=f"cpu:{isa}" if isa else "cpu")(*values, **named)
    made.check(seed=seed).raise_if_wrong()
    for name, function in made.compilation.functions.items():
        assert parse_function(made.compilation.print(name).text, manifest("cpu").registry) == function, name
    return made


@pytest.mark.parametrize("dtype", DTYPES)
def test_add_in_every_dtype(dtype: str) -> None:
    checked(kernels.add, 37, 53, 16, 32, dtype)


def test_add_rounds_as_numpy_does() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(-2, 2, (100, 200)).astype(np.float16) for _ in range(2))
    c = np.empty_like(a)
    kernels.add.using(target="cpu")(100, 200, 32, 64, "float16")(a, b, c)
    assert np.array_equal(c, a + b)


@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
def test_gemm_transposes(ta: bool, tb: bool) -> None:
    checked(kernels.gemm, 70, 90, 100, 32, 48, 40, ta=ta, tb=tb)
    checked(kernels.gemm, 65, 129, 33, 64, 128, 32, ta=ta, tb=tb, dtype="float16", out="float16")


@pytest.mark.parametrize(
    ("dtype", "accum", "out"),
    [
        ("float16", "float16", "float16"), ("bfloat16", "float32", "bfloat16"),
        ("float64", "float64", "float64"), ("int8", "int32", "int32"), ("uint8", "int32", "int32"),
        ("float8_e4m3fn", "float32", "float32"),
        ("float8_e5m2", "float32", "float16"), ("int16", "int32", "int32"), ("int32", "int32", "int32"),
    ],
)  # fmt: skip
def test_gemm_dtypes(dtype: str, accum: str, out: str) -> None:
    checked(kernels.gemm, 70, 90, 100, 32, 48, 40, dtype=dtype, accum=accum, out=out)


@settings(max_examples=12)
@given(
    shape=st.tuples(st.integers(1, 90), st.integers(1, 150), st.integers(1, 90)),
    block=st.tuples(st.integers(1, 40), st.integers(1, 100), st.integers(1, 40)),
)
def test_gemm_of_any_shape(shape: tuple[int, int, int], block: tuple[int, int, int]) -> None:
    m, n, k = shape
    rng = np.random.default_rng(m * n + k)
    a, b = rng.uniform(-1, 1, (m, k)).astype(np.float32), rng.uniform(-1, 1, (k, n)).astype(np.float32)
    c = np.full((m, n), np.nan, np.float32)
    kernels.gemm.using(target="cpu")(*shape, *block)(a, b, c)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    bound = (k + 2) * 2.0**-24 * (np.abs(a).astype(np.float64) @ np.abs(b)) + 1e-30
    assert (np.abs(c - exact) <= bound).all()


@pytest.mark.parametrize("block", [(32, 32, 16), (16, 100, 7), (64, 128, 64)])
@pytest.mark.parametrize("isa", ISAS)
def test_gemm_whose_accumulator_is_looked_at(block: tuple[int, int, int], isa: str) -> None:
    """Ghost rows and columns of an edge tile hold zeros when a reduction reads them."""
    checked(kernels.gemm_bias_relu, 50, 170, 60, *block, isa=isa)


@pytest.mark.parametrize("isa", ISAS)
def test_narrower_processors(isa: str) -> None:
    """Code for older instruction sets of this machine gives the same results."""
    checked(kernels.gemm, 70, 90, 100, 32, 48, 40, dtype="int8", accum="int32", out="int32", isa=isa)
    checked(kernels.gemm, 70, 90, 100, 32, 48, 40, dtype="float16", tb=True, isa=isa)
    checked(kernels.add, 37, 53, 16, 32, "bfloat16", isa=isa)
    checked(kernels.softmax, 37, 53, 8, isa=isa)
    checked(kernels.transpose, 50, 70, 32, "float16", isa=isa)


@pytest.mark.parametrize("shape", [(37, 53, 8), (64, 256, 16), (5, 1000, 16), (3, 1, 2)])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_softmax(shape: tuple[int, int, int], dtype: str) -> None:
    checked(kernels.softmax, *shape, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "float64"])
def test_row_sum(dtype: str) -> None:
    checked(kernels.rowsum, 37, 301, 8, 64, dtype)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("kind", ["sum", "max", "min"])
def test_reductions_of_three_dimensions(dim: int, kind: str) -> None:
    checked(kernels.reduce3, 5, 7, 19, dim, kind)
    checked(kernels.reduce3, 3, 4, 70, dim, kind, "uint8" if kind != "sum" else "int32")


@pytest.mark.parametrize("at", [0, 17, 37, 39])
def test_nan_loses_a_maximum(at: int) -> None:
    # As in the reference and on CUDA (fmax): the checks of all targets agree on what a NaN does.
    a = np.zeros((2, 3, 40), np.float32)
    a[1, 2] = -5
    a[1, 2, at] = np.nan
    kernel = kernels.reduce3.using(target="cpu")(2, 3, 40, 2, "max")
    c = np.empty((2, 3), np.float32)
    kernel(a, c)
    assert c[1, 2] == -5
    assert kernel.check(a, c).ok


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "float64"])
def test_transpose(dtype: str) -> None:
    checked(kernels.transpose, 50, 70, 32, dtype)


def test_an_index_outside_reads_zero() -> None:
    table, index = (
        np.arange(1, 41, dtype=np.float32),
        np.array([0, 39, 40, -1, 2**31 - 1, -(2**31), 7], np.int32),
    )
    c = np.full(7, np.nan, np.float32)
    kernels.gather.using(target="cpu")(7, 40, 16)(table, index, c)
    assert c.tolist() == [1, 40, 0, 0, 0, 0, 8]


def test_stencil_at_the_edges() -> None:
    a = np.arange(1, 101, dtype=np.float32)
    c = np.full(100, np.nan, np.float32)
    kernels.stencil.using(target="cpu")(100, 32)(a, c)
    padded = np.pad(a, 1)
    assert np.array_equal(c, padded[:-2] + 2 * padded[1:-1] + padded[2:])


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("float32", "int32"), ("int32", "float16"), ("float16", "float32"), ("float32", "bfloat16"),
        ("float64", "float16"), ("uint8", "int64"), ("float32", "bool"), ("bool", "float32"),
        ("int64", "int8"), ("float32", "float8_e4m3fn"),
    ],
)  # fmt: skip
def test_casts(source: str, target: str) -> None:
    checked(kernels.cast, 100, 32, source, target)


def test_scalars_of_a_turn() -> None:
    checked(kernels.collatz, 50, 32, 40)
    checked(kernels.scalars, 50)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_attention(dtype: str) -> None:
    made = checked(kernels.attention, 100, 32, 32, 24, dtype=dtype)
    rng = np.random.default_rng(0)
    q, k, v = (rng.uniform(-1, 1, (100, 32)).astype(dtype) for _ in range(3))
    o = np.empty_like(q)
    made(q, k, v, o)
    scores = q.astype(np.float64) @ k.astype(np.float64).T / 32**0.5
    weights = np.exp(scores - scores.max(1, keepdims=True))
    exact = weights @ v.astype(np.float64) / weights.sum(1, keepdims=True)
    assert np.abs(o - exact).max() < (3e-6 if dtype == "float32" else 2e-3)


def test_division_by_a_number_of_the_row() -> None:
    """To the last bit, over all bit patterns and near the edges where the short way is left."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2**32, (200, 1040), dtype=np.uint64).astype(np.uint32).view(np.float32)
    a[::2] = np.exp(rng.uniform(-60, 60, a[::2].shape)).astype(np.float32)
    d = np.exp(rng.uniform(-13, 17, 200)).astype(np.float32)
    d[::7] = rng.integers(0, 2**32, d[::7].shape, dtype=np.uint64).astype(np.uint32).view(np.float32)
    d[:4] = np.float32(1.9999999), 1, 2.0**-20, 2.0**25
    c = np.empty_like(a)
    kernels.divide_rows.using(target="cpu")(200, 1040)(a, d, c)
    with np.errstate(all="ignore"):
        exact = a / d[:, None]
    same = (c.view(np.uint32) == exact.view(np.uint32)) | (np.isnan(c) & np.isnan(exact))
    assert same.all()


def test_two_threads_compile_at_once() -> None:
    results: list[bool] = []

    def work(size: int) -> None:
        a = np.ones((size, size), np.float32)
        c = np.empty_like(a)
        kernels.gemm.using(target="cpu")(size, size, size, 16, 16, 16)(a, a, c)
        results.append(bool((c == size).all()))

    threads = [threading.Thread(target=work, args=(size,)) for size in (40, 41, 42, 43)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert results == [True] * 4
