"""What the CPU has no code for is refused at the line that asks for it."""

from __future__ import annotations

import pytest

import tilebench
import tilebench.language as T
from tilebench.errors import TargetError


@tilebench.jit(target="cpu")
def of_cuda_text():
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), C: T.Tensor((8,), "float32")):
        with T.Kernel(1) as bx:
            T.import_source("__device__ float twice(float x) { return 2 * x; }")
            for i in T.Parallel(8):
                C[i] = T.call_extern("float32", "twice", A[i])

    return main


def test_what_has_no_code_is_refused_at_its_line() -> None:
    with pytest.raises(TargetError, match="the CPU cannot run") as caught:
        of_cuda_text().reach_code()
    assert caught.value.place is not None
    assert caught.value.place.text.strip() == 'C[i] = T.call_extern("float32", "twice", A[i])'
