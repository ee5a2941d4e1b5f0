"""Index arithmetic against plain evaluation."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tilebench.ir import Arith, Call, Const, Expr, Var, const_of
from tilebench.ir.arith import INFINITE, bounds, divisor, evaluate, linear, simplify_floordiv, simplify_mod
from tilebench.ir.dtypes import float32, int8, int32, uint8
from tilebench.ir.rewrite import substitute

RANGES = {"x": (0, 7), "y": (-3, 4), "z": (0, 127)}


def exprs() -> st.SearchStrategy[Expr]:
    leaf = st.sampled_from([Var(n) for n in RANGES]) | st.integers(-9, 9).map(Const)
    return st.recursive(
        leaf,
        lambda below: (
            st.builds(lambda a, b: a + b, below, below)
            | st.builds(lambda a, b: a - b, below, below)
            | st.builds(lambda a, k: a * k, below, st.integers(-4, 8))
            | st.builds(lambda a, k: a // k, below, st.integers(1, 8))
            | st.builds(lambda a, k: a % k, below, st.integers(1, 8))
        ),
        max_leaves=8,
    )


def value(expr: Expr, at: dict[str, int]) -> int:
    folded = const_of(substitute(expr, {k: Const(v) for k, v in at.items()}))
    assert folded is not None
    return folded


POINTS = st.fixed_dictionaries({name: st.integers(*r) for name, r in RANGES.items()})


@settings(derandomize=True, deadline=None, max_examples=300)
@given(exprs(), POINTS, st.integers(1, 12))
def test_facts_hold_at_every_point(expr: Expr, at: dict[str, int], n: int) -> None:
    got = value(expr, at)
    low, high = bounds(expr, RANGES)
    assert low <= got <= high
    d = divisor(expr)
    assert got == 0 if d == 0 else got % d == 0
    assert value(linear(expr).expr(), at) == got
    assert value(simplify_floordiv(expr, n, RANGES), at) == got // n
    assert value(simplify_mod(expr, n, RANGES), at) == got % n


@settings(derandomize=True, deadline=None, max_examples=100)
@given(exprs(), st.sampled_from(["~", "<<", ">>", "|"]), st.integers(0, 3), st.integers(-3, 3), POINTS)
def test_bounds_of_bits_hold_at_every_point(
    below: Expr, op: str, by: int, more: int, at: dict[str, int]
) -> None:
    if op == "|":
        below = below % 8  # of what may be below zero nothing is said
    expr = Arith(op, (below,) if op == "~" else (below, Const(by))) + more
    low, high = bounds(expr, RANGES)
    assert low <= evaluate(expr, at) <= high
    assert (low, high) != INFINITE


def test_a_vector_index_needs_no_division() -> None:
    x, z = Var("x"), Var("z")
    assert simplify_floordiv(z * 8 + x, 8, RANGES) == z
    assert simplify_mod(z * 8 + x, 8, RANGES) == x


def test_a_quotient_is_divided_only_by_what_is_left_of_its_divisor() -> None:
    x = Var("x")
    assert divisor(x * 8 // 2) == 4
    assert divisor(Arith("//", (x * 8, Const(2)))) == 4
    assert divisor(Arith("//", (x * 8, Const(3)))) == 1
    assert divisor(Arith("//", (x * 8, Const(16)))) == 1
    assert divisor(Arith("%", (x * 8, Const(12)))) == 4


def test_minus_keeps_its_sign() -> None:
    x = Var("x")
    assert linear(Arith("-", (x,))).coefficient(x) == -1


def test_bounds_end_with_the_dtype() -> None:
    x = Var("x")
    ranges = {"x": (0, 1000)}
    assert bounds(x * 2_000_000, ranges) == (0, 2_000_000_000)
    assert bounds(x * 3_000_000, ranges) == INFINITE  # it wraps: it may be negative
    assert bounds(x * 3_000_000 - x * 2_999_999, ranges) == (0, 1000)
    y = Var("y", type=uint8)
    assert bounds(y - 1, {"y": (0, 5)}) == INFINITE
    z = Var("z", type=float32)
    assert bounds(Arith("*", (z, z)), {}) == INFINITE


def test_bounds_of_divisions_by_a_range_and_of_choices() -> None:
    ranges = {"x": (0, 53), "n": (1, 3), "s": (-7, 9)}
    x, n, s = Var("x"), Var("n"), Var("s")
    assert bounds(Arith("//", (x, n)), ranges) == (0, 53)
    assert bounds(Arith("%", (x, n)), ranges) == (0, 2)
    assert bounds(Arith("//", (s, n)), ranges) == (-7, 9)
    assert bounds(Arith("%", (s, n)), ranges) == (0, 2)
    chosen = Call("if_then_else", ((x % 2).compare("==", 0), x, s), type=int32)
    assert bounds(chosen, ranges) == (-7, 53)


def test_constants_wrap_as_the_operation_does() -> None:
    y = Var("y", type=uint8)
    assert (y + 200 + 100) == y + 44
    assert isinstance(y - 1, Arith)
    assert (y - 1).op == "-"  # type: ignore[attr-defined]
    assert (y - 0) is y
    assert Const(100, type=int8) * Const(3, type=int8) == Const(44, type=int8)


def test_what_is_divided_by_an_unknown_size_counts_as_zero() -> None:
    """A block's number by a count that only a launch knows: the index is looked at for how it moves."""
    i, blocks = Var("i"), Var("blocks")
    index = Arith("+", (Arith("//", (Const(7), blocks)), Arith("*", (i, Const(4)))))
    assert evaluate(index, {"i": 3}) == 12
    assert evaluate(Arith("%", (i, blocks)), {"i": 3}) == 0
    assert evaluate(index, {"i": 3, "blocks": 2}) == 15
