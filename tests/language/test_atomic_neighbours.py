"""T.atomic_addx2 and T.atomic_addx4 on every road, and the errors' exact texts."""

from __future__ import annotations

import numpy as np
import pytest

from tests.roads import everywhere, refused_everywhere


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("count", [2, 4])
def test_neighbours_are_added(count: int, dtype: str) -> None:
    import ml_dtypes

    kind = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    a = (np.arange(8 * 12) % 17).reshape(8, 12).astype(kind)
    body = f"""
        A_s = T.alloc_shared((8, 12), "{dtype}")
        T.copy(A, A_s)
        for i, j in T.Parallel(8, {12 // count}):
            T.atomic_addx{count}(C[i % 2, j * {count}], A_s[i, j * {count}])
    """
    found = everywhere(body, A=a, C=np.ones((2, 12), kind))["C"]
    right = 1 + a.astype(np.float64).reshape(4, 2, 12).sum(0)
    np.testing.assert_array_equal(found.astype(np.float64), right)


def test_whole_buffers_of_one_dimension() -> None:
    a = np.arange(4, dtype=np.float32)
    found = everywhere("T.atomic_addx4(C, A)", A=a, C=np.ones(4, np.float32))["C"]
    np.testing.assert_array_equal(found, 1 + a)


def test_a_number_has_no_neighbours() -> None:
    error = refused_everywhere("T.atomic_addx2(C[0], 1.0)", C=np.zeros(4, np.float32))
    assert error.message == "T.atomic_addx2 adds 2 elements to 2 others, and this is none of a buffer's"
