"""Conversions into and out of 8-bit floats and 4-bit integers, over every value they have."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilebench.language as T
from tilebench.ir.dtypes import ALL, DType
from tilebench.language.meanings.conversion import cast_bound, cast_meaning
from tilebench.language.meanings.inexact import Inexact, exact
from tilebench.language.meanings.rounding import number_in, round_to

E4M3, E5M2 = ALL["float8_e4m3fn"], ALL["float8_e5m2"]
FLOAT8 = [E4M3, E5M2]


def decoded(bits: int, dtype: DType) -> float:
    """The value of a pattern, from the format's definition (OCP 8-bit floating point, revision 1.0)."""
    fraction, bias = (3, 7) if dtype is E4M3 else (2, 15)
    sign = -1.0 if bits & 0x80 else 1.0
    exponent, rest = (bits & 0x7F) >> fraction, bits & ((1 << fraction) - 1)
    if dtype is E4M3 and bits & 0x7F == 0x7F:
        return np.nan
    if dtype is E5M2 and exponent == 31:
        return np.nan if rest else sign * np.inf
    if exponent == 0:
        return sign * rest * 2.0 ** (1 - bias - fraction)
    return sign * (1 + rest / 2**fraction) * 2.0 ** (exponent - bias)


def nearest(value: float, dtype: DType) -> float:
    """The nearest finite value, of two as near the one with an even pattern; past the ends the end."""
    if np.isnan(value):
        return np.nan
    finite = sorted((decoded(b, dtype), b) for b in range(128) if np.isfinite(decoded(b, dtype)))
    size = abs(value)
    best = min(finite, key=lambda row: (abs(row[0] - size) if np.isfinite(size) else -row[0], row[1] & 1))
    return float(np.copysign(best[0], value))


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
def test_limits(dtype: DType) -> None:
    finite = [decoded(b, dtype) for b in range(256) if np.isfinite(decoded(b, dtype))]
    assert dtype.largest == max(finite) == {E4M3: 448.0, E5M2: 57344.0}[dtype]
    assert dtype.has_infinity is (dtype is E5M2)
    assert dtype.most == (np.inf if dtype is E5M2 else 448.0)
    assert dtype.least == -dtype.most
    assert [ALL[name].largest for name in ("float16", "bfloat16", "float32", "float64")] == [
        float(ml_dtypes.finfo(ALL[name].numpy).max) for name in ("float16", "bfloat16", "float32", "float64")
    ]


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
@pytest.mark.parametrize("wide", ["float16", "bfloat16", "float32", "float64"])
def test_every_8_bit_float_is_exact_in_a_wider_one_and_comes_back(dtype: DType, wide: str) -> None:
    every = np.arange(256, dtype=np.uint8).view(dtype.numpy)
    out = cast_meaning(every, dtype, ALL[wide])
    assert out.dtype == ALL[wide].numpy
    expected = np.array([decoded(b, dtype) for b in range(256)])
    assert np.array_equal(out.astype(np.float64), expected, equal_nan=True)
    back = cast_meaning(out, ALL[wide], dtype)
    # A conversion stops at the largest value, for an infinity too; copies keep what they move.
    stopped = np.clip(expected, -dtype.largest, dtype.largest)
    assert np.array_equal(back.astype(np.float64), stopped, equal_nan=True)
    assert cast_meaning(every, dtype, dtype) is every


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
def test_every_float16_into_an_8_bit_float(dtype: DType) -> None:
    halves = np.arange(65536, dtype=np.uint16).view(np.float16)
    halves = np.where(np.isnan(halves), np.float16(np.nan), halves)  # quiet ones: NumPy warns of others
    out = cast_meaning(halves, ALL["float16"], dtype).astype(np.float64)
    some = np.r_[0:65536:97, 0x5F00:0x5F10, 0x7AF0:0x7C04, 0xFBF0:0xFC04]
    assert all(
        out[k] == nearest(float(halves[k]), dtype) or np.isnan(out[k]) & np.isnan(halves[k]) for k in some
    )
    for source in ("float32", "float64"):
        wide = halves.astype(ALL[source].numpy)
        assert np.array_equal(cast_meaning(wide, ALL[source], dtype).astype(float), out, equal_nan=True)
    bounded = cast_bound(exact(halves.astype(np.float64)), ALL["float16"], dtype)
    with np.errstate(invalid="ignore"):
        assert (np.abs(out - bounded.value) <= bounded.error)[~np.isnan(halves)].all()
    assert np.array_equal(np.isnan(out), np.isnan(bounded.value))


