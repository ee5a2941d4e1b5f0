"""The base of facts: against enumeration, and the proofs that edges of tiles need."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ir.test_arith import POINTS, RANGES, exprs, value
from tilebench.ir import Arith, Call, Const, Expr, Var
from tilebench.ir.arith import INFINITE
from tilebench.ir.dtypes import uint8
from tilebench.ir.facts import Facts
from tilebench.ir.rewrite import substitute

M, N, K, X, Y, Z = (Var(name) for name in ("m", "n", "k", "x", "y", "z"))
EXTENT = (1, 2**31 - 2**16)
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


def ceildiv(a: Expr, n: int) -> Expr:
    return (a + (n - 1)) // n


def holds(condition: Expr, at: dict[str, int]) -> bool:
    found = substitute(condition, {name: Const(number) for name, number in at.items()})
    assert isinstance(found, Const)
    return bool(found.value)


conditions = st.builds(lambda op, a, b: a.compare(op, b), st.sampled_from(COMPARISONS), exprs(), exprs())


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.lists(conditions, max_size=3), conditions, st.lists(POINTS, min_size=8, max_size=8))
def test_what_is_proved_holds_wherever_the_facts_do(
    known: list[Expr], asked: Expr, points: list[dict[str, int]]
) -> None:
    facts = Facts(RANGES).assuming(*known)
    proved = facts.proves(asked)
    for at in points:
        if all(holds(each, at) for each in known):
            assert not proved or holds(asked, at)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(exprs(), exprs(), POINTS, st.integers(1, 12))
def test_ranges_and_divisors_hold_under_lets_and_conditions(
    first: Expr, second: Expr, at: dict[str, int], n: int
) -> None:
    facts = Facts(RANGES).with_let(Var("v"), first).assuming(Var("x").compare("<=", at["x"]))
    at = {**at, "v": value(first, at)}
    both = second + Var("v") * n
    low, high = facts.bounds(both)
    assert low <= value(both, at) <= high
    by = facts.divisor(both)
    assert value(both, at) == 0 if by == 0 else value(both, at) % by == 0
    assert value(facts.floordiv(both, n), at) == value(both, at) // n
    assert value(facts.mod(both, n), at) == value(both, at) % n


@pytest.mark.parametrize(
    ("known", "asked", "proved"),
    [
        ("x < 10", "x < 10", True), ("x < 10", "x < 9", False), ("x < 10", "x < 11", True),
        ("x <= 9", "x < 10", True), ("x <= 10", "x < 10", False), ("x <= 10", "x <= 10", True),
        ("x > 3", "x >= 4", True), ("x > 3", "x >= 5", False), ("x >= 3", "x > 3", False),
        ("x == 4", "x != 5", True), ("x == 4", "x <= 4", True), ("x != 4", "x != 4", True),
        ("x < n", "x < n", True), ("x <= n", "x < n", False), ("x < n", "x <= n", True),
        ("x < n and n <= m", "x < m", True), ("x < n and n <= m", "x + 1 <= m", True),
        ("x < n and n <= m", "x + 1 < m", False), ("x < n and n < m", "x + 1 < m", True),
        ("n == m and x < n", "x < m", True), ("x + 8 <= n", "x + 7 < n", True),
        ("x + 8 <= n", "x + 8 < n", False), ("n % 8 == 0", "n * 2 % 16 == 0", True),
        ("n % 8 == 0", "n % 16 == 0", False), ("n % 4 == 0 and n % 6 == 0", "n % 12 == 0", True),
        ("x < n or x < m", "x < n", False),
    ],
)  # fmt: skip
def test_one_step(known: str, asked: str, proved: bool) -> None:
    names = {"x": X, "n": N, "m": M}
    facts = Facts({"x": (0, 1000), "n": EXTENT, "m": EXTENT})
    assert facts.assuming(read(known, names)).proves(read(asked, names)) is proved


def read(text: str, names: dict[str, Var]) -> Expr:
    """A condition from text: `and` and `or` of comparisons of sums and products."""
    for word in ("or", "and"):
        if f" {word} " in text:
            return Arith(word, tuple(read(part, names) for part in text.split(f" {word} ")))
    for op in ("<=", ">=", "==", "!=", "<", ">"):
        if op in text:
            a, b = (eval(part, {}, dict(names)) for part in text.split(op))  # noqa: S307
            a = a if isinstance(a, Expr) else Const(a)
            return a.compare(op, b)
    raise AssertionError(text)


def test_a_block_of_rows_starts_inside_a_symbolic_extent() -> None:
    facts = Facts({"m": EXTENT}).with_extent(X, ceildiv(M, 128))
    assert facts.proves((X * 128).compare("<", M))
    assert not facts.proves((X * 128 + 1).compare("<", M))
    inside = facts.with_range("y", 0, 127)
    assert not inside.proves((X * 128 + Y).compare("<", M))
    assert inside.bounds(X * 128 + Y) == (0, 2**31 - 2**16 - 1)
    # 2^31 - 2^16 rows are whole blocks; a row more and the last index would wrap.
    assert Facts({"m": (1, 2**31 - 1)}).bounds(ceildiv(M, 128)) == INFINITE


def test_whole_blocks_need_no_mask() -> None:
    whole = Facts({"m": EXTENT}).assuming((M % 128).compare("==", 0))
    inside = whole.with_extent(X, ceildiv(M, 128)).with_range("y", 0, 127)
    assert inside.proves((X * 128 + Y).compare("<", M))
    assert not inside.proves((X * 128 + Y + 1).compare("<", M))
    half = Facts({"m": EXTENT}).assuming((M % 64).compare("==", 0))
    assert (
        not half.with_extent(X, ceildiv(M, 128)).with_range("y", 0, 127).proves((X * 128 + Y).compare("<", M))
    )
    assert half.with_extent(X, ceildiv(M, 128)).with_range("y", 0, 63).proves((X * 128 + Y).compare("<", M))


def test_a_loop_over_tiles_of_a_symbolic_extent() -> None:
    facts = Facts({"k": EXTENT}).with_loop(X, Const(0), ceildiv(K, 32))
    assert facts.proves((X * 32).compare("<", K))
    assert facts.proves(X.compare("<=", K // 32))
    steps = Facts({"n": (0, 100)}).with_loop(X, N, Const(50), 8)
    assert steps.bounds(X) == (0, 49)
    assert steps.proves(X.compare(">=", N))
    assert Facts().with_loop(X, Const(16), Const(99), 8).divisor(X) == 8
    assert Facts().with_loop(X, Const(9), Const(0), -1).bounds(X) == (1, 9)


def test_choices_lie_between_their_parts() -> None:
    facts = Facts({"n": EXTENT, "m": EXTENT, "x": (0, 10**6)})
    least = Call("min", (N, M), type=N.type)
    assert facts.assuming(X.compare("<", least)).proves(X.compare("<", N))
    assert facts.assuming(X.compare("<", N)).proves(X.compare("<", Call("max", (M, N), type=N.type)))
    assert not facts.assuming(X.compare("<", N)).proves(X.compare("<", least))


def test_nothing_is_proved_of_what_may_wrap() -> None:
    facts = Facts({"x": (0, 1000), "y": (0, 2000)})
    assert not facts.proves((X * 3_000_000).compare("<", X * 3_000_000 + 1))
    assert facts.proves((X * 2_000_000).compare("<", X * 2_000_000 + 1))
    small = Var("s", type=uint8)
    assert not Facts({"s": (0, 5)}).proves((small - 1).compare("<=", small))
    assert facts.divisor(X * 3_000_000) == 64  # 2^6 divides 3,000,000, and the number after wrapping
    assert facts.divisor(X * 2_000_000) == 2_000_000


def test_names_bound_again_forget() -> None:
    facts = Facts({"n": EXTENT}).with_loop(X, Const(0), N).with_let(Y, X * 8)
    assert facts.proves(X.compare("<", N))
    assert facts.divisor(Y) == 8
    again = facts.with_range("x", 0, 5)
    assert not again.proves(X.compare("<", N))
    assert again.divisor(Y) == 1
    assert facts.proves(X.compare("<", N)), "the old facts are as they were"


def test_a_let_is_seen_through() -> None:
    facts = Facts({"x": (0, 9)}).with_let(Y, X * 4 + 1).with_let(Z, Y + 3)
    assert facts.divisor(Z) == 4
    assert facts.bounds(Z - Y) == (3, 3)
    assert facts.resolved(Z) == X * 4 + 4


def test_every_point_of_a_grid_with_both_edges() -> None:
    for m, n in itertools.product(range(1, 40), (4, 8)):
        facts = Facts({"m": (m, m)}).with_extent(X, ceildiv(M, n)).with_range("y", 0, n - 1)
        blocks = -(-m // n)
        inside = all(x * n + y < m for x in range(blocks) for y in range(n))
        assert facts.proves((X * n + Y).compare("<", M)) is inside
