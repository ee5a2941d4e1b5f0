"""`T.gemm` of every combination of dtypes that it takes, on every target, and when its sums are rounded."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.everywhere import everywhere, kernel_of
from tilebench.ir.dtypes import dtype_of
from tilebench.language.gemm import gemm_dtypes

BODY = """
a = T.alloc_shared(({k}, 16), "{a}")
b = T.alloc_shared(({k}, 16), "{b}")
c = T.alloc_fragment((16, 16), "{c}")
T.copy(A, a)
T.copy(B, b)
T.copy(C, c)
T.gemm(a, b, c, transpose_A=True)
T.copy(c, C)
"""
HEAD = 'A: T.Tensor(({k}, 16), "{a}"), B: T.Tensor(({k}, 16), "{b}"), C: T.Tensor((16, 16), "{c}")'


def product(a: str, b: str, c: str, **arrays: Any) -> Any:
    """C after a gemm everywhere, of the arrays given."""
    names = {"a": a, "b": b, "c": c, "k": arrays["A"].shape[0]}
    return everywhere(BODY.format(**names), HEAD.format(**names), threads=32, **arrays)["C"]


def whole_numbers(shape: tuple[int, int], dtype: str, seed: int) -> Any:
    low = 0 if dtype_of(dtype).kind == "uint" else -3
    return np.random.default_rng(seed).integers(low, 4, shape).astype(dtype_of(dtype).numpy)


@pytest.mark.parametrize("dtypes", gemm_dtypes(), ids="-".join)
def test_products_of_whole_numbers(dtypes: tuple[str, str, str]) -> None:
    """33 products of numbers up to 3 are exact in every accumulator."""
    a, b, c = dtypes
    left, right, old = (whole_numbers((33 if k < 2 else 16, 16), each, k) for k, each in enumerate(dtypes))
    wide = [each.astype(np.float64) for each in (left, right, old)]
    found = product(a, b, c, A=left, B=right, C=old.copy())
    assert np.array_equal(found.astype(np.float64), wide[2] + wide[0].T @ wide[1])


@pytest.mark.parametrize("dtypes", [d for d in gemm_dtypes() if d[0] in ("int64", "uint64")], ids="-".join)
def test_wide_integers_wrap(dtypes: tuple[str, str, str]) -> None:
    left = np.full((3, 16), 2**62 + 5, dtypes[0])
    found = product(*dtypes, A=left, B=left, C=np.zeros((16, 16), dtypes[2]))
    assert found[0, 0].tolist() % 2**64 == 3 * (2**62 + 5) ** 2 % 2**64


@pytest.mark.parametrize("operand", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_a_narrow_sum_is_rounded_once(operand: str) -> None:
    """Four ones, far apart along k, on top of a C whose neighbour is two (or sixteen) away: none is lost."""
    accumulator = operand if operand in ("float16", "bfloat16") else "float16"
    dtype, start = dtype_of(operand).numpy, 2048 if accumulator == "float16" else 512
    ones, first = np.zeros((256, 16), dtype), np.zeros((256, 16), dtype)
    ones[[0, 70, 140, 255]], first[[0, 70, 140, 255]] = 1, 1
    old = np.full((16, 16), start, dtype_of(accumulator).numpy)
    found = product(operand, operand, accumulator, A=ones, B=first, C=old)
    assert (found.astype(np.float64) == start + 4).all()


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90a"])
def test_every_combination_compiles(arch: str) -> None:
    """One kernel with all of them, to a cubin."""
    body, head = "", ""
    for number, (a, b, c) in enumerate(gemm_dtypes()):
        names = {"a": a, "b": b, "c": c, "k": 8}
        # The tiles take new names by themselves; the arrays are the kernel's own.
        body += re.sub(r"\b([ABC])\b", rf"\g<1>{number}", BODY.format(**names))
        head += re.sub(r"\b([ABC])\b", rf"\g<1>{number}", HEAD.format(**names)) + ", "
    kernel_of(body, head.rstrip(", "), threads=32).using(target=f"cuda:{arch}")().stage("ptx")
