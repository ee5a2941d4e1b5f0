"""Reductions and running sums from every dtype into every other of its kind, and counts of bools."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.everywhere import everywhere, kernel_of
from tilebench.errors import DTypeError
from tilebench.ir import DType
from tilebench.ir.dtypes import ALL, dtype_of

WHOLE = [each.name for each in ALL.values() if each.is_integer and each.per_byte == 1]
FLOATS = [each.name for each in ALL.values() if each.is_float and each.per_byte == 1]
PAIRS = [(a, b) for a in (*WHOLE, *FLOATS) for b in (*WHOLE, *FLOATS) if dtype_of(a).kind == dtype_of(b).kind]
BODY = """
x = T.alloc_fragment((3, 70), "{a}")
y = T.alloc_fragment((3, 70), "{b}")
s = T.alloc_fragment((3,), "{b}")
r = T.alloc_fragment((70,), "{b}")
T.copy(A, x)
T.copy(O[0, 0:3], s)
T.cumsum(x, y, dim=1)
T.copy(y, O[1:4, 0:70])
T.reduce_sum(x, s, dim=1, clear=False)
T.copy(s, O[4, 0:3])
T.reduce_sum(x, r, dim=0)
T.copy(r, O[5, 0:70])
"""
EXTREMES = """
T.reduce_max(x, r, dim=0)
T.copy(r, O[6, 0:70])
T.reduce_min(x, s, dim=1, clear=False)
T.copy(s, O[7, 0:3])
"""
HEAD = 'A: T.Tensor((3, 70), "{a}"), O: T.Tensor((8, 70), "{b}")'


def values(dtype: DType, shape: tuple[int, ...]) -> Any:
    """Any integers, which wrap; of floats small whole numbers, whose sums are exact in float16."""
    rng = np.random.default_rng(1)
    if not dtype.is_integer:
        return rng.integers(0 if dtype.kind == "bool" else -3, 2, shape).astype(dtype.numpy)
    return rng.integers(dtype.least, dtype.most, shape, dtype.numpy, endpoint=True)


@pytest.mark.parametrize(("a", "b"), PAIRS, ids=lambda each: str(each))
def test_every_pair_of_a_kind(a: str, b: str) -> None:
    arrays = {"A": values(dtype_of(a), (3, 70)), "O": values(dtype_of(b), (8, 70))}
    everywhere(BODY.format(a=a, b=b) + EXTREMES, HEAD.format(a=a, b=b), **arrays)


def test_a_sum_is_formed_in_the_wider_dtype() -> None:
    """2**24 and 69 ones in float32: the sum is 2**24 + 69 in a float64, and 2**24 in float32."""
    given = np.ones((3, 70), np.float32)
    given[:, 0] = 2.0**24
    arrays = {"A": given, "O": np.zeros((8, 70))}
    found = everywhere(BODY.format(a="float32", b="float64"), HEAD.format(a="float32", b="float64"), **arrays)
    assert found["O"][4, :3].tolist() == [2.0**24 + 69] * 3
    assert found["O"][3, 69] == 2.0**24 + 69


def test_the_greatest_is_found_before_it_is_narrowed() -> None:
    given = np.full((3, 70), 100, np.int16)
    given[:, 7] = 300  # 44 in an int8
    arrays = {"A": given, "O": np.zeros((8, 70), np.int8)}
    body = BODY.format(a="int16", b="int8") + "T.reduce_max(x, s, dim=1)\nT.copy(s, O[7, 0:3])\n"
    found = everywhere(body, HEAD.format(a="int16", b="int8"), **arrays)
    assert found["O"][7, :3].tolist() == [44] * 3


def test_an_old_value_is_not_narrowed_to_the_source() -> None:
    old = np.full((8, 70), 300, np.int32)
    head = HEAD.format(a="int8", b="int32")
    arrays = {"A": values(dtype_of("int8"), (3, 70)), "O": old}
    body = BODY.format(a="int8", b="int32").partition("T.cumsum")[0]
    found = everywhere(
        body + "T.reduce_max(x, s, dim=1, clear=False)\nT.copy(s, O[7, 0:3])\n", head, **arrays
    )
    assert found["O"][7, :3].tolist() == [300] * 3


@pytest.mark.parametrize("counted", WHOLE)
def test_bools_are_counted(counted: str) -> None:
    dtype = dtype_of(counted)
    given, old = values(dtype_of("bool"), (3, 70)), values(dtype, (8, 70))
    old[0] = 5
    found = everywhere(BODY.format(a="bool", b=counted), HEAD.format(a="bool", b=counted), A=given, O=old)
    assert found["O"][4, :3].tolist() == (given.sum(axis=1) + 5).tolist()
    assert np.array_equal(found["O"][1:4], np.cumsum(given, axis=1))


def test_any_and_all_of_bools() -> None:
    tiles = BODY.format(a="bool", b="bool").partition("T.copy(O")[0]
    given = values(dtype_of("bool"), (3, 70))
    arrays = {"A": given, "O": np.zeros((8, 70), np.bool_)}
    found = everywhere(
        tiles + EXTREMES.replace("clear=False", "clear=True"), HEAD.format(a="bool", b="bool"), **arrays
    )
    assert np.array_equal(found["O"][6], given.any(axis=0))
    assert np.array_equal(found["O"][7, :3], given.all(axis=1))


@pytest.mark.parametrize("word", ["T.reduce_sum(x, s, dim=1)", "T.cumsum(x, y, dim=1)"])
@pytest.mark.parametrize("into", ["bool", "float32"])
def test_a_count_is_an_integer(word: str, into: str) -> None:
    body = f"""
    x = T.alloc_fragment((3, 70), "bool")
    s = T.alloc_fragment((3,), "{into}")
    y = T.alloc_fragment((3, 70), "{into}")
    {word}
    """
    with pytest.raises(DTypeError) as caught:
        kernel_of(body).using(target="cpu")()
    assert caught.value.message == f"{word.partition('(')[0]} of bool cannot give {into}"
    assert caught.value.hint == "bools are counted: give the result an integer dtype, such as T.int32"
    assert caught.value.place is not None
    assert caught.value.place.text.strip() == word
