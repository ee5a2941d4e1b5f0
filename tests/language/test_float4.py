"""Floats of 4 bits: storage of two a byte, numbers alone, computed with as float32."""

from __future__ import annotations

import importlib.util
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.everywhere import everywhere, kernel_of
from tilebench.errors import DTypeError
from tilebench.ir.dtypes import ALL, bytes_of
from tilebench.ir.packing import pack

FP4 = np.dtype(ml_dtypes.float4_e2m1fn)
VALUES = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
PAIR = 'A: T.Tensor((4, 32), "float4_e2m1fn"), O: T.Tensor((4, 32), "float32")'


def every_code(shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(1).integers(0, 16, shape, np.uint8).view(FP4)


def test_the_format() -> None:
    dtype = ALL["float4_e2m1fn"]
    assert (dtype.largest, dtype.least, dtype.has_infinity, dtype.has_nan) == (6.0, -6.0, False, False)
    assert (dtype.per_byte, dtype.unit_roundoff, bytes_of(dtype).name) == (2, 0.25, "float8_e4m3fn")
    assert np.arange(8, dtype=np.uint8).view(FP4).astype(np.float32).tolist() == VALUES
    # The dtype of bytes has each of the values.
    eight = np.array(VALUES, np.float32).astype(ml_dtypes.float8_e4m3fn)
    assert eight.astype(np.float32).tolist() == VALUES


def test_conversions_stop_at_the_ends_and_a_nan_is_the_greatest_number() -> None:
    given = [
        0.25,
        0.75,
        1.25,
        2.5,
        3.5,
        5.0,
        5.1,
        7.0,
        np.inf,
        -np.inf,
        np.nan,
        -np.nan,
        -0.2,
        1e-30,
        1e30,
        -6.0,
    ]
    right = [0.0, 1.0, 1.0, 2.0, 4.0, 4.0, 6.0, 6.0, 6.0, -6.0, 6.0, 6.0, -0.0, 0.0, 6.0, -6.0]
    for dtype in ("float32", "float64", "float16"):
        found = everywhere(
            "for i in T.Parallel(16): O[i] = T.cast(A[i], 'float4_e2m1fn')",
            f'A: T.Tensor(16, "{dtype}"), O: T.Tensor(16, "float4_e2m1fn")',
            A=np.array(given if dtype != "float16" else np.clip(given, -6e4, 6e4), dtype),
        )
        got = found["O"].astype(np.float32)
        assert got.tolist() == right
        assert np.signbit(got[12])


def test_operators_compute_in_float32() -> None:
    a = every_code((4, 32))
    wide = a.astype(np.float32)
    for text, right in (
        ("A[i, j] * A[i, j]", wide * wide),
        ("A[i, j] + 1", wide + 1),
        ("-A[i, j] / 3.0", -wide / np.float32(3)),
        ("T.max(A[i, j], 0.75)", np.maximum(wide, np.float32(0.75))),
        ("T.abs(A[i, j])", np.abs(wide)),
        ("T.if_then_else(A[i, j] > 1.5, A[i, j], -1)", np.where(wide > 1.5, wide, -1)),
        ("A[i, j] * T.float16(0.1)", (a.astype(np.float16) * np.float16(0.1)).astype(np.float32)),
    ):
        found = everywhere(f"for i, j in T.Parallel(4, 32): O[i, j] = {text}", PAIR, A=a)
        np.testing.assert_array_equal(found["O"], right, err_msg=text)


def test_tiles_fills_and_reductions() -> None:
    a = every_code((4, 32))
    body = """
    s = T.alloc_shared((4, 32), "float4_e2m1fn")
    f = T.alloc_fragment((4, 32), "float4_e2m1fn")
    m = T.alloc_fragment(4, "float32")
    T.copy(A, s)
    T.copy(s, f)
    T.reduce_max(f, m, dim=1)
    T.fill(s, 1.3)
    for i, j in T.Parallel(4, 32):
        O[i, j] = T.cast(f[i, j], "float32") + m[i] * 100 + s[i, j] * 1000
    """
    wide = a.astype(np.float32)
    right = wide + wide.max(1, keepdims=True) * 100 + np.float32(1500)
    np.testing.assert_array_equal(everywhere(body, PAIR, A=a)["O"], right)


def test_products_are_those_of_bytes() -> None:
    body = """
    a = T.alloc_shared((16, 32), "float4_e2m1fn")
    b = T.alloc_shared((32, 16), "float4_e2m1fn")
    c = T.alloc_fragment((16, 16), "float32")
    T.copy(A, a)
    T.copy(B, b)
    T.clear(c)
    T.gemm(a, b, c)
    T.copy(c, C)
    """
    head = """A: T.Tensor((16, 32), "float4_e2m1fn"), B: T.Tensor((32, 16), "float4_e2m1fn"),
        C: T.Tensor((16, 16), "float32")"""
    a, b = every_code((16, 32)), every_code((32, 16))
    right = a.astype(np.float32) @ b.astype(np.float32)  # sums of quarters: exact
    for arch in ("sm_80", "sm_90a"):
        found = everywhere(body, head, arch=arch, A=a, B=b)
        np.testing.assert_array_equal(found["C"], right)


def test_bytes_and_pairs_of_torch_are_what_a_call_takes() -> None:
    a = every_code((4, 32))
    kernel = kernel_of("T.copy(A, O)", PAIR).using(target="cpu")()
    out = np.zeros((4, 32), np.float32)
    kernel(pack(a), out)
    np.testing.assert_array_equal(out, a.astype(np.float32))
    if importlib.util.find_spec("torch"):
        import torch

        assert T.float4_e2m1fn.as_torch() is torch.float4_e2m1fn_x2
        pairs = torch.from_numpy(pack(a)).view(torch.float4_e2m1fn_x2)
        again = np.zeros((4, 32), np.float32)
        kernel(pairs, again)
        np.testing.assert_array_equal(again, out)


NARROW_MAXIMUM = """
s = T.alloc_shared((4, 32), "float4_e2m1fn")
m = T.alloc_fragment(4, "float4_e2m1fn")
T.reduce_max(s, m, dim=1)
"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            NARROW_MAXIMUM,
            "a dtype of 4 bits is one of storage",
        ),
        (
            'for i, j in T.Parallel(4, 32): O[i, j] = T.infinity("float4_e2m1fn")',
            "float4_e2m1fn has no infinity",
        ),
        (
            'for i, j in T.Parallel(4, 32): O[i, j] = T.reinterpret(A[i, j], "uint4")',
            "T.reinterpret of float4_e2m1fn as uint4",
        ),
        ("for i, j in T.Parallel(4, 32): O[i, j] = A[i, j] & 1", "& takes integers, found float32"),
    ],
)
def test_what_is_refused(body: str, message: str) -> None:
    with pytest.raises(tilebench.errors.TileError) as caught:
        kernel_of(body, PAIR).using(target="cpu")()
    assert message in str(caught.value)
    assert caught.value.place is not None


def test_half_a_byte_is_not_stored() -> None:
    with pytest.raises(DTypeError, match="half a byte of O"):
        kernel_of(
            "for i in T.Parallel(15): O[i + 1] = T.cast(A[i], 'float4_e2m1fn')",
            'A: T.Tensor(16, "float32"), O: T.Tensor(16, "float4_e2m1fn")',
        ).using(target="cpu")().stage("bounded")
