"""Errors of the elementary functions against NumPy, in ulps, and their special values."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from kit import named_isa, run_map, runnable, ulp_error

from tests.everywhere import everywhere
from tilebench.targets.cpu.numbers import functions as functions

Array = Any
SPECIAL = [
    0, -0.0, math.inf, -math.inf, math.nan, 1, -1, 1e-45, -1e-45, 1e-38, -1e-38, 88.7, 88.73, -103.9, -104.1,
    3.4e38, -3.4e38, 0.625, -0.625, 1 + 2**-23, 1 - 2**-24, 0.5, 2, 4, 10, 100,
]  # fmt: skip


def sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1) / (1 + small)


def half_away(x: Array) -> Array:
    return np.where(np.abs(x - np.trunc(x)) == 0.5, np.trunc(x) + np.copysign(1, x), np.rint(x))


# name, exact in wider precision, where most samples lie, float32 ulp, float64 ulp
CASES: list[tuple[str, Callable[[Array], Array], float, float, float, float]] = [
    ("exp", np.exp, -110, 95, 1.3, 2), ("exp2", np.exp2, -155, 130, 1.3, 2),
    ("exp10", lambda x: np.power(x.dtype.type(10), x), -48, 40, 1.3, 2),
    ("log", np.log, 0.4, 2, 1.0, 1.0), ("log2", np.log2, 0.4, 2, 2, 2), ("log10", np.log10, 0.4, 2, 2, 2),
    ("log1p", np.log1p, -1, 2, 2, 2), ("sqrt", np.sqrt, 0, 9, 0.5, 0.5),
    ("rsqrt", lambda x: 1 / np.sqrt(x), 0, 9, 1.5, 1.5),
    ("tanh", np.tanh, -10, 10, 1.5, 3), ("sigmoid", sigmoid, -100, 90, 2.5, 3),
    ("erf", np.vectorize(math.erf), -5, 5, 2.6, 1.5), ("sin", np.sin, -50, 50, 1.6, 0.8),
    ("cos", np.cos, -50, 50, 1.6, 0.8),
    ("tan", np.tan, -50, 50, 3.5, 2.1), ("atan", np.arctan, -9, 9, 2.6, 0.8),
    ("asin", np.arcsin, -1, 1, 4, 0.9), ("acos", np.arccos, -1, 1, 4, 0.9),
    ("sinh", np.sinh, -90, 90, 0.51, 4), ("cosh", np.cosh, -90, 90, 0.51, 4),
    ("asinh", np.arcsinh, -9, 9, 0.51, 4), ("acosh", np.arccosh, 1, 9, 0.51, 4),
    ("atanh", np.arctanh, -1, 1, 0.51, 4),
    ("floor", np.floor, -9, 9, 0, 0.001), ("ceil", np.ceil, -9, 9, 0, 0.001),
    ("trunc", np.trunc, -9, 9, 0, 0.001),
    ("round", half_away, -9, 9, 0, 0.001), ("nearbyint", np.rint, -9, 9, 0, 0.001),
]  # fmt: skip


def samples(low: float, high: float, kind: Any) -> Array:
    """Random bit patterns (every exponent, NaN and subnormals among them), the special values, a range."""
    rng = np.random.default_rng(7)
    unsigned = np.uint32 if kind == np.float32 else np.uint64
    bits = rng.integers(0, np.iinfo(unsigned).max, 20_001, dtype=unsigned, endpoint=True).view(kind)
    return np.concatenate([bits, np.array(SPECIAL, kind), rng.uniform(low, high, 20_000).astype(kind)])


@pytest.mark.parametrize("level", ["host", "x86-64", "x86-64-v3"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
@np.errstate(all="ignore")
def test_float32(case: Any, level: str) -> None:
    name, exact, low, high, limit, _ = case
    isa = named_isa(level)
    if not runnable(isa):
        pytest.skip("not this machine's instruction set")
    x = samples(low, high, np.float32)
    found, wanted = run_map(functions.UNARY[name], [x], "float32", isa), exact(x.astype(np.float64))
    assert ulp_error(found, wanted) <= limit
    zero = found == 0
    assert np.array_equal(np.signbit(found[zero]), np.signbit(wanted[zero]))


@pytest.mark.parametrize("level", ["host", "x86-64", "x86-64-v3"])
@np.errstate(all="ignore")
def test_of_two(level: str) -> None:
    isa = named_isa(level)
    if not runnable(isa):
        pytest.skip("not this machine's instruction set")
    for kind, name in ((np.float32, "float32"), (np.float64, "float64")):
        x, y = samples(-9, 9, kind), samples(-9, 9, kind)[::-1].copy()
        wide = np.float64 if kind == np.float32 else np.longdouble
        exact = np.hypot(x.astype(wide), y.astype(wide))
        assert ulp_error(run_map(functions.OF_TWO["hypot"], [x, y], name, isa), exact) <= (
            2 if wide is np.longdouble else 0.51
        )
        steps = np.random.default_rng(1).integers(-2300, 2300, len(x)).astype(kind)
        found = run_map(functions.OF_TWO["ldexp"], [x, steps], name, isa)
        np.testing.assert_array_equal(found, np.ldexp(x, steps.astype(np.int32)))
        found = run_map(functions.OF_TWO["copysign"], [x, y], name, isa)
        np.testing.assert_array_equal(found, np.copysign(x, y))
        found = run_map(functions.OF_TWO["atan2"], [y, x], name, isa)
        exact = np.arctan2(y.astype(wide), x.astype(wide))
        assert ulp_error(found, exact) <= (2 if wide is np.longdouble else 4)
        assert np.array_equal(np.signbit(found[found == 0]), np.signbit(exact[found == 0]))


@pytest.mark.parametrize("level", ["host", "x86-64", "x86-64-v3"])
@np.errstate(all="ignore")
def test_angles_of_any_size(level: str) -> None:
    """Powers of two and the numbers below; the float32 nearest to a multiple of pi/2; what is no number."""
    isa = named_isa(level)
    if not runnable(isa):
        pytest.skip("not this machine's instruction set")
    powers = np.ldexp(np.float32(1), np.arange(15, 128))
    near = [1e6, 1000000.1, 16367173 * 2.0**72, 1e20, 3.4e38, math.inf, math.nan]
    x = np.concatenate([powers, np.nextafter(powers, np.float32(0)), np.array(near, np.float32)])
    x = np.concatenate([x, -x])
    for name, exact, limit in (("sin", np.sin, 1.6), ("cos", np.cos, 1.6), ("tan", np.tan, 3.5)):
        found = run_map(functions.UNARY[name], [x], "float32", isa)
        assert ulp_error(found, exact(x.astype(np.float64))) <= limit
        assert np.isnan(found[~np.isfinite(x)]).all()
    cosine = run_map(functions.cos, [np.array([16367173 * 2.0**72], np.float32)], "float32", isa)
    assert abs(float(cosine[0])) < 2e-9


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
@np.errstate(all="ignore")
def test_float64(case: Any) -> None:
    name, exact, low, high, _, limit = case
    x = np.concatenate([samples(low, high, np.float64), np.linspace(-745, 709, 5000)])
    if np.finfo(np.longdouble).nmant < 60:
        pytest.skip("no wider type to compare with")
    assert ulp_error(run_map(functions.UNARY[name], [x], "float64"), exact(x.astype(np.longdouble))) <= limit


@pytest.mark.parametrize("level", ["host", "x86-64", "x86-64-v3"])
@np.errstate(all="ignore")
def test_angles_of_any_size_in_float64(level: str) -> None:
    """Both ways of reduction and where they meet, multiples of pi/2, and the double nearest to one."""
    isa = named_isa(level)
    if not runnable(isa):
        pytest.skip("not this machine's instruction set")
    if np.finfo(np.longdouble).nmant < 60:
        pytest.skip("no wider type to compare with")
    rng = np.random.default_rng(5)
    powers = np.ldexp(1.0, np.arange(-1, 1024))
    near = [6381956970095103.0 * 2.0**797, 1.6e6, np.nextafter(1.6e6, 2e6), 1.7e308, math.inf, math.nan]
    x = np.concatenate([
        powers, np.nextafter(powers, 0), np.arange(1, 20_000) * (math.pi / 2), near,
        np.ldexp(rng.uniform(1, 2, 5000), rng.integers(19, 1023, 5000)), rng.uniform(1e6, 2e6, 5000),
    ])  # fmt: skip
    x = np.concatenate([x, -x])
    for name, exact, limit in (("sin", np.sin, 0.8), ("cos", np.cos, 0.8), ("tan", np.tan, 2.1)):
        found = run_map(functions.UNARY[name], [x], "float64", isa)
        assert ulp_error(found, exact(x.astype(np.longdouble))) <= limit
        assert np.isnan(found[~np.isfinite(x)]).all()
    # From exact integer arithmetic on pi: nearer to a multiple of pi/2 than any other double.
    cosine = run_map(functions.cos, [np.array([6381956970095103.0 * 2.0**797])], "float64", isa)
    assert abs(float(cosine[0])) == pytest.approx(4.687165924254628e-19, rel=3e-16)


@np.errstate(all="ignore")
def test_power_of_every_pair_of_special_values_and_at_random() -> None:
    special, rng = np.array([*SPECIAL, -2, 3, -3, 0.5, 7, 1000000000.0], np.float32), np.random.default_rng(3)
    a = np.concatenate(
        [np.repeat(special, special.size), rng.uniform(-5, 5, 5000), rng.uniform(0, 1e6, 5000)]
    )
    b = np.concatenate([np.tile(special, special.size), rng.integers(-9, 9, 5000), rng.uniform(-6, 6, 5000)])
    a, b = a.astype(np.float32), b.astype(np.float32)
    exact = np.power(a.astype(np.float64), b.astype(np.float64))
    found = run_map(functions.power, [a, b], "float32")
    assert ulp_error(found, exact) <= 0.51
    assert np.array_equal(np.signbit(found[found == 0]), np.signbit(exact[found == 0]))


@pytest.mark.parametrize("kind", ["float32", "float64"])
@np.errstate(all="ignore")
def test_remainders_are_exact(kind: str) -> None:
    """C's fmod of any two numbers: large quotients, subnormals, signs, infinities, zeros and NaN."""
    rng = np.random.default_rng(3)
    unsigned = np.uint32 if kind == "float32" else np.uint64
    bits = rng.integers(0, np.iinfo(unsigned).max, (2, 20_000), dtype=unsigned, endpoint=True).view(kind)
    near = rng.uniform(-9, 9, (2, 5_000)).astype(kind)
    edges = np.array([*SPECIAL, np.finfo(kind).smallest_subnormal, np.finfo(kind).max], kind)
    pairs = np.array([each.ravel() for each in np.meshgrid(edges, edges)])
    least = np.finfo(kind).smallest_subnormal * rng.integers(1, 1 << 20, (2, 5_000)).astype(kind)
    a, b = np.concatenate([bits, near, pairs, least], axis=1)
    found = run_map(functions.remainder, [a, b], kind, named_isa("host"))
    wanted = np.fmod(a, b)
    np.testing.assert_array_equal(found, wanted)
    assert np.array_equal(np.signbit(found[found == 0]), np.signbit(wanted[wanted == 0]))


@pytest.mark.parametrize("word", ["sin", "tan", "exp"])
def test_functions_beside_values_twice_as_wide(word: str) -> None:
    """Vectors have the lanes of the widest value: a float32 is half a register then."""
    body = f"""
    for i in T.Parallel(64):
        O[i] = T.{word}(A[i])
    """
    a = np.linspace(-3, 3, 64, dtype=np.float32)
    found = everywhere(body, 'A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float64")', exact=False, A=a)
    np.testing.assert_allclose(found["O"], getattr(np, word)(a.astype(np.float64)), rtol=1e-5, atol=1e-6)
