"""Loops over parts of fragments, at any index, and elements that read what they wrote: alike everywhere."""

from __future__ import annotations

import numpy as np
import pytest

from tests.everywhere import everywhere, kernel_of
from tests.passes.lowering import lower
from tilebench.errors import LayoutError
from tilebench.ir.dtypes import dtype_of

ROW = 'A: T.Tensor((256,), "float32"), O: T.Tensor((256,), "float32")'
ROW_TILES = """
f = T.alloc_fragment((256,), "float32")
g = T.alloc_fragment((256,), "float32")
T.clear(f)
T.copy(A, g)
{}
T.copy(f, O)
"""
OVER_ROWS = {
    "three": "for i in T.Parallel(3):\n    f[i] = 5.0",
    "three_of_two": "for i in T.Parallel(3):\n    f[i] = g[i] + A[i]",
    "longer": "for i in T.Parallel(300):\n    if i < 256:\n        f[i] = g[i]",
    "offset": "for i in T.Parallel(100):\n    f[i + 7] = 5.0",
    "stride": "for i in T.Parallel(100):\n    f[2 * i + 3] = g[i]",
    "backwards": "for i in T.Parallel(256):\n    f[255 - i] = g[i]",
    "halves": "for i in T.Parallel(128):\n    f[i] = g[i] * g[i + 128]",
    "repeated": "for i in T.Parallel(256):\n    f[i] = g[i // 3]",
    "permuted": "for i in T.Parallel(64):\n    f[i * 5 % 64] = g[i]",
    "both": "for i in T.Parallel(64):\n    f[i] = 1.0\n    f[i + 64] = f[i] + g[i]",
    "serial": "for i in T.Parallel(40):\n    for j in T.serial(5):\n        f[i * 5 + j] += g[j]",
    "gathered": "for i in T.Parallel(256):\n    f[i] = g[T.cast(A[i] * A[i], T.int32)]",
}


def test_a_loop_over_three_elements_writes_three() -> None:
    found = everywhere(ROW_TILES.format(OVER_ROWS["three"]), ROW)
    assert found["O"].tolist() == [5.0] * 3 + [0.0] * 253


@pytest.mark.parametrize("threads", [32, 96, 1024])
@pytest.mark.parametrize("name", list(OVER_ROWS))
def test_any_index_of_a_row(name: str, threads: int) -> None:
    everywhere(ROW_TILES.format(OVER_ROWS[name]), ROW, threads)


