"""A NaN is 0 as an integer: the card's conversions from a double and to 64 bits make other numbers of it."""

from __future__ import annotations

import pytest

import tilebench
import tilebench.language as T


@tilebench.jit
def converted(dtype, out, n=64):
    @T.prim_func
    def main(A: T.Tensor((n,), dtype), B: T.Tensor((n,), out)):
        with T.Kernel(1, threads=32) as b0:
            for i in T.Parallel(n):
                B[i] = T.cast(A[i], out)

    return main


@pytest.mark.parametrize(
    ("dtype", "out", "text"),
    [
        ("float64", "int32", "(int)tb_without_nan("),
        ("float64", "uint16", "(unsigned short)min(max((int)tb_without_nan("),
        ("float32", "int64", "(long long)tb_without_nan("),
        ("bfloat16", "uint64", "(unsigned long long)tb_without_nan("),
        ("float8_e5m2", "int64", "(long long)tb_without_nan("),
        ("float32", "int32", "(int)A"),
    ],
)
def test_the_text_of_a_conversion(dtype: str, out: str, text: str) -> None:
    kernel = converted.using(target="cuda:sm_80")(dtype, out)
    source = kernel.stage("cuda")
    assert text in source
    assert ("tb_without_nan" in source) is ("tb_without_nan" in text)
    assert kernel.stage("ptx")
