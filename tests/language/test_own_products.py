"""`T.gemm` into arrays that each thread has to itself, and what fills and copies do with such arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.everywhere import everywhere, kernel_of
from tilebench.errors import TileError

CASES = [
    ("float32", "float32", (False, False), "False"), ("float16", "float32", (True, False), "True"),
    ("float16", "float16", (False, True), "b0 == 0"), ("bfloat16", "float32", (False, True), "False"),
    ("float64", "float64", (True, True), "False"), ("int8", "int32", (True, True), "False"),
    ("int8", "float32", (False, False), "b0 > 0"), ("int4", "int32", (False, False), "False"),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "total", "turned", "clear"), CASES)
def test_products_of_each_thread(dtype: str, total: str, turned: tuple[bool, bool], clear: str) -> None:
    shape_a = (8, 6) if turned[0] else (6, 8)
    shape_b = (10, 8) if turned[1] else (8, 10)
    flags = f"transpose_A={turned[0]}, transpose_B={turned[1]}"
    body = f"""
    X = T.alloc_local({shape_a}, "{dtype}")
    Y = T.alloc_shared({shape_b}, "{dtype}")
    c = T.alloc_local((6, 10), "{total}")
    T.copy(A, X)
    T.copy(B, Y)
    T.fill(c, 3)
    T.gemm(X, Y, c, clear_accum={clear}, {flags})
    T.gemm(A, B, c, {flags})
    T.copy(c, C)
    """
    head = (
        f'A: T.Tensor({shape_a}, "{dtype}"), B: T.Tensor({shape_b}, "{dtype}"), '
        f'C: T.Tensor((6, 10), "{total}")'
    )
    found = everywhere(body, head, exact=total != "float16")
    a: Any = found["A"].astype(np.float64)
    b: Any = found["B"].astype(np.float64)
    product = (a.T if turned[0] else a) @ (b.T if turned[1] else b)
    wanted = 2 * product + (0 if clear in ("True", "b0 == 0") else 3)
    bound = 2e-2 if total == "float16" else 1e-5
    np.testing.assert_allclose(found["C"].astype(np.float64), wanted, rtol=bound, atol=bound)


def test_each_thread_fills_and_copies_all_of_its_own() -> None:
    """128 threads and 60 elements: shared out among them, the last ones would write behind the array."""
    body = """
    c = T.alloc_local((6, 10), "float32")
    T.fill(c, 2)
    for i in T.Parallel(60):
        D[i] = c[i // 10, i % 10]
    T.copy(A, c)
    for i in T.Parallel(60):
        C[i] = c[5 - i // 10, 9 - i % 10]
    """
    head = 'A: T.Tensor((6, 10), "float32"), C: T.Tensor((60,), "float32"), D: T.Tensor((60,), "float32")'
    found = everywhere(body, head)
    assert (found["D"] == 2).all()
    np.testing.assert_array_equal(found["C"], found["A"].ravel()[::-1])


OWN = "x = T.alloc_local((8, 8), 'float32')\n"
TILE = "c = T.alloc_fragment((8, 8), 'float32')\nT.clear(c)\n"


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("T.gemm(c, A[0:8, 0:8], x)",
         "x is each thread's own, and a thread has a part of the fragment c only"),
        ("T.gemm(x, A[0:8, 0:8], c)",
         "x is each thread's own, and c is the block's: T.gemm takes tiles of the block then"),
        ("T.copy(c, x)", "x is each thread's own, and a thread has a part of the fragment c only"),
    ],
)  # fmt: skip
def test_what_no_thread_has_whole(line: str, what: str) -> None:
    with pytest.raises(TileError) as error:
        kernel_of(OWN + TILE + line).using(target="cuda:sm_80")().stage("laid_out")
    assert str(error.value).splitlines()[0].split("error: ")[1] == what
