"""What is printed parses back equal, and what is wrong is told at its line."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilebench.errors import IRError
from tilebench.ir import Arith, Const, Let, Var, parse_function, print_function, show, verify
from tilebench.ir.dtypes import ALL, float32, int32, int64
from tilebench.ir.stmt import Function
from tilebench.language.words import registry

GEMM = """@T.prim_func
def main(A: T.Tensor((1000, 1200), T.float16), B: T.StridedTensor((1200, 11), (12, 1), T.float16)):
    with T.Kernel(9, 8, order=T.Panels(8)) as (bx, by):
        A_s = T.alloc_shared((128, 32), T.float16, swizzle=True, versions=3)
        B_s = T.alloc_shared((32, 128), T.float16)
        C_l = T.alloc_fragment((128, 128), T.float32)
        x = T.alloc_var(T.float32)
        x = T.float32("inf")
        T.fill(C_l, T.float32(0))
        for ko in T.Pipelined(38, num_stages=3):
            T.copy(A[by * 128, ko * 32], A_s.version(ko % 3))
            T.copy(B[ko * 32 : ko * 32 + 32, bx : bx + 128], B_s)
            T.gemm(A_s.version(ko % 3), B_s, C_l, transpose_B=True, clear_accum=ko == 0)
        for i, j in T.Parallel(128, 128):
            n: T.int32 = bx * 128 + j
            if by * 128 + i < 1000 and (n < 1100 or not n < 3):
                A[by * 128 + i, n] = T.cast(T.max(C_l[i, j] * T.float32(0.5), x), T.float16)
            else:
                x = x + (x + x) - (x - x) / -x
        T.copy(C_l[0:64, :], A[by * 128 : by * 128 + 64, 0:128], dst_within=(1000, None))
        T.copy(C_l[7, 8:16], A[by, bx * 8 : bx * 8 + 8])
        T.copy(C_l[7, 9:10], A[by, bx : bx + 1])
