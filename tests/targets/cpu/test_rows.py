"""Loops over rows: tiles of one row, rows side by side, against NumPy; which loops are left alone."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.targets.cpu import kernels, row_kernels


def _softmax(a: Any) -> Any:
    wide = a.astype(np.float64)
    power = np.exp(wide - wide.max(axis=1, keepdims=True))
    return power / power.sum(axis=1, keepdims=True)


SHAPES = [
    (2048, 2048, 16, "float32"),  # side by side, whole vectors
    (4096, 2048, 16, "float16"),
    (4200, 1000, 8, "float32"),  # side by side, a masked tail
    (4099, 1031, 16, "float32"),  # rows past the end: tests in the way
    (64, 40, 16, "float32"),  # small: through the caches
]


@pytest.mark.parametrize(("m", "n", "block", "dtype"), SHAPES)
def test_softmax(m: int, n: int, block: int, dtype: str) -> None:
    a = (np.random.default_rng(1).standard_normal((m, n)) * 4).astype(dtype)
    c = np.full_like(a, np.nan)
    kernels.softmax.using(target="cpu")(m, n, block, dtype)(a, c)
    bound = 2e-6 if dtype == "float32" else 1e-3
    np.testing.assert_allclose(c, _softmax(a), rtol=bound, atol=1e-7)


def test_nan_and_infinity_stay_in_their_rows() -> None:
    a = np.zeros((2048, 2048), np.float32)
    a[5, 77], a[6, 78], a[7, 79] = np.nan, -np.inf, np.inf
    c = np.empty_like(a)
    kernels.softmax.using(target="cpu")(2048, 2048, 16)(a, c)
    assert np.isnan(c[5]).all()
    assert c[6, 78] == 0
    assert np.allclose(np.delete(c[6], 78), 1 / 2047)
    assert np.isnan(c[7, 79])
    assert (np.delete(c, [5, 6, 7], axis=0) == np.float32(1 / 2048)).all()


@pytest.mark.parametrize(("m", "n", "block", "dtype"), SHAPES)
def test_normalized(m: int, n: int, block: int, dtype: str) -> None:
    a = (np.random.default_rng(3).random((m, n)) * 3).astype(dtype)
    c, d = np.full_like(a, np.nan), np.full(m, np.nan, np.float32)
    kernels.normalized.using(target="cpu")(m, n, block, dtype)(a, c, d)
    wide = a.astype(np.float64)
    deviation = np.sqrt(wide.var(axis=1) + 1e-5)
    np.testing.assert_allclose(d, deviation, rtol=1e-5)
    bound = 3e-5 if dtype == "float32" else 4e-3
    np.testing.assert_allclose(c, (wide - wide.mean(axis=1, keepdims=True)) / deviation[:, None], atol=bound)


def test_a_tile_that_lives_on_keeps_its_rows() -> None:
    a = np.random.default_rng(4).random((96, 200), np.float32)
    c = np.empty((16, 200), np.float32)
    kernel = kernels.column_sums.using(target="cpu")(96, 200, 16)
    kernel(a, c)
    np.testing.assert_allclose(c, a.reshape(6, 16, 200).sum(axis=0), rtol=1e-6)
    assert "total = T.alloc_scratch((16, 200)" in kernel.stage("loops")


def test_rows_side_by_side_in_the_text() -> None:
    """The loop of a large softmax reads row i + 2, has row i + 1 in work and writes row i."""
    text = kernels.softmax.using(target="cpu:x86-64-v4")(16384, 2048, 16).stage("loops")
    (start,) = [k for k, line in enumerate(text.splitlines()) if "T.serial(14)" in line]
    body = [line.strip() for line in text.splitlines()[start + 2 : start + 7]]
    assert body == [
        "T.accumulate_max(mx[i__3 + 2], A[bx * 16 + i__3 + 2, j__3])",
        "T.prefetch(A[bx * 16 + i__3 + 2, j__3 + 1024])",
        "X[(i__3 + 1) % 2, j__3] = T.exp(A[bx * 16 + i__3 + 1, j__3] - mx[i__3 + 1])",
        "T.accumulate_sum(sm[i__3 + 1], X[(i__3 + 1) % 2, j__3])",
        "C[bx * 16 + i__3, j__3] = X[i__3 % 2, j__3] / sm[i__3]",
    ]
    assert "X = T.alloc_scratch((2, 2048)" in text


def test_a_small_softmax_keeps_one_row() -> None:
    text = kernels.softmax.using(target="cpu:x86-64-v4")(64, 2048, 16).stage("loops")
    assert "X = T.alloc_scratch((1, 2048)" in text
    assert "C[bx * 16 + i__3, j__2] = X[0, j__2] / sm[i__3]" in text
    assert "T.accumulate_max(mx[i__3], A[bx * 16 + i__3, j__3])" in text


@pytest.mark.parametrize(
    ("dtype", "store"), [("float32", "vmovntps\t%zmm"), ("float16", "vmovntdq\t%zmm"), ("bfloat16", "vmovnt")]
)
def test_streams_go_past_the_caches_by_whole_vectors(dtype: str, store: str) -> None:
    """LLVM makes ordinary or small stores of what it cannot stream, and says nothing."""
    kernel = kernels.add.using(target="cpu:x86-64-v4")(8192, 8192, 16, 8192, dtype)
    text = kernel.stage("asm")
    assert text.count(store) == text.count("vmovnt") == 1


@pytest.mark.parametrize("function", [kernels.softmax, row_kernels.running_sum, row_kernels.rms_norm])
def test_streams_of_half_lines_are_stored_by_lines(function: Any) -> None:
    """Of a line that two turns store, or that another store comes between, the halves have to be merged."""
    kernel = function.using(target="cpu:x86-64-v3")(16384, 2048, 16)
    code = [line for line in kernel.stage("asm").splitlines() if line.startswith("\t") and line[1] != "."]
    stores = [line for line in code if line.rsplit(", ", 1)[-1].endswith(")") and "vmov" in line]
    streams = [k for k, line in enumerate(stores) if "vmovntps\t%ymm" in line]
    assert streams
    assert streams[1::2] == [k + 1 for k in streams[::2]]
    assert all("32(" in stores[k] for k in streams[1::2])


def test_rows_of_a_tile_lie_in_lines_as_the_rows_of_the_stream() -> None:
    for function, tile in ((kernels.softmax, "X"), (row_kernels.running_sum, "Y")):
        made = function.using(target="cpu:x86-64-v3")
        lines = [line.strip() for line in made(16384, 2048, 16).stage("loops").splitlines()]
        assert [line.split(" ")[0] for line in lines if 'beside="C"' in line] == [tile]
        # Rows of 2056 float32 begin at other places of a line.
        assert "beside" not in made(16384, 2056, 16).stage("loops")


def _placed(values: Any, start: int) -> Any:
    """The values in memory that starts so many bytes behind the start of a line."""
    raw = np.zeros(values.nbytes + 128, np.uint8)
    start += -raw.ctypes.data % 64
    array = raw[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    array[...] = values
    return array


@pytest.mark.parametrize("function", [kernels.softmax, row_kernels.running_sum])
def test_the_place_of_arrays_in_lines_changes_no_result(function: Any) -> None:
    values = np.random.default_rng(6).standard_normal((2048, 2048)).astype(np.float32)
    kernel, found = function.using(target="cpu")(2048, 2048, 16), []
    for source, target in ((0, 0), (16, 16), (48, 4), (4, 60)):
        a, c = _placed(values, source), _placed(np.full_like(values, np.nan), target)
        kernel(a, c)
        found.append(c.copy())
    assert np.isfinite(found[0]).all()
    # Sums of lanes start elsewhere in a row.
    for each in found[1:]:
        np.testing.assert_allclose(each, found[0], rtol=1e-5, atol=1e-4)


def test_rows_are_found_in_front_of_the_loop_and_numbers_are_operands() -> None:
    """Of softmax's loop what an element takes is left: no arithmetic of addresses, no moves of constants."""
    text = kernels.softmax.using(target="cpu:x86-64-v3")(16384, 2048, 16).stage("asm")
    code = [line for line in text.splitlines() if line.startswith(("\t", ".LBB")) and line[1] != "."]
    stream = next(k for k, line in enumerate(code) if "vmovntps" in line)
    start = max(k for k in range(stream) if code[k].startswith(".LBB"))
    end = next(k for k in range(stream, len(code)) if code[k].startswith("\tj"))
    loop = code[start + 1 : end]
    assert len(loop) <= 70  # two vectors
    assert not any(line.startswith(("\tlea", "\tand", "\tshl", "\tvbroadcast")) for line in loop)
    assert sum("prefetch" in line for line in loop) == 1


def test_ends_of_rows_are_stored_without_masks_where_these_are_slow() -> None:
    text = kernels.softmax.using(target="cpu:x86-64-v3")(16384, 2048, 16).stage("asm")
    assert not [line for line in text.splitlines() if "vmaskmov" in line and line.endswith(")")]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_large_sums(dtype: str) -> None:
    rng = np.random.default_rng(5)
    held = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    a, b = (rng.integers(0, 100, (2100, 4100)).astype(held) for _ in range(2))
    c = np.zeros_like(a)
    kernels.add.using(target="cpu")(2100, 4100, 16, 1024, dtype)(a, b, c)
    assert np.array_equal(c, a + b)
