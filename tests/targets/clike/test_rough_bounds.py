"""Rough bounds hold for every value, and what they call natural is not negative even where int32 wraps."""

from __future__ import annotations

import itertools
import random

import pytest

from tilebench.ir import Arith, Const, Expr, Var, parse_function
from tilebench.ir.facts import Facts
from tilebench.language.words import registry
from tilebench.targets.clike.rough_bounds import RoughBounds, counters_of

RANGES = {"a": (0, 3), "b": (-2, 2), "c": (40000, 40002)}


def wrapped(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def value_of(expr: Expr, values: dict[str, int]) -> int:
    """The expression as a card computes it: 32 bits that wrap, floor division."""
    match expr:
        case Const():
            return int(expr.value)
        case Var():
            return values[expr.name]
        case Arith():
            args = [value_of(arg, values) for arg in expr.args]
            total = args[0]
            for arg in args[1:]:
                match expr.op:
                    case "+":
                        total += arg
                    case "-":
                        total -= arg
                    case "*":
                        total *= arg
                    case "//":
                        total //= arg
                    case _:
                        total %= arg
                total = wrapped(total)
            return total
    raise AssertionError(expr)


def an_expression(choice: random.Random, depth: int) -> Expr:
    if depth == 0 or choice.random() < 0.2:
        return choice.choice([Var("a"), Var("b"), Var("c"), Const(choice.choice([-3, 1, 5, 60000]))])
    op = choice.choice(["+", "+", "*", "-", "//", "%"])
    if op in ("//", "%"):
        return Arith(op, (an_expression(choice, depth - 1), Const(choice.choice([1, 2, 7]))))
    return Arith(op, (an_expression(choice, depth - 1), an_expression(choice, depth - 1)))


@pytest.mark.parametrize("seed", range(4))
def test_bounds_that_fit_hold_for_every_value(seed: int) -> None:
    choice = random.Random(seed)
    proved = 0
    for _ in range(400):
        expr, rough = an_expression(choice, 3), RoughBounds(Facts(RANGES))
        fits, natural = rough.fits(expr), rough.is_natural(expr)
        low, high = rough.of(expr)
        for numbers in itertools.product(*(range(least, most + 1) for least, most in RANGES.values())):
            value = value_of(expr, dict(zip(RANGES, numbers, strict=True)))
            assert not fits or low <= value <= high, expr
            assert not natural or value >= 0, expr
        proved += fits
    assert proved > 100


def test_what_is_kept_is_forgotten_when_something_else_is_known() -> None:
    rough, more = RoughBounds(Facts({"i": (0, 7)})), Facts({"i": (0, 100)})
    expr = Arith("+", (Var("i"), Const(1)))
    assert rough.of(expr) == (1, 8)
    rough.know(more)
    assert rough.of(expr) == (1, 101) == more.bounds(expr)


COUNTER = """@T.prim_func
def f(C: T.Tensor((64,), T.float32)):
    with T.Kernel(1, threads=32) as bx:
        x = T.alloc_var(T.int32, init={first})
        for k in T.serial(9):
            C[x] = T.float32(0)
            x = {following}
"""


@pytest.mark.parametrize(
    ("first", "following", "found"),
    [
        ("1", "T.if_then_else(x == 2, 0, x + 1)", {"x": (0, 2)}),
        ("2", "T.if_then_else(x == 2, 0, x + 1)", {"x": (0, 2)}),
        ("3", "T.if_then_else(x == 2, 0, x + 1)", {}),
        ("0", "T.if_then_else(x == 2, 1, x + 1)", {}),
        ("0", "T.if_then_else(x == 2, 0, x + 2)", {}),
        ("0", "T.if_then_else(x >= 2, 0, x + 1)", {}),
        ("0", "x + 1", {}),
    ],
)
def test_a_counter_that_wraps_has_the_range_that_it_counts_through(
    first: str, following: str, found: dict[str, tuple[int, int]]
) -> None:
    text = COUNTER.format(first=first, following=following)
    assert counters_of(parse_function(text, registry())) == found
    twice = text + "            x = 7\n"
    assert counters_of(parse_function(twice, registry())) == {}
