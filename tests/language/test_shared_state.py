# ruff: noqa: E501 -- a kernel's body is one text
"""What iterations of T.Parallel would share is refused at its line, the same on every road."""

from __future__ import annotations

import numpy as np
import pytest

from tests.roads import everywhere, refused_everywhere

A, X, OUT = np.arange(64, dtype=np.float32), np.ones((8, 8), np.float32), np.zeros(64, np.float32)
V = 'v = T.alloc_var("float32", init=0)\n'
L = 'l = T.alloc_local((4,), "float32")\nl[0] = 0.0\nl[3] = 9.0\n'
S = 's = T.alloc_shared((8,), "float32")\nT.clear(s)\n'

# The body, and the line of it that is refused.
STATE = {
    "added up": (V + "for i in T.Parallel(64):\n    v = v + A[i]\nO[0] = v", 3),
    "in place": (V + "for i in T.Parallel(64):\n    v += A[i]\n", 3),
    "read after it": (V + "for i in T.Parallel(64):\n    v = A[i]\nO[0] = v", 3),
    "a flag": (
        V + "for i in T.Parallel(64):\n    if A[i] > 3.0:\n        v = 1.0\nif v > 0.5:\n    O[0] = 1.0",
        4,
    ),
    "read before it is stored": (V + "for i in T.Parallel(64):\n    O[i] = v\n    v = A[i]", 4),
    "stored in one branch": (
        V + "for i in T.Parallel(64):\n    if i > 3:\n        v = A[i]\n    O[i] = v",
        4,
    ),
    "read in the next turn": (
        V + "for k in T.serial(4):\n    O[k] = v\n    for i in T.Parallel(64):\n        v = A[i]",
        5,
    ),
    "through a loop": (
        V + "for i in T.Parallel(64):\n    for k in T.serial(3):\n        v = v + A[k]\n    O[i] = v",
        4,
    ),
    "an address": (V + "for i in T.Parallel(4):\n    v = A[i]\nO[T.cast(v, 'int32')] = 1.0", 3),
    "an array": (L + "for i in T.Parallel(64):\n    l[0] = l[0] + A[i]\nO[0] = l[0]", 5),
    "an array's own index": (L + "for i in T.Parallel(64):\n    l[i % 4] = A[i]\n    O[i] = l[i % 4]", 5),
}
SUMS = {
    "shared": (S + "for i in T.Parallel(64):\n    s[0] = s[0] + A[i]", 4),
    "an array": ("for i in T.Parallel(64):\n    O[0] += A[i]", 2),
    "rows": (S + "for i, j in T.Parallel(8, 8):\n    s[i] += X[i, j]", 4),
    "behind an edge": ("for i, j in T.Parallel(8, 8):\n    if b0 * 8 + i < 7:\n        O[j] = T.max(O[j], X[i, j])", 3),
    "counted": ("for i in T.Parallel(64):\n    if A[i] > 3.0:\n        O[0] = O[0] + 1.0", 3),
    "halves": ("for i in T.Parallel(64):\n    O[i // 2] = O[i // 2] + A[i]", 2),
    "by names": ("for i in T.Parallel(64):\n    at = i % 32\n    y = O[at] + A[i]\n    O[at] = y", 4),
    "in turn": ("for i in T.Parallel(64):\n    for k in T.serial(4):\n        O[k] = O[k] + A[i]", 3),
    "otherwise": ("for i in T.Parallel(64):\n    if A[i] == 3.0:\n        O[i] = 1.0\n    else:\n        O[0] += 1.0", 5),
}  # fmt: skip


@pytest.mark.parametrize("case", STATE)
def test_state_that_iterations_would_share(case: str) -> None:
    body, line = STATE[case]
    error = refused_everywhere(body, A=A, X=X, O=OUT)
    assert "is changed in T.Parallel and was made before it: iterations run in no order" in error.message
    assert "inside the loop; add up with T.reduce_sum" in str(error)
    assert error.place is not None
    assert error.place.line == 6 + line


@pytest.mark.parametrize("case", SUMS)
def test_elements_that_iterations_change_together(case: str) -> None:
    body, line = SUMS[case]
    error = refused_everywhere(body, A=A, X=X, O=OUT)
    assert "iterations of T.Parallel change one element of" in error.message
    assert "with T.serial inside T.Parallel" in str(error)
    assert error.place is not None
    assert error.place.line == 6 + line


FINE = {
    "made inside": ("for i in T.Parallel(64):\n    v = T.alloc_var('float32', init=0)\n    v = v + A[i]\n    O[i] = v", A),
    "on the way": (V + "for i in T.Parallel(64):\n    v = A[i]\n    O[i] = v + v\nv = 3.0\nO[0] = v", [3, *2 * A[1:]]),
    "on the way, an array": (
        L + "for i in T.Parallel(32):\n    for k in T.serial(3):\n        l[k] = A[i + k]\n    O[i] = l[2] + l[3]",
        [*A[2:34] + 9, *[0] * 32],
    ),
    "one iteration": ("for i in T.Parallel(64):\n    if i == 3:\n        O[0] = O[0] + A[i]", [3] + [0] * 63),
    "first iteration": ("for i in T.Parallel(64):\n    if i < 1:\n        O[0] += 5.0", [5] + [0] * 63),
    "in order": ("for i in T.Parallel(8):\n    for j in T.serial(8):\n        O[i] += X[i, j]", [8] * 8 + [0] * 56),
    "flat": ("for i, j in T.Parallel(8, 8):\n    O[i * 8 + j] = O[i * 8 + j] + X[i, j]", [1] * 64),
    "one lane": (V + "for j in T.vectorized(4):\n    v = v + A[j]\nO[0] = v", [6] + [0] * 63),
    "an axis of one": ("for i, j in T.Parallel(8, 1):\n    O[i] = O[i] + X[i, j]", [1] * 8 + [0] * 56),
    "turned": ("for i, j in T.Parallel(8, 8):\n    O[63 - i * 8 - j] = O[63 - i * 8 - j] * 2.0 + 1.0", [1] * 64),
}  # fmt: skip


@pytest.mark.parametrize("case", FINE)
def test_what_each_iteration_has_to_itself(case: str) -> None:
    body, want = FINE[case]
    assert everywhere(body, A=A, X=X, O=OUT)["O"].tolist() == list(want)
