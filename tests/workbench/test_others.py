"""Other implementations on a bench: interleaved runs, what is wrong or absent, a pinned configuration."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import tilebench
from tests.workbench.bench_kernels import functions
from tilebench.errors import OptionError
from tilebench.record import RunRecord
from tilebench.sweeps.others import Other, measure_other, others_of_words
from tilebench.workbench.front.chart_data import chart_data
from tilebench.workbench.live import open_live
from tilebench.workbench.options import parse_line
from tilebench.workbench.others import OtherRuns

SHAPES = {"M": 64, "N": 48, "K": 32}


def product(A: Any, B: Any, C: Any) -> None:
    C[...] = A.astype(np.float32) @ B.astype(np.float32)


def wrong(A: Any, B: Any, _: Any) -> Any:
    return (A.astype(np.float32) @ B.astype(np.float32)) * 1.05


@pytest.fixture(scope="module")
def gemm() -> Any:
    return functions()["gemm"]


@pytest.mark.slow
def test_others_run_on_the_same_arrays_and_are_compared_with_the_reference(gemm: Any) -> None:
    kernel = gemm.using(target="cpu")(**SHAPES)
    found = {
        other.name: measure_other(other, kernel)
        for other in others_of_words(("numpy", "cublas"), {"mine": product, "wrong": wrong})
    }
    for name in ("numpy", "mine"):
        assert found[name].seconds, found[name].failure
        assert found[name].flops == 2.0 * 64 * 48 * 32
        assert found[name].config["arrays"] == "A 64x32 float16, B 32x48 float16, C 64x48 float16"
        assert "5 rounds of 30 ms" in found[name].method
    assert found["wrong"].failure == "wrong result: C is 0.05 off by the norm"
    assert found["wrong"].seconds is None
    assert found["cublas"].failure == "cuBLAS computes products on a card, and this is A @ B on the host"


@pytest.mark.slow
def test_what_no_formula_computes_is_told() -> None:
    from tests.sweeps.test_sweeps import TAIL, _function  # pyright: ignore[reportPrivateUsage]

    kernel = _function(TAIL.replace("FACTOR", "0.37"), "others_of_odd").using(target="cpu")(256, 32)
    run = measure_other(Other("numpy", "numpy"), kernel)
    assert (
        run.failure == "what main computes is none of the formulas known by name"
        or "none of the" in run.failure
    )


def test_words_and_functions_are_told_apart() -> None:
    with pytest.raises(OptionError, match="there is no implementation called numpi"):
        others_of_words(("numpi",), {})
    with pytest.raises(OptionError, match="mine is nothing to compare with"):
        others_of_words((), {"mine": 3})
    assert parse_line("gemm --with M=1 --against numpy,mine --run").against == ("numpy", "mine")


class Made:
    """Stands in for the child: the n-th run of an implementation takes n microseconds more."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def other(self, other: Other, kernel: Any, **_: Any) -> RunRecord:
        self.calls.append(other.name)
        arrays = f"{kernel.parameters['M']}"
        if other.name == "broken":
            return RunRecord("broken", kernel.target, {"by": "broken", "arrays": arrays}, failure="not here")
        samples = tuple(2e-4 * (1 + k / 1000) for k in range(9))
        return RunRecord(
            other.name, kernel.target, {"by": other.name, "arrays": arrays}, samples, flops=1e6, bytes=1e4
        )

    def run(self, kernel: Any, **_: Any) -> RunRecord:
        self.calls.append("kernel")
        samples = tuple(1e-4 * (1 + k / 1000) for k in range(9))
        return RunRecord("gemm", kernel.target, {}, samples, "made up", flops=1e6, bytes=1e4)


def always_64(_: object) -> str:
    return "64"


def test_a_turn_gives_each_one_run_until_there_are_enough(gemm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made()
    runs = OtherRuns(made.other)
    runs.want([Other("numpy", "numpy"), Other("broken", product)])
    kernel = gemm.using(target="cpu")(**SHAPES)
    monkeypatch.setattr("tilebench.workbench.others.problem_text", always_64)
    for _ in range(6):
        runs.turn(kernel, threading.Event())
    assert made.calls.count("numpy") == 4
    assert made.calls.count("broken") == 1
    assert made.calls[:2] == ["numpy", "broken"]


def test_others_stand_in_the_chart_with_their_own_spread(gemm: Any) -> None:
    made = Made()
    bench = open_live(gemm, with_=SHAPES, target="cpu", measure=made.run, sweep={"block_M": (32, 64)})
    bench.session.others = bench.session.answering.others = OtherRuns(made.other)
    bench.against("numpy", small={"block_M": 32})
    bench.set(run=True)
    for _ in range(3):
        bench.again()
    chart = chart_data(bench.session.picture)
    assert chart is not None
    others = {other.name: other for other in chart.others}
    assert set(others) == {"numpy", "small"}
    # Twice the time of the position, by four runs each whose ranges lie apart.
    assert others["numpy"].to_best == "+100 %"
    assert others["numpy"].low is not None
    assert others["numpy"].high is not None
    assert others["numpy"].low < others["numpy"].high
    assert made.calls[:3] == ["kernel", "numpy", "small"]
    assert bench.session.others.wanted[1].pinned
    assert bench.session.others.wanted[1].what().parameters["block_M"] == 32
    bench.close()


def test_a_bench_tells_its_kernels_share_of_a_program(gemm: Any) -> None:
    bench = open_live(gemm, with_=SHAPES, target="cpu")
    kernel = gemm.using(target="cpu")(**SHAPES)
    arrays = kernel.random_arguments(0)
    share = bench.within(lambda: [kernel(*arrays) for _ in range(3)], runs=5)
    assert share.launches == 3
    assert 0 < share.part[1] <= 1
    assert "in 3 launches a run" in str(share)
    bench.close()


@pytest.mark.slow
def test_a_sweep_has_others_in_every_pass(gemm: Any) -> None:
    made = Made()
    sweep = tilebench.sweep(
        gemm, {"block_M": [32, 64]}, with_=SHAPES, target="cpu", measure=made.run, against={"mine": product},
        repeats=2, progress=False,
    )  # fmt: skip
    assert [run.kernel for run in sweep.record.others] == ["mine", "mine"]
    assert any(line.startswith("mine ") for line in sweep.table().splitlines())
