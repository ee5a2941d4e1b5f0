"""A bench never gets in the way: what is looked at is not measured, what is passed by leaves nothing."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import LONG, until
from tests.workbench.bench_kernels import functions
from tests.workbench.test_magic_session import Measure
from tilebench.workbench import live
from tilebench.workbench.history import MoveHistory
from tilebench.workbench.live import Workbench
from tilebench.workbench.registry import close_all

pytest.importorskip("anywidget")
SHAPES = {"M": 200, "N": 170, "K": 130}


@pytest.fixture(scope="module")
def space() -> dict[str, Any]:
    return functions()


@pytest.fixture
def interactive(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(live, "is_interactive", lambda: True)
    yield
    close_all()


def opened(space: dict[str, Any], measure: Measure | None = None, **options: Any) -> Workbench:
    options = {"with_": SHAPES, "target": "cuda:sm_80", "stages": ("tile", "cuda"), **options}
    return live.open_live(space["gemm"], measure=measure, **options)


def sent(bench: Workbench) -> list[list[str]]:
    """What is sent from now on: the names of a message's parts."""
    out: list[list[str]] = []
    widget = bench._view.widget
    send = widget.send_state

    def noted(key: Any = None) -> None:
        if widget._holding_sync:  # it is asked again when the parts are together
            send(key=key)
            return
        out.append([key] if isinstance(key, str) else sorted(key or widget.keys))
        send(key=key)

    widget.send_state = noted
    return out


def test_while_work_runs_only_its_status_is_sent(space: dict[str, Any], interactive: None) -> None:
    measure = Measure()
    bench = opened(space, measure, run=True)
    assert bench.wait(LONG)
    messages = sent(bench)
    measure.hold.set()
    bench.again()
    # What the child says within a tenth of a second of the phase's beginning waits for its next word.
    until(lambda: bench._view.widget.status.get("text", "").startswith("measuring"))
    # The row of this position is at work again, which its table says; that is all.
    assert messages.count(["state", "status"]) <= 1
    assert ["status"] in messages
    measure.hold.clear()
    assert bench.wait(LONG)
    assert bench._view.widget.status["text"] == "up to date"
    assert bench._view.widget.state["status"]["text"] == "up to date"
    assert not any("record" in each for each in messages)  # nothing was compiled anew


def test_a_move_sends_nothing_to_draw_before_something_has_come_of_it(
    space: dict[str, Any], interactive: None
) -> None:
    """The list of moves has another row at once; to draw that would stand in the way of the text."""
    bench = opened(space)
    assert bench.wait(LONG)
    messages = sent(bench)
    bench.set(block_M=32)
    assert bench.wait(LONG)
    drawn = [each for each in messages if each != ["status"]]
    assert {"record", "state"} <= set(drawn[0])
    assert bench._view.widget.state["position"].startswith("gemm M=200 N=170 K=130 block_M=32 ")


def test_the_first_step_of_a_hand_is_answered_at_once(space: dict[str, Any], interactive: None) -> None:
    bench = opened(space)
    assert bench.wait(LONG)
    time.sleep(0.3)
    latest = bench.session._latest
    began = threading.Event()
    handler = latest._handler
    latest._handler = lambda wish, ticket: (began.set(), handler(wish, ticket))[-1]
    latest._debounce = 2 * LONG  # what waits for another move does not come
    bench.set(block_M=32)
    assert began.wait(LONG)
    assert bench.wait(LONG)


