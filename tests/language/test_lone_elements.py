"""Elements of fragments that a kernel uses by themselves, outside `T.Parallel`."""

from __future__ import annotations

import numpy as np
import pytest

from tests.everywhere import everywhere, kernel_of
from tilebench.errors import TileError
from tilebench.ir import parse_function, print_function
from tilebench.language.words import registry

BRANCH = """
mask = T.alloc_fragment((4,), "int32")
tile = T.alloc_fragment((16, 64), "float32")
T.copy(M, mask)
for k in T.serial(4):
    if mask[k] != 0:
        T.copy(A[k * 16, 0], tile)
        for i, j in T.Parallel(16, 64):
            tile[i, j] = tile[i, j] * mask[k]
        T.copy(tile, O[k * 16, 0])
"""
HEAD = 'A: T.Tensor((64, 64), "float32"), M: T.Tensor((4,), "int32"), O: T.Tensor((64, 64), "float32")'


def test_a_branch_on_an_element() -> None:
    a, m = np.arange(4096, dtype=np.float32).reshape(64, 64), np.array([1, 0, 3, 0], np.int32)
    out = everywhere(BRANCH, HEAD, A=a, M=m, O=np.full((64, 64), -1, np.float32))["O"]
    wanted = np.where(m.repeat(16)[:, None] != 0, a * m.repeat(16)[:, None], -1)
    np.testing.assert_array_equal(out, wanted)


def test_elements_are_stored_and_reduced() -> None:
    body = """
    rows = T.alloc_fragment((64, 64), "float32")
    total = T.alloc_fragment((64,), "float32")
    last = T.alloc_fragment((1,), "float32")
    T.copy(A, rows)
    T.reduce_sum(rows, total, dim=1)
    last[0] = total[63] + 1
    total[0] = last[0] * 2
    for i in T.Parallel(64):
        O[i, 0] = total[i] + last[0]
    """
    a = np.random.default_rng(0).integers(-4, 5, (64, 64)).astype(np.float32)
    out = everywhere(body, A=a, O=np.zeros((64, 64), np.float32))["O"][:, 0]
    total = a.sum(1)
    last = total[63] + 1
    total[0] = last * 2
    np.testing.assert_array_equal(out, total + last)


def test_the_price_is_told_and_the_text_is_read_again() -> None:
    kernel = kernel_of(BRANCH, HEAD).using(target="cuda:sm_80")()
    kernel.stage("laid_out")
    remarks = [each.message for each in kernel.record(()).remarks]
    assert [text for text in remarks if text.startswith("the fragment mask is kept in shared memory")]
    assert not [text for text in remarks if text.startswith("the fragment tile")]
    text = print_function(kernel.compilation.functions["tile"]).text
    assert "of_fragment=True" in text
    assert print_function(parse_function(text, registry())).text == text


def test_a_products_result_has_to_be_copied() -> None:
    body = """
    S = T.alloc_shared((64, 64), "float32")
    C = T.alloc_fragment((64, 64), "float32")
    T.copy(A, S)
    T.clear(C)
    T.gemm(S, S, C)
    O[0, 0] = C[3, 4]
    """
    with pytest.raises(TileError, match="element of the fragment C, in which a product is formed") as caught:
        kernel_of(body)()
    assert "O[0, 0] = C[3, 4]" in str(caught.value)
