"""Sweeps: rows, order, resume, stop, faults; with made-up clocks, and for real on the CPU."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilebench
from tests.workbench.bench_kernels import functions
from tilebench.errors import LaunchError, OptionError
from tilebench.profile.environment import environment
from tilebench.record import RunRecord, SweepRow
from tilebench.record_files import save
from tilebench.runtime.cancel import Cancelled
from tilebench.runtime.worker import Worker
from tilebench.sweeps import Sweep, SweepCandidate, SweepEngine, SweepMethod, SweepProgress
from tilebench.sweeps.engine import config_key
from tilebench.sweeps.measuring import measure_once

SHAPES = {"M": 128, "N": 96, "K": 64}


@pytest.fixture(scope="module")
def gemm() -> Any:
    return functions()["gemm"]


class Clock:
    """Stands in for the measuring child: seconds by `block_M`, and what goes wrong by it."""

    def __init__(
        self, seconds: dict[int, float], wrong: dict[int, BaseException | str] | None = None
    ) -> None:
        self.seconds = seconds
        self.wrong = wrong or {}
        self.calls: list[tuple[int, bool]] = []
        self.limits: list[float | None] = []

    def __call__(self, kernel: Any, *, check: bool, timeout: float | None, **_: Any) -> RunRecord:
        block = int(kernel.parameters["block_M"])
        self.calls.append((block, check))
        self.limits.append(timeout)
        trouble = self.wrong.get(block)
        if isinstance(trouble, BaseException):
            raise trouble
        # The n-th run of a configuration is n tenths of a percent slower: a drift that can be counted.
        drift = 1 + self.calls.count((block, True)) / 1000 + self.calls.count((block, False)) / 1000
        seconds = self.seconds[block] * drift
        samples = tuple(seconds * (1 + k / 10_000) for k in range(-4, 5))
        error, bound = (0.5, 1.0) if check else (None, None)
        return RunRecord(
            "gemm", kernel.target, {}, samples, "made up", flops=1e6, bytes=1e3, failure=trouble or "",
            error=error, bound=bound, environment=environment(),
        )  # fmt: skip


def swept(gemm: Any, clock: Clock, blocks: list[int], **options: Any) -> Sweep:
    return tilebench.sweep(
        gemm, {"block_M": blocks}, with_=SHAPES, target="cpu", measure=clock, progress=False, **options
    )


def test_each_configuration_gets_its_runs_with_all_others_between(gemm: Any) -> None:
    clock = Clock({32: 2e-6, 64: 1e-6, 128: 3e-6})
    made = swept(gemm, clock, [32, 64, 128])
    assert [block for block, _ in clock.calls[:3]] == [32, 64, 128]
    # Every pass has each once, begins elsewhere, and only the first run is checked.
    passes = [[block for block, _ in clock.calls[k : k + 3]] for k in range(0, 12, 3)]
    assert all(sorted(each) == [32, 64, 128] for each in passes)
    assert len({each[0] for each in passes}) > 1
    assert [check for _, check in clock.calls] == [True] * 3 + [False] * 9
    assert [len(row.runs) for row in made.rows] == [4, 4, 4]
    assert made.complete
    best = made.best
    assert best is not None
    assert best.config["block_M"] == 64
    assert made.leader is not None
    assert made.leader[1].decided
    # What the first run's check found stands in all.
    assert {run.bound for run in made.runs} == {1.0}


def test_one_configuration_beside_others_is_told_apart_by_its_kernel(gemm: Any) -> None:
    made = swept(gemm, Clock({32: 1.0e-6}), [32])
    run = replace(made.runs[0], kernel="numpy")
    record = replace(made.record, others=(run,), rows=made.rows, domains={})
    lines = Sweep(record).table().splitlines()
    head, ours, theirs = lines[1:4]
    assert head.split()[:2] == ["kernel", "time"]
    assert (ours.split()[0], theirs.split()[0]) == ("gemm", "numpy")
    # Times stand under their head, in both rows.
    column = head.index("time")
    assert ours[column:].startswith("1 us") or ours[column:].startswith("1.00 us"), ours
    assert theirs[column:].split()[1] == "us", theirs


def test_a_best_that_noise_could_explain_is_not_decided(gemm: Any) -> None:
    made = swept(gemm, Clock({32: 1.0e-6, 64: 1.0005e-6}), [32, 64])
    assert made.leader is not None
    assert made.leader[0].config["block_M"] == 32
    assert not made.leader[1].decided
    assert "best so far" in made.table()
    assert "within noise" in made.table()


def test_a_question_stands_only_where_drift_could_be_the_difference(gemm: Any) -> None:
    """Of one run each nothing is decided; four times as long is no drift, and a tenth may be."""
    table = swept(gemm, Clock({32: 1.0e-6, 64: 1.1e-6, 128: 4e-6}), [32, 64, 128], repeats=1).table()
    (near,) = (line for line in table.splitlines() if line.startswith("64"))
    (far,) = (line for line in table.splitlines() if line.startswith("128"))
    assert re.search(r"\+10(\.\d)? % \? ", near)
    assert re.search(r"\+300(\.\d)? %  ", far)
    assert "?: apart by less than machines drift from run to run (15%)" in table
    assert max(map(len, table.splitlines())) <= 110
    assert "?:" not in swept(gemm, Clock({32: 1.0e-6, 128: 4e-6}), [32, 128], repeats=1).table()


def test_refused_and_failed_rows_say_why_and_cost_themselves_alone(gemm: Any) -> None:
    crash = LaunchError("the measuring child ended with signal 11 (SIGSEGV) while it ran timing gemm")
    clock = Clock({64: 1e-6, 32: 1e-6}, {16: crash, 32: "wrong result: 5 elements outside their bound"})
    made = swept(gemm, clock, [-1, 16, 32, 64])
    states = {row.config["block_M"]: row.state for row in made.rows}
    assert states == {-1: "illegal", 16: "failed", 32: "failed", 64: "timed"}
    assert clock.calls.count((16, True)) == 1
    assert [block for block, _ in clock.calls].count(32) == 1
    table = made.table()
    assert "4 configurations: 1 timed, 1 illegal, 2 failed" in table
    assert "failed: the measuring child ended with signal 11" in table
    assert "illegal: " in table
    assert table.index("failed: ") < table.index("illegal: ")


def test_a_sweep_that_is_interrupted_goes_on_from_its_file(gemm: Any, tmp_path: Path) -> None:
    path = tmp_path / "s.tbz"
    clock = Clock({32: 2e-6, 64: 1e-6})
    clock.wrong[64] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        swept(gemm, clock, [32, 64], path=path)
    half = tilebench.open_sweep(path)
    assert [(row.state, len(row.runs)) for row in half.rows] == [("timed", 1), ("compiled", 0)]
    assert not half.complete
    clock.wrong.clear()
    clock.calls.clear()
    made = swept(gemm, clock, [32, 64], path=path)
    assert sorted(block for block, _ in clock.calls) == [32] * 3 + [64] * 4
    assert made.complete
    clock.calls.clear()
    assert swept(gemm, clock, [32, 64], path=path).complete
    assert clock.calls == []


def test_a_file_is_taken_for_the_same_code_alone(gemm: Any, tmp_path: Path) -> None:
    path = tmp_path / "s.tbz"
    clock = Clock({32: 2e-6})
    assert swept(gemm, clock, [32], path=path).summary == "1 configuration: 1 timed"
    tilebench.sweep(
        gemm, {"block_M": [32]}, with_={**SHAPES, "block_K": 16}, target="cpu", measure=clock, path=path,
        progress=False,
    )  # fmt: skip
    assert len(clock.calls) == 8
    double: Any = functions()["double"]
    with pytest.raises(OptionError, match="holds a sweep of gemm, and this is one of double"):
        tilebench.sweep(double, {"block": [32]}, with_={"N": 100}, target="cpu", measure=clock, path=path)


def test_what_is_saved_opens_as_it_was(gemm: Any, tmp_path: Path) -> None:
    made = swept(gemm, Clock({32: 2e-6, 64: 1e-6}), [32, 64, -1])
    read = tilebench.open_sweep(made.save(tmp_path / "s.tbz"))
    assert read.record == made.record
    assert read.table() == made.table()
    assert read.record.best is not None
    assert read.record.best.parameters["block_M"] == 64
    with pytest.raises(OptionError, match=r"s\.tbz"):
        made.save(tmp_path / "s.tbz")
    made.save(tmp_path / "s.tbz", overwrite=True)
    # The best one is a line to read, and one that was refused says why.
    assert re.fullmatch(r".*block_M=64.*: gemm on cpu:\S+: 1\.\d+ us \(median of \d+\).*", str(made.best))
    refused = next(row for row in made.rows if row.state == "illegal")
    assert str(refused).endswith(f": {refused.why}")
    run = tmp_path / "run.tbz"
    save(made.runs[0], run)
    with pytest.raises(OptionError, match="holds no sweep"):
        tilebench.open_sweep(run)


def test_a_sweep_stops_by_its_event_and_says_how_far_it_is(gemm: Any) -> None:
    stop = threading.Event()
    said: list[SweepProgress] = []

    def progress(now: SweepProgress) -> None:
        said.append(now)
        if now.done == 5:
            stop.set()

    clock = Clock({32: 2e-6, 64: 1e-6})
    made = tilebench.sweep(
        gemm, {"block_M": [32, 64]}, with_=SHAPES, target="cpu", measure=clock, progress=progress, cancel=stop
    )
    assert len(clock.calls) == 5
    assert not made.complete
    assert {now.total for now in said} == {8}
    assert [now.done for now in said] == sorted(now.done for now in said)
    assert said[0].left is None
    assert any(now.left is not None for now in said)


def test_an_endless_loop_is_given_up_by_what_the_others_took(gemm: Any) -> None:
    clock = Clock({32: 1e-6})
    swept(gemm, clock, [32])
    assert clock.limits == [None, None, None, 10.0]


def test_a_row_that_was_measured_by_hand_counts(gemm: Any) -> None:
    clock = Clock({32: 1e-6})
    kernel = gemm(**SHAPES, block_M=32)
    config = {"block_M": 32}
    run = clock(kernel, check=False, timeout=None)
    known = SweepRow(config, "timed", runs=(run, run))
    engine = SweepEngine([SweepCandidate(config, lambda: kernel)], known=[known], measure=clock)
    rows = engine.run()
    assert len(rows[0].runs) == 4
    assert rows[0].runs[:2] == (run, run)
    # Neither had been checked.
    assert [check for _, check in clock.calls] == [False, True, False]


def test_only_compiling(gemm: Any) -> None:
    made = swept(gemm, Clock({}), [32, 64, -1], run=False)
    assert [row.state for row in made.rows] == ["compiled", "compiled", "illegal"]
    assert made.best is None
    assert made.complete
    assert len({row.code for row in made.rows[:2]}) == 2


def test_what_cannot_be_swept_is_told(gemm: Any) -> None:
    with pytest.raises(OptionError, match="there is nothing called ko"):
        tilebench.sweep(gemm, {"ko.num_stage": [1]}, with_=SHAPES, target="cpu")
    wrong: list[tuple[Any, str]] = [
        (None, "a sweep is over values by name"),
        ({"block_M": "64"}, "the values of block_M cannot be '64'"),
        ({"block_M": 64}, "the values of block_M cannot be 64"),
        ({"block_Q": [64]}, "gemm has no parameter, size or scalar block_Q"),
    ]
    for domains, said in wrong:
        with pytest.raises(OptionError, match=said):
            tilebench.sweep(gemm, domains, with_=SHAPES, target="cpu", progress=False)
    with pytest.raises(OptionError, match="has 0 configurations"):
        tilebench.sweep(gemm, {"block_M": []}, with_=SHAPES, target="cpu")
    with pytest.raises(OptionError, match="a sweep of 0 runs measures nothing"):
        tilebench.sweep(gemm, {"block_M": [32]}, with_=SHAPES, target="cpu", repeats=0)
    with pytest.raises(tilebench.TileError, match="needs N, K"):
        tilebench.sweep(gemm, {"block_M": [32]}, with_={"M": 3}, target="cpu")


def test_configurations_are_equal_by_their_values() -> None:
    assert config_key({"a": 1, "b": (1, 2)}) == config_key({"b": "(1, 2)", "a": 1})
    assert config_key({"a": 1}) != config_key({"a": 2})


# -- for real


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as made:
        yield made


def by(worker: Worker) -> Callable[..., RunRecord]:
    def measure(kernel: Any, **options: Any) -> RunRecord:
        return measure_once(kernel, worker=worker, **options)

    return measure


@pytest.mark.slow
def test_a_sweep_on_this_processor(gemm: Any, worker: Worker) -> None:
    made = tilebench.sweep(
        gemm, {"block_M": [32, 64], "num_stages": [1, 2]}, with_=SHAPES, target="cpu", measure=by(worker),
        repeats=2, progress=False,
    )  # fmt: skip
    assert [row.state for row in made.rows] == ["timed"] * 4
    assert all(len(row.runs) == 2 and row.runs[0].error is not None for row in made.rows)
    assert all(len(run.samples) <= 100 and run.seconds for run in made.runs)
    assert {run.flops for run in made.runs} == {2.0 * 128 * 96 * 64}
    assert "interleaved" not in made.runs[0].method
    assert "Runs of one configuration, spread over the whole sweep, differ by" in made.table()


TAIL = """import tilebench
import tilebench.language as T
@tilebench.jit
def scaled(N, block):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(N // block) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] * FACTOR
    return main
"""


def _function(text: str, name: str) -> Any:
    from tilebench.errors import remember_source

    remember_source(name, text)
    space: dict[str, Any] = {"__name__": name}
    exec(compile(text, name, "exec"), space)
    return space["scaled"]


@pytest.mark.slow
def test_configurations_that_mean_another_result_are_found(worker: Worker) -> None:
    """A kernel whose text computes something else with one block size is right by its own reference."""
    odd = _function(TAIL.replace("FACTOR", "(2.0 if block < 64 else 3.0)"), "sweep_of_odd")
    made = tilebench.sweep(
        odd, {"block": [16, 32, 64]}, with_={"N": 256}, target="cpu", measure=by(worker), repeats=1,
        progress=False,
    )  # fmt: skip
    assert [row.state for row in made.rows] == ["timed", "timed", "failed"]
    assert (
        made.rows[2].why == "right by its own text, but another result than block=16 has on the same arrays"
    )


@pytest.mark.slow
def test_a_kernel_that_leaves_elements_out_is_found_beside_one_that_does_not(worker: Worker) -> None:
    part = _function(TAIL.replace("FACTOR", "2.0"), "sweep_of_part")
    made = tilebench.sweep(
        part, {"block": [50, 64]}, with_={"N": 100}, target="cpu", measure=by(worker), repeats=1,
        progress=False,
    )  # fmt: skip
    assert [row.state for row in made.rows] == ["timed", "failed"]
    assert "another result than block=50" in made.rows[1].why


@pytest.mark.slow
def test_inputs_are_the_same_for_all_and_not_written(gemm: Any, worker: Worker) -> None:
    """Two configurations of one problem share what no kernel writes, and outputs, which begin as poison."""
    from tilebench.kernel.measuring.package import package_of
    from tilebench.sweeps import child

    sessions: list[Any] = []
    for block in (32, 64):
        kernel = gemm(**SHAPES, block_M=block)
        package = package_of(kernel, {})
        problem = child.problem_of(package, 0, "gemm")  # pyright: ignore[reportPrivateUsage]
        sessions.append(child._session(package, str(block), problem))  # pyright: ignore[reportPrivateUsage]
    first, second = sessions
    assert first.arrays[0] is second.arrays[0]
    assert first.arrays[2] is second.arrays[2]
    assert not np.shares_memory(first.arrays[2], problem.inputs[2])
    first.run()
    second.renew()
    assert np.isnan(first.arrays[2]).all()
    child._loaded.kernels.clear()  # pyright: ignore[reportPrivateUsage]
    child._loaded.problems.clear()  # pyright: ignore[reportPrivateUsage]


def test_a_stop_ends_the_run_that_is_under_way(gemm: Any) -> None:
    stop = threading.Event()

    def measure(_: Any, *, cancel: threading.Event, **__: Any) -> RunRecord:
        threading.Timer(0.05, stop.set).start()
        cancel.wait(60)
        raise Cancelled("stopped")

    made = tilebench.sweep(
        gemm, {"block_M": [32, 64]}, with_=SHAPES, target="cpu", measure=measure, cancel=stop, progress=False
    )
    assert [row.state for row in made.rows] == ["compiled", "waiting"]


def test_a_method_is_what_a_bench_measures_by() -> None:
    from tilebench.profile.positions import ENOUGH_RUNS

    assert SweepMethod().repeats == ENOUGH_RUNS


def test_a_kernel_that_was_edited_is_measured_again(tmp_path: Path) -> None:
    """The same name and configuration, and other code."""
    calls: list[float] = []

    def measure(kernel: Any, **_: Any) -> RunRecord:
        calls.append(1e-6)
        return RunRecord("scaled", kernel.target, {}, (1e-6,) * 9, "made up", environment=environment())

    for factor in ("2.0", "2.0", "3.0"):
        scaled = _function(TAIL.replace("FACTOR", factor), "sweep_of_edits")
        tilebench.sweep(
            scaled, {"block": [32]}, with_={"N": 64}, target="cpu", measure=measure, repeats=1, check=False,
            path=tmp_path / "s.tbz", progress=False,
        )  # fmt: skip
    assert len(calls) == 2
