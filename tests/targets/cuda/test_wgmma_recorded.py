"""Products of warp groups to the last bit as an H200 gave them (`tests/device/check_wgmma.py`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilebench.ir.dtypes import ALL
from tilebench.targets.cuda.instructions.tensor_sums import product_sums

RECORDED = np.load(Path(__file__).parent / "wgmma_h200.npz")
DTYPES = {
    "f16": "float16", "bf16": "bfloat16", "tf32": "float32", "s8": "int8", "u8": "uint8",
    "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2",
}  # fmt: skip
# Operands, sums, how the operands lie, and where A is: `f16_f16_float32_n_t_registers`.
FORMS = sorted(name for name in RECORDED.files if name.count("_") > 3)


def recorded(name: str) -> tuple[str, Any, Any, Any, Any]:
    """The dtype of A, then A, B and the sums before and after, each (products, rows, columns)."""
    a, b, c, *_ = name.split("_")
    dtypes = [np.dtype(getattr(ml_dtypes, each, None) or each) for each in (DTYPES[a], DTYPES[b], c)]
    triple = f"{a}_{b}_{c}"
    left, right, old = (
        RECORDED[f"{triple}_{key}"].view(dtype) for key, dtype in zip("abc", dtypes, strict=True)
    )
    return DTYPES[a], left, right.swapaxes(1, 2), old, RECORDED[name].view(dtypes[2])


def test_there_is_each_form() -> None:
    assert len(FORMS) == 33
    assert {name.split("_")[0] for name in FORMS} == set(DTYPES)
    assert sum(name.endswith("_registers") for name in FORMS) == 13


@pytest.mark.parametrize("name", FORMS)
def test_the_simulator_adds_as_the_card_does(name: str) -> None:
    dtype, a, b, before, after = recorded(name)
    assert after.shape == (3, 64, 16 if after.dtype == np.int32 else 8)
    # What is summed in fewer bits is rounded once, behind the sum.
    wide = before.astype(np.float32) if before.dtype.itemsize == 2 else before
    found = product_sums(a, b, wide, ALL[dtype])
    np.testing.assert_array_equal(found.astype(after.dtype), after)
