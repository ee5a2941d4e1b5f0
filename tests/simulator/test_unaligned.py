"""A load from any address: its elements, and the aligned pieces around them, which have to be inside."""

from __future__ import annotations

import numpy as np
import pytest

from tilebench.ir import parse_function
from tilebench.language.words import registry
from tilebench.simulator import SimulationError, run_threaded

TEXT = """@T.prim_func
def kernel(A: T.Tensor((46,), T.float16{align}), B: T.Tensor((8, 4), T.float16)):
    with T.Kernel(1, threads=32) as bx:
        tid: T.int32 = T.thread_id()
        a = T.alloc_local((4,), T.float16)
        p = T.alloc_local((8,), T.float16)
        if tid < 8:
            T.load_pieces(p, A[tid + {first} : tid + {first} + 4])
            T.from_pieces(a, p, A[tid + {first} : tid + {first} + 4])
            T.vector_store(B[tid : tid + 1, 0:4], a)
"""


def loaded(first: int, align: str = "") -> np.ndarray:
    arrays = {"A": np.arange(46, dtype=np.float16), "B": np.zeros((8, 4), np.float16)}
    run_threaded(parse_function(TEXT.format(first=first, align=align), registry()), arrays, warp=32)
    return arrays["B"]


@pytest.mark.parametrize(
    ("first", "align"), [(0, ""), (1, ""), (33, ""), (3, ", align=2"), (32, ", align=2")]
)
def test_elements_from_any_address(first: int, align: str) -> None:
    want = first + np.arange(8)[:, None] + np.arange(4)[None, :]
    np.testing.assert_array_equal(loaded(first, align), want)


@pytest.mark.parametrize(("first", "align"), [(34, ""), (2, ", align=2"), (33, ", align=2")])
def test_pieces_around_them_are_inside(first: int, align: str) -> None:
    with pytest.raises(SimulationError) as caught:
        loaded(first, align)
    assert caught.value.message == "an access around elements of A reaches outside of it"
