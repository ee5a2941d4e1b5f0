"""A stored value is used without loading it again, while its index still means the same place."""

from __future__ import annotations

import numpy as np
import pytest

from tests.roads import everywhere

A, ZEROS = np.arange(16, dtype=np.float32) + 1, np.zeros(16, np.float32)


@pytest.mark.parametrize("word", ["unroll", "serial", "vectorized"])
def test_each_turn_of_an_inner_loop_has_its_own_place(word: str) -> None:
    body = f"""
    s = T.alloc_shared((4, 4), "float32")
    for i, j in T.Parallel(4, 4):
        s[i, j] = A[i * 4 + j]
    for i in T.Parallel(2):
        for j in T.{word}(3):
            s[i + 1, j] = s[i + 1, j] * 2.0
            O[i * 4 + j] = s[i + 1, j]
    """
    want = ZEROS.reshape(4, 4).copy()
    want[:2, :3] = A.reshape(4, 4)[1:3, :3] * 2
    assert np.array_equal(everywhere(body, A=A, O=ZEROS)["O"].reshape(4, 4), want)


def test_an_index_that_reads_what_has_changed_is_another_place() -> None:
    body = """
    s, p = T.alloc_shared((16,), "float32"), T.alloc_shared((8,), "int32")
    T.clear(s)
    for i in T.Parallel(8):
        p[i] = i
        s[i + 8] = 7.0
    for i in T.Parallel(8):
        s[p[i] % 16] = A[i]
        p[i] = p[i] + 8
        O[i] = s[p[i] % 16]
    """
    assert everywhere(body, A=A, O=ZEROS)["O"].tolist() == [7.0] * 8 + [0.0] * 8
