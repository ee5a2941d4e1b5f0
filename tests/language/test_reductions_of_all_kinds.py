"""Reductions of bits, with NaN handed on, by name, of integers into floats; running maxima."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.everywhere import everywhere, kernel_of
from tilebench.errors import TileError
from tilebench.reference import run_bounded

BITS = {"bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor}


def _given(dtype: str, shape: tuple[int, ...]) -> Any:
    info = np.iinfo(dtype)
    return np.random.default_rng(5).integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64"])
@pytest.mark.parametrize("kind", BITS)
def test_reductions_of_bits(kind: str, dtype: str) -> None:
    """Along both dimensions, odd sizes, by both spellings; the old value takes part once."""
    head = f'A: T.Tensor((48, 37), "{dtype}"), O: T.Tensor((48,), "{dtype}"), C: T.Tensor((37,), "{dtype}")'
    body = f"""
    S = T.alloc_fragment((48, 37), "{dtype}")
    r = T.alloc_fragment((48,), "{dtype}")
    c = T.alloc_fragment((37,), "{dtype}")
    T.copy(A, S)
    T.copy(C, c)
    T.reduce_{kind}(S, r, dim=1)
    T.reduce(S, c, "{kind}", dim=0, clear=False)
    T.copy(r, O)
    T.copy(c, C)
    """
    a, c = _given(dtype, (48, 37)), _given(dtype, (37,))
    found = everywhere(body, head, A=a, C=c)
    np.testing.assert_array_equal(found["O"], BITS[kind].reduce(a, axis=1))
    np.testing.assert_array_equal(found["C"], BITS[kind](BITS[kind].reduce(a, axis=0), c))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("kind", ["max", "min"])
def test_nan_is_handed_on(kind: str, dtype: str) -> None:
    head = ", ".join(
        [f'A: T.Tensor((64, 70), "{dtype}")', *(f'{n}: T.Tensor((64,), "{dtype}")' for n in "OPQ")]
    )
    body = f"""
    S = T.alloc_fragment((64, 70), "{dtype}")
    r = T.alloc_fragment((64,), "{dtype}")
    T.copy(A, S)
    T.reduce_{kind}(S, r, dim=1, nan_propagate=True)
    T.copy(r, O)
    T.reduce_{kind}(S, r, dim=1, batch=2)
    T.copy(r, P)
    T.copy(Q, r)
    T.reduce_{kind}(S, r, dim=1, clear=False, nan_propagate=True)
    T.copy(r, Q)
    """
    a = np.random.default_rng(2).uniform(-2, 2, (64, 70)).astype(np.float32)
    a[3, 5] = a[7, 69] = a[9, 0] = np.nan
    a[11] = np.nan
    q = np.zeros(64, np.float32)
    q[20] = np.nan
    kernel = kernel_of(body, head)
    as_dtype = kernel.using(target="cpu")().compilation.reference.params[0].dtype.numpy
    found = everywhere(body, head, A=a.astype(as_dtype), Q=q.astype(as_dtype))
    hand_on, lose = (np.maximum, np.fmax) if kind == "max" else (np.minimum, np.fmin)
    wide = a.astype(as_dtype).astype(np.float64)
    start = -np.inf if kind == "max" else np.inf
    for name, wanted in (
        ("O", hand_on.reduce(wide, axis=1)), ("P", lose.reduce(wide, axis=1, initial=start)),
        ("Q", hand_on(hand_on.reduce(wide, axis=1), q)),
    ):  # fmt: skip
        np.testing.assert_array_equal(found[name].astype(np.float64), wanted, err_msg=name)


@pytest.mark.parametrize(
    ("source", "target"), [("int32", "float32"), ("int8", "float16"), ("int64", "float64")]
)
def test_integers_are_summed_into_a_float(source: str, target: str) -> None:
    head = f'A: T.Tensor((32, 45), "{source}"), O: T.Tensor((32,), "{target}")'
    head += f', R: T.Tensor((32, 45), "{target}")'
    body = f"""
    S = T.alloc_fragment((32, 45), "{source}")
    F = T.alloc_fragment((32, 45), "{target}")
    s = T.alloc_fragment((32,), "{target}")
    T.copy(A, S)
    T.reduce_sum(S, s, dim=1)
    T.cumsum(S, F, dim=1)
    T.copy(s, O)
    T.copy(F, R)
    """
    a = np.random.default_rng(4).integers(-60, 60, (32, 45)).astype(source)
    found = everywhere(body, head, A=a)
    np.testing.assert_array_equal(found["O"], a.sum(axis=1, dtype=np.int64).astype(target))
    np.testing.assert_array_equal(found["R"], a.cumsum(axis=1, dtype=np.int64).astype(target))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int8", "uint8", "float64"])
@pytest.mark.parametrize(("shape", "dim"), [((300,), 0), ((6, 200), 1), ((200, 5), 1), ((64, 33), 1)])
def test_running_maxima(dtype: str, shape: tuple[int, ...], dim: int) -> None:
    """Few long lines (a warp each) and many short ones (a thread each), both ways, also in place."""
    head = ", ".join(f'{name}: T.Tensor({shape}, "{dtype}")' for name in "AOR")
    body = f"""
    S = T.alloc_fragment({shape}, "{dtype}")
    F = T.alloc_fragment({shape}, "{dtype}")
    T.copy(A, S)
    T.cummax(S, F, dim={dim})
    T.copy(F, O)
    T.cummax(S, dim={dim}, reverse=True)
    T.copy(S, R)
    """
    rng = np.random.default_rng(6)
    a = (
        rng.uniform(-2, 2, shape)
        if "float" in dtype
        else rng.integers(0, 120, shape) - 60 * (dtype[0] == "i")
    )
    a = a.astype(dtype)
    if "float" in dtype:
        a.flat[7] = a.flat[0] = np.nan
    found = everywhere(body, head, A=a)
    start = -np.inf if "float" in dtype else np.iinfo(dtype).min
    most = np.fmax.accumulate(a, axis=dim) if "float" in dtype else np.maximum.accumulate(a, axis=dim)
    np.testing.assert_array_equal(found["O"], np.where(np.isnan(most), start, most))
    turned = np.flip(np.fmax.accumulate(np.flip(a, dim), axis=dim), dim)
    np.testing.assert_array_equal(found["R"], np.where(np.isnan(turned), start, turned))


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("T.reduce_bitand(S, s, dim=1)", "T.reduce_bitand takes integers, found float32"),
        ('T.reduce(S, s, "mean", dim=1)', "T.reduce has no type 'mean'"),
        ("T.cummax(S, s)", "T.cummax gives a tile of the same shape"),
    ],
)
def test_what_is_refused(statement: str, what: str) -> None:
    body = f"""
    S = T.alloc_fragment((64, 64), "float32")
    s = T.alloc_fragment((64,), "float32")
    T.copy(A, S)
    {statement}
    """
    with pytest.raises(TileError) as error:
        kernel_of(body).using(target="cuda:sm_80")()
    first = str(error.value).splitlines()[0]
    assert first.split("error: ")[1] == what


@pytest.mark.parametrize("kind", ["cummax", "cumsum"])
def test_lines_of_one_element(kind: str) -> None:
    """A maximum of a NaN alone is where maxima start; a sum of it is NaN."""
    a = np.array([[1.0, np.nan, -np.inf, 2.0]], np.float32)
    head = 'A: T.Tensor((1, 4), "float32"), O: T.Tensor((1, 4), "float32")'
    found = everywhere(
        f"""
        S = T.alloc_shared((1, 4), "float32")
        T.copy(A, S)
        T.{kind}(S, dim=0)
        T.copy(S, O)
        """,
        head, A=a,
    )  # fmt: skip
    wanted = np.fmax(a, -np.inf) if kind == "cummax" else a
    np.testing.assert_array_equal(found["O"], wanted)


@pytest.mark.parametrize("shape", [(8, 40), (64, 5)])
def test_extremes_of_eight_bits_stop_at_the_largest(shape: tuple[int, int]) -> None:
    """An infinity that is only moved stays one; that of an extreme is the result of an operation."""
    rows = shape[0]
    dtype = "float8_e5m2"
    names = [f'{n}: T.Tensor(({rows},), "{dtype}")' for n in "OPQ"]
    head = ", ".join([f'{n}: T.Tensor({shape}, "{dtype}")' for n in "AR"] + names)
    body = f"""
    S = T.alloc_fragment({shape}, "{dtype}")
    r = T.alloc_fragment(({rows},), "{dtype}")
    T.copy(A, S)
    T.reduce_max(S, r, dim=1, nan_propagate=True)
    T.copy(r, O)
    T.copy(Q, r)
    T.reduce_min(S, r, dim=1, clear=False, nan_propagate=True)
    T.copy(r, Q)
    T.reduce_max(S, r, dim=1)
    T.copy(r, P)
    T.cummax(S, dim=1)
    T.copy(S, R)
    """
    a = np.random.default_rng(7).integers(-4, 4, shape).astype(np.float32)
    a[1], a[2, 3], a[3, 1], a[4, 2] = -np.inf, np.inf, -np.inf, np.nan
    given = a.astype(ml_dtypes.float8_e5m2)
    found = everywhere(body, head, A=given, Q=np.ones(rows, given.dtype))
    cut = np.clip(a, -57344, 57344)
    expected = {
        "O": np.maximum.reduce(cut, axis=1),
        "Q": np.minimum(np.minimum.reduce(cut, axis=1), 1),
        "P": np.fmax.reduce(cut, axis=1),
        "R": np.fmax.accumulate(cut, axis=1),
    }
    jit = kernel_of(body, head)
    kernel = jit.using(target="cpu")()
    arrays = {"A": given, "Q": np.ones(rows, given.dtype)}
    arrays |= {n: np.zeros(s, given.dtype) for n, s in (("R", shape), ("O", rows), ("P", rows))}
    bounded = run_bounded(kernel.compilation.reference, arrays)
    for name, wanted in expected.items():
        np.testing.assert_array_equal(found[name].astype(np.float32), wanted)
        np.testing.assert_array_equal(bounded[name].value, wanted)
        assert not bounded[name].error.any()
