"""To what the configurations of a sweep are held: one result for all, and each sweep to its own."""

from __future__ import annotations

import pytest

import tilebench
from tests.sweeps.test_sweeps import TAIL, _function  # pyright: ignore[reportPrivateUsage]
from tilebench.kernel.measuring.package import package_of
from tilebench.sweeps import child


@pytest.mark.slow
def test_what_is_right_in_one_sweep_says_nothing_of_the_next() -> None:
    """Two kernels of the same arrays in one child: each is held to its own reference."""
    for factor in ("2.0", "3.0"):
        scaled = _function(TAIL.replace("FACTOR", factor), f"sweep_of_{factor[0]}")
        found = tilebench.sweep(
            scaled, {"block": [32, 64]}, with_={"N": 256}, target="cpu", repeats=1, progress=False
        )
        assert [row.state for row in found.rows] == ["timed", "timed"]
    package = package_of(scaled.using(target="cpu")(256, 32), {})
    twice = package_of(
        _function(TAIL.replace("FACTOR", "2.0"), "sweep_of_twice").using(target="cpu")(256, 32), {}
    )
    assert child.problem_of(package, 3).inputs is child.problem_of(twice, 3).inputs
    assert child.problem_of(package, 3) is not child.problem_of(twice, 3)
    assert child.problem_of(package, 3, "one") is child.problem_of(twice, 3, "one")


def test_another_result_is_seen_where_it_is_checked() -> None:
    """In this process what the child does: right by its own text, and another result than the first."""
    odd = _function(TAIL.replace("FACTOR", "(2.0 if block < 64 else 3.0)"), "sweep_of_odd_here").using(
        target="cpu"
    )
    found: list[str] = []
    for block in (16, 32, 64):
        package = package_of(odd(256, block), {})
        problem = child.problem_of(package, 7, "odd")
        session = child._session(package, f"odd{block}", problem)  # pyright: ignore[reportPrivateUsage]
        try:
            found.append(child._check(session, problem, f"block={block}").verdict)  # pyright: ignore[reportPrivateUsage]
        except child.AnotherResult as error:
            found.append(error.message)
    assert found == [
        "all within bounds", "all within bounds",
        "right by its own text, but another result than block=16 has on the same arrays",
    ]  # fmt: skip
    child._loaded.kernels.clear()  # pyright: ignore[reportPrivateUsage]
    child._loaded.problems.clear()  # pyright: ignore[reportPrivateUsage]
