"""What the simulator makes of `cp.async` is what an H200 left in shared memory, byte by byte.

`tests/device/record_cp_async.py` recorded it: each thread copies as many bytes of its row as its number says,
into memory that was filled before.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.simulated import card_words, run_threaded
from tilebench.ir import parse_function

RECORDED = Path(__file__).with_name("cp_async_h200.npz")
KERNEL = """@T.prim_func
def copy(A: T.Tensor((64, {width}), T.int8), O: T.Tensor((64, {width}), T.int8)):
    with T.Kernel(1, threads=64, shared_bytes={bytes}) as bx:
        tid: T.int32 = T.thread_id()
        S = T.alloc_shared(({bytes},), T.int8, offset=0)
        for k in T.serial({width}):
            S[tid * {width} + k] = T.int8(90)
        T.sync_threads()
        n: T.int32 = tid % {more}
        T.cp_async(S[tid * {width} : tid * {width} + {width}], A[tid : tid + 1, 0 : {width}], valid=n)
        T.cp_async_commit()
        T.cp_async_wait()
        T.sync_threads()
        for k in T.serial({width}):
            O[tid, k] = S[tid * {width} + k]
"""


@pytest.mark.parametrize("width", [4, 8, 16])
def test_the_simulator_leaves_what_the_card_left(width: int) -> None:
    with np.load(RECORDED) as recorded:
        rows, wanted = recorded[f"rows_{width}"], recorded[f"found_{width}"]
    text = KERNEL.format(width=width, bytes=64 * width, more=width + 1)
    found = np.full_like(wanted, 7)
    run_threaded(parse_function(text, card_words()), {"A": rows, "O": found}, warp=32)
    np.testing.assert_array_equal(found, wanted)
    # Bytes that are not read are zeros, and none of what was there before.
    inside = np.arange(width) < (np.arange(64) % (width + 1))[:, None]
    np.testing.assert_array_equal(wanted, np.where(inside, rows, 0))
