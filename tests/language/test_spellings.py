"""Other spellings of TileLang's: dtypes as values, `Cast`, `Select`, `Buffer`, `parallel`."""

from __future__ import annotations

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tilebench.errors import DTypeError, TileError


def test_dtypes_are_made_of_names_and_types() -> None:
    assert T.dtype("float16") is T.float16
    assert T.dtype(np.float32) is T.float32
    assert T.dtype("uint") is T.uint
    assert T.uint == "uint32"
    assert T.float8_e4m3 is T.float8_e4m3fn
    assert isinstance(T.int8, T.dtype)
    assert not isinstance("int8", T.dtype)
    assert T.dtype(T.bfloat16).bits == 16
    with pytest.raises(DTypeError):
        T.dtype("float7")


@tilebench.jit(out_idx=[-1])
def spelled(N=40, dtype: T.dtype = T.float16):
    @T.prim_func
    def main(A: T.Buffer((N,), dtype), B: T.Buffer((N,), "float32")):
        with T.Kernel(1, threads=32) as bx:
            for i in T.parallel(N):
                B[i] = T.Select(A[i] > 0, T.Cast("float32", A[i]) * 2, T.Cast(T.uint, i))

    return main


def test_a_kernel_in_these_spellings() -> None:
    a = np.where(np.arange(40) % 3, 1.5, -1).astype(np.float16)
    wanted = np.where(a > 0, a.astype(np.float32) * 2, np.arange(40, dtype=np.float32))
    np.testing.assert_array_equal(spelled()(a), wanted)
    spelled().check().raise_if_wrong()


def test_arguments_in_the_order_of_cast_are_refused() -> None:
    @tilebench.jit
    def turned():
        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel(1, threads=32) as bx:
                for i in T.Parallel(8):
                    A[i] = T.Cast(A[i], "float32")

        return main

    with pytest.raises(TileError, match=r"T\.Cast takes the dtype first"):
        turned()


def test_torchs_dtype() -> None:
    torch = pytest.importorskip("torch")
    assert T.float16.as_torch() is torch.float16
    assert T.float8_e5m2.as_torch() is torch.float8_e5m2