TILES = """
c = T.alloc_fragment((16, 32), "float32")
d = T.alloc_fragment((32, 16), "float32")
r = T.alloc_fragment((20,), "float32")
T.copy(A[0:16, 0:32], c)
T.copy(A[32:64, 0:16], d)
T.copy(A[63, 0:20], r)
{}
T.copy(c, O[0:16, 0:32])
T.copy(r, O[63, 0:20])
"""
OVER_TILES = {
    "corner": "for i, j in T.Parallel(5, 7):\n    c[i, j] = 1.0",
    "beyond": "for i, j in T.Parallel(32, 64):\n    if i < 16 and j < 32:\n        c[i, j] = 2.0",
    "diagonal": "for i in T.Parallel(16):\n    c[i, i] = 3.0",
    "column": "for i in T.Parallel(16):\n    c[i, 3] = r[i]",
    "to_a_row": "for i in T.Parallel(10):\n    r[i] = c[i, 3]",
    "other_half": "for i, j in T.Parallel(16, 16):\n    c[i, j] = -c[i, j + 16]",
    "halves_swapped": """
for i, j in T.Parallel(16, 16):
    t = c[i, j]
    c[i, j] = c[i, j + 16]
    c[i, j + 16] = t""",
    "turned_part": "for i, j in T.Parallel(16, 8):\n    c[i, j + 8] = d[j, i]",
    "row_of_rows": "for i, j in T.Parallel(16, 32):\n    if j < 20:\n        c[i, j] = r[j]",
    "one_column": "for i, j in T.Parallel(16, 20):\n    if i == 3:\n        r[j] = c[i, j]",
    "one_of_a_serial_loop": """
for i, j in T.Parallel(16, 20):
    for k in T.serial(16):
        if k == i and i == 5:
            r[j] = c[i, j]""",
    "all_alike": "for i, j in T.Parallel(16, 20):\n    r[j] = A[0, j] + 1.0",
    "one_element": """
s = T.alloc_fragment((1,), "float32")
T.clear(s)
for i in T.Parallel(20):
    if i == 7:
        s[0] = r[i]
for i, j in T.Parallel(16, 32):
    c[i, j] = c[i, j] * s[0]""",
    "one_element_of_a_short_loop": """
s = T.alloc_fragment((1,), "float32")
for i in T.Parallel(1):
    s[0] = r[i] + 1.0
for i, j in T.Parallel(16, 32):
    c[i, j] = c[i, j] * s[0]""",
    "symmetric": """
q = T.alloc_fragment((16, 16), "float32")
T.copy(A[0:16, 0:16], q)
for i, j in T.Parallel(16, 16):
    if i < j:
        q[i, j] = q[j, i]
for i, j in T.Parallel(16, 16):
    c[i, j] = q[i, j]""",
    "rows_of_one": """
q = T.alloc_fragment((32, 16), "float32")
n = T.alloc_fragment((32, 1), "float32")
T.copy(A[0:32, 0:16], q)
T.reduce_max(q, n, dim=1)
for i, j in T.Parallel(16, 32):
    c[i, j] = c[i, j] + q[j, i] * n[j, 0]""",
    "groups_of_columns": """
y = T.alloc_fragment((16, 8), "float32")
T.clear(y)
for i in T.Parallel(16):
    for j in T.serial(32):
        y[i, j // 4] += c[i, j]
for i, j in T.Parallel(16, 8):
    c[i, j] = y[i, j]""",
}


@pytest.mark.parametrize("threads", [32, 128, 192])
@pytest.mark.parametrize("name", list(OVER_TILES))
def test_any_index_of_a_tile(name: str, threads: int) -> None:
    everywhere(TILES.format(OVER_TILES[name]), threads=threads)


ARRAYS = 'A: T.Tensor((64, 64), "float32"), O: T.Tensor((64, 64), "float32"), P: T.Tensor((64,), "float32")'
SHARED = """
s = T.alloc_shared((48,), "float32")
m = T.alloc_shared((48, 4), "float32")
f = T.alloc_fragment((48,), "float32")
c = T.alloc_fragment((48, 4), "float32")
T.clear(f)
T.copy(A[0, 0:48], s)
T.copy(A[0:48, 0:4], m)
T.copy(A[0:48, 4:8], c)
{}
T.copy(f, O[0, 0:48])
T.copy(s, O[1, 0:48])
T.copy(c, O[2:50, 0:4])
T.copy(m, O[2:50, 4:8])
"""
READ_AFTER_WRITTEN = {
    "shared": "for i in T.Parallel(48):\n    s[i] = A[i, 0] * 2.0\n    f[i] = s[i]",
    "global": "for i in T.Parallel(48):\n    P[i] = A[i, 3]\n    f[i] = P[i] + 1.0",
    "written_after_read": "for i in T.Parallel(48):\n    f[i] = s[i]\n    s[i] = 0.0",
    "branches": """
for i in T.Parallel(48):
    f[i] = s[i]
    if f[i] > 0:
        s[i] = f[i] * 2.0
        f[i] = s[i] - 1.0
    else:
        s[i] = -7.0""",
    "inner_loop": """
for i in T.Parallel(48):
    for j in T.serial(4):
        m[i, j] = m[i, j] + s[i]
        f[i] = f[i] + m[i, j]
        s[i] = f[i]""",
    "variable": """
for i in T.Parallel(48):
    v = T.alloc_var("float32", init=0)
    for j in T.serial(4):
        v = v + m[i, j]
        m[i, j] = v
    s[i] = v
    w = T.alloc_var("float32", init=s[i])
    w = w * s[i]
    P[i] = s[i] + m[i, 3] + w""",
    "array_of_its_own": """
for i in T.Parallel(48):
    v = T.alloc_local((4,), "float32")
    for j in T.serial(4):
        v[j] = m[i, j]
    for j in T.serial(4):
        m[i, 3 - j] = v[j]
    s[i] = v[0] + s[i]
    f[i] = s[i]""",
    "part": "for i in T.Parallel(24):\n    s[i] = s[i] + 1.0\n    f[2 * i] = s[i]",
    "whole_tile": "for i, j in T.Parallel(48, 4):\n    m[i, j] = c[i, j] * 2.0\n    c[i, j] = m[i, j] + f[i]",
}


