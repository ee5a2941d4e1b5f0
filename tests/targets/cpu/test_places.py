"""What the CPU has no code for is refused at the line that asks for it."""

from __future__ import annotations

import pytest

import tilebench
import tilebench.language as T
from tilebench.errors import TargetError


@tilebench.jit(target="cpu")
def of_doubles():
    @T.prim_func
    def main(A: T.Tensor((8,), "float64"), C: T.Tensor((8,), "float64")):
        with T.Kernel(1) as bx:
            for i in T.Parallel(8):
                C[i] = T.erf(A[i])

    return main


@tilebench.jit(target="cpu")
def of_long_sums():
    @T.prim_func
    def main(A: T.Tensor((8, 8), "uint64"), C: T.Tensor((8, 8), "uint64")):
        with T.Kernel(1) as bx:
            a = T.alloc_shared((8, 8), "uint64")
            c = T.alloc_fragment((8, 8), "uint64")
            T.copy(A, a)
            T.clear(c)
            T.gemm(a, a, c)
            T.copy(c, C)

    return main


@pytest.mark.parametrize(
    ("kernel", "line"), [(of_doubles, "C[i] = T.erf(A[i])"), (of_long_sums, "T.gemm(a, a, c)")]
)
def test_what_has_no_code_is_refused_at_its_line(kernel: tilebench.JitFunction, line: str) -> None:
    with pytest.raises(TargetError, match="the CPU has no") as caught:
        kernel().reach_code()
    assert caught.value.place is not None
    assert caught.value.place.text.strip() == line
