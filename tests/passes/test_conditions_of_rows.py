"""Rows' and columns' fragments in conditions and indices of loops over a tile, in vectors too."""

from __future__ import annotations

import pytest

from tests.everywhere import everywhere

TILES = """
c = T.alloc_fragment((16, 32), "float32")
f = T.alloc_fragment((16,), "float32")
g = T.alloc_fragment((32,), "float32")
k = T.alloc_fragment((16,), "int32")
s = T.alloc_shared((16, 32), "float32")
T.copy(A[0:16, 0:32], c)
T.copy(A[0:16, 0:32], s)
T.reduce_sum(c, f, dim=1)
T.reduce_sum(c, g, dim=0)
for i in T.Parallel(16):
    k[i] = i * 3 % 7
for i, j in T.Parallel(16, 32):
    {}
T.copy(c, O[16:32, 0:32])
"""
CONDITIONS = (
    "f[i] > 0", "g[j] > 0", "f[i] > 0 and g[j] > 0", "not (f[i] > 0)", "f[i] > c[i, j]", "k[i] > 3",
    "j < k[i] * 4", "j >= k[i] and j < 20", "f[i] > 0 or j < 3", "s[i, j] > f[i]",
)  # fmt: skip
BODIES = {
    "clears": "if {}: c[i, j] = 0.0",
    "stores": "if {}: O[i, j] = 1.0",
    "either": "if {}:\n        O[i, j] = A[i, j]\n    else:\n        O[i, j] = c[i, j]",
    "masked_load": "O[i, j] = T.if_then_else({}, A[i, j], 0.0)",
    "one_of_two_loads": "O[i, j] = A[i, j] if {} else s[i, j]",
    "into_registers": "c[i, j] = T.if_then_else({}, s[i, j], c[i, j])",
    "nested": "if {}:\n        if f[i] < 1: s[i, j] = c[i, j] + f[i]",
    "named": "w = f[i] * 2\n    if {}: O[i, j] = w + A[i, j]",
    "row_of_an_index": "if {}: O[i, j] = A[k[i], j]",
}


@pytest.mark.parametrize("body", list(BODIES))
def test_any_condition(body: str) -> None:
    for number, condition in enumerate(CONDITIONS):
        everywhere(TILES.format(BODIES[body].format(condition)), threads=(32, 128)[number % 2], exact=False)
