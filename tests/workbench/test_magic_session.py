"""The session behind a workbench: three tiers, latest wins, illegal positions, stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.waiting import LONG, until
from tests.workbench.bench_kernels import functions
from tilebench import Schedule
from tilebench.errors import ArgumentError, LaunchError, OptionError, ScheduleError
from tilebench.record import RunRecord
from tilebench.runtime.cancel import Cancelled
from tilebench.runtime.latest import Ticket
from tilebench.schedule import parse_schedule
from tilebench.schedule.choices import AS_WRITTEN, choices_schedule
from tilebench.workbench.front.build import status_data
from tilebench.workbench.history import history_rows
from tilebench.workbench.session import Picture, Session
from tilebench.workbench.subject import Subject

SHAPES = {"M": 200, "N": 170, "K": 130}
STAGES = ("tile", "threaded", "cuda", "ptx")


@pytest.fixture(scope="module")
def space() -> dict[str, Any]:
    return functions()


class Measure:
    """Stands in for the measuring child: as long as `hold` is set, it runs until cancelled."""

    def __init__(self) -> None:
        self.hold = threading.Event()
        self.times: list[float] = []
        self.calls: list[dict[str, Any]] = []
        self.cancelled = 0

    def __call__(
        self, kernel: Any, *, cancel: threading.Event, on_progress: Callable[[Any], None], **_: Any
    ) -> RunRecord:
        self.calls.append(dict(kernel.parameters))
        on_progress({"round": 2, "rounds": 5})
        while self.hold.is_set():
            if cancel.wait(0.005):
                self.cancelled += 1
                raise Cancelled("stopped")
        seconds = self.times.pop(0) if self.times else kernel.parameters["block_M"] * 1e-6
        samples = tuple(seconds * (1 + k / 1000) for k in range(-4, 5))
        return RunRecord("gemm", kernel.target, {}, samples=samples, method="fake", flops=1e6, bytes=1e4)


@pytest.fixture
def made(space: dict[str, Any]) -> Iterator[Callable[..., tuple[Session, list[Picture], Measure]]]:
    held: list[Session] = []

    def make(**options: Any) -> tuple[Session, list[Picture], Measure]:
        pictures: list[Picture] = []
        measure = Measure()
        target = options.pop("target", "cuda:sm_80")
        run = options.pop("run", False)
        inline = options.pop("inline", True)
        repeats = options.pop("repeats", 1)
        subject = Subject(space["gemm"], SHAPES, target=target, **options)
        wish = subject.first_wish(STAGES, run, False)
        held.append(
            Session(subject, wish, inline=inline, publish=pictures.append, measure=measure, repeats=repeats)
        )
        return held[-1], pictures, measure

    yield make
    for each in held:
        each.close()


def test_the_tiers_answer_one_after_the_other(made: Any) -> None:
    session, pictures, _ = made()
    session.want()
    first = next(each for each in pictures if each.record is not None)
    assert first.record is not None
    assert [(s.name, s.pending) for s in first.shown_record.stages] == [
        ("tile", False), ("threaded", False), ("cuda", False), ("ptx", True),
    ]  # fmt: skip
    assert first.record.resources is not None
    assert first.record.resources.registers is None
    assert first.record.resources.occupancy is not None  # a bound from threads and shared memory
    assert first.shared_limit == 163 * 1024
    last = session.picture
    assert last.status.phase == "done"
    assert last.record is not None
    assert not any(s.pending for s in last.record.stages)
    assert last.record.resources is not None
    assert last.record.resources.registers
    assert last.record.resources.occupancy is not None
    assert last.record.resources.occupancy <= first.record.resources.occupancy
    assert last.history.moves[-1].state == "done"


def test_an_illegal_position_keeps_the_last_good_picture(made: Any) -> None:
    session, _, _ = made()
    session.want()
    good = session.picture.record
    session.want(block_M=256, block_N=256, block_K=128)
    bad = session.picture
    assert bad.record is good
    assert bad.stale
    assert bad.problem is not None
    assert "A_s 2 stages x 65536 bytes" in bad.problem.explain()
    assert [m.state for m in bad.history] == ["done", "illegal"]
    session.want(block_M=64, block_N=64, block_K=32)
    assert not session.picture.stale
    assert session.picture.problem is None


def test_measured_where_it_can_run_and_said_so(made: Any) -> None:
    session, _, measure = made(run=True)
    session.want()
    session.want(block_M=128)
    assert [call["block_M"] for call in measure.calls] == [64, 128]
    picture = session.picture
    assert [run.target.partition(":")[0] for run in picture.runs] == ["cpu", "cpu"]
    assert picture.runs[1].seconds == pytest.approx(128e-6)
    assert picture.runs[1].config["block_M"] == 128
    assert "cuda:sm_80 cannot run here" in picture.notes[0]
    assert picture.ceilings is not None
    assert [m.run is not None for m in picture.history] == [True, True]


def test_the_latest_wish_wins_and_old_measurements_end(made: Any) -> None:
    session, pictures, measure = made(run=True, inline=False)
    measure.hold.set()
    session.want()
    until(lambda: len(measure.calls) == 1)
    assert str(session.picture.status) == "measuring 2/5"
    assert any(each.status.phase == "measuring" for each in pictures)
    for value in (16, 32, 128, 256):
        session.want(block_M=value)
    until(lambda: len(measure.calls) == 2)
    measure.hold.clear()
    assert session.wait(LONG)
    assert [call["block_M"] for call in measure.calls] == [64, 256]
    assert measure.cancelled == 1
    assert [run.config["block_M"] for run in session.picture.runs] == [256]
    # Cancelled moves leave no rows.
    assert [(m.config["block_M"], m.state) for m in session.picture.history] == [(256, "done")]


def test_stop_ends_a_measurement(made: Any) -> None:
    session, _, measure = made(run=True, inline=False)
    measure.hold.set()
    session.want()
    until(lambda: len(measure.calls) == 1)
    session.stop()
    assert session.wait(LONG)
    assert measure.cancelled == 1
    assert session.picture.status.phase == "cancelled"
    assert [m.state for m in session.picture.history] == ["cancelled"]
    assert not session.picture.runs
    # Whatever is asked for next goes on: the stopped measurement was not answered.
    measure.hold.clear()
    session.want(stages=("tile",))
    assert session.wait(LONG)
    assert len(session.picture.runs) == 1
    assert [m.state for m in session.picture.history] == ["done"]


def test_what_was_stopped_changes_no_picture(made: Any) -> None:
    session, _, _ = made()
    session.want()
    latest = session._latest
    ticket = Ticket(latest, session.wish, latest.generation)
    session.board.show(ticket=ticket, notice="heard")
    ticket.unwanted.set()
    session.board.show(ticket=ticket, notice="not heard", history=lambda moves: moves.left("compiling"))
    assert session.picture.notice == "heard"
    assert [move.state for move in session.picture.history] == ["done"]


def test_an_interrupt_stops_what_is_answered_inline(made: Any) -> None:
    session, _, measure = made(run=True)

    def interrupted(*_: Any, **__: Any) -> RunRecord:
        raise KeyboardInterrupt

    session.answering.measure = interrupted
    with pytest.raises(KeyboardInterrupt):
        session.want()
    assert session.picture.status.phase == "cancelled"
    assert session.picture.problem is None
    assert [m.state for m in session.picture.history] == ["cancelled"]
    session.answering.measure = measure
    session.again()
    assert session.picture.status.phase == "done"
    assert len(session.picture.runs) == 1


def test_only_what_is_asked_for_is_measured_again(made: Any) -> None:
    session, _, measure = made(run=True)
    session.want()
    measure.times = [40.1e-3] * 4  # what a second run on a busy machine would give
    session.want(stages=("tile", "ptx"))
    session.want(stages=("source",))
    assert len(measure.calls) == 1
    assert [s.name for s in session.picture.shown_record.stages] == ["source"]
    session.want(check=True)
    assert session.picture.report.ok
    report = session.picture.report
    assert len(measure.calls) == 1
    (run,) = session.picture.runs
    assert run.seconds == pytest.approx(64e-6)
    assert run.error == report.largest.error  # the check's word belongs to the run that is there
    session.want(check=False)
    session.want(stages=("tile",))
    assert session.picture.report is report
    assert len(session.picture.history) == 1
    # Asked for by name, or by `again`, it is: and the first run stays.
    session.want(run=True)
    session.again()
    assert [r.seconds for r in session.picture.runs] == pytest.approx([64e-6, 40.1e-3, 40.1e-3])
    assert len(session.picture.history) == 1
    session.want(block_M=32)
    assert session.picture.report is None


def test_a_position_gets_its_runs_and_the_first_is_shown_at_once(made: Any) -> None:
    session, pictures, measure = made(run=True, repeats=4)
    measure.times = [10.0e-3, 22.1e-3, 22.9e-3, 11.4e-3]
    said: list[str] = []
    show = session._on_status
    session._latest._on_status = lambda status: (said.append(str(status)), show(status))
    session.want()
    assert [s for s in said if "/" in s] == [f"measuring {done}/20" for done in (2, 7, 12, 17)]
    assert [len(p.runs) for p in pictures][-1] == 4
    (move,) = session.picture.history
    assert [run.seconds for run in move.runs] == pytest.approx([10.0e-3, 22.1e-3, 22.9e-3, 11.4e-3])
    # Back at a position, its runs are all there.
    session.want(block_M=128)
    session.want(block_M=64)
    assert len(session.picture.runs) == 12
    measure.times = [0.2]
    session.want(block_M=32)
    assert len(session.picture.runs) == 13  # a slow one is not run four times unasked
    heads, rows = history_rows(session.picture.history)
    assert [row[heads.index("runs")] for row in rows[::-1]] == [
        "8: 64 us to 23 ms", "4: 128 us", "8: 64 us to 23 ms", "1",
    ]  # fmt: skip


def test_a_check_says_that_it_checks(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    session, pictures, _ = made()
    seen: list[tuple[str, str]] = []

    def check(*_: Any, **__: Any) -> Any:
        picture = session.picture
        time.sleep(0.02)
        assert session._latest.status.elapsed >= 0.02
        seen.append((picture.status.phase, picture.history.moves[-1].state))
        raise LaunchError("the check did not finish")

    monkeypatch.setattr("tilebench.workbench.tiers.check", check)
    session.want(check=True, run=True)
    assert seen == [("checking", "checking")]
    # A check that fails is told, and the measurement is had all the same.
    assert "did not finish" in session.picture.problem.message
    assert len(session.picture.runs) == 1
    checking = status_data(next(p for p in pictures if p.status.phase == "checking"))
    assert checking.text == "checking"
    assert checking.elapsed is not None


def test_wanting_returns_at_once_from_any_thread(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a compilation goes on that ends only after they have returned."""
    session, _, _ = made(run=True, inline=False)
    begun, go_on, make = threading.Event(), threading.Event(), session.subject.make

    def slow(wish: Any) -> Any:
        begun.set()
        assert go_on.wait(LONG)
        return make(wish)

    monkeypatch.setattr(session.subject, "make", slow)
    session.want()
    assert begun.wait(LONG)
    threads = [
        threading.Thread(target=session.want, kwargs={"block_M": value}, daemon=True)
        for value in (16, 32, 64, 128)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join(LONG / 4)
    returned = [not each.is_alive() for each in threads]
    go_on.set()
    assert returned == [True] * 4
    assert session.wait(LONG)
    assert session.picture.wish.values["block_M"] == session.wish.values["block_M"]


def test_schedule_choices_are_knobs(made: Any) -> None:
    session, _, _ = made(sweep={"ko.num_stages": (1, 3), "block_M": (32, 64)})
    session.want()
    knobs = {each.name: each for each in session.subject.knobs}
    assert knobs["ko.num_stages"].values == (AS_WRITTEN, 1, 3)
    assert knobs["block_M"] == session.subject.knobs[0]
    assert knobs["block_M"].values == (32, 64)
    choices = {(c.address, c.name): (c.value, c.origin) for c in session.picture.record.choices}
    assert choices["loop ko", "num_stages"] == ("1", "call")
    session.want(**{"ko.num_stages": AS_WRITTEN})
    choices = {(c.address, c.name): (c.value, c.origin) for c in session.picture.record.choices}
    assert choices["loop ko", "num_stages"] == ("2", "kernel")
    assert {"order", "persistent", "A_s.swizzle", "B_s.swizzle", "C_local.policy"} == {
        k.name for k in session.picture.offered
    }
    session.want(**{"C_local.policy": "full_row"})
    assert session.picture.problem is None


def test_a_schedule_files_parameters_are_where_sliders_start(space: dict[str, Any]) -> None:
    held = parse_schedule('[[schedule]]\nwhen = "M > 100"\nparams = { block_M = 32 }\n')
    subject = Subject(space["gemm"], SHAPES, schedule=held, target="cuda:sm_80")
    assert next(k.value for k in subject.knobs if k.name == "block_M") == 32
    given = Subject(space["gemm"], {**SHAPES, "block_M": 48}, schedule=held, target="cuda:sm_80")
    assert next(k for k in given.knobs if k.name == "block_M").values == (16, 32, 48, 64, 128, 256)


def test_a_knob_of_the_signature_is_a_slider(space: dict[str, Any]) -> None:
    subject = Subject(space["double"], {"N": 1000}, target="cuda:sm_80")
    assert [(k.name, k.values, k.value) for k in subject.knobs] == [("block", (32, 64, 128), 64)]


def test_a_kernel_has_fixed_parameters(space: dict[str, Any]) -> None:
    kernel = space["gemm"].using(target="cuda:sm_80")(64, 64, 64)
    subject = Subject(kernel)
    session = Session(subject, subject.first_wish(("tile",), False, False))
    session.want(target="cuda:sm_90a")
    assert session.picture.record is not None
    assert session.picture.record.target == "cuda:sm_90a"
    with pytest.raises(ArgumentError, match="are fixed"):
        Subject(kernel, {"M": 3})
    with pytest.raises(ArgumentError, match="shows a kernel"):
        Subject(3)  # type: ignore[arg-type]


def test_what_there_is_not(made: Any) -> None:
    session, _, _ = made()
    with pytest.raises(OptionError, match="did you mean block_M"):
        session.want(blok_M=3)
    with pytest.raises(OptionError, match=r"did you mean NAME\.num_stages"):
        choices_schedule({"ko.num_stage": 3})
    with pytest.raises(ScheduleError, match="a whole number"):
        choices_schedule({"threads": "many"})
    assert (
        choices_schedule({"threads": 256, "ko.num_stages": 3}).key
        == Schedule.of(threads=256, loop={"ko": {"num_stages": 3}}).key
    )


def test_a_check_runs_in_the_child_and_its_error_stands_in_the_run(space: dict[str, Any]) -> None:
    subject = Subject(space["gemm"], SHAPES, target="cpu")
    session = Session(subject, subject.first_wish(("tile",), True, True), measure=Measure())
    session.want()
    picture = session.picture
    assert picture.problem is None
    assert picture.report.ok
    (output,) = picture.report.outputs
    assert (output.name, output.checked) == ("C", 200 * 170)
    assert picture.runs[0].error == output.error > 0
    assert picture.runs[0].bound == output.bound
    session.want(run=False, check=True, block_M=32)
    assert session.picture.report is not picture.report
    assert session.picture.report.ok
