"""Where a result is wrong: kernels of which a stage was edited, each wrong in one way, and what is said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tilebench.ir import dtype_of
from tilebench.kernel.edited import compile_from
from tilebench.kernel.measuring.package import package_of
from tilebench.kernel.measuring.simulated import check_simulated
from tilebench.reference.bounds import Bounded
from tilebench.reference.check import OutputReport, compare_output, step_at
from tilebench.reference.error_map import NOT_A_NUMBER, UNWRITTEN
from tilebench.reference.patterns import Board, patterns_of


@tilebench.jit
def add(M, N, block_M=32, block_N=32, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            t = T.alloc_fragment((block_M, block_N), dtype)
            T.copy(A[by * block_M, bx * block_N], t)
            for i, j in T.Parallel(block_M, block_N):
                t[i, j] = t[i, j] + T.cast(1, dtype)
            T.copy(t, C[by * block_M, bx * block_N])

    return main


@tilebench.jit
def planes(B, S, H, D, block=16):
    @T.prim_func
    def main(A: T.Tensor((B, S, H, D), "float32"), C: T.Tensor((B, S, H, D), "float32")):
        with T.Kernel(T.ceildiv(S, block), H, B, threads=64) as (bx, by, bz):
            t = T.alloc_fragment((block, D), "float32")
            T.copy(A[bz, bx * block : (bx + 1) * block, by, :], t)
            for i, j in T.Parallel(block, D):
                t[i, j] = t[i, j] + 1.0
            T.copy(t, C[bz, bx * block : (bx + 1) * block, by, :])

    return main


def wrong(kernel: Any, stage: str, old: str, new: str) -> OutputReport:
    """The check of a kernel of which one stage's text was edited, in the simulator."""
    text = kernel.stage(stage)
    assert text.count(old) == 1, text
    edited = package_of(compile_from(stage, text.replace(old, new), like=kernel), {})
    # An edited tile stage means what it says: what is right is the other's here.
    meant = package_of(kernel, {}).tile_text
    return check_simulated(replace(edited, tile_text=meant), 0).outputs[0]


def words(report: OutputReport) -> tuple[str, ...]:
    assert report.map is not None
    return report.map.patterns


# What stands in place of the 1 that is added, in the tile stage, and what is then said of the result.
ONE = "T.float32(1)"
TILES = {
    "T.float32(2)": "every element",
    "T.if_then_else((bx * 32 + j) % 8 == 3, T.float32(2), T.float32(1))":
        "every 8th column, from column 3 on",
    "T.if_then_else((by * 32 + i) % 4 == 0, T.float32(2), T.float32(1))": "every 4th row, from row 0 on",
    "T.if_then_else(i == 31, T.float32(2), T.float32(1))": "the last row of each tile",
    "T.if_then_else(i == 0, T.float32(2), T.float32(1))": "the first row of each tile",
    "T.if_then_else(j >= 28, T.float32(2), T.float32(1))": "the last 4 columns of each tile",
    "T.if_then_else(i < 8 and j >= 16, T.float32(2), T.float32(1))":
        "the last 16 columns of each tile in the first 8 rows of each tile",
    "T.if_then_else(bx == 2 and by == 1, T.float32(2), T.float32(1))":
        "one whole block, row 1 and column 2 of the blocks",
    "T.if_then_else(bx == 3, T.float32(2), T.float32(1))": "4 of 16 whole blocks: the last column of blocks",
    "T.if_then_else(bx * 32 + j >= 100, T.float32(2), T.float32(1))": "the last 28 columns",
    "T.if_then_else(by * 32 + i == 77, T.float32(2), T.float32(1))": "row 77",
    "T.if_then_else(bx * 32 + j > by * 32 + i, T.float32(2), T.float32(1))": "above the diagonal",
    "T.if_then_else(bx * 32 + j == 9 and by * 32 + i == 7, T.float32(2), T.float32(1))":
        "one element by itself",
}  # fmt: skip


@pytest.mark.parametrize("value", TILES)
def test_a_pattern_of_tiles(value: str) -> None:
    kernel = add.using(target="cuda:sm_80")(128, 128)
    report = wrong(kernel, "tile", ONE, value)
    assert not report.ok
    assert report.map is not None
    assert report.map.tile == (32, 32)
    assert TILES[value] in report.map.patterns


# In code of threads, of 128: what they add, and who is said to have written what is wrong.
THREADS = {
    "T.cast(T.if_then_else(tid // 32 == 2, 2, 1), T.float32)": "what warp 2 of each block wrote",
    "T.cast(T.if_then_else(tid // 32 >= 2, 2, 1), T.float32)": "what warps 2 to 3 of each block wrote",
    "T.cast(T.if_then_else(tid % 32 == 5, 2, 1), T.float32)": "what lane 5 of each warp wrote",
    "T.cast(T.if_then_else(tid == 77, 2, 1), T.float32)": "what thread 77 of each block wrote",
}


@pytest.mark.parametrize("value", THREADS)
def test_a_pattern_of_threads(value: str) -> None:
    kernel = add.using(target="cuda:sm_80")(128, 128)
    report = wrong(kernel, "threaded", ONE, value)
    assert THREADS[value] in words(report)


