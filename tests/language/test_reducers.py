"""Results that iterations form together: `T.alloc_reducer`, begun, updated and finished."""

from __future__ import annotations

import numpy as np
import pytest

from tests.everywhere import everywhere, kernel_of
from tilebench.errors import TileError

ROWS = 'A: T.Tensor((64, 48), "float32"), O: T.Tensor((64,), "float32")'


def test_sums_of_a_loop_as_the_older_form_has_them() -> None:
    """Begun with T.clear, updated by `+=` in a loop of steps, whole after it."""
    head = 'A: T.Tensor((64, 96), "float16"), X: T.Tensor((96,), "float16")'
    head += ', O: T.Tensor((64,), "float32")'
    body = """
    r = T.alloc_reducer(64, "float32", replication="all")
    T.clear(r)
    for k in T.Pipelined(3, num_stages=2):
        S = T.alloc_shared((64, 32), "float16")
        T.copy(A[0, k * 32], S)
        a = T.alloc_fragment((64, 32), "float16")
        T.copy(S, a)
        x = T.alloc_fragment(32, "float16")
        T.copy(X[k * 32], x)
        for i, j in T.Parallel(64, 32):
            r[i] += a[i, j] * x[j]
    T.finalize_reducer(r)
    T.copy(r, O)
    """
    found = everywhere(body, head, exact=False)
    products = found["A"].astype(np.float64) @ found["X"].astype(np.float64)
    np.testing.assert_allclose(found["O"], products, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize(("op", "numpy"), [("sum", np.add), ("max", np.maximum), ("min", np.minimum)])
def test_each_operation_with_conditions_and_several_updates(op: str, numpy: np.ufunc) -> None:
    body = f"""
    r = T.alloc_reducer((64,), "float32", "{op}")
    d = T.alloc_fragment((64,), "float32")
    T.reducer_init(r, 0.5)
    for i, j in T.Parallel(64, 48):
        if j % 3 != 1:
            T.reducer_update(r[i], A[i, j])
        for k in T.serial(2):
            T.reducer_update(r[i], A[i, j] * 0.5 + k)
    T.finalize_reducer(r, d)
    T.copy(d, O)
    """
    found = everywhere(body, ROWS, exact=False)
    a = found["A"]
    parts = [np.delete(a, slice(1, None, 3), axis=1), a * np.float32(0.5), a * np.float32(0.5) + 1]
    wanted = numpy(numpy.reduce(np.concatenate(parts, axis=1), axis=1), np.float32(0.5))
    np.testing.assert_allclose(found["O"], wanted, rtol=1e-5, atol=1e-4)


def test_all_of_a_tile_and_dimensions_in_the_middle() -> None:
    head = 'A: T.Tensor((8, 6, 10), "int32"), O: T.Tensor((8, 10), "int32"), P: T.Tensor((1,), "int32")'
    body = """
    r = T.alloc_reducer((8, 10), "int32")
    s = T.alloc_reducer((1,), "int32", op="max")
    T.reducer_init(r)
    T.reducer_init(s)
    for i, j, k in T.Parallel(8, 6, 10):
        r[i, k] += A[i, j, k]
        s[0] = T.max(s[0], A[i, j, k])
    T.copy(r, O)
    T.copy(s, P)
    """
    found = everywhere(body, head)
    np.testing.assert_array_equal(found["O"], found["A"].sum(1))
    assert found["P"][0] == found["A"].max()


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ('r = T.alloc_reducer((64,), "float32", "mean")', "T.alloc_reducer has no operation 'mean'"),
        ("T.reducer_init(x)", "T.reducer_init takes what T.alloc_reducer made"),
        ("for i, j in T.Parallel(64, 48):\n    r[i] = A[i, j]",
         "r is a reducer of 'sum', and this is no update of it"),
        ("for j, i in T.Parallel(48, 32):\n    r[i] += A[i, j]",
         "an update of r names elements in another way than the loop does"),
    ],
)  # fmt: skip
def test_what_is_refused(statement: str, what: str) -> None:
    begun = 'x = T.alloc_fragment((64,), "float32")\nr = T.alloc_reducer((64,), "float32")\nT.clear(r)\n'
    body = begun + statement
    with pytest.raises(TileError) as error:
        kernel_of(body + "\nT.copy(r, O)", ROWS).using(target="cuda:sm_80")()
    assert str(error.value).splitlines()[0].split("error: ")[1] == what


@pytest.mark.parametrize("loop", ["i in T.Parallel(64)", "i, j in T.Parallel(64, 48)"])
def test_a_reducer_that_nothing_begins_is_refused(loop: str) -> None:
    body = f"""
    r = T.alloc_reducer((64,), "float32")
    for {loop}:
        T.reducer_update(r[i], A[i, 0])
    T.finalize_reducer(r)
    T.copy(r, O)
    """
    with pytest.raises(TileError) as error:
        kernel_of(body, ROWS).using(target="cpu")()
    assert error.value.message == "the reducer r has no value when its updates begin"
    assert error.value.place is not None
    assert error.value.place.text.strip() == "T.reducer_update(r[i], A[i, 0])"


def test_updates_outside_of_parallel_loops_are_the_blocks() -> None:
    """Each is done once, between loops, in a loop in order and under a condition."""
    body = """
    r = T.alloc_reducer((4, 2), "int32", "sum")
    T.fill(r, 1)
    T.reducer_update(r[1, 0], 5)
    for k in T.serial(3):
        T.reducer_update(r[k + 1, 1], k)
    for i, j, k in T.Parallel(4, 2, 8):
        r[i, j] += k
    if A[0] > 2:
        r[3, 0] += A[1]
    T.finalize_reducer(r)
    for i, j in T.Parallel(4, 2):
        O[i, j] = r[i, j]
    """
    head = 'A: T.Tensor((2,), "int32"), O: T.Tensor((4, 2), "int32")'
    for first in (1, 3):
        out = everywhere(body, head, A=np.array([first, 40], np.int32))["O"]
        right = np.full((4, 2), 29)
        right[1, 0] += 5
        right[1:, 1] += np.arange(3)
        right[3, 0] += 40 * (first == 3)
        np.testing.assert_array_equal(out, right)
