"""To what the configurations of a sweep are held: one result for all, and each sweep to its own."""

from __future__ import annotations

from typing import Any

import pytest

import tilebench
from tests.sweeps.test_sweeps import TAIL, _function  # pyright: ignore[reportPrivateUsage]
from tilebench.errors import TargetError, remember_source
from tilebench.kernel.measuring.package import package_of
from tilebench.record import RunRecord
from tilebench.sweeps import child
from tilebench.sweeps.candidates import Making
from tilebench.sweeps.prepare import code_of


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


def here(function: Any, parameters: tuple[int, ...], seed: int, sweep: str) -> RunRecord:
    """In this process what the child does for one run."""
    package = package_of(function.using(target="cpu")(*parameters), {})
    return child.time_package(package, code_of(package), seed, 5, 0.01, True, str(parameters), sweep)


def test_a_loaded_kernel_is_run_on_the_numbers_that_are_asked_for() -> None:
    """The same code again with another seed: the record's seed is that of its arrays, and all are right."""
    scaled = _function(TAIL.replace("FACTOR", "2.0"), "sweep_of_seeds")
    rows = [((256, 64), 0, "first"), ((256, 64), 1, "second"), ((256, 128), 1, "second")]
    found = [here(scaled, *row) for row in rows]
    assert [(run.seed, run.failure, run.error) for run in found] == [(0, "", 0.0), (1, "", 0.0), (1, "", 0.0)]


ADDING = """
import tilebench
import tilebench.language as T

@tilebench.jit
def adding(N, block):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=32) as b0:
            for i in T.Parallel(block):
                B[b0 * block + i] = B[b0 * block + i] + A[b0 * block + i]
    return main
"""


def test_what_earlier_runs_left_in_an_output_is_no_input_of_a_check() -> None:
    space: dict[str, Any] = {"__name__": "sweep_of_adding"}
    remember_source("sweep_of_adding", ADDING)
    exec(compile(ADDING, "sweep_of_adding", "exec"), space)
    here(space["adding"], (512, 64), 0, "first")
    found = [here(space["adding"], (512, block), 0, "second") for block in (64, 128)]
    assert [run.failure for run in found] == ["", ""]


@pytest.mark.slow
def test_a_kernel_of_edited_text_is_swept_as_it_is() -> None:
    """Its code stays the edited one, and another schedule of it is refused instead of the unedited kernel."""
    kernel = _function(TAIL.replace("FACTOR", "2.0"), "sweep_of_edited").using(target="cpu")(256, 32)
    text = kernel.record(("llvm",)).stages[-1].text
    edited = kernel.edited("llvm", text + "; by hand\n")
    making = Making(edited, {}, "cpu", None)
    assert making.kernel_of({}) is not None
    assert package_of(making.kernel_of({}), {}).edited == ("llvm",)
    with pytest.raises(TargetError, match="the text of llvm was edited"):
        making.kernel_of({"threads": 64})
