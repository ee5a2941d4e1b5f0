"""Small programs whose meaning was once different here from TileLang's: none differs in silence.

Each gives TileLang's numbers on every road, or others for a reason that a comment says, or is refused at its
line with what TileLang would do. The numbers in the names are those of the list that they were found with.
"""

from __future__ import annotations

import math
import sys
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.everywhere import everywhere, kernel_of
from tilebench.errors import TileError

F32 = "float32"


def _head(**arrays: tuple[tuple[int, ...], str]) -> str:
    return ", ".join(f'{name}: T.Tensor({shape}, "{dtype}")' for name, (shape, dtype) in arrays.items())


def _line(body: str, dtype: str = F32, out: str = F32, size: int = 4, **given: Any) -> dict[str, Any]:
    return everywhere(body, _head(A=((size,), dtype), O=((size,), out)), **given)


def _refused(body: str, head: str = _head(A=((4,), F32), O=((4,), F32))) -> str:
    with pytest.raises(TileError) as error:
        kernel_of(body, head).using(target="cuda:sm_80")()
    return str(error.value)


def test_1_2_an_operand_is_a_part_of_a_shared_tile() -> None:
    body = """
    S = T.alloc_shared((2, 32, 64), "float16")
    C = T.alloc_fragment((32, 32), "float32")
    T.clear(C)
    T.copy(A, S)
    T.gemm(S[1, :, 32:64], S[0, :, 16:48], C, transpose_B=True)
    T.copy(C, O)
    """
    found = everywhere(body, _head(A=((2, 32, 64), "float16"), O=((32, 32), F32)), exact=False)
    a = found["A"].astype(np.float64)
    np.testing.assert_allclose(found["O"], a[1, :, 32:64] @ a[0, :, 16:48].T, rtol=1e-4, atol=1e-3)


def test_3_an_index_below_zero_counts_from_the_end() -> None:
    found = _line("for i in T.serial(4):\n    O[i] = A[-i - 1]")
    np.testing.assert_array_equal(found["O"], found["A"][::-1])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_4_5_a_python_float_makes_a_narrow_float_float32(dtype: str) -> None:
    """With an int it stays narrow; T.max and T.if_then_else likewise."""
    body = """
    for i in T.Parallel(64):
        O[i] = A[i] * 0.1 + T.max(A[i], 0.1) + T.if_then_else(A[i] > 0, A[i], -1.7)
        P[i] = A[i] * 3
    """
    found = everywhere(body, _head(A=((64,), dtype), O=((64,), F32), P=((64,), F32)), exact=False)
    a, tenth = found["A"].astype(np.float32), np.float32(0.1)
    wanted = a * tenth + np.maximum(a, tenth) + np.where(a > 0, a, np.float32(-1.7))
    np.testing.assert_allclose(found["O"], wanted, rtol=1e-6)
    narrow = np.float16 if dtype == "float16" else ml_dtypes.bfloat16
    np.testing.assert_array_equal(found["P"], (a * 3).astype(narrow).astype(np.float32))


def test_6_7_eight_bit_floats_stop_at_their_largest() -> None:
    body = """
    for i in T.Parallel(4):
        O[i] = T.cast(T.cast(A[i], "float8_e4m3fn"), "float32")
        P[i] = T.cast(T.cast(A[i], "float8_e5m2"), "float32")
    """
    head = _head(A=((4,), F32), O=((4,), F32), P=((4,), F32))
    found = everywhere(body, head, A=np.array([500, math.inf, -7e4, 1], np.float32))
    assert found["O"].tolist() == [448, 448, -448, 1]
    assert found["P"].tolist() == [512, 57344, -57344, 1]


def test_8_narrow_integers_wrap_in_their_own_dtype() -> None:
    """TileLang computes them in C's int and 200 + 100 is 300 in a wider store: here what an operator gives
    does not depend on where it is stored, and `T.cast(a, "int32") + b` says the other."""
    body = """
    for i in T.Parallel(4):
        O[i] = A[i] + A[i]
        P[i] = T.cast(A[i], "int32") + A[i]
    """
    head = _head(A=((4,), "uint8"), O=((4,), "int32"), P=((4,), "int32"))
    found = everywhere(body, head, A=np.array([200, 1, 128, 255], np.uint8))
    assert found["O"].tolist() == [144, 2, 0, 254]
    assert found["P"].tolist() == [400, 2, 256, 510]


