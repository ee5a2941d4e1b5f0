"""Every loop inside every other, and every loop with nothing in it: the same on every road."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.roads import everywhere

LOOPS = {
    "Parallel": "T.Parallel({n})",
    "vectorized": "T.vectorized({n})",
    "serial": "T.serial(1, {n})",
    "unroll": "T.unroll(0, {n}, 2)",
    "Pipelined": "T.Pipelined({n}, num_stages=2)",
}
TILES_ALONE = ("Parallel", "Pipelined")
PAIRS = [(a, b) for a, b in product(LOOPS, LOOPS) if a != "Parallel" or b not in TILES_ALONE]
BODIES = {
    "a store": "O[i * 4 + j] = A[i * 4 + j] + 1.0",
    "two stores": "s[i * 4 + j] = A[i * 4 + j]\nO[i * 4 + j] = s[i * 4 + j] + j",
    "a scalar": "v = T.alloc_var('float32', init=A[i * 4 + j])\nv = v + 1.0\nO[i * 4 + j] = v",
    "a branch": "if A[i + j] > 2.0:\n    O[i * 4 + j] = 1.0\nelse:\n    O[i * 4 + j] = A[i]",
}
A, ZEROS = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize(("outer", "inner"), PAIRS)
def test_loops_in_loops(outer: str, inner: str, body: str) -> None:
    lines = BODIES[body].replace("\n", "\n        ")
    text = f"for i in {LOOPS[outer].format(n=3)}:\n    for j in {LOOPS[inner].format(n=4)}:\n        {lines}"
    after = everywhere("s = T.alloc_shared((16,), 'float32')\n" + text, A=A, O=ZEROS)["O"]
    turns = [(i, j) for i in _turns(outer, 3) for j in _turns(inner, 4)]
    want = ZEROS.copy()
    for i, j in turns:
        at = i * 4 + j
        want[at] = {
            "a store": A[at] + 1, "a scalar": A[at] + 1, "two stores": A[at] + j,
            "a branch": 1 if A[i + j] > 2 else A[i],
        }[body]  # fmt: skip
    assert np.array_equal(after, want)


def _turns(loop: str, n: int) -> range:
    return {"serial": range(1, n), "unroll": range(0, n, 2)}.get(loop, range(n))


@pytest.mark.parametrize("body", ["pass", "if False: O[i] = 1.0", "x = A[i]", "x = T.alloc_var('float32')"])
@pytest.mark.parametrize("loop", [*LOOPS, "T.serial(0)", "T.unroll(2, 2)", "T.grid(3)"])
def test_loops_with_nothing_in_them(loop: str, body: str) -> None:
    head = LOOPS.get(loop, loop).format(n=4)
    after = everywhere(f"O[0] = 7.0\nfor i in {head}:\n    {body}\n", A=A, O=ZEROS)["O"]
    assert after.tolist() == [7.0] + [0.0] * 15


@pytest.mark.parametrize("body", ["pass", "if b0 > 3: pass", "with T.threads(0, 32):\n    pass", "x = A[b0]"])
def test_kernels_with_nothing_in_them(body: str) -> None:
    assert not everywhere(body, A=A, O=ZEROS)["O"].any()


@pytest.mark.parametrize(
    "scalar", ["v = T.alloc_var('float32', init=3)", "v = T.alloc_var('float32', init=A[3])"]
)
def test_a_scalar_of_the_block_goes_into_elements(scalar: str) -> None:
    body = f"{scalar}\ns = T.alloc_shared((2, 8), 'float32')\n"
    body += "for i, j in T.Parallel(2, 8):\n    s[i, j] = v + i * 8 + j\n"
    body += "for i, j in T.Parallel(2, 8):\n    O[i * 8 + j] = T.exp(s[i, j] * 0.0) * s[i, j]\n"
    assert np.array_equal(everywhere(body, A=A, O=ZEROS)["O"], A + 3)
