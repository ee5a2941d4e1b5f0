"""What C leaves open and this language does not: division by zero, scalars without a first value."""

from __future__ import annotations

import numpy as np
import pytest

from tests.everywhere import everywhere, kernel_of
from tilebench.targets.cuda.compiler.nvrtc import compile_cuda
from tilebench.targets.cuda.machines import machine_of


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint32", "uint64"])
def test_a_divisor_of_zero_gives_zero_and_the_least_number_by_minus_one_wraps(dtype: str) -> None:
    head = ", ".join(f'{name}: T.Tensor((4, 6), "{dtype}")' for name in "ABQRS")
    body = """
    for i, j in T.Parallel(4, 6):
        Q[i, j] = A[i, j] // B[i, j]
        R[i, j] = A[i, j] % B[i, j]
        S[i, j] = A[i, j] // T.max(B[i, j], A[i, j] - A[i, j])
    """
    info = np.iinfo(dtype)
    a = np.array([[0, 1, 7, info.max, info.min, info.min + 5]] * 4, dtype)
    b = np.array([[0], [1], [-1 if info.min else 3], [5]]).astype(dtype) * np.ones_like(a)
    found = everywhere(body, head, A=a, B=b)
    assert not found["Q"][0].any()
    assert not found["R"][0].any()
    assert not found["S"][0].any()
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found["Q"][1:], a[1:] // b[1:])
        np.testing.assert_array_equal(found["R"][1:], a[1:] % b[1:])


def test_a_scalar_without_a_first_value_is_zero() -> None:
    """Also in each turn of a loop that makes it."""
    head = 'A: T.Tensor((8,), "int32"), O: T.Tensor((8,), "int32"), P: T.Tensor((8,), "float32")'
    body = """
    x = T.alloc_var("float32")
    if A[0] > 100:
        x = 7.0
    for k in T.serial(8):
        n = T.alloc_var("int32")
        if A[k] > 0:
            n = A[k]
        O[k] = n
        P[k] = x
    """
    found = everywhere(body, head)
    np.testing.assert_array_equal(found["O"], np.maximum(found["A"], 0))
    assert not found["P"].any()


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_division_compiles_for_cards(arch: str) -> None:
    """Of every width, with both signs: no warning of a comparison that is always false stops it."""
    for dtype in ("int8", "uint8", "int32", "uint32", "int64", "uint64"):
        head = ", ".join(f'{name}: T.Tensor((64,), "{dtype}")' for name in "ABO")
        body = "for i in T.Parallel(64):\n    O[i] = A[i] // B[i] + A[i] % B[i]"
        text = kernel_of(body, head).using(target=f"cuda:{arch}")().stage("cuda")
        compile_cuda(text, machine_of(f"cuda:{arch}"))


def test_a_divisor_that_may_be_zero() -> None:
    """Of unsigned integers too the quotient is C's own only where the divisor is known."""
    head = ", ".join(f'{name}: T.Tensor((64,), "uint32")' for name in "ABO")
    text = kernel_of("for i in T.Parallel(64):\n    O[i] = A[i] // B[i] + A[i] // 3", head)
    cuda = text.using(target="cuda:sm_80")().stage("cuda")
    assert "tb_floordiv<unsigned>(" in cuda
    assert "/ 3u" in cuda
