"""Index arithmetic against plain evaluation."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tilebench.ir import Arith, Const, Expr, Var, const_of
from tilebench.ir.arith import bounds, divisor, linear, simplify_floordiv, simplify_mod
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


def test_a_vector_index_needs_no_division() -> None:
    x, z = Var("x"), Var("z")
    assert simplify_floordiv(z * 8 + x, 8, RANGES) == z
    assert simplify_mod(z * 8 + x, 8, RANGES) == x


def test_minus_keeps_its_sign() -> None:
    x = Var("x")
    assert linear(Arith("-", (x,))).coefficient(x) == -1
