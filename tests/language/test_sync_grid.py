"""Barriers of the whole grid: a launch of its own behind each, with what a block needs made again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.roads import ROADS, everywhere, jitted
from tilebench.errors import LanguageError

PARTS = """
    x = T.alloc_fragment((32,), "float32")
    s = T.alloc_fragment((1,), "float32")
    total = T.alloc_var("float32")
    first = b0 * 32
    T.copy(A[first], x)
    T.reduce_sum(x, s)
    for i in T.Parallel(1):
        W[b0 + i] = s[i]
    T.sync_grid()
"""


def arrays() -> dict[str, Any]:
    a = np.random.default_rng(0).integers(1, 9, 256).astype(np.float32)
    return {"A": a, "W": np.zeros(8, np.float32), "B": np.zeros(256, np.float32)}


def test_blocks_see_what_all_wrote_before_the_barrier() -> None:
    body = (
        PARTS
        + """
    total = 0.0
    for g in T.serial(8):
        total = total + W[g]
    T.copy(A[first], x)
    for i in T.Parallel(32):
        B[first + i] = x[i] * total
    T.sync_grid()
    for i in T.Parallel(32):
        x[i] = B[255 - first - i]
    for i in T.Parallel(32):
        A[first + i] = x[i]
    """
    )
    given = arrays()
    found = everywhere(body, launch="8, threads=32", **given)
    np.testing.assert_array_equal(found["B"], given["A"] * given["A"].sum())
    np.testing.assert_array_equal(found["A"], found["B"][::-1])
    text = jitted(body, launch="8, threads=32", **given).using(target="cpu")().stage("tile")
    assert text.count("with T.Kernel(8, threads=32) as b0:") == 3
    assert "sync_grid" not in text
    # Only what a launch uses is made in it.
    assert text.count("s = T.alloc_fragment") == 1


@pytest.mark.parametrize(
    ("behind", "name"),
    [
        ("T.copy(x, B[first])", "x"),
        ("B[first] = total", "total"),
        ("for i in T.Parallel(31):\n        x[i] = 0.0\n    T.copy(x, B[first])", "x"),
        ("for i in T.Parallel(32):\n        x[i] = x[i] + 1.0", "x"),
        ("if b0 > 2:\n        T.clear(x)\n    T.copy(x, B[first])", "x"),
        (("for g in T.serial(W.shape[0] - 8):\n        T.clear(x)\n    for g in T.serial(4):\n"
         "        T.copy(x, B[first])"), "x"),
        ("T.reduce_sum(x, s)", "x"),
        ("for k in T.serial(32):\n        x[k] = 1.0\n        B[k] = x[31 - k]", "x"),
        ("for k in T.serial(1, 32):\n        x[k] = 1.0\n    T.copy(x, B[first])", "x"),
    ],
)  # fmt: skip
def test_a_block_keeps_nothing(behind: str, name: str) -> None:
    with pytest.raises(LanguageError) as caught:
        jitted(PARTS + "    " + behind + "\n", launch="8, threads=32", **arrays()).using(target="cpu")()
    assert caught.value.message == f"{name} would have to keep its value over T.sync_grid()"
    assert caught.value.place is not None


@pytest.mark.parametrize(
    "behind",
    [
        "if b0 > 2:\n        T.clear(x)\n        T.copy(x, B[first])",
        "if b0 > 2:\n        T.clear(x)\n    else:\n        T.fill(x, 1.0)\n    T.copy(x, B[first])",
        "for g in T.serial(3):\n        T.clear(x)\n        T.copy(x, B[first])",
        "for i in T.Parallel(1):\n        s[0] = 1.0\n    T.copy(s, W[b0])",
    ],
)
def test_what_is_written_anew_may_be_used(behind: str) -> None:
    jitted(PARTS + "    " + behind + "\n", launch="8, threads=32", **arrays()).using(target="cpu")()


def test_threads_write_their_own_arrays_anew() -> None:
    body = """
    tx = T.get_thread_binding(0)
    v = T.alloc_local((1,), "float32")
    w = T.alloc_local((4,), "float32")
    v[0] = A[b0 * 32 + tx] * 2.0
    for k in T.serial(4):
        w[k] = v[0]
    B[b0 * 32 + tx] = w[3]
    T.sync_grid()
    v[0] = B[255 - b0 * 32 - tx]
    for k in T.serial(4):
        w[k] = v[0] + k
    A[b0 * 32 + tx] = w[1] + w[2]
    """
    given = arrays()
    found = everywhere(body, launch="8, threads=32", **given)
    np.testing.assert_array_equal(found["A"], 4 * given["A"][::-1] + 3)


def test_a_value_read_before_is_read_again() -> None:
    body = "    v = A[b0] * 2.0\n    B[b0] = v\n    T.sync_grid()\n    W[b0] = v\n"
    with pytest.raises(LanguageError) as caught:
        jitted(body, launch="8, threads=32", **arrays()).using(target="cpu")()
    assert caught.value.message == "v holds a value from in front of T.sync_grid()"


def test_it_stands_in_the_kernels_own_body() -> None:
    with pytest.raises(LanguageError) as caught:
        jitted("for g in T.serial(3):\n    T.sync_grid()", launch="8", **arrays()).using(target="cpu")()
    assert caught.value.message == "T.sync_grid stands in the kernel's own body, not in a loop or branch"


@pytest.mark.parametrize("said", ["in front", "behind"])
def test_what_lies_outside_an_array_is_said_for_the_whole_kernel(said: str) -> None:
    """Of all launches that a kernel becomes, wherever it is said."""
    safe = "T.annotate_safe_value({A: 3})"
    body = f"""
    {safe if said == "in front" else ""}
    B[b0 * 32] = A[b0 * 32 + 250]
    T.sync_grid()
    for i in T.Parallel(8):
        B[b0 * 32 + 8 + i] = A[b0 * 32 + 250 + i]
    {safe if said == "behind" else ""}
    """
    found = everywhere(body, launch="8, threads=32", **arrays())
    padded = np.concatenate([found["A"][250:], np.full(256, 3, np.float32)]).reshape(-1)
    rows = found["B"].reshape(8, 32)
    np.testing.assert_array_equal(rows[:, 0], padded[: 8 * 32 : 32])
    for k in range(8):
        np.testing.assert_array_equal(rows[k, 8:16], padded[k * 32 : k * 32 + 8])


@tilebench.jit
def two_kernels() -> Any:
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), B: T.Tensor((2, 16), "float32")):
        with T.Kernel(1, threads=32):
            T.annotate_safe_value({A: 3})
            for i in T.Parallel(16):
                B[0, i] = A[i]
        with T.Kernel(1, threads=32):
            for i in T.Parallel(16):
                B[1, i] = A[i]

    return main


def test_what_lies_outside_an_array_is_said_for_no_other_kernel() -> None:
    given = {"A": np.arange(8, dtype=np.float32), "B": np.zeros((2, 16), np.float32)}
    for road in ("reference", "cpu"):
        found = ROADS[road](two_kernels, {name: array.copy() for name, array in given.items()})["B"]
        np.testing.assert_array_equal(found[:, :8], [given["A"], given["A"]])
        np.testing.assert_array_equal(found[:, 8:], np.repeat([[3.0], [0.0]], 8, axis=1))
