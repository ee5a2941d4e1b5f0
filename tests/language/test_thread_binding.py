"""T.thread_binding as a loop and as a number, with its extent in either form."""

from __future__ import annotations

import numpy as np
import pytest

from tests.roads import everywhere, refused_everywhere

NUMBERS = np.arange(64, dtype=np.int32)


@pytest.mark.parametrize(
    "head", ["64", "0, 64", '64, "threadIdx.x"', '0, 64, "threadIdx.x"', '0, 64, thread="threadIdx.x"']
)
def test_extents(head: str) -> None:
    loop = f"for tx in T.thread_binding({head}):\n    C[tx] = A[tx] * 2"
    value = f"tx = T.thread_binding({head})\nC[tx] = A[tx] * 2"
    for body in (loop, value):
        found = everywhere(body, launch="1, threads=64", A=NUMBERS, C=np.zeros_like(NUMBERS))["C"]
        np.testing.assert_array_equal(found, 2 * NUMBERS)


def test_numbers_of_two_dimensions() -> None:
    body = """
        tk = T.thread_binding(0, 16, thread="threadIdx.x")
        tn = T.thread_binding(0, 4, thread="threadIdx.y")
        C[tn, tk] = tn * 100 + tk
    """
    found = everywhere(body, launch="1, threads=(16, 4)", C=np.zeros((4, 16), np.int32))["C"]
    np.testing.assert_array_equal(found, np.arange(4)[:, None] * 100 + np.arange(16))


def test_a_start_that_is_not_0_is_refused() -> None:
    error = refused_everywhere("tx = T.thread_binding(1, 64)\nC[tx] = 1", launch="1, threads=64", C=NUMBERS)
    assert error.message == "T.thread_binding counts from 0"
