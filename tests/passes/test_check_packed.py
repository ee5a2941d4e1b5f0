"""Stores of 4-bit integers cover whole bytes, from an even element to an even one or the row's end."""

from __future__ import annotations

import pytest

from tilebench.errors import DTypeError
from tilebench.ir import parse_function
from tilebench.language.words import registry
from tilebench.passes.bounded.check_packed import check_packed
from tilebench.passes.context import Context
from tilebench.targets.cuda.machines import machine_of

TEXT = """@T.prim_func
def f(A: T.Tensor((8, 15), T.int4), C: T.Tensor((8, 15), T.int4)):
    with T.Kernel(4, threads=32) as bx:
        {body}
"""
LOOP = "for i, j in T.Parallel(8, {n}):\n            C[{index}] = A[i, j]"


def check(body: str) -> None:
    check_packed(parse_function(TEXT.format(body=body), registry()), Context(machine_of("sm_80")))


@pytest.mark.parametrize(
    "body",
    [
        "T.copy(A, C)",
        "T.copy(A[0 : 8, 0 : 4], C[0 : 8, 2 : 6])",
        "T.copy(A[0 : 8, 0 : 4], C[0 : 8, bx * 2 : bx * 2 + 4])",
        LOOP.format(n=4, index="i, j"),
        LOOP.format(n=15, index="i, j"),
        LOOP.format(n=2, index="i, bx * 2 + j"),
    ],
)
def test_whole_bytes_are_stored(body: str) -> None:
    check(body)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("T.copy(A[0 : 8, 0 : 4], C[0 : 8, 1 : 5])", "the start along the last dimension may be odd"),
        ("T.copy(A[0 : 8, 0 : 4], C[0 : 8, bx : bx + 4])", "the start along the last dimension may be odd"),
        ("T.copy(A[0 : 8, 0 : 3], C[0 : 8, 2 : 5])", "3 elements along the last dimension"),
        ("T.copy(A[0 : 8, 0 : 13], C[0 : 8, 0 : 13])", "13 elements along the last dimension"),
        (LOOP.format(n=4, index="i, j + 1"), "the start along the last dimension may be odd"),
        (LOOP.format(n=3, index="i, j"), "3 elements along the last dimension"),
        (LOOP.format(n=8, index="j, i"), "neighbours along j are not stored side by side"),
        (LOOP.format(n=4, index="i, j * 2"), "neighbours along j are not stored side by side"),
        ("C[bx, 0] = A[0, 0]", "a store of one element"),
    ],
)
def test_half_a_byte_is_refused_with_the_reason(body: str, why: str) -> None:
    with pytest.raises(DTypeError, match="this would store half a byte of C") as caught:
        check(body)
    assert f"found: {why}" in caught.value.explain()
