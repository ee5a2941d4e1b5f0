"""Indices that are below zero in every turn count from the end; others lie outside, as they do."""

from __future__ import annotations

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.roads import everywhere, jitted
from tilebench.ir import print_function

A = np.arange(32, dtype=np.float32).reshape(4, 8)
NONE = np.zeros_like(A)
LOOP = "for i, j in T.Parallel(4, 8):\n    "


@pytest.mark.parametrize(
    ("body", "want"),
    [
        (LOOP + "O[i, j] = A[-1 - i, j]", A[::-1]),
        (LOOP + "O[i, j] = A[-i - 1, -j - 1]", A[::-1, ::-1]),
        (LOOP + "O[-1 - i, j - 8] = A[i, j]", A[::-1]),
        (LOOP + "O[i, j] = A[~i, ~j]", A[::-1, ::-1]),
        (LOOP + "O[i, j] = A[-1 - (i | 1), -1 - T.abs(j - 7)]", A[[2, 2, 0, 0]]),
        (
            LOOP + "O[i, j] = A[-1 - (i >> 1), -(j // 2 << 1) - 2]",
            A[[3, 3, 2, 2]][:, [6, 6, 4, 4, 2, 2, 0, 0]],
        ),
        (LOOP + "k = i - 4\n    O[k, j] = A[k, j]", A),
        ("for i in T.serial(-4, 0):\n    T.copy(A[i : i + 1, :], O[-5 - i : -4 - i, :])", A[::-1]),
        ("for i in T.serial(4):\n    T.copy(A[-1 - i, 0], O[i : i + 1, :])", A[::-1]),
        ("for i in T.serial(4):\n    T.fill(O[-1 - i : -i, -2:], A[i, 1])", None),
    ],
)
def test_of_arrays(body: str, want: np.ndarray | None) -> None:
    if want is None:
        want = np.zeros_like(A)
        want[:, -2:] = A[::-1, 1:2]
    np.testing.assert_array_equal(everywhere(body, A=A, O=NONE)["O"], want)


@pytest.mark.parametrize("place", ["shared", "fragment"])
@pytest.mark.parametrize("index", ["-1 - i, j", "3 - i - 4, j"])
def test_of_tiles(place: str, index: str) -> None:
    body = f's = T.alloc_{place}((4, 8), "float32")\nT.copy(A, s)\n{LOOP}O[i, j] = s[{index}]'
    np.testing.assert_array_equal(everywhere(body, A=A, O=NONE)["O"], A[::-1])


def test_what_is_below_zero_at_times_lies_outside() -> None:
    want = np.zeros_like(A)
    want[1:] = A[:3]
    np.testing.assert_array_equal(everywhere(LOOP + "O[i, j] = A[i - 1, j]", A=A, O=NONE)["O"], want)
    np.testing.assert_array_equal(everywhere("T.copy(A[b0 - 1 : b0 + 3, :], O)", A=A, O=NONE)["O"], want)
    np.testing.assert_array_equal(everywhere("T.copy(A[b0 - 1, 0], O)", A=A, O=NONE)["O"], want)
    want = np.zeros_like(A)
    want[:3] = A[1:]
    np.testing.assert_array_equal(everywhere(LOOP + "O[i - 1, j] = A[i, j]", A=A, O=NONE)["O"], want)


def test_conditions_do_not_decide() -> None:
    """An element that a guard leaves out is not brought back by the end of the array."""
    body = LOOP + "O[i, j] = T.if_then_else(i >= 2, A[i - 2, j], A[i - 2, j] + 1)"
    want = np.ones_like(A)
    want[2:] = A[:2]
    np.testing.assert_array_equal(everywhere(body, A=A, O=NONE)["O"], want)


@tilebench.jit
def backwards(target="cpu"):
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 64), threads=64) as b0:
            for i in T.Parallel(64):
                B[b0 * 64 + i] = A[-1 - i - b0 * 64]

    return main


def test_of_a_size_known_at_a_launch() -> None:
    a = np.arange(100, dtype=np.float32)
    b = np.zeros_like(a)
    backwards.using(target="cpu")()(a, b)
    np.testing.assert_array_equal(b, a[::-1])


def test_the_stage_says_it() -> None:
    function = jitted(LOOP + "O[i, j] = A[-1 - i, j - 8]", A=A, O=NONE).using(target="null")()
    text = print_function(function.compilation.functions["tile"]).text
    assert "O[i, j] = A[3 - i, j]" in text