def test_which_thread_wrote_an_element() -> None:
    """By the fragment of the store: thread 77 wrote what is wrong and no other."""
    kernel = add.using(target="cuda:sm_80")(128, 128)
    report = wrong(kernel, "threaded", ONE, "T.cast(T.if_then_else(tid == 77, 2, 1), T.float32)")
    assert report.map is not None
    threads, detail = report.map.threads, report.map.details[0]
    assert threads is not None
    found = {
        threads.rows[i] + threads.columns[j]
        for i, row in enumerate(detail.cells) for j, cell in enumerate(row) if cell == "5"
    }  # fmt: skip
    assert found == {77}


def test_nan_and_what_was_never_written_are_told_apart() -> None:
    kernel = add.using(target="cuda:sm_80")(64, 64)
    not_a_number = wrong(kernel, "tile", ONE, "T.if_then_else(j == 3, T.log(T.float32(-1)), T.float32(1))")
    assert words(not_a_number) == (
        "every 32nd column, from column 3 on",
    ) or "column 3 of each tile" in words(not_a_number)
    assert not_a_number.map is not None
    assert {c for row in not_a_number.map.details[0].cells for c in row} == {"0", str(NOT_A_NUMBER)}
    store = "T.copy(t, C[by * 32 : by * 32 + 32, bx * 32 : bx * 32 + 32])"
    text = kernel.stage("tile")
    line = next(line.strip() for line in text.splitlines() if line.strip().startswith("T.copy(t, C["))
    assert line == store or "C[by * 32" in line
    left = wrong(kernel, "tile", line, f"if bx == 0:\n            {line}")
    assert left.map is not None
    assert {c for row in left.map.cells for c in row} == {"0", str(UNWRITTEN)}
    assert "2 of 4 whole blocks: the last column of blocks" in left.map.patterns


def test_each_kind_of_wrong_has_its_own_pattern() -> None:
    kernel = add.using(target="cuda:sm_80")(128, 128)
    nan = "T.if_then_else(j % 16 == 3, T.log(T.float32(-1)), T.float32(1))"
    report = wrong(kernel, "tile", ONE, f"T.if_then_else(i == 31, T.float32(2), {nan})")
    found = words(report)
    assert "outside: the last row of each tile" in found
    assert "no number: every 16th column, from column 3 on" in found


def test_a_plane_of_an_array_of_four_dimensions() -> None:
    kernel = planes.using(target="cuda:sm_80")(2, 40, 3, 32)
    report = wrong(kernel, "tile", ONE, "T.if_then_else(by == 1 and i == 15, T.float32(2), T.float32(1))")
    found = report.map
    assert found is not None
    assert (found.plane, found.rows, found.columns, found.tile) == ("[0, :, 1, :]", 40, 32, (16, 32))
    assert found.patterns == ("the last row of each tile", "in 2 of 6 such parts of the array")


def test_a_right_result_has_no_map() -> None:
    report = add.using(target="cpu")(64, 64).check().outputs[0]
    assert report.ok
    assert report.map is None


DTYPES = [
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "float8_e4m3fn",
    "float8_e5m2",
    "int8",
    "int32",
    "uint8",
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_steps_of_a_dtype(dtype: str) -> None:
    """A step at a number is its distance to the next one that the dtype has, as NumPy counts it."""
    kind = dtype_of(dtype)
    if not kind.is_float:
        assert step_at(77, kind) == 1
        return
    for value in (1.0, 1.5, 3.0, 100.0, 0.0):
        here = np.asarray(value).astype(kind.numpy)
        bits = here.view({1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[here.dtype.itemsize])
        after = (bits + bits.dtype.type(1)).view(here.dtype)
        assert step_at(float(here), kind) == float(after) - float(here)


def test_errors_beside_each_other() -> None:
    """Absolute, relative and in steps: 1 of 1024 in float16, whose step there is 1."""
    kind = dtype_of("float16")
    value = np.full((4, 4), 1024.0)
    got = value.astype(np.float16)
    got[2, 1] = 1026
    report = compare_output(got, Bounded(value, np.zeros((4, 4))), kind, "C")
    worst = report.worst[0]
    assert (worst.index, worst.error, worst.relative, worst.ulps) == ((2, 1), 2.0, 2 / 1024, 2.0)


def test_a_map_of_a_large_result_is_small() -> None:
    """4096 x 4096 elements, scattered errors: cells are whole tiles, and three digits of elements at most."""
    rng = np.random.default_rng(0)
    value = np.zeros((4096, 4096))
    got = (rng.random((4096, 4096)) < 1e-4).astype(np.float32)
    blocks = np.kron(np.arange(1, 1025, dtype=np.int32).reshape(32, 32), np.ones((128, 128), np.int32))
    right = Bounded(value, np.zeros_like(value), blocks=blocks)
    report = compare_output(got, right, dtype_of("float32"), "C")
    found = report.map
    assert found is not None
    assert (found.tile, found.patch, len(found.cells)) == ((128, 128), (128, 128), 32)
    assert sum(len(row) for detail in found.details for row in detail.cells) <= 128 * 128
    assert found.patterns == (f"{report.outside} elements by themselves in 832 of 1024 blocks",)


def test_chance_hits_do_not_hide_a_pattern() -> None:
    """One in twenty of a race's elements is right by chance."""
    named = np.zeros((64, 64), np.bool_)
    named[:, 40:] = True
    hit = named & (np.random.default_rng(1).random((64, 64)) < 0.95)
    assert patterns_of(Board(hit)) == ["the last 24 columns"]