@pytest.mark.parametrize(
    ("dtype", "given", "stored"),
    [(E4M3, 500.0, 448.0), (E4M3, np.inf, 448.0), (E4M3, -1e9, -448.0), (E5M2, 7e4, 57344.0),
     (E5M2, -np.inf, -57344.0), (E4M3, 464.0, 448.0), (E5M2, 61440.0, 57344.0), (E4M3, np.nan, np.nan)],
)  # fmt: skip
def test_too_large_is_the_largest(dtype: DType, given: float, stored: float) -> None:
    for made in (round_to(given, dtype), cast_meaning(np.float32(given), ALL["float32"], dtype)):
        assert np.array_equal(np.float64(made), stored, equal_nan=True)
    bounded = cast_bound(exact(np.float64([given])), ALL["float64"], dtype)
    assert np.array_equal(bounded.value, [stored], equal_nan=True)
    assert bounded.error == 0
    near = cast_bound(Inexact(np.float64([given]), np.float64([1.0])), ALL["float64"], dtype)
    assert np.isfinite(near.error).all()


def test_infinity_is_a_literal_where_the_format_has_it() -> None:
    assert number_in(np.inf, E5M2) == np.inf
    assert number_in(np.inf, E4M3) == 448
    assert number_in(1e9, E5M2) == 57344


@pytest.mark.parametrize("name", ["int4", "uint4"])
def test_nibbles(name: str) -> None:
    dtype: DType = ALL[name]
    low, high = int(dtype.least), int(dtype.most)
    assert (low, high) == ((-8, 7) if name == "int4" else (0, 15))
    every = np.arange(low, high + 1).astype(dtype.numpy)
    for wide in ("float16", "bfloat16", "float32", "int8", "int32", "float8_e5m2", "int64"):
        out = cast_meaning(every, dtype, ALL[wide])
        expected = np.arange(low, high + 1)
        if wide == "float8_e5m2":  # two bits of fraction: ties go to even
            expected = np.array([nearest(float(each), E5M2) for each in expected])
        assert np.array_equal(out.astype(np.int64), expected)
        back = cast_meaning(out, ALL[wide], dtype)
        assert np.array_equal(back.astype(np.int64), np.clip(expected, low, high))
    numbers = np.array([-1e9, -9, -8.5, -0.9, 0.5, 7.9, 15.5, 16, 1e9, np.nan], np.float32)
    ends: Any = cast_meaning(numbers, ALL["float32"], dtype)
    expected = [-8, -8, -8, 0, 0, 7, 7, 7, 7, 0] if name == "int4" else [0, 0, 0, 0, 0, 7, 15, 15, 15, 0]
    assert ends.astype(int).tolist() == expected
    # Integers keep their low bits.
    wrapped = cast_meaning(np.arange(-40, 40), ALL["int64"], dtype).astype(int)
    assert np.array_equal(wrapped, (np.arange(-40, 40) - low) % 16 + low)
    other = ALL["uint4" if name == "int4" else "int4"]
    assert np.array_equal(cast_meaning(every, dtype, other).astype(int) % 16, np.arange(low, high + 1) % 16)


def test_dtypes_of_storage_are_not_computed_with() -> None:
    assert (T.int4.bits, T.uint4.bits, T.int4.per_byte) == (4, 4, 2)
    assert ALL["int4"].bytes_of(6) == 3
    assert ALL["int4"].elements_in(16) == 32
