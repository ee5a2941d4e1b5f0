"""Norms and running sums: rows side by side with single elements between them, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.targets.cpu import row_kernels

SHAPES = [
    (2048, 2048, 16, "float32"),  # side by side, whole vectors
    (4096, 2048, 16, "float16"),
    (4200, 1000, 8, "float32"),  # side by side, a masked tail
    (4099, 1031, 16, "float32"),  # rows past the end
    (64, 40, 16, "float32"),  # short rows: a loop over vectors of rows stays one
    (33, 300, 1, "float32"),
]


def _inputs(m: int, n: int, dtype: str) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(1)
    return tuple((rng.standard_normal(shape) + 1).astype(dtype) for shape in ((m, n), (n,), (n,)))


def _close(found: Any, wanted: Any, dtype: str) -> None:
    bound = 4e-6 if dtype == "float32" else 2e-3
    np.testing.assert_allclose(found, wanted, rtol=bound, atol=bound)


@pytest.mark.parametrize(("m", "n", "block", "dtype"), SHAPES)
def test_rms_norm(m: int, n: int, block: int, dtype: str) -> None:
    a, w, _ = _inputs(m, n, dtype)
    c = np.full_like(a, np.nan)
    row_kernels.rms_norm.using(target="cpu")(m, n, block, dtype)(a, w, c)
    wide = a.astype(np.float64)
    _close(c, wide / np.sqrt((wide * wide).mean(axis=1, keepdims=True) + 1e-6) * w, dtype)


@pytest.mark.parametrize(("m", "n", "block", "dtype"), SHAPES)
def test_layer_norm(m: int, n: int, block: int, dtype: str) -> None:
    a, w, b = _inputs(m, n, dtype)
    c, means = np.full_like(a, np.nan), np.full(m, np.nan, np.float32)
    row_kernels.layer_norm.using(target="cpu")(m, n, block, dtype)(a, w, b, c, means)
    wide = a.astype(np.float64)
    mean = wide.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(means, mean[:, 0], rtol=1e-5, atol=1e-6)
    _close(c, (wide - mean) / np.sqrt(wide.var(axis=1, keepdims=True) + 1e-5) * w + b, dtype)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize(
    ("dtype", "out"), [("float32", "float32"), ("int8", "int32"), ("float16", "float16")]
)
@pytest.mark.parametrize(("m", "n", "block"), [(32, 16, 8), (24, 331, 8), (2048, 2056, 16)])
def test_running_sums(m: int, n: int, block: int, dtype: str, out: str, dim: int, reverse: bool) -> None:
    a = np.random.default_rng(2).integers(0, 3, (m, n)).astype(dtype)
    c = np.zeros((m, n), out)
    row_kernels.running_sum.using(target="cpu")(m, n, block, dtype, out, dim, reverse)(a, c)
    axis = 1 if dim == 0 else 2
    lines = a.reshape(m // block, block, n).astype(np.int64)
    lines = np.flip(lines, axis) if reverse else lines
    sums = np.cumsum(lines, axis=axis)
    sums = np.flip(sums, axis) if reverse else sums
    inside = sums.reshape(m, n)
    # float16 has whole numbers up to 2048.
    np.testing.assert_allclose(c, inside, rtol=1e-3 if out == "float16" else 0)


def test_norms_have_one_row_at_a_time() -> None:
    """What stands between loops over rows goes in front of them; single elements come behind their row."""
    text = row_kernels.rms_norm.using(target="cpu:x86-64-v4")(16384, 2048, 16).stage("loops")
    lines = [line.strip() for line in text.splitlines()]
    start = next(k for k, line in enumerate(lines) if "T.serial(15)" in line)
    assert lines[start + 2 : start + 6] == [
        "T.accumulate_sum(scale[i__4 + 1], A[bx * 16 + i__4 + 1, j__3] * A[bx * 16 + i__4 + 1, j__3])",
        "T.prefetch(A[bx * 16 + i__4 + 1, j__3 + 1024])",
        "C[bx * 16 + i__4, j__3] = A[bx * 16 + i__4, j__3] * (scale[i__4] * weights[j__3])",
        "scale[i__4 + 1] = T.rsqrt(scale[i__4 + 1] / T.float32(2048) + T.float32(1e-06))",
    ]
    assert "weights[j__4] = W[j__4]" in lines[: start - 3]
    assert "squares[" not in text.partition("T.Kernel")[2].replace("squares = ", "")


def test_a_weight_that_the_rows_change_stays_behind_them() -> None:
    """A loop that reads what the rows write is not moved in front of them."""
    a = np.random.default_rng(3).random((64, 512), np.float32)
    c, last = np.empty_like(a), np.empty((64, 512), np.float32)
    kernel = row_kernels.with_last_row.using(target="cpu")(64, 512, 16)
    kernel(a, c, last)
    rows = a.reshape(4, 16, 512)
    np.testing.assert_array_equal(c.reshape(4, 16, 512), rows * 2 + rows[:, 15:] * 2)


def test_a_running_sum_goes_by_vectors() -> None:
    text = row_kernels.running_sum.using(target="cpu:x86-64-v4")(16384, 2048, 16).stage("loops")
    assert "T.running_sum(Y[0, j], A[bx * 16 + i, j])" in text
    assert "T.prefetch(A[bx * 16 + i + 1, j])" in text