def test_9_10_integers_of_two_signs_meet_where_both_have_their_values() -> None:
    """TileLang compares -1 with 5 as uint32: 4294967295 > 5. Here -1 is less."""
    body = "for i in T.Parallel(1):\n    O[i] = T.if_then_else(A[i] > B[i], 1, 0)"
    head = _head(A=((1,), "int32"), B=((1,), "uint32"), O=((1,), "int32"))
    assert everywhere(body, head, A=np.array([-1], np.int32), B=np.array([5], np.uint32))["O"][0] == 0


def test_11_12_nan_in_a_maximum_and_in_clamp() -> None:
    body = """
    S = T.alloc_fragment((2, 8), "float32")
    m = T.alloc_fragment((2,), "float32")
    T.copy(A, S)
    T.reduce_max(S, m, dim=1)
    T.copy(m, O)
    for i in T.Parallel(8):
        P[i] = T.clamp(A[0, i], 0.0, 6.0)
    """
    a = np.ones((2, 8), np.float32)
    a[0] = np.nan
    found = everywhere(body, _head(A=((2, 8), F32), O=((2,), F32), P=((8,), F32)), A=a)
    assert found["O"].tolist() == [-math.inf, 1]
    assert np.isnan(found["P"]).all()


def test_what_stays_different_and_why() -> None:
    """bfloat16 with float16 is float32, which has the values of both; the greatest bfloat16 is one."""
    body = """
    for i in T.Parallel(4):
        O[i] = A[i] + B[i]
    """
    head = _head(A=((4,), "float16"), B=((4,), "bfloat16"), O=((4,), F32))
    found = everywhere(body, head)
    np.testing.assert_array_equal(found["O"], found["A"].astype(np.float32) + found["B"].astype(np.float32))
    assert repr(T.max_value("bfloat16")) == repr(T.max_value(T.bfloat16))


def test_20_regions_bounded_by_names() -> None:
    body = """
    for k in T.serial(4):
        lo = k * 4
        hi = lo + 4
        S = T.alloc_shared((4,), "float32")
        T.copy(A[lo:hi], S)
        T.copy(S, O[lo:hi])
    """
    found = _line(body, size=16)
    np.testing.assert_array_equal(found["O"], found["A"])


def test_21_an_element_of_a_fragment_outside_of_a_parallel_loop() -> None:
    body = """
    s = T.alloc_fragment((4,), "float32")
    T.copy(A, s)
    O[0] = s[1]
    if s[2] < 100.0:
        O[1] = 5.0
    s[0] = 3.0
    O[2] = s[0]
    O[3] = s[3]
    """
    found = _line(body)
    assert found["O"].tolist() == [found["A"][1], 5, 3, found["A"][3]]


def test_22_a_parallel_loop_in_a_parallel_loop() -> None:
    body = "for i in T.Parallel(4):\n    for j in T.Parallel(8):\n        O[i, j] = A[i, j] * 2.0"
    found = everywhere(body, _head(A=((4, 8), F32), O=((4, 8), F32)))
    np.testing.assert_array_equal(found["O"], found["A"] * 2)


def test_23_extents_of_the_running_kernel() -> None:
    body = "n = A[0]\nT.fill(O[0:n], 1.0)\nfor i in T.Parallel(n):\n    P[i] = 2.0"
    given = {"A": np.array([3], np.int32), "O": np.zeros(4, np.float32), "P": np.zeros(4, np.float32)}
    found = everywhere(body, _head(A=((1,), "int32"), O=((4,), F32), P=((4,), F32)), **given)
    assert found["O"].tolist() == [1, 1, 1, 0]
    assert found["P"].tolist() == [2, 2, 2, 0]


def test_24_25_while_and_loops_that_count_down() -> None:
    body = """
    x = T.alloc_var("int32")
    while x < 3:
        O[x] = A[x]
        x = x + 1
    for i in range(3, 2, -1):
        O[i] = A[0]
    for i in T.serial(7, 3, -2):
        O[i] = A[i - 1]
    """
    found = _line(body, size=8)
    a = found["A"]
    assert found["O"][[0, 1, 2, 3, 7, 5]].tolist() == [a[0], a[1], a[2], a[0], a[6], a[4]]


