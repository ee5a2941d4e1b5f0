"""`x = T.int32()` and `T.let(x, value)`: a name first, its value later."""

from __future__ import annotations

import numpy as np
import pytest

import tilebench.language as T
from tests.everywhere import everywhere, kernel_of
from tilebench.errors import TileError

PAIR = 'A: T.Tensor((4, 32), "float32"), O: T.Tensor((4, 32), "float32")'


def test_the_name_is_its_value() -> None:
    body = """
    first = T.int32()
    for k in T.serial(4):
        row = T.int32()
        T.let(row, 3 - k)
        half = T.float32()
        T.let(half, 1)
        for i in T.Parallel(32):
            x = T.float32()
            T.let(x, A[row, i] * 2)
            O[row, i] = x + x * half + k
    T.let(first, 7)
    for i in T.Parallel(32):
        O[0, i] = O[0, i] + first
    """
    a = np.arange(128, dtype=np.float32).reshape(4, 32)
    right = a * 4 + np.arange(3, -1, -1, dtype=np.float32)[:, None]
    right[0] += 7
    np.testing.assert_array_equal(everywhere(body, PAIR, A=a)["O"], right)


def test_outside_of_a_kernel_it_is_a_name() -> None:
    assert str(T.int64() & 3) == "value & T.int64(3)"
    assert T.int64().dtype == T.int64


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("x = T.int32()\nO[0, x] = 1.0", "x has no value yet"),
        ("x = T.int32()\nT.let(x, 1)\nT.let(x, 2)", "x has its value already"),
        ("x = T.int32()\nT.let(x, 1.5)", "1.5 is no int32"),
        ("x = T.int32()\nT.let(x, A[0, 0])", "x is an int32, and this a float32"),
        ("x = 3\nT.let(x, 1)", "T.let gives a value to a name of its own"),
        (
            "x = T.int32()\nfor k in T.serial(2):\n    T.let(x, k)\nO[0, x] = 1.0",
            "x has its value inside a loop or branch that has ended",
        ),
    ],
)
def test_what_is_refused(body: str, message: str) -> None:
    with pytest.raises(TileError) as caught:
        kernel_of(body, PAIR).using(target="cpu")()
    assert message in str(caught.value)
    assert caught.value.place is not None
