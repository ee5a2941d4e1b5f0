"""Gemms on regions of arrays that leave them, on either side, wherever they start: zeros outside."""

from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest

from tests.roads import everywhere, jitted

rng = np.random.default_rng(0)
A, B = (rng.integers(-3, 4, (8, 8)).astype(np.float32) for _ in range(2))
P = np.array([-1, 3, 7, -9, 100], np.int32)
BOX = {
    "before": ("b0 - 1 : b0 + 7, 0 : 8", -1, 0),
    "behind": ("b0 + 3 : b0 + 11, 0 : 8", 3, 0),
    "columns before": ("0 : 8, b0 - 2 : b0 + 6", 0, -2),
    "both": ("b0 - 3 : b0 + 5, b0 + 2 : b0 + 10", -3, 2),
    "known when it runs": ("P[0] : P[0] + 8, P[2] : P[2] + 8", -1, 7),
    "all of it outside": ("P[3] : P[3] + 8, 0 : 8", -9, 0),
}


def inside(array: np.ndarray, row: int, column: int) -> np.ndarray:
    """The 8 x 8 elements from there on, zero where there are none."""
    padded = np.zeros((40, 40), np.float32)
    padded[16:24, 16:24] = array
    return padded[16 + row : 24 + row, 16 + column : 24 + column]


@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("operands", ["left", "right", "both"])
@pytest.mark.parametrize("box", BOX)
def test_regions_that_leave_their_array(box: str, operands: str, transposed: tuple[bool, bool]) -> None:
    where, row, column = BOX[box]
    left = f"A[{where}]" if operands != "right" else "A"
    right = f"B[{where}]" if operands != "left" else "B"
    body = "c = T.alloc_fragment((8, 8), 'float32')\nT.fill(c, 1.0)\n"
    body += (
        f"T.gemm({left}, {right}, c, transpose_A={transposed[0]}, transpose_B={transposed[1]})\nT.copy(c, O)"
    )
    a = inside(A, row, column) if operands != "right" else A
    b = inside(B, row, column) if operands != "left" else B
    want = 1 + (a.T if transposed[0] else a) @ (b.T if transposed[1] else b)
    assert np.array_equal(everywhere(body, A=A, B=B, P=P, O=np.zeros((8, 8), np.float32))["O"], want)


INFINITE = np.where(np.arange(8) % 5 == 1, np.inf, A).astype(np.float32)
DEPTHS = {
    "right ends first": "T.gemm(I, B[3:11, 0:8], c)",
    "left ends first": "T.gemm(B[0:8, 3:11], I, c, transpose_B=True)",
    "right ends first, transposed": "T.gemm(I, B[0:8, 3:11], c, transpose_B=True)",
    "left begins before": "T.gemm(B[0:8, b0 - 3 : b0 + 5], I, c, transpose_B=True)",
    "both end, at different places": "T.gemm(I[0:8, 1:9], B[3:11, 0:8], c)",
    "tiles": """
        a = T.alloc_shared((8, 8), "float32")
        b = T.alloc_shared((8, 8), "float32")
        T.copy(I[0, 0], a)
        T.copy(B[3, 0], b)
        T.gemm(a, b, c)
    """,
    "a tile and a region": """
        a = T.alloc_fragment((8, 8), "float32")
        T.copy(I[0, 0], a)
        T.gemm(a, B[3:11, 0:8], c)
    """,
}


@pytest.mark.parametrize("gemm", DEPTHS)
def test_zeros_outside_meet_infinity(gemm: str) -> None:
    """A zero outside one array times infinity inside the other is NaN: k is left out of both or of none."""
    body = (
        "c = T.alloc_fragment((8, 8), 'float32')\nT.fill(c, 1.0)\n" + dedent(DEPTHS[gemm]) + "\nT.copy(c, O)"
    )
    assert np.isnan(everywhere(body, I=INFINITE, B=B, O=np.zeros((8, 8), np.float32))["O"]).all()


def test_what_both_sides_leave_is_left_out() -> None:
    """Both leave their arrays at k = 20 of 32: the product is over 20, for zeros times zeros are nothing."""
    rng = np.random.default_rng(1)
    left, right = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((8, 20), (20, 8)))
    body = """
        a = T.alloc_shared((8, 16), "float32")
        b = T.alloc_shared((16, 8), "float32")
        c = T.alloc_fragment((8, 8), "float32")
        T.clear(c)
        for k in T.Pipelined(2):
            T.copy(L[0, k * 16], a)
            T.copy(R[k * 16, 0], b)
            T.gemm(a, b, c)
        T.copy(c, O)
    """
    arrays = {"L": left, "R": right, "O": np.zeros((8, 8), np.float32)}
    assert np.array_equal(everywhere(body, **arrays)["O"], left @ right)
    loops = jitted(body, **arrays).using(target="cpu")().stage("loops")
    assert "T.min(20 - k * 16, 16)" in loops.split("micro_gemm")[1]
