"""Kernels of very many statements: what costs the square of a length is kept short."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.roads import jitted, on_cpu
from tilebench.ir import walk
from tilebench.targets.cpu.loops.words import Vectors
from tilebench.targets.cpu.render.renderer import LONGEST_BLOCK
from tilebench.targets.cpu.rows.fuse_rows import LONGEST

N = 600
A, OUT = np.arange(N + 64, dtype=np.float32), np.zeros(N + 64, np.float32)
BODIES = {
    "stores": "\n".join(f"O[{k}] = A[{k}] + {k}.0" for k in range(N)),
    "elements": "for i in T.Parallel(64):\n"
    + "\n".join(f"    O[i + {k}] = A[i + {k}] * 2.0" for k in range(N)),
    "branches": "\n".join(f"if A[{k}] > 3.0:\n    O[{k}] = A[{k}] * 2.0" for k in range(N)),
    "written out": "for j in T.unroll(8):\n    for k in T.unroll(8):\n"
    + "\n".join(f"        O[j * 64 + k * 8 + {n}] = A[j * 64 + k * 8 + {n}] * 2.0" for n in range(8)),
}
WANT = {
    "stores": np.where(np.arange(N + 64) < N, A * 2, 0),
    "elements": np.where(np.arange(N + 64) < N + 63, A * 2, 0),
    "branches": np.where((np.arange(N + 64) < N) & (A > 3), A * 2, 0),
    "written out": np.where(np.arange(N + 64) < 512, A * 2, 0),
}


@pytest.mark.parametrize("body", BODIES)
def test_blocks_of_instructions_are_short(body: str) -> None:
    function = jitted(BODIES[body], A=A, O=OUT)
    assert np.array_equal(on_cpu(function, {"A": A, "O": OUT})["O"], WANT[body])
    text = function.using(target="cpu")().stage("llvm")
    blocks = re.split(r"^\w+:$", text, flags=re.MULTILINE)
    assert max(block.count("\n") for block in blocks) < LONGEST_BLOCK + 100


def test_joined_loops_have_an_end() -> None:
    turn = "for i in T.Parallel(64):\n    s[i] = s[i] * 0.5 + A[i]\n"
    body = "s = T.alloc_fragment((64,), 'float32')\nT.clear(s)\n" + turn * 200 + "T.copy(s, O[0:64])"
    kernel = jitted(body, A=A, O=OUT).using(target="cpu")()
    after = OUT.copy()
    kernel(A, after)
    assert np.allclose(after[:64], 2 * A[:64], rtol=1e-6)
    loops = [each for each in walk(kernel.compilation.functions["loops"]) if isinstance(each, Vectors)]
    assert 200 // LONGEST <= len(loops) <= 2 * 200 // LONGEST
    assert max(len(each.body) for each in loops) <= LONGEST
