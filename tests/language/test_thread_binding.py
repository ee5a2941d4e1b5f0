"""T.thread_binding as a loop and as a number, with its extent in either form."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.roads import everywhere, jitted, refused_everywhere
from tilebench.errors import LanguageError

NUMBERS = np.arange(64, dtype=np.int32)


@pytest.mark.parametrize(
    "head", ["64", "0, 64", '64, "threadIdx.x"', '0, 64, "threadIdx.x"', '0, 64, thread="threadIdx.x"']
)
def test_extents(head: str) -> None:
    loop = f"for tx in T.thread_binding({head}):\n    C[tx] = A[tx] * 2"
    value = f"tx = T.thread_binding({head})\nC[tx] = A[tx] * 2"
    for body in (loop, value):
        found = everywhere(body, launch="1, threads=64", A=NUMBERS, C=np.zeros_like(NUMBERS))["C"]
        np.testing.assert_array_equal(found, 2 * NUMBERS)


def test_numbers_of_two_dimensions() -> None:
    body = """
        tk = T.thread_binding(0, 16, thread="threadIdx.x")
        tn = T.thread_binding(0, 4, thread="threadIdx.y")
        C[tn, tk] = tn * 100 + tk
    """
    found = everywhere(body, launch="1, threads=(16, 4)", C=np.zeros((4, 16), np.int32))["C"]
    np.testing.assert_array_equal(found, np.arange(4)[:, None] * 100 + np.arange(16))


def test_a_start_that_is_not_0_is_refused() -> None:
    error = refused_everywhere("tx = T.thread_binding(1, 64)\nC[tx] = 1", launch="1, threads=64", C=NUMBERS)
    assert error.message == "T.thread_binding counts from 0"


def test_how_many_blocks_there_are() -> None:
    out = everywhere(
        """
        tx = T.get_thread_binding()
        bx, by = T.get_block_bindings()
        O[by, bx, tx] = T.get_block_extent(1) * 1000 + T.get_block_extents()[0] * 100
        if T.shuffle_elect(64):
            O[by, bx, tx] = O[by, bx, tx] + 1
        if T.shuffle_elect(0):
            O[by, bx, tx] = O[by, bx, tx] + 10
        """,
        launch="3, 2, threads=128",
        O=np.zeros((2, 3, 128), np.int32),
    )
    wanted = np.full((2, 3, 128), 2300)
    wanted[..., ::64] += 1
    wanted[..., 0] += 10
    np.testing.assert_array_equal(out["O"], wanted)


@pytest.mark.parametrize(
    ("word", "what"),
    [
        ("T.get_block_extent(2)", "T.get_block_extent takes dimension 2, and the grid has 1"),
        ("T.shuffle_elect(48)", "T.shuffle_elect chooses one of 48 threads"),
        ("T.shuffle_elect(-32)", "T.shuffle_elect chooses one of -32 threads"),
    ],
)
def test_no_such_dimension_and_no_such_group(word: str, what: str) -> None:
    with pytest.raises(LanguageError, match=re.escape(what)):
        jitted(f"x = {word}", O=np.zeros(1, np.int32)).using(target="cpu")()