"""


def test_every_form_prints_and_parses_back() -> None:
    function = parse_function(GEMM, registry())
    verify(function)
    text = print_function(function).text
    again = parse_function(text, registry())
    assert again == function
    assert print_function(again).text == text


NUMBERS = [
    (math.nan, "float32"), (0.0, "float32"), (-0.0, "float32"), (math.inf, "float32"), (-math.inf, "float32"),
    (1.0, "float32"), (1.0, "float64"), (0, "int32"), (1, "int32"), (1, "int64"),
    (True, "bool"), (False, "bool"),
]  # fmt: skip


def test_literals_are_equal_that_are_the_same_number() -> None:
    for k, (value, name) in enumerate(NUMBERS):
        for n, (other, type_) in enumerate(NUMBERS):
            a, b = Const(value, type=ALL[name]), Const(other, type=ALL[type_])
            assert (a == b) == (k == n), (a, b)
            assert (Arith("-", (a,)) == Arith("-", (b,))) == (k == n)
            assert len({a, b}) == (1 if k == n else 2)
    # How a number came about is no part of it: an int for a float, a NaN with other bits.
    assert Const(0, type=float32) == Const(0.0, type=float32) != Const(-0.0, type=float32)
    assert Const(math.inf - math.inf, type=float32) == Const(-math.nan, type=float32)
    assert len({Const(float("nan"), type=float32) for _ in range(3)}) == 1


def test_the_printed_text_is_the_text() -> None:
    text = print_function(parse_function(GEMM, registry())).text
    assert re.sub(r"(\d) : (\d)", r"\1:\2", text) == GEMM


def test_lines_lead_to_places() -> None:
    printed = print_function(parse_function(GEMM, registry(), "stage"))
    lines = printed.text.splitlines()
    at = next(k for k, line in enumerate(lines) if "T.gemm" in line)
    place = printed.places[at]
    assert place is not None
    assert place.line == at + 1
    assert place.text.strip().startswith("T.gemm")


NAMES = [Var("a"), Var("b"), Var("c")]
OPS = ["+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>"]


def trees() -> st.SearchStrategy:
    leaf = st.sampled_from([*NAMES, Const(3), Const(-2)])
    return st.recursive(
        leaf,
        lambda below: (
            st.builds(lambda op, a, b: Arith(op, (a, b)), st.sampled_from(OPS), below, below)
            | st.builds(
                lambda op, args: Arith(op, tuple(args)),
                st.sampled_from("+*&|^"),
                st.lists(below, min_size=3, max_size=4),
            )
            | st.builds(lambda a: Arith("-", (a,)), st.sampled_from(NAMES))
        ),
        max_leaves=12,
    )


@settings(derandomize=True, deadline=None, max_examples=300)
@given(trees())
def test_any_expression_keeps_its_tree(expr: Arith) -> None:
    body = (*(Let(v, Const(k)) for k, v in enumerate(NAMES)), Let(Var("z"), expr))
    function = Function("f", (), body)
    assert parse_function(print_function(function).text, registry()) == function


def test_a_sum_of_thousands_of_terms() -> None:
    terms = tuple(Var("a") for _ in range(5000))
    function = Function("f", (), (Let(Var("a"), Const(1)), Let(Var("z"), Arith("+", terms))))
    assert parse_function(print_function(function).text, registry()) == function


@pytest.mark.parametrize(
    "value", [0.0, 1.5, -3.0, 1e30, math.inf, -math.inf, 1e-45, 123456789.0, -0.0, math.nan]
)
def test_literals(value: float) -> None:
    function = Function("f", (), (Let(Var("z", type=float32), Const(value, type=float32)),))
    text = print_function(function).text
    assert parse_function(text, registry()) == function
    other = Function("f", (), (Let(Var("z", type=float32), Const(-value, type=float32)),))
    assert (parse_function(text, registry()) == other) == (value != value)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (True, "int32"),
        (1.0, "bool"),
        (1.0, "int32"),
        (True, "float32"),
        (np.float32(1), "float32"),
        (0.5, "int8"),
    ],
)
def test_a_literal_is_of_its_dtype(value: Any, dtype: str) -> None:
    literal = Const(value, type=ALL[dtype])
    with pytest.raises(IRError, match=f"{value} is no literal of {dtype}"):
        verify(Function("f", (), (Let(Var("z", type=ALL[dtype]), literal),)))


def test_typed_integers() -> None:
    function = Function("f", (), (Let(Var("z", type=int64), Const(-7, type=int64)),))
    text = print_function(function).text
    assert "T.int64(-7)" in text
    assert parse_function(text, registry()) == function


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("    T.copi(A, A)", "T.copi is no such word here"),
        ("    x = y", "the name x is not bound"),
        ("    A[0, 0] = __import__('os')", "only words of the language"),
        ("    A[0, 0] = q", "the name q is not bound"),
        ("    del A", "a stage has no such statement"),
        ("    T.copy(A[0 : A, 0 : 2], A)", "is a buffer; an element is expected"),
        ("    T.copy(A, A, colour=3)", "there is no argument colour here"),
        ("    T.copy(A)", "the argument dst is missing"),
        ("    A[0, 0] = T.exp(A[0, 0], A[0, 0])", "T.exp takes 1 arguments"),
        ("    A[0, 0] = (", "this is not Python"),
    ],
)
def test_a_wrong_line_is_told(line: str, message: str) -> None:
    text = f"@T.prim_func\ndef f(A: T.Tensor((4, 4), T.float32)):\n{line}\n"
    with pytest.raises(IRError) as caught:
        parse_function(text, registry(), "edited")
    assert message in str(caught.value)
    assert caught.value.place is not None
    assert caught.value.place.file == "edited"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("    A[0, 0] = T.int64(1)", "holds float32, the value is int64"),
        ("    A[0] = T.float32(1)", "has rank 2, used with 1 indices"),
        ("    x: T.int32 = 1 + T.int64(1)", "the arguments of + are int32 and int64"),
        ("    x: T.float32 = 1", "x is float32, its value int32"),
        ("    x: T.int32 = 3 / 2", "/ divides floats"),
        ("    if 3:\n        pass", "a condition is a bool"),
    ],
)
def test_the_verifier_finds(line: str, message: str) -> None:
    text = f"@T.prim_func\ndef f(A: T.Tensor((4, 4), T.float32)):\n{line}\n"
    with pytest.raises(IRError) as caught:
        verify(parse_function(text, registry(), "edited"))
    assert message in str(caught.value)


def test_int32_is_the_bare_literal() -> None:
    assert Const(3).dtype == int32


def test_minus_zero_keeps_its_sign() -> None:
    assert [show(Const(value, type=float32)) for value in (0.0, -0.0)] == ["T.float32(0)", "T.float32(-0.0)"]


@pytest.mark.parametrize(
    "box", ["A[by :, 0 : 64]", "A[: 8, 0 : 64]", "A[0 : 64 : 2, 0 : 64]", "C_l[by : n, :]"]
)
def test_a_box_that_is_none_is_told(box: str) -> None:
    line = next(line for line in GEMM.splitlines() if "C_l[7, 8:16]" in line)
    text = GEMM.replace(line, f"        T.copy({box}, C_l)")
    with pytest.raises(IRError, match=r"a box is written|the name n is not bound") as caught:
        parse_function(text, registry(), "edited")
    assert caught.value.place is not None
    assert caught.value.place.line == GEMM.splitlines().index(line) + 1