@pytest.mark.parametrize("threads", [32, 192, 1024])
@pytest.mark.parametrize("name", list(READ_AFTER_WRITTEN))
def test_an_element_reads_what_it_wrote(name: str, threads: int) -> None:
    """Threads that share an element do not wait for the one that stores it: one thread does it for all."""
    everywhere(SHARED.format(READ_AFTER_WRITTEN[name]), ARRAYS, threads)


def test_two_elements_used_by_all_threads() -> None:
    found = everywhere(
        """
        s = T.alloc_shared((2,), "float32")
        f = T.alloc_fragment((2,), "float32")
        for i in T.Parallel(2):
            s[i] = A[i] * 2.0
            f[i] = s[i]
        for i, j in T.Parallel(2, 256):
            O[i, j] = f[i]
        """,
        'A: T.Tensor((2,), "float32"), O: T.Tensor((2, 256), "float32")',
    )
    assert np.array_equal(found["O"], np.repeat(found["A"][:, None] * 2, 256, axis=1))


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
@pytest.mark.parametrize("name", ["three", "offset", "stride", "backwards", "repeated"])
def test_elements_of_half_a_byte(name: str, dtype: str) -> None:
    """A fragment's elements have bytes of their own, and so has the shared tile in its place."""
    body = ROW_TILES.format(OVER_ROWS[name]).replace("float32", dtype).replace("5.0", "5")
    given = np.random.default_rng(0).integers(0, 8, 256).astype(dtype_of(dtype).numpy)
    everywhere(body, ROW.replace("float32", dtype), A=given, O=np.zeros_like(given))


def test_half_a_byte_is_read_after_it_was_written() -> None:
    body = """
    f = T.alloc_fragment((64,), "int4")
    s = T.alloc_shared((64,), "int32")
    T.fill(s, 3)
    T.copy(A, f)
    for i in T.Parallel(64):
        s[i] = T.cast(f[i], "int32") + s[i]
        f[i] = T.cast(s[i] // 4, "int4")
    T.copy(f, O)
    """
    given = np.random.default_rng(0).integers(-8, 8, 64).astype(dtype_of("int4").numpy)
    head = 'A: T.Tensor((64,), "int4"), O: T.Tensor((64,), "int4")'
    everywhere(body, head, A=given, O=np.zeros_like(given))


def test_a_variable_of_before_the_loop_is_refused() -> None:
    kernel = kernel_of(
        """
        s = T.alloc_shared((2,), "float32")
        v = T.alloc_local((1,), "float32")
        for i in T.Parallel(2):
            s[i] = A[i, 0]
            v[0] = s[i]
        """
    )
    with pytest.raises(LayoutError) as caught:
        kernel.using(target="cuda:sm_80")().stage("threaded")
    assert caught.value.message == "threads that share an element of this loop read what one of them stores"
    assert caught.value.place is not None
    assert caught.value.place.text.strip() == "for i in T.Parallel(2):"


def test_a_stage_whose_loop_is_over_a_part_is_refused() -> None:
    layout = "T.Fragment((64,), thread=((32, 0, 1),), value=((2, 0, 32),))"
    text = f"""@T.prim_func
def f(O: T.Tensor((64,), T.float32)):
    with T.Kernel(1, threads=32) as bx:
        x = T.alloc_fragment((64,), T.float32, layout={layout})
        T.fill(x, T.float32(0))
        for i in T.Parallel(33, map=T.Fragment((33,), thread=((32, 0, 1),), value=((2, 0, 32),))):
            x[i] = T.float32(5)
        T.copy(x, O, map={layout})
"""
    with pytest.raises(LayoutError, match="a loop over 33 elements uses x, which has 64 there"):
        lower(text)