def test_what_a_slider_passes_by_leaves_no_row_and_no_program(
    space: dict[str, Any], interactive: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    disassembled: list[int] = []
    from tilebench.workbench import tiers

    compiled = tiers.compiled
    waiting, go_on = threading.Event(), threading.Event()

    def slow(kernel: Any, shown: Any) -> Any:
        if kernel.parameters["block_M"] == 32:
            waiting.set()
            assert go_on.wait(LONG)
        return compiled(kernel, shown)

    monkeypatch.setattr(tiers, "compiled", slow)
    monkeypatch.setattr(
        tiers,
        "begin_later",
        lambda kernel, _: disassembled.append(kernel.parameters["block_M"]) or False,
    )
    bench = opened(space, stages=("tile", "cuda", "sass"))
    assert bench.wait(LONG)
    time.sleep(0.3)
    bench.set(block_M=32)
    assert waiting.wait(LONG)
    for value in (48, 96, 128):
        bench.set(block_M=value)
    go_on.set()
    assert bench.wait(LONG)
    assert disassembled == [64, 128]
    assert [(move.config["block_M"], move.state) for move in bench.history] == [(64, "done"), (128, "done")]


def test_a_stopped_position_stays_while_it_is_the_one_of_now(
    space: dict[str, Any], interactive: None
) -> None:
    measure = Measure()
    bench = opened(space, measure, run=True)
    assert bench.wait(LONG)
    measure.hold.set()
    bench.set(block_M=128)
    until(lambda: len(measure.calls) == 5)
    bench.stop()
    assert bench.wait(LONG)
    assert [(m.config["block_M"], m.state) for m in bench.history] == [(64, "done"), (128, "cancelled")]
    measure.hold.clear()
    bench.set(block_M=32)
    assert bench.wait(LONG)
    assert [(m.config["block_M"], m.state) for m in bench.history] == [(64, "done"), (32, "done")]
    assert MoveHistory().passed() == MoveHistory()


def test_controls_that_change_nothing_on_a_target_are_not_shown(
    space: dict[str, Any], interactive: None
) -> None:
    bench = opened(space, target="cuda:sm_80", stages=("tile",))
    assert bench.wait(LONG)
    shown = [each["name"] for each in bench._view.widget.state["controls"]]
    assert {"num_stages", "threads", "order", "A_s.swizzle", "C_local.policy"} <= set(shown)
    assert bench._view.widget.state["idle"] == ""
    bench.set(target="cpu")
    assert bench.wait(LONG)
    assert [each["name"] for each in bench._view.widget.state["controls"]] == [
        "block_M",
        "block_N",
        "block_K",
    ]
    said = bench._view.widget.state["idle"]
    assert (
        said == "on cpu num_stages, threads, order, persistent, A_s.swizzle, B_s.swizzle and C_local.policy "
        "change nothing"
    )
    bench.set(target="cuda:sm_90a")
    assert bench.wait(LONG)
    assert [each["name"] for each in bench._view.widget.state["controls"]] == shown


def test_targets_that_are_not_here_do_not_time_the_processor_again(
    space: dict[str, Any], interactive: None
) -> None:
    measure = Measure()
    bench = opened(space, measure, run=True, check=True)
    assert bench.wait(LONG)
    report = bench.report
    assert len(measure.calls) == 4
    for target in ("cuda:sm_90a", "cuda:sm_80"):
        bench.set(target=target)
        assert bench.wait(LONG)
        assert bench.error is None
        assert len(measure.calls) == 4
        assert bench.report is report
        assert f"{target} cannot run here" in bench.session.picture.notes[0]
        assert "64.0 us on cpu" in " ".join(chip["text"] for chip in bench._view.widget.state["chips"])
    # Another position is another question, also with another target, and so is the same one asked again.
    bench.set(block_M=32, target="cuda:sm_90a")
    assert bench.wait(LONG)
    assert len(measure.calls) == 8
    assert [run.config["block_M"] for run in bench.runs].count(32) == 4
    bench.set(target="cuda:sm_80")
    assert bench.wait(LONG)
    assert {run.seconds for run in bench.runs if run.config["block_M"] == 32} == {32e-6}
    bench.set(target="cpu")
    assert bench.wait(LONG)
    assert {run.seconds for run in bench.runs if run.config["block_M"] == 32} == {32e-6}
    bench.set(target="cuda:sm_90a")
    bench.again()
    assert bench.wait(LONG)
    assert len(measure.calls) > 8


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_nothing_grows_over_a_hundred_reruns(space: dict[str, Any], interactive: None) -> None:
    def rerun(count: int) -> tuple[int, int, int]:
        for number in range(count):
            bench = opened(space, stages=("tile",), sweep={"block_M": [32, 64]})
            bench.set(block_M=(32, 64)[number % 2])
        close_all()
        gc.collect()
        return threading.active_count(), len(os.listdir("/proc/self/fd")), resident()

    rerun(30)  # what is made once, and what caches keep of one kernel
    threads, files, memory = rerun(5)
    now = rerun(100)
    assert now[0] <= threads
    assert now[1] <= files + 2
    assert now[2] - memory < 30e6, f"{(now[2] - memory) / 1e6:.0f} MB more"
