"""T.Parallel directly inside T.Parallel is one loop on every road; beside other statements it is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tests.roads import everywhere, jitted, refused_everywhere
from tilebench.language.structure import Parallel


def test_one_loop_over_the_indices_of_both() -> None:
    a = np.arange(12 * 20, dtype=np.float32).reshape(12, 20)
    body = """
        x = T.alloc_fragment((12, 20), "float32")
        T.clear(x)
        for i in T.Parallel(12):
            row = 2 * i
            for j in T.Parallel(20):
                if (i + j) % 3 == 0:
                    continue
                x[i, j] = A[i, j] + row
        for i, j in T.Parallel(3, 4):
            for k in T.Parallel(5):
                for l in T.Parallel(4):
                    B[i * 4 + j, k * 4 + l] = x[i * 4 + j, k * 4 + l]
    """
    found = everywhere(body, A=a, B=np.full_like(a, np.nan))["B"]
    i, j = np.indices(a.shape)
    np.testing.assert_array_equal(found, np.where((i + j) % 3 == 0, 0, a + 2 * i))


def test_the_stage_has_one_loop() -> None:
    body = "for i in T.Parallel(8):\n    for j in T.Parallel(4):\n        B[i, j] = 1"
    stage = jitted(body, B=np.zeros((8, 4), np.float32)).using(target="cpu")().compilation.functions["tile"]
    loops = [each for each in stage.body[0].body if isinstance(each, Parallel)]
    assert [each.extents for each in loops] == [(8, 4)]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "for i in T.Parallel(8):\n    B[i, 0] = 1\n    for j in T.Parallel(4):\n        B[i, j] = 1",
            "T.Parallel cannot stand inside T.Parallel",
        ),
        (
            "for i in T.Parallel(8):\n    for j in T.Parallel(4):\n        B[i, j] = 1\n    B[i, 0] = 2",
            "a statement stands beside a T.Parallel inside T.Parallel",
        ),
        (
            "for i in T.Parallel(8):\n for k in T.serial(2):\n  for j in T.Parallel(4):\n   B[i, j] = k",
            "T.Parallel cannot stand inside T.Parallel",
        ),
    ],
)
def test_beside_other_statements_it_is_refused(body: str, message: str) -> None:
    assert refused_everywhere(body, B=np.zeros((8, 4), np.float32)).message == message
