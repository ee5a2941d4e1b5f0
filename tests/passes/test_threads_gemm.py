"""GEMM by multiply-adds from `pipelined` text to one thread's code, run in the simulator against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.passes.lowering import gemm_text, lower, random
from tests.simulated import run_threaded
from tilebench.errors import LayoutError
from tilebench.ir import print_function
from tilebench.layout import atom_layout

DTYPES = {"bfloat16": np.dtype(ml_dtypes.bfloat16)}

CASES: list[tuple[tuple[int, int, int], dict[str, Any]]] = [
    ((64, 64, 64), {}),
    ((45, 37, 29), {}),
    ((64, 64, 64), {"stages": 3, "ab": "float16"}),
    ((50, 70, 33), {"stages": 2, "ab": "float16", "out": "float16"}),
    ((64, 64, 64), {"transpose_b": True}),
    ((64, 64, 64), {"transpose_a": True}),
    ((61, 67, 65), {"transpose_a": True, "transpose_b": True, "stages": 4}),
    ((48, 48, 48), {"ab": "bfloat16"}),
    ((40, 40, 40), {"ab": "int8", "c": "int32", "out": "int32"}),
    ((40, 40, 21), {"tile": (20, 24, 21), "threads": 32}),
    ((40, 40, 40), {"tile": (33, 17, 7), "threads": 96}),
    ((96, 96, 64), {"order": ", order=T.Panels(2)"}),
    ((96, 65, 32), {"order": ', order=T.Panels(2, axis="column")'}),
    (
        (64, 64, 64),
        {"layout_a": "T.SharedLayout((32, 16), (16, 1), swizzle=T.Swizzle(2, 2, 3))", "stages": 3},
    ),
    ((64, 64, 32), {"layout_b": "T.SharedLayout((16, 32), (36, 1))"}),
    ((64, 64, 32), {"layout_b": "T.SharedLayout((16, (16, 2)), (16, (1, 256)))", "stages": 3}),
    ((64, 64, 64), {"tile": (32, 64, 32), "ab": "float16", "layout_b": f"{atom_layout((32, 64), 16, 64)}"}),
    ((64, 64, 64), {"tile": (32, 64, 32), "ab": "float16", "transpose_b": True,
                    "layout_b": f"{atom_layout((64, 32), 16, 32)}", "stages": 2}),
    ((64, 64, 32), {"layout_a": "T.SharedLayout((32, 16), (1, 33))"}),
    ((32, 32, 32), {"c": "float16"}),
    ((32, 32, 48), {"clear": "ko == 1"}),
]  # fmt: skip


@pytest.mark.parametrize(("mnk", "options"), CASES)
def test_gemm_against_numpy(mnk: tuple[int, int, int], options: dict[str, Any]) -> None:
    m, n, k = mnk
    ab = options.get("ab", "float32")
    dtype = DTYPES.get(ab) or np.dtype(ab)
    a, b = random((m, k), dtype, 1), random((k, n), dtype, 2)
    out = np.dtype(options.get("out", "float32"))
    c = np.zeros((m, n), out)
    function, _ = lower(gemm_text(m, n, k, **options))
    first = np.ascontiguousarray(a.T) if options.get("transpose_a") else a
    second = np.ascontiguousarray(b.T) if options.get("transpose_b") else b
    run_threaded(function, {"A": first, "B": second, "C": c}, warp=32)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    if "clear" in options:  # the sum starts again in the second step of 16
        wide_a, wide_b = wide_a[:, 16:], wide_b[16:]
    exact = wide_a @ wide_b
    # Rounding of the sum in float32, and of the result once; bounds from |A||B| and the length.
    size = np.abs(wide_a) @ np.abs(wide_b)
    bound = size * k * 2.0**-24
    if out == np.float16:
        bound = bound + np.abs(exact) * 2.0**-10
    if options.get("c") == "float16":  # C is rounded after each step of 16
        bound = bound + size * 2.0**-11 * (k // 16)
    if out.kind == "i":
        assert np.array_equal(c, exact)
    else:
        assert (np.abs(c.astype(np.float64) - exact) <= bound + 1e-30).all()


def test_a_narrow_accumulator_is_rounded_once_a_step() -> None:
    """2048 and 15 ones: float16 would stay at 2048, since 2049 rounds to it; float32 gives 2063, so 2064."""
    a, b = np.ones((32, 16), np.float16), np.ones((16, 32), np.float16)
    a[:, 0], c = 2048, np.zeros((32, 32), np.float16)
    function, _ = lower(gemm_text(32, 32, 16, ab="float16", c="float16", out="float16"))
    run_threaded(function, {"A": a, "B": b, "C": c}, warp=32)
    assert (c == 2064).all()


def test_one_barrier_a_step_with_a_ring_and_two_without() -> None:
    ring = print_function(lower(gemm_text(64, 64, 64, stages=3))[0]).text
    plain = print_function(lower(gemm_text(64, 64, 64))[0]).text
    assert ring.count("T.sync_threads") == 1
    assert plain.count("T.sync_threads") == 2
    assert 'why="A_s: write after read"' in plain
    assert 'why="A_s: read after write"' in plain


def test_loops_stay_rolled_so_that_the_text_does_not_grow_with_the_tile() -> None:
    small = print_function(lower(gemm_text(64, 64, 64))[0]).text
    large = print_function(
        lower(gemm_text(512, 512, 512, tile=(128, 128, 32), threads=256, per_thread=(8, 8)))[0]
    ).text
    assert large.count("\n") <= small.count("\n") + 15


def test_registers_of_one_thread() -> None:
    function, _ = lower(gemm_text(128, 128, 32, tile=(128, 128, 32), threads=256, per_thread=(8, 8)))
    assert "C_l = T.alloc_local((64,), T.float32)" in print_function(function).text


def test_an_operand_in_registers_is_refused() -> None:
    text = gemm_text(32, 32, 16, tile=(32, 32, 16))
    rows = "T.Fragment((32, 16), thread=((16, 1, 1), (4, 0, 1)), value=((8, 0, 4),))"
    text = text.replace(
        "A_s = T.alloc_shared((32, 16), T.float32, layout=T.SharedLayout((32, 16), (16, 1)))",
        f"A_s = T.alloc_fragment((32, 16), T.float32, layout={rows})",
    )
    lines = [
        f"            T.fill(A_s, T.float32(1), map={rows})" if "T.copy(A[" in line else line
        for line in text.splitlines()
    ]
    with pytest.raises(LayoutError, match="the operand A_s of a gemm is in fragment memory"):
        lower("\n".join(lines) + "\n")


def test_an_instruction_without_code_is_named() -> None:
    text = gemm_text(32, 32, 16).replace('T.Instr("fma")', 'T.Instr("wgmma")')
    with pytest.raises(LayoutError, match="by='wgmma'"):
        lower(text)
