"""Conversions: every pattern of the small floats, rounding to nearest even, integers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from kit import LEVELS, map_module, named_isa, run_map, runnable

from tilebench.ir.dtypes import ALL
from tilebench.language.meanings.rounding import narrowed
from tilebench.targets.cpu.numbers.convert import convert
from tilebench.targets.cpu.run.jit import object_code, undefined_symbols

SMALL = ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]
HERE = ["host", "x86-64", "x86-64-v3"]


def through(source: str, target: str) -> Any:
    return lambda f, value: convert(f, value, source, target)


def isa_or_skip(level: str) -> Any:
    isa = named_isa(level)
    if not runnable(isa):
        pytest.skip("not this machine's instruction set")
    return isa


def same(a: Any, b: Any) -> bool:
    """Equal bit for bit, any NaN equal to any NaN."""
    unsigned = f"u{a.dtype.itemsize}"
    return bool(np.all((a.view(unsigned) == b.view(unsigned)) | (np.isnan(a) & np.isnan(b))))


@pytest.mark.parametrize("level", HERE)
@pytest.mark.parametrize("dtype", SMALL)
@np.errstate(all="ignore")
def test_every_pattern_widens_exactly_and_comes_back(dtype: str, level: str) -> None:
    isa, kind = isa_or_skip(level), ALL[dtype]
    every = np.arange(1 << kind.bits, dtype=np.uint32).astype(f"u{kind.bytes_of(1)}").view(kind.numpy)
    wide = run_map(through(dtype, "float32"), [every], "float32", isa)
    assert same(wide, every.astype(np.float32))
    assert same(run_map(through("float32", dtype), [wide], dtype, isa), narrowed(wide, kind))


@pytest.mark.parametrize("level", HERE)
@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("dtype", SMALL)
@np.errstate(all="ignore")
def test_rounding_to_nearest_even(dtype: str, source: str, level: str) -> None:
    isa, kind, rng = isa_or_skip(level), ALL[dtype], np.random.default_rng(5)
    every = (
        np.arange(1 << kind.bits, dtype=np.uint32)
        .astype(f"u{kind.bytes_of(1)}")
        .view(kind.numpy)
        .astype(np.float64)
    )
    finite = np.unique(every[np.isfinite(every)])
    ties = (finite[1:] + finite[:-1]) / 2  # halfway between neighbours, and just beside
    near = np.concatenate([ties, np.nextafter(ties, np.inf), np.nextafter(ties, -np.inf)])
    bits = rng.integers(0, 1 << 32, 50_000, dtype=np.uint32).view(np.float32)
    limits = np.array(
        [np.inf, -np.inf, np.nan, 65504, 65519.996, 65520, 448, 464, 464.1, 480, 3.4e38, 1e39, 1e300]
    )
    x = np.concatenate([near, bits.astype(np.float64), limits]).astype(ALL[source].numpy)
    if source == "float64" and dtype != "float16":
        # ml_dtypes goes through float32 and rounds twice; the nearest value of the type is the truth.
        expected = nearest_even(x, dtype, finite)
    else:
        expected = narrowed(x, kind)
    assert same(run_map(through(source, dtype), [x], dtype, isa), expected)


def nearest_even(x: Any, dtype: str, finite: Any) -> Any:
    """Round doubles once: to the nearest of `finite`, ties to the even code."""
    kind = ALL[dtype].numpy
    step = finite[-1] - finite[-2]
    grid = np.concatenate([[finite[0] - step], finite, [finite[-1] + step]])
    at = np.clip(np.searchsorted(grid, x), 1, grid.size - 1)
    low, high = grid[at - 1], grid[at]
    inside = np.clip(x, grid[0], grid[-1])
    # Codes of neighbours alternate in parity, and zero (index `half`) is even.
    half = int(np.searchsorted(grid, 0.0))
    low_even = (at - 1 - half) % 2 == 0
    down = (inside - low < high - inside) | ((inside - low == high - inside) & low_even)
    picked = np.where(down, low, high)
    outside = np.abs(picked) > finite[-1]
    over = ALL[dtype].largest if ALL[dtype].saturates else np.inf
    picked = np.where(outside, np.copysign(over, x), np.copysign(picked, x))
    return np.where(np.isnan(x), np.nan, picked).astype(kind)


@pytest.mark.parametrize("level", HERE)
@pytest.mark.parametrize(
    "target", ["int8", "uint8", "int16", "int32", "uint32", "int64", "bool", "float16", "float64"]
)
@pytest.mark.parametrize("source", ["int8", "uint8", "int32", "int64", "float32", "float64"])
def test_integers_and_bool(source: str, target: str, level: str) -> None:
    isa = isa_or_skip(level)
    numbers = [0, 1, -1, 2, 7, -7, 100, 127, -128, 33]
    if source.startswith("float"):
        numbers = [*numbers, 0.5, -0.5, 1.75, 99.9]
    if source.startswith("uint") or target.startswith("uint"):
        numbers = [each for each in numbers if each >= 0]
    x = np.array(numbers * 5, ALL[source].numpy)
    assert np.array_equal(run_map(through(source, target), [x], target, isa), x.astype(ALL[target].numpy))


def test_float_to_integer_saturates() -> None:
    x = np.array([1e30, -1e30, np.nan, 3e9], np.float32)
    assert run_map(through("float32", "int32"), [x], "int32").tolist() == [2**31 - 1, -(2**31), 0, 2**31 - 1]
    assert run_map(through("float32", "uint8"), [x], "uint8").tolist() == [255, 0, 0, 255]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", SMALL)
def test_no_conversion_needs_a_runtime_symbol(dtype: str, level: str) -> None:
    for source, target in (
        (dtype, "float32"),
        ("float32", dtype),
        ("float64", dtype),
        ("int64", dtype),
        (dtype, "int64"),
    ):
        text = map_module(named_isa(level), through(source, target), [source], target).text()
        assert undefined_symbols(object_code(text, named_isa(level))) == [], (source, target)
