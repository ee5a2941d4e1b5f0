"""`T.assume` in what each thread does by itself: it holds in that thread, from there on."""

from __future__ import annotations

import numpy as np
import pytest

from tests.everywhere import everywhere, kernel_of
from tilebench.errors import LanguageError

HEAD = 'A: T.Tensor((40, 128), "float32"), O: T.Tensor((32, 128), "float32"), N: T.Tensor((1,), "int32")'
OF_EACH = """
tx = T.get_thread_binding()
n = N[0]
T.assume(n <= 128)
for i in T.vectorized(4):
    T.assume({promised})
    O[tx, tx * 4 + i] = A[tx, tx * 4 + i]
T.sync_threads()
for j in T.serial(n):
    source = T.min(j + 233, tx + 2)
    T.assume(source < 40)
    if source < 5:
        T.assume(source >= 1)
        O[tx, j] = O[tx, j] + A[source, j]
"""


def test_a_promise_of_each_thread() -> None:
    rows = np.random.default_rng(1).uniform(-2, 2, (40, 128)).astype(np.float32)
    body = OF_EACH.format(promised="tx * 4 + i < n")
    got = everywhere(body, HEAD, 32, A=rows, O=np.zeros((32, 128), np.float32), N=np.array([128], np.int32))[
        "O"
    ]
    right = np.zeros((32, 128), np.float32)
    for thread in range(32):
        right[thread, 4 * thread : 4 * thread + 4] = rows[thread, 4 * thread : 4 * thread + 4]
        if thread + 2 < 5:
            right[thread] += rows[thread + 2]
    np.testing.assert_array_equal(got, right)


def test_a_promise_that_one_thread_breaks_is_told() -> None:
    kernel = kernel_of(OF_EACH.format(promised="tx * 4 + i < n"), HEAD, 32)
    with pytest.raises(LanguageError, match=r"T\.assume") as refusal:
        kernel().check(
            np.zeros((40, 128), np.float32), np.zeros((32, 128), np.float32), np.array([120], np.int32)
        )
    first, place, *quoted = refusal.value.explain().splitlines()
    assert first == "language error: what T.assume says does not hold"
    assert place.endswith(":13, in main")
    assert quoted == ["    T.assume(tx * 4 + i < n)", "    ^^^^^^^^^^^^^^^^^^^^^^^^"]
