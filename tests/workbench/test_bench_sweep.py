"""A bench's sweep: begun, stopped, taken up, with made-up clocks; what its chart and table say."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import tilebench
from tests.waiting import LONG, until
from tests.workbench.bench_kernels import functions
from tilebench.errors import LaunchError, OptionError
from tilebench.plain import to_plain
from tilebench.record import RunRecord
from tilebench.workbench.front.answers import answer
from tilebench.workbench.front.build import bench_state
from tilebench.workbench.front.chart_data import chart_data, moved_name
from tilebench.workbench.front.widget import measured_plain
from tilebench.workbench.live import Workbench, open_live
from tilebench.workbench.parts import static_html, static_text
from tilebench.workbench.session import Session
from tilebench.workbench.subject import Subject
from tilebench.workbench.sweep_view import sweep_bundle, sweep_picture

SHAPES = {"M": 200, "N": 170, "K": 130}
BLOCKS = {"block_M": (32, 64, 128), "block_N": (32, 64, -1)}


class Clock:
    """Stands in for the measuring child: 64 x 64 is the fastest, 128 x 32 crashes; it can be held."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int]] = []
        self.go = threading.Event()
        self.go.set()

    def __call__(self, kernel: Any, *, cancel: threading.Event, check: bool = False, **_: Any) -> RunRecord:
        while not self.go.wait(0.005):
            if cancel.is_set():
                from tilebench.runtime.cancel import Cancelled

                raise Cancelled("stopped")
        m, n = kernel.parameters["block_M"], kernel.parameters["block_N"]
        self.calls.append((m, n))
        if (m, n) == (128, 32):
            raise LaunchError("the measuring child ended with signal 11 (SIGSEGV) while it ran timing gemm")
        seconds = 1e-5 * (1 + abs(m - 64) / 64 + abs(n - 64) / 100) * (1 + len(self.calls) / 10_000)
        samples = tuple(seconds * (1 + k / 1000) for k in range(-4, 5))
        error = 0.5 if check else None
        return RunRecord(
            "gemm", kernel.target, {}, samples, "made up", flops=1e6, bytes=1e4, error=error, bound=1.0
        )


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def bench(clock: Clock) -> Iterator[Workbench]:
    made = open_live(functions()["gemm"], with_=SHAPES, sweep=BLOCKS, target="cpu", measure=clock)  # pyright: ignore[reportArgumentType]
    yield made
    made.close()


def threaded(clock: Clock) -> Session:
    subject = Subject(functions()["gemm"], SHAPES, BLOCKS, None, "cpu")  # pyright: ignore[reportArgumentType]
    session = Session(subject, subject.first_wish((), False, False), inline=False, measure=clock)
    session.want()
    assert session.wait(LONG)
    return session


def test_a_headless_sweep_answers_with_its_table_and_the_best_is_loaded(
    bench: Workbench, clock: Clock
) -> None:
    made = bench.sweep()
    assert made.complete
    assert "9 configurations: 5 timed, 3 illegal, 1 failed" in made.table()
    assert made.best is not None
    assert (made.best.config["block_M"], made.best.config["block_N"]) == (64, 64)
    # The controls stand there, and it was not measured again for that.
    assert bench.session.wish.values["block_M"] == 64
    assert clock.calls.count((64, 64)) == 4
    assert len(bench.runs) == 20
    assert {run.error for run in bench.runs} == {0.5}
    assert "(4 runs)" in " ".join(chip.text for chip in bench_state(bench.session.picture, "", "gemm").chips)


def test_more_of_a_complete_sweep_gives_four_more_runs_of_each(bench: Workbench) -> None:
    bench.sweep()
    again = bench.sweep()
    assert {len(row.runs) for row in again.record.of("timed")} == {8}


def test_a_bench_without_a_sweep_says_so(clock: Clock) -> None:
    made = open_live(functions()["gemm"], with_=SHAPES, target="cpu", measure=clock)  # pyright: ignore[reportArgumentType]
    with pytest.raises(OptionError, match="gemm was opened without a sweep"):
        made.sweep()
    assert bench_state(made.session.picture, "", "gemm", live=True).sweep is None
    answer(made, {"kind": "sweep", "on": True})
    assert made.session.sweeper.now is None
    made.close()


