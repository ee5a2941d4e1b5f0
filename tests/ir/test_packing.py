"""Integers of 4 bits, two a byte: which half, rows of whole bytes, and sizes that are exact or refused."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilebench.errors import DTypeError
from tilebench.ir import dtype_of
from tilebench.ir.packing import pack, packed_shape, unpack

INT4, UINT4 = dtype_of("int4"), dtype_of("uint4")


def test_the_element_of_even_index_lies_in_the_low_half() -> None:
    assert pack(np.array([1, 2, 3], ml_dtypes.uint4)).tolist() == [0x21, 0x03]
    assert pack(np.array([[-1, 7], [-8, 0]], ml_dtypes.int4)).tolist() == [[0x7F], [0x08]]
    assert unpack(np.array([0x21, 0x03], np.uint8), (3,), UINT4).tolist() == [1, 2, 3]
    assert unpack(np.array([[0x7F], [0x08]], np.uint8), (2, 2), INT4).tolist() == [[-1, 7], [-8, 0]]


@pytest.mark.parametrize("shape", [(1,), (4,), (3, 5), (2, 3, 8), ()])
def test_rows_are_whole_bytes_and_come_back(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).integers(0, 16, shape).astype(ml_dtypes.uint4)
    held = pack(values)
    assert held.shape == packed_shape(shape, UINT4)
    assert np.array_equal(unpack(held, shape, UINT4), values)


def test_bytes_of_a_count_are_exact_or_an_error() -> None:
    assert (INT4.bytes_of(6), INT4.per_byte, INT4.elements_in(3)) == (3, 2, 6)
    assert dtype_of("float16").bytes_of(3) == 6
    with pytest.raises(DTypeError, match="5 elements of int4 are no whole bytes"):
        INT4.bytes_of(5)