def test_26_a_name_that_a_loop_binds_again_is_refused() -> None:
    said = _refused("x = A[0]\nfor i in T.serial(4):\n    x = x + 1.0\n    O[i] = x")
    assert "x is bound outside this loop or branch, so the new value would be lost after it" in said
    assert "TileLang would make a x that ends with the block" in said


def test_27_assert_in_a_kernel() -> None:
    assert _line("assert A[0] < 100.0\nO[0] = 7.0")["O"][0] == 7


def test_28_31_names_of_arguments() -> None:
    body = """
    s = T.alloc_fragment((4, 8), "float32")
    m = T.alloc_fragment((4,), "float32")
    T.clear(buffer=s)
    T.fill(buffer=s, value=2.0)
    T.reduce_sum(buffer=s, out=m, dim=1)
    T.copy(m, O)
    for i in T.vectorized(0, 2):
        O[i] = T.clamp(dst=O[i], min_val=0.0, max_val=T.cast(value=5, dtype="float32"))
    for i in T.vectorized(2, 4):
        O[i] = T.if_then_else(cond=i > 2, t=1.0, f=O[i])
    """
    assert _line(body)["O"].tolist() == [5, 5, 16, 1]


@pytest.mark.parametrize("kind", ["sum", "max", "min"])
def test_29_reductions_of_a_threads_own_arrays_and_into_scalars(kind: str) -> None:
    body = f"""
    x = T.alloc_local((3, 4), "float16")
    r = T.alloc_local((3,), "float32")
    n = T.alloc_var("float32")
    k = T.alloc_var("float32", init=0.25)
    for i, j in T.grid(3, 4):
        x[i, j] = A[i, j]
    T.reduce_{kind}(x, r, dim=1)
    for i in T.serial(3):
        O[i] = r[i]
    T.reduce_{kind}(r, n, dim=0)
    O[3] = n
    S = T.alloc_fragment((12,), "float16")
    T.copy(B, S)
    T.reduce_{kind}(S, k, dim=0, clear=False)
    O[4] = k
    """
    head = _head(A=((3, 4), "float16"), B=((12,), "float16"), O=((5,), F32))
    found = everywhere(body, head, exact=False)
    fold = {"sum": np.add, "max": np.maximum, "min": np.minimum}[kind]
    rows = fold.reduce(found["A"].astype(np.float32), axis=1)
    np.testing.assert_allclose(found["O"][:3], rows, rtol=1e-6)
    np.testing.assert_allclose(found["O"][3], fold.reduce(rows), rtol=1e-6)
    with_old = fold(fold.reduce(found["B"].astype(np.float32)), np.float32(0.25))
    np.testing.assert_allclose(found["O"][4], with_old, rtol=1e-3)


def test_29_a_product_in_a_threads_own_array() -> None:
    body = """
    S = T.alloc_shared((4, 4), "float32")
    c = T.alloc_local((4, 4), "float32")
    T.copy(A, S)
    T.clear(c)
    T.gemm(S, S, c)
    for i, j in T.grid(4, 4):
        O[i, j] = c[i, j]
    """
    found = everywhere(body, 'A: T.Tensor((4, 4), "float32"), O: T.Tensor((4, 4), "float32")')
    np.testing.assert_allclose(found["O"], found["A"] @ found["A"], rtol=1e-5, atol=1e-6)


def test_30_40_sums_of_integers_into_wider_ones_and_floats() -> None:
    body = """
    S = T.alloc_fragment((2, 64), "int8")
    s = T.alloc_fragment((2,), "int32")
    f = T.alloc_fragment((2,), "float32")
    T.copy(A, S)
    T.reduce_sum(S, s, dim=1)
    T.reduce_sum(S, f, dim=1)
    T.copy(s, O)
    T.copy(f, P)
    """
    head = _head(A=((2, 64), "int8"), O=((2,), "int32"), P=((2,), F32))
    found = everywhere(body, head, A=np.full((2, 64), 100, np.int8))
    assert found["O"].tolist() == [6400, 6400]
    assert found["P"].tolist() == [6400, 6400]


