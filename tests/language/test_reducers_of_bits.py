"""Reducers of bits, magnitudes with NaN, and running sums of parts of tiles, on every road."""

from __future__ import annotations

import numpy as np
import pytest

from tests.everywhere import everywhere, kernel_of
from tilebench.errors import TileError

BITS = {"bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor}


@pytest.mark.parametrize("dtype", ["int32", "uint8"])
@pytest.mark.parametrize("op", BITS)
def test_bits_of_a_row(op: str, dtype: str) -> None:
    sign = {"bitand": "&", "bitor": "|", "bitxor": "^"}[op]
    body = f"""
    r = T.alloc_reducer((16,), "{dtype}", op="{op}")
    q = T.alloc_reducer((16,), "{dtype}", op="{op}")
    T.reducer_init(r)
    T.fill(q, 5)
    for i, j in T.Parallel(16, 24):
        T.reducer_update(r[i], A[i, j])
    for i, j in T.Parallel(16, 24):
        q[i] {sign}= A[i, j]
    T.finalize_reducer(r, batch=4)
    T.copy(r, O)
    T.copy(q, Q)
    """
    head = f'A: T.Tensor((16, 24), "{dtype}"), O: T.Tensor((16,), "{dtype}"), Q: T.Tensor((16,), "{dtype}")'
    info = np.iinfo(dtype)
    a = np.random.default_rng(3).integers(info.min, info.max, (16, 24), dtype=dtype, endpoint=True)
    found = everywhere(body, head, A=a)
    np.testing.assert_array_equal(found["O"], BITS[op].reduce(a, axis=1))
    np.testing.assert_array_equal(found["Q"], BITS[op](BITS[op].reduce(a, axis=1), np.array(5, dtype)))


def test_elements_that_all_iterations_have_in_common() -> None:
    """A constant along an extent of 1, a number of a loop around, and an index of the block."""
    body = """
    X = T.alloc_fragment((16, 24), "float32")
    T.copy(A, X)
    r = T.alloc_reducer((1, 16), "float32")
    q = T.alloc_reducer((3, 16), "float32", op="max")
    s = T.alloc_reducer((4,), "float32")
    T.reducer_init(r)
    T.reducer_init(q)
    T.reducer_init(s, 1)
    for i, j in T.Parallel(16, 24):
        r[0, i] += X[i, j]
    for k in T.serial(2):
        for i, j in T.Parallel(16, 24):
            T.reducer_update(q[k + 1, i], X[i, j] * k)
        for i, j in T.Parallel(16, 24):
            if j > k:
                s[k * 2 + b0] += X[i, j]
    T.copy(r, R)
    T.copy(q, Q)
    T.copy(s, S)
    """
    head = (
        'A: T.Tensor((16, 24), "float32"), R: T.Tensor((1, 16), "float32"), Q: T.Tensor((3, 16), "float32"), '
        'S: T.Tensor((4,), "float32")'
    )
    a = np.random.default_rng(3).integers(-9, 9, (16, 24)).astype(np.float32)
    found = everywhere(body, head, A=a)
    np.testing.assert_array_equal(found["R"][0], a.sum(axis=1))
    np.testing.assert_array_equal(found["Q"], [np.full(16, -np.inf), np.zeros(16), a.max(axis=1)])
    np.testing.assert_array_equal(found["S"], [1 + a[:, 1:].sum(), 1, 1 + a[:, 2:].sum(), 1])


def test_an_element_that_changes_inside_the_loop_is_refused() -> None:
    body = """
    r = T.alloc_reducer((4, 16), "float32")
    T.reducer_init(r)
    for i, j in T.Parallel(16, 2):
        for k in T.serial(4):
            T.reducer_update(r[k, i], A[i, k + j])
    """
    with pytest.raises(TileError) as error:
        kernel_of(body).using(target="cpu")()
    assert "an update of r names elements in another way than the loop does" in str(error.value)


def test_a_magnitude_that_is_no_number() -> None:
    body = """
    X = T.alloc_fragment((4, 64), "float16")
    m = T.alloc_fragment((4,), "float16")
    T.copy(A, X)
    T.reduce_absmax(X, m, dim=1)
    T.copy(m, M)
    T.fill(m, 100)
    T.reduce_absmax(X, m, dim=1, clear=False, nan_propagate=True)
    T.copy(m, N)
    """
    head = 'A: T.Tensor((4, 64), "float16"), M: T.Tensor((4,), "float16"), N: T.Tensor((4,), "float16")'
    a = np.random.default_rng(3).uniform(-9, 9, (4, 64)).astype(np.float16)
    a[1, 7] = np.nan
    found = everywhere(body, head, A=a)
    np.testing.assert_array_equal(found["M"], np.nanmax(abs(a), axis=1))
    np.testing.assert_array_equal(found["N"], [100, np.nan, 100, 100])


@pytest.mark.parametrize("scope", ["shared", "fragment"])
def test_running_sums_of_parts(scope: str) -> None:
    body = f"""
    X = T.alloc_{scope}((16, 24), "float32")
    Y = T.alloc_shared((16, 24), "float32")
    T.copy(A, X)
    T.copy(A, Y)
    T.cumsum(X[2:10, 8:24], dim=1)
    T.cummax(X[0:16, 0:8], Y[0:16, 16:24], dim=0, reverse=True)
    T.copy(X, O)
    T.copy(Y, P)
    """
    head = ", ".join(f'{name}: T.Tensor((16, 24), "float32")' for name in "AOP")
    found = everywhere(body, head, A=np.random.default_rng(3).integers(-9, 9, (16, 24)).astype(np.float32))
    summed, other = found["A"].copy(), found["A"].copy()
    summed[2:10, 8:24] = summed[2:10, 8:24].cumsum(axis=1)
    other[:, 16:24] = np.maximum.accumulate(summed[::-1, 0:8])[::-1]
    np.testing.assert_array_equal(found["O"], summed)
    np.testing.assert_array_equal(found["P"], other)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("T.alloc_reducer((16,), 'float32', op='bitor')", "a reducer of bitor takes integers, found float32"),
        ("T.alloc_reducer((16,), 'int32', op='mean')", "T.alloc_reducer has no operation 'mean'"),
    ],
)
def test_what_is_refused(line: str, what: str) -> None:
    with pytest.raises(TileError) as error:
        kernel_of(f"r = {line}").using(target="cpu")()
    assert str(error.value).splitlines()[0].split("error: ")[1] == what


def test_strides_in_brackets() -> None:
    import tilebench.language as T

    assert T.StridedTensor[[4, 6], [12, 2], "int8"] == T.StridedTensor((4, 6), (12, 2), "int8")
    with pytest.raises(TileError, match="takes a shape, strides and a dtype"):
        T.StridedTensor[[4, 6], [12, 2]]  # pyright: ignore
