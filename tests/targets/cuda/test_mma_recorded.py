"""Products as a card gave them (an H200, by `tests/device/record_mma.py`), against the simulator's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilebench.ir.dtypes import ALL, float16
from tilebench.targets.cuda.instructions.tensor_sums import product_sums

RECORDED = np.load(Path(__file__).parent / "mma_h200.npz")
KINDS = {
    "f16": ("float16", "float16", "float32"),
    "bf16": ("bfloat16", "bfloat16", "float32"),
    "tf32": ("float32", "float32", "float32"),
    "s8": ("int8", "uint8", "int32"),
    "e4m3": ("float8_e4m3fn", "float8_e5m2", "float32"),
    "f64": ("float64", "float64", "float64"),
}


def recorded(kind: str) -> list[Any]:
    """A, B, the sums before, and those after, each (products, rows, columns)."""
    a, b, c = (np.dtype(getattr(ml_dtypes, name, None) or name) for name in KINDS[kind])
    dtypes = zip("abcd", (a, b, c, c), strict=True)
    return [RECORDED[f"{kind}_{letter}"].view(dtype) for letter, dtype in dtypes]


@pytest.mark.parametrize("kind", ["f16", "bf16", "tf32", "s8"])
def test_the_simulator_adds_as_the_card_does(kind: str) -> None:
    a, b, before, after = recorded(kind)
    assert len(after) == 18
    np.testing.assert_array_equal(product_sums(a, b, before, ALL[KINDS[kind][0]]), after)


def test_doubles_are_added_one_by_one() -> None:
    a, b, before, after = recorded("f64")
    found = product_sums(a, b, before, ALL["float64"])
    np.testing.assert_allclose(found, after, rtol=2.0**-52)
    assert (found == after).mean() > 0.99


def test_8_bit_floats_are_products_of_16_bit_floats_on_this_card() -> None:
    """The lower and the upper two of each four along k, from zero, and their sum added in float32."""
    a, b, before, after = recorded("e4m3")
    number = np.arange(a.shape[2])
    part = np.zeros_like(before)
    for half in (number[number % 4 < 2], number[number % 4 >= 2]):
        part = product_sums(a[:, :, half].astype(np.float16), b[:, half].astype(np.float16), part, float16)
    np.testing.assert_array_equal(before + part, after)
    # What the simulator gives, as a card with few bits, is within 14 bits of the largest term.
    found = product_sums(a, b, before, ALL["float8_e4m3fn"])
    x, y = a.astype(np.float64), b.astype(np.float64)
    size = np.abs(x) @ np.abs(y) + np.abs(before)
    assert (np.abs(found - after) <= size * 33 * 2.0**-12).all()