def test_32_a_function_of_an_integer_is_float32() -> None:
    found = _line("for i in T.Parallel(4):\n    O[i] = T.exp(A[i])", dtype="int32", exact=False)
    np.testing.assert_allclose(found["O"], np.exp(found["A"].astype(np.float32)), rtol=1e-6)


def test_33_34_scalar_parameters_and_a_kernel_without_a_grid() -> None:
    @tilebench.jit(target="cpu")
    def kernel():
        @T.prim_func
        def main(A: T.Tensor((8,), "float32"), n: T.int32, x: T.float32):
            with T.Kernel(threads=128):
                for i in T.Parallel(8):
                    if i < n:
                        A[i] = x

        return main

    a = np.zeros(8, np.float32)
    kernel()(a, 3, 1.5)
    assert a.tolist() == [1.5] * 3 + [0] * 5


def test_35_the_scope_of_a_fragment_as_a_word() -> None:
    body = """
    s = T.alloc_fragment((4,), "float32", "shared")
    T.copy(A, s)
    T.copy(s, O)
    """
    found = _line(body)
    np.testing.assert_array_equal(found["O"], found["A"])


PRODUCTS = [
    ("float16", "float16"), ("bfloat16", "bfloat16"), ("float8_e4m3fn", F32), ("float8_e5m2", F32),
    ("int8", F32),
]  # fmt: skip


@pytest.mark.parametrize(("operand", "total"), PRODUCTS)
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_41_to_44_dtypes_of_products(operand: str, total: str, arch: str) -> None:
    body = f"""
    X = T.alloc_shared((32, 32), "{operand}")
    Y = T.alloc_shared((32, 32), "{operand}")
    C = T.alloc_fragment((32, 32), "{total}")
    T.copy(A, X)
    T.copy(B, Y)
    T.clear(C)
    T.gemm(X, Y, C)
    T.copy(C, O)
    """
    rng = np.random.default_rng(0)
    dtype = T.dtype(operand).numpy
    a, b = (rng.integers(-3, 4, (32, 32)).astype(np.float32).astype(dtype) for _ in range(2))
    head = _head(A=((32, 32), operand), B=((32, 32), operand), O=((32, 32), total))
    found = everywhere(body, head, arch=arch, A=a, B=b)
    # Whole numbers this small are exact in every one of these dtypes up to 256.
    wanted = (a.astype(np.float64) @ b.astype(np.float64)).astype(T.dtype(total).numpy)
    np.testing.assert_array_equal(found["O"].astype(np.float64), wanted.astype(np.float64))


def test_extents_of_zero_and_of_more_than_an_index_reaches() -> None:
    found = everywhere("for i in T.Parallel(0):\n    O[i] = 1.0", _head(A=((0,), F32), O=((4,), F32)))
    assert found["O"].shape == (4,)
    assert "and an index has 32 bits" in _refused("O[0] = 1.0", _head(O=((2**31,), F32)))


def test_50_a_dtype_is_its_name() -> None:
    assert {"float16": 1}[T.float16] == 1
    assert {T.float16: 1}["float16"] == 1


def test_51_what_a_call_without_arrays_makes_is_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a kernel with outputs alone, in a program that has torch (here one with its names); else NumPy's."""

    class Tensor(np.ndarray):
        """What torch's `empty` gives."""

    def empty(shape: tuple[int, ...], dtype: Any, device: str) -> Tensor:
        assert device == "cpu"
        return np.empty(shape, dtype).view(Tensor)

    @tilebench.jit(target="cpu")
    def squares(n=8):
        S = T.empty((n,), "float32")
        R = T.empty((n,), "int32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                S[i] = i * i
                R[i] = n - i
        return S, R

    cuda = SimpleNamespace(is_available=lambda: False)
    torch = SimpleNamespace(float32=np.float32, int32=np.int32, empty=empty, cuda=cuda)
    for module, kind in ((torch, Tensor), (None, np.ndarray)):
        if module is None:
            monkeypatch.delitem(sys.modules, "torch")
        else:
            monkeypatch.setitem(sys.modules, "torch", module)
        found, back = squares()
        assert (type(found), type(back)) == (kind, kind)
        assert found.tolist() == [i * i for i in range(8)]
        assert back.tolist() == [8 - i for i in range(8)]
