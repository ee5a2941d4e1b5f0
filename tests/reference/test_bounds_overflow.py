"""Sums that leave their dtype: on the way, at the end, rounded or cut off."""

from __future__ import annotations

import numpy as np
import pytest

from tests.reference.test_bounds import kernel
from tilebench.ir import dtype_of
from tilebench.reference import run_bounded


@pytest.mark.parametrize("dtype", ["float16", "float32", "float8_e5m2"])
@pytest.mark.parametrize(
    ("word", "shape"),
    [("T.reduce_sum(x, y)", "(4,)"), ("T.cumsum(x, y, dim=1)", "(4, 4)"), ("T.gemm(x, e, y)", "(4, 4)")],
)
def test_a_sum_that_overflows_on_the_way_has_no_bound(dtype: str, word: str, shape: str) -> None:
    """a + a - a is a or infinity, by the order of its terms; 2a is infinity in any."""
    if "gemm" in word and dtype == "float8_e5m2":
        pytest.skip("no product has a sum of 8 bits")
    kind = dtype_of(dtype)
    function = kernel(
        f"A: T.Tensor((4, 4), T.{dtype}), C: T.Tensor({shape}, T.{dtype})",
        f"""
x = T.alloc_shared((4, 4), T.{dtype})
e = T.alloc_shared((4, 4), T.{dtype})
y = T.alloc_fragment({shape}, T.{dtype})
T.fill(y, T.{dtype}(0))
T.fill(e, T.{dtype}(1))
T.copy(A[0, 0], x)
{word}
T.copy(y, C[0{", 0" if shape == "(4, 4)" else ""}])
""",
    )
    most = float(kind.largest)
    a = np.array([[most, most, -most, 0], [most, most, 0, 0], [1, 2, -3, 0], [most, -most / 2, 0, 0]])
    if not kind.saturates:
        a[3] = [-most, -most, np.inf, 0]  # infinite, or NaN where the others are added first
    inputs = {"A": a.astype(kind.numpy), "C": np.zeros((4, 4)[: shape.count("4")], kind.numpy)}
    found = run_bounded(function, inputs)["C"]
    value, error = (np.asarray(part, np.float64).reshape(4, -1)[:, -1] for part in (found.value, found.error))
    assert np.isposinf(error[[0] if kind.saturates else [0, 3]]).all()
    assert np.isfinite(error[1:3]).all()
    assert value[1] == (most if kind.saturates else np.inf)
    assert value[2] == 0
    # A NaN in another row takes nothing from the rest.
    inputs["A"][2] = np.nan
    error = np.asarray(run_bounded(function, inputs)["C"].error, np.float64).reshape(4, -1)[:, -1]
    assert np.isposinf(error[[0] if kind.saturates else [0, 3]]).all()


@pytest.mark.parametrize(
    ("dtype", "options", "sure"),
    [("float32", "", True), ("float32", ", allow_tf32=True", False), ("bfloat16", "", False)],
)
def test_a_sum_that_is_cut_off_may_stop_at_the_largest_number(dtype: str, options: str, sure: bool) -> None:
    """Rounded to nearest, 2 * 3e38 in float32 is infinity; cut off towards zero it may be 3.4e38."""
    function = kernel(
        f"A: T.Tensor((4, 4), T.{dtype}), C: T.Tensor((4, 4), T.float32)",
        f"""
x = T.alloc_shared((4, 4), T.{dtype})
e = T.alloc_shared((4, 4), T.{dtype})
y = T.alloc_fragment((4, 4), T.float32)
T.fill(y, T.float32(0))
T.fill(e, T.{dtype}(1))
T.copy(A[0, 0], x)
T.gemm(x, e, y{options})
T.copy(y, C[0, 0])
""",
    )
    a = np.array([[3e38, 3e38, 0, 0], [1, 2, 3, 0], [0, 0, 0, 0], [-3e38, -3e38, 0, 0]])
    found = run_bounded(function, {"A": a.astype(dtype_of(dtype).numpy), "C": np.zeros((4, 4), np.float32)})[
        "C"
    ]
    assert (np.isposinf(found.error[[0, 3]]) != sure).all()
    assert np.isfinite(found.error[1:3]).all()
    assert not sure or (found.value[[0, 3], 0] == [np.inf, -np.inf]).all()
