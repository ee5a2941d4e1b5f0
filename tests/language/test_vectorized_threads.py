"""`T.vectorized` in code of threads: wide accesses where they are proved, the same values everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilebench.language as T
from tests.everywhere import everywhere, kernel_of
from tilebench.targets.cuda.compiler.nvrtc import compile_cuda
from tilebench.targets.cuda.machines import machine_of

GEMV = """
tx = T.get_thread_binding()
a = T.alloc_local((8,), "{dtype}")
b = T.alloc_local((16,), "{dtype}")
S = T.alloc_shared((1024,), "{dtype}")
for k in T.serial(2):
    for v in T.vectorized({n}):
        a[v] = A[k * 1024 + tx * 8 + v + {shift}]
        b[8 + v] = a[v]
    for v in T.vectorized({n}):
        S[tx * 8 + v] = b[v + 8]
    T.sync_threads()
    for v in T.vectorized({n}):
        a[v] = S[1016 - tx * 8 + v]
    for v in T.vectorized({n}):
        O[k * 1024 + tx * 8 + v] = a[v]
    T.sync_threads()
"""


def _threaded(body: str, head: str) -> str:
    kernel = kernel_of(body, head).using(target="cuda:sm_80")()
    compile_cuda(kernel.stage("cuda"), machine_of("sm_80"))
    return kernel.stage("threaded")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int64"])
@pytest.mark.parametrize(("n", "shift"), [(8, 0), (8, 4), (8, 1), (6, 0), (5, 0)])
def test_moves(dtype: str, n: int, shift: int) -> None:
    body = GEMV.format(dtype=dtype, n=n, shift=shift)
    head = f'A: T.Tensor((2056,), "{dtype}"), O: T.Tensor((2048,), "{dtype}")'
    a = (np.arange(2056) % 101).astype(T.dtype(dtype).numpy)
    o = np.full(2048, 77).astype(T.dtype(dtype).numpy)
    body = body.replace("S = T.alloc_shared((1024,), ", "S = T.alloc_shared((1024,), ")
    out = everywhere(body, head, A=a, O=o)["O"].astype(np.float64).reshape(2, 128, 8)
    wanted = a[shift : shift + 2048].astype(np.float64).reshape(2, 128, 8)[:, ::-1]
    np.testing.assert_array_equal(out[:, :, :n], wanted[:, :, :n])
    assert (out[:, :, n:] == 77).all()
    text = _threaded(body, head)
    whole = n == 8
    most = 16 // T.dtype(dtype).numpy.itemsize
    assert text.count("T.vector_load(a, A[") == (whole and shift == 0 and most >= 8)
    assert ("T.vector_load" in text) == (n != 5)
    assert ("A[k * 1024 + tx * 8 + v" in text) == (n == 5 or shift == 1)


EDGES = """
tx = T.get_thread_binding()
a = T.alloc_local((4,), "float32")
for v in T.vectorized(4):
    a[v] = A[tx * 4 + v]
for v in T.vectorized(4):
    O[tx * 4 + v] = a[v] + 1.0
for v in T.vectorized(4):
    if tx * 4 + v < {limit}:
        P[tx * 4 + v] = a[v]
"""


@pytest.mark.parametrize("n", [512, 400, 401, 3])
def test_at_the_end_of_an_array(n: int) -> None:
    """Zeros outside: wide where a vector is inside or outside as a whole, one by one where not."""
    head = f'A: T.Tensor(({n},), "float32"), O: T.Tensor((512,), "float32"), P: T.Tensor(({n},), "float32")'
    a = np.arange(1, n + 1, dtype=np.float32)
    for limit in (n, 20):
        body = EDGES.format(limit=limit)
        out = everywhere(body, head, A=a, O=np.zeros(512, np.float32), P=np.zeros(n, np.float32))
        np.testing.assert_array_equal(out["O"], 1 + np.r_[a, np.zeros(512 - n)])
        np.testing.assert_array_equal(out["P"], np.where(np.arange(n) < limit, a, 0))
        text = _threaded(body, head)
        assert ("T.vector_load" in text) == (n % 4 == 0)
        assert ("T.vector_store(P[" in text) == (limit % 4 == 0 and (n % 4 == 0 or limit < n))


ORDERED: dict[str, tuple[str, Any]] = {
    "a turn reads what a later one writes": (
        "a[v] = A[tx * 4 + v]\n    c[v] = a[3 - v]",
        lambda a: np.stack([a[:, 0] * 0, a[:, 0] * 0, a[:, 1], a[:, 0]], 1),
    ),
    "a sum over turns": (
        "a[v] = A[tx * 4 + v]\n    c[0] = c[0] + a[v]",
        lambda a: np.stack([a.sum(1), *[a[:, 0] * 0] * 3], 1),
    ),
    "every turn into one element": (
        "a[v] = A[tx * 4 + v]\n    c[1] = a[v]",
        lambda a: np.stack([a[:, 0] * 0, a[:, 3], a[:, 0] * 0, a[:, 0] * 0], 1),
    ),
    "what was read is written": (
        "c[v] = a[v]\n    a[v] = A[tx * 4 + v]",
        lambda a: a * 0,
    ),
}


@pytest.mark.parametrize("case", ORDERED)
def test_turns_that_need_each_other_stay_in_order(case: str) -> None:
    inner, right = ORDERED[case]
    body = f"""
tx = T.get_thread_binding()
a = T.alloc_local((4,), "float32")
c = T.alloc_local((4,), "float32")
for v in T.serial(4):
    a[v] = 0.0
    c[v] = 0.0
for v in T.vectorized(4):
    {inner}
for v in T.serial(4):
    O[tx * 4 + v] = c[v]
"""
    head = 'A: T.Tensor((512,), "float32"), O: T.Tensor((512,), "float32")'
    a = np.random.default_rng(0).integers(-9, 9, 512).astype(np.float32)
    out = everywhere(body, head, A=a, O=np.zeros(512, np.float32))["O"]
    np.testing.assert_array_equal(out.reshape(128, 4), right(a.reshape(128, 4)))


def test_an_odd_place_in_an_array_of_ones_own() -> None:
    """Neighbours that start at 2 of 6 are moved in pairs, at 1 one by one."""
    for start, width in ((2, 2), (1, 1)):
        body = f"""
tx = T.get_thread_binding()
a = T.alloc_local((6,), "float32")
for v in T.serial(6):
    a[v] = 0.0
for v in T.vectorized(4):
    a[{start} + v] = A[tx * 4 + v]
for v in T.serial(6):
    O[tx * 6 + v] = a[v]
"""
        head = 'A: T.Tensor((512,), "float32"), O: T.Tensor((768,), "float32")'
        a = np.arange(512, dtype=np.float32)
        out = everywhere(body, head, A=a, O=np.zeros(768, np.float32))["O"].reshape(128, 6)
        np.testing.assert_array_equal(out[:, start : start + 4], a.reshape(128, 4))
        assert _threaded(body, head).count("T.vector_load(a[") == (2 if width == 2 else 0)
