"""Functions of elements on Python numbers give what a kernel's would, infinity and NaN included."""

from __future__ import annotations

import math

import pytest

import tilebench
import tilebench.language as T

INF, NAN = math.inf, math.nan


@pytest.mark.parametrize(
    ("found", "want"),
    [
        (lambda: T.log(0.0), -INF), (lambda: T.log(-1.0), NAN), (lambda: T.log2(0), -INF),
        (lambda: T.sqrt(-1.0), NAN), (lambda: T.rsqrt(0.0), INF), (lambda: T.exp(1000.0), INF),
        (lambda: T.exp2(5000.0), INF), (lambda: T.sigmoid(-1000.0), 0.0), (lambda: T.sin(INF), NAN),
        (lambda: T.cos(-INF), NAN), (lambda: T.floor(INF), INF), (lambda: T.ceil(NAN), NAN),
        (lambda: T.pow(0.0, -1.0), INF), (lambda: T.pow(-8.0, 0.5), NAN), (lambda: T.pow(10.0, 400.0), INF),
        (lambda: T.max(NAN, 1.0), 1.0), (lambda: T.max(1.0, NAN), 1.0), (lambda: T.min(NAN, 1, 2), 1),
        (lambda: T.pow(3, 4), 81), (lambda: T.floor(10**400), 10**400), (lambda: T.log2(8), 3.0),
        (lambda: T.erf(0.0), 0.0), (lambda: T.floor(-2.5), -3),
    ],
)  # fmt: skip
def test_a_function_of_numbers(found: object, want: float) -> None:
    value = found()  # type: ignore[operator]
    assert value == want or (value != value and want != want)


def test_in_a_kernel_too() -> None:
    @tilebench.jit(target="cpu")
    def kernel():
        @T.prim_func
        def main(C: T.Tensor((3,), "float32")):
            with T.Kernel(1) as bx:
                for i in T.Parallel(3):
                    C[i] = T.if_then_else(
                        i == 0, T.rsqrt(0.0), T.if_then_else(i == 1, T.log(0.0), T.exp(1000.0))
                    )

        return main

    out = kernel.using(out_idx=-1)()()
    assert out.tolist() == [INF, -INF, INF]