def test_what_was_measured_by_hand_counts_and_stands_once_in_the_chart(
    bench: Workbench, clock: Clock
) -> None:
    bench.set(block_M=32, block_N=32, run=True)
    bench.sweep()
    assert clock.calls.count((32, 32)) == 4
    assert len([run for run in bench.runs if (run.config["block_M"], run.config["block_N"]) == (32, 32)]) == 4


def test_the_controls_go_on_beside_a_sweep_which_stops_and_is_taken_up(clock: Clock) -> None:
    session = threaded(clock)
    clock.go.clear()
    session.sweep()
    until(lambda: session.picture.sweep is not None)
    state = bench_state(session.picture, "", "gemm", live=True)
    assert state.sweep is not None
    assert (state.sweep.state, state.sweep.button) == ("running", "Stop sweep")
    # A move is answered while the sweep waits for a run.
    session.want(block_M=128, block_N=64)
    assert session.wait(LONG)
    assert session.picture.wish.values["block_M"] == 128
    assert session.picture.record is not None
    assert session.picture.record.parameters["block_M"] == 128
    answer_of(session, on=False)
    assert session.sweeper.wait(LONG)
    clock.go.set()
    state = bench_state(session.picture, "", "gemm", live=True)
    assert state.sweep is not None
    assert (state.sweep.state, state.sweep.button) == ("stopped", "Go on")
    assert state.sweep.text.startswith("sweep stopped at ")
    answer_of(session, on=True)
    assert session.sweeper.wait(LONG)
    assert session.picture.sweep is not None
    assert session.picture.sweep.state == "done"
    # Every row once: what was there before the stop was not measured again.
    assert sorted(set(clock.calls)) == [(32, 32), (32, 64), (64, 32), (64, 64), (128, 32), (128, 64)]
    assert clock.calls.count((64, 64)) == 4
    session.close()


def answer_of(session: Session, *, on: bool) -> None:
    class Bench:
        knobs = ()

    held = Bench()
    held.session = session  # type: ignore[attr-defined]
    answer(held, {"kind": "sweep", "on": on})  # pyright: ignore[reportArgumentType]


def test_the_best_is_not_loaded_where_a_person_has_moved_meanwhile(clock: Clock) -> None:
    session = threaded(clock)
    clock.go.clear()
    session.sweep()
    session.want(block_M=32, block_N=32)
    assert session.wait(LONG)
    clock.go.set()
    assert session.sweeper.wait(LONG)
    assert session.wait(LONG)
    assert (session.wish.values["block_M"], session.wish.values["block_N"]) == (32, 32)
    session.close()


def test_a_sweep_waits_while_a_position_of_the_controls_is_measured(clock: Clock) -> None:
    session = threaded(clock)
    clock.go.clear()
    session.want(block_M=32, block_N=64, run=True)
    until(lambda: session.picture.status.phase == "measuring")
    session.sweep()
    until(lambda: session.picture.sweep is not None)
    time.sleep(0.2)  # what must not begin would do so in this time
    assert session.picture.sweep.progress.done == 0
    clock.go.set()
    assert session.sweeper.wait(LONG)
    assert clock.calls[0] == (32, 64)
    session.close()


def test_stop_and_close_end_a_sweep(clock: Clock) -> None:
    session = threaded(clock)
    clock.go.clear()
    session.sweep()
    session.stop()
    assert session.sweeper.wait(LONG)
    assert session.picture.sweep is not None
    assert session.picture.sweep.state == "stopped"
    session.sweep()
    session.close()
    assert session.sweeper.wait(LONG)


def test_a_point_of_the_sweep_is_gone_back_to(bench: Workbench, clock: Clock) -> None:
    bench.sweep()
    chart = chart_data(bench.session.picture)
    assert chart is not None
    point = next(p for p in chart.points if p.values == {"block_M": "128", "block_N": "64"})
    calls = len(clock.calls)
    bench.session.restore(point.number)
    assert bench.session.wish.values["block_M"] == 128
    assert bench_state(bench.session.picture, "", "gemm").here == point.number
    assert len(clock.calls) == calls


