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
                C[i] = T.sin(A[i])

    return main


def test_what_has_no_code_is_refused_at_its_line() -> None:
    with pytest.raises(TargetError, match="the CPU has no") as caught:
        of_doubles().reach_code()
    assert caught.value.place is not None
    assert caught.value.place.text.strip() == "C[i] = T.sin(A[i])"
