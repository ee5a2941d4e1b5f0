"""Products of one row or one column by instructions whose fragments have more: what is beyond is nobody's."""

from __future__ import annotations

import numpy as np
import pytest

from tests.everywhere import everywhere

BODY = """
A_s = T.alloc_shared(({m}, {k}), "float16")
B_s = T.alloc_shared(({k}, {n}), "float16")
C = T.alloc_fragment(({m}, {n}), "float32")
T.copy(A, A_s)
T.copy(B, B_s)
T.copy(I, C)
T.gemm(A_s, B_s, C)
for i, j in T.Parallel({m}, {n}):
    C[i, j] = C[i, j] * 2
T.copy(C, O)
"""
HEAD = (
    'A: T.Tensor(({m}, {k}), "float16"), B: T.Tensor(({k}, {n}), "float16"), '
    'I: T.Tensor(({m}, {n}), "float32"), O: T.Tensor(({m}, {n}), "float32")'
)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(("m", "n", "k"), [(1, 20, 16), (20, 1, 16), (1, 1, 5), (3, 1, 40), (1, 64, 16)])
def test_a_thin_product_reaches_its_array(m: int, n: int, k: int, arch: str) -> None:
    rng = np.random.default_rng(m * n + k)
    a, b = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    i = rng.integers(-2, 3, (m, n)).astype(np.float32)
    sizes = {"m": m, "n": n, "k": k}
    found = everywhere(BODY.format(**sizes), HEAD.format(**sizes), threads=64, arch=arch, A=a, B=b, I=i)
    np.testing.assert_array_equal(found["O"], 2 * (a.astype(np.float32) @ b.astype(np.float32) + i))