def test_colours_are_of_decided_differences_alone(bench: Workbench) -> None:
    bench.sweep()
    chart = chart_data(bench.session.picture)
    assert chart is not None
    steps = {(p.values["block_M"], p.values["block_N"]): p.step for p in chart.points}
    # 32 % and 50 % slower stand two steps apart from the fastest; twice the time and more, further.
    assert steps == {("64", "64"): 0, ("64", "32"): 3, ("32", "64"): 3, ("32", "32"): 3, ("128", "64"): 4}
    assert chart.swept == ("block_M", "block_N")
    assert chart.decided
    assert {(r.state, r.values["block_N"]) for r in chart.refused} == {("illegal", "-1"), ("failed", "32")}
    crash = next(r for r in chart.refused if r.state == "failed")
    assert crash.label == "block_M=128 block_N=32"
    assert "signal 11" in crash.why


def test_positions_that_noise_covers_have_the_colour_of_the_fastest(clock: Clock) -> None:
    def same(kernel: Any, **_: Any) -> RunRecord:
        record = clock(functions_kernel, cancel=threading.Event())
        return RunRecord("gemm", kernel.target, {}, record.samples, "made up", flops=1e6, bytes=1e4)

    gemm: Any = functions()["gemm"]
    functions_kernel: Any = gemm(**SHAPES, block_M=64, block_N=64)
    made = open_live(gemm, with_=SHAPES, sweep={"block_M": (32, 64)}, target="cpu", measure=same)  # pyright: ignore[reportArgumentType]
    made.sweep()
    chart = chart_data(made.session.picture)
    assert chart is not None
    assert [p.step for p in chart.points] == [0, 0]
    assert not chart.decided
    assert "within noise of the fastest" in {p.to_best for p in chart.points}
    made.close()


def test_a_move_sends_the_state_without_the_chart(bench: Workbench) -> None:
    bench.sweep()
    picture = bench.session.picture
    state = to_plain(
        bench_state(picture, "tb1", "gemm", bench.session.subject.knobs, live=True, charted=False)
    )
    assert state["chart"] is None
    assert all(not tab["blocks"] for tab in state["tabs"] if tab["name"] == "sweep")
    measured = measured_plain(picture)
    assert len(measured["chart"]["points"]) == 5
    rows = measured["sweep"][1]["table"]["rows"]
    assert len(rows) == 9
    assert [row[-1]["text"].partition(":")[0] for row in rows] == [
        "best",
        "",
        "",
        "",
        "",
        "failed",
        "illegal",
        "illegal",
        "illegal",
    ]


def test_the_axis_is_what_was_moved(bench: Workbench) -> None:
    assert moved_name(bench.session.picture) == ""
    bench.set(block_M=128)
    assert moved_name(bench.session.picture) == "block_M"
    bench.set(block_M=64, block_N=32)
    assert moved_name(bench.session.picture) == ""


def test_a_saved_output_has_the_sweep_as_a_table(bench: Workbench) -> None:
    bench.sweep()
    html = static_html(bench.session.picture)
    assert "9 configurations: 5 timed, 3 illegal, 1 failed" in html
    assert "SIGSEGV" in html
    assert "SIGSEGV" in static_text(bench.session.picture)


def test_a_sweep_of_a_bench_is_a_file_that_opens_anywhere(bench: Workbench, tmp_path: Any) -> None:
    made = bench.sweep()
    read = tilebench.open_sweep(made.save(tmp_path / "gemm.tbz"))
    assert read.table() == made.table()
    assert read.record.best is not None
    assert {stage.name for stage in read.record.best.stages} >= {"tile", "loops", "llvm"}
    # It is a bench without a kernel: the best row's texts, the chart and the table.
    bundle = sweep_bundle(read)
    assert "9 configurations: 5 timed, 3 illegal, 1 failed" in bundle["text/html"]
    state = bench_state(sweep_picture(read), "", "gemm")
    assert state.chart is not None
    assert len(state.chart.points) == 5
    assert state.here == state.chart.leader
    assert [tab.name for tab in state.tabs][:2] == ["chart", "sweep"]
