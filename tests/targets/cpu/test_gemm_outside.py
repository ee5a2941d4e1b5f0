"""Gemms on regions of arrays that leave them, on either side, wherever they start: zeros outside."""

from __future__ import annotations

import numpy as np
import pytest

from tests.roads import everywhere

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
