"""Outside a buffer reads give zero and stores are dropped, wherever it lies and whoever asks."""

from __future__ import annotations

import numpy as np
import pytest

from tests.roads import everywhere

P = np.array([6], np.int32)
A = np.arange(1, 33, dtype=np.float32)
HEAD = 's = T.alloc_{place}((8,), "float32")\nT.fill(s, 1)\n'
TAIL = "\nT.copy(s, O[0:8])"
ONES, ZEROS = [1.0] * 8, [0.0] * 8

WRITES = {
    "T.fill(s[P[0] : P[0] + 6], 7)": [1, 1, 1, 1, 1, 1, 7, 7],
    "T.fill(s[P[0] - 9 : P[0] - 3], 7)": [7, 7, 7, 1, 1, 1, 1, 1],
    "T.fill(s[P[0] + 3 : P[0] + 5], 7)": ONES,
    "T.clear(s[P[0] : P[0] + 6])": [1, 1, 1, 1, 1, 1, 0, 0],
    "T.copy(A[0:6], s[P[0] : P[0] + 6])": [1, 1, 1, 1, 1, 1, 1, 2],
    "T.copy(A[0:6], s[P[0]])": [1, 1, 1, 1, 1, 1, 1, 2],
    "for i in T.Parallel(8):\n    s[P[0] + i] = 5.0": [1, 1, 1, 1, 1, 1, 5, 5],
    "for i in T.Parallel(8):\n    s[i + 3] = 5.0": [1, 1, 1, 5, 5, 5, 5, 5],
    "for i in T.Parallel(8):\n    if i > 1:\n        s[P[0] + i - 1] = A[i]": [1, 1, 1, 1, 1, 1, 1, 3],
    "for i in T.Parallel(8):\n    s[P[0] + i] += 5.0": [1, 1, 1, 1, 1, 1, 6, 6],
}
READS = {
    "T.copy(s[P[0] : P[0] + 6], O[8:14])": [1, 1, 0, 0, 0, 0, 0, 0],
    "for i in T.Parallel(8):\n    O[8 + i] = s[P[0] + i] + 1": [2, 2, 1, 1, 1, 1, 1, 1],
    "for i in T.Parallel(8):\n    O[8 + i] = s[i - 3]": [0, 0, 0, 1, 1, 1, 1, 1],
}


@pytest.mark.parametrize("place", ["shared", "fragment"])
@pytest.mark.parametrize("body", WRITES)
def test_stores_to_tiles(place: str, body: str) -> None:
    found = everywhere(HEAD.format(place=place) + body + TAIL, P=P, A=A, O=np.zeros(16, np.float32))["O"]
    assert found.tolist() == [*WRITES[body], *ZEROS]


@pytest.mark.parametrize("place", ["shared", "fragment"])
@pytest.mark.parametrize("body", READS)
def test_reads_of_tiles(place: str, body: str) -> None:
    found = everywhere(HEAD.format(place=place) + body + TAIL, P=P, A=A, O=np.zeros(16, np.float32))["O"]
    assert found.tolist() == [*ONES, *READS[body]]


def test_one_element_of_a_shared_tile() -> None:
    body = HEAD.format(place="shared") + "O[8] = s[P[0] + 3] + 4\ns[P[0] + 3] = 9.0\ns[P[0] - 7] = 9.0" + TAIL
    assert everywhere(body, P=P, O=np.zeros(16, np.float32))["O"].tolist() == [*ONES, 4, *ZEROS[1:]]


def test_arrays_of_a_thread() -> None:
    body = """
        for i in T.Parallel(8):
            v = T.alloc_local((4,), "float32")
            for k in T.serial(4):
                v[k] = 2.0
            v[P[0] + i - 4] = 9.0
            O[i] = v[3] + v[P[0] - 2]
    """
    found = everywhere(body, P=P, O=np.zeros(8, np.float32))["O"]
    assert found.tolist() == [2, 9, 2, 2, 2, 2, 2, 2]


def test_arrays_in_global_memory() -> None:
    body = "T.fill(O[P[0] : P[0] + 6], 7)\nT.clear(O[P[0] - 8 : P[0] - 5])"
    assert everywhere(body, P=P, O=np.ones(8, np.float32))["O"].tolist() == [0, 1, 1, 1, 1, 1, 7, 7]
