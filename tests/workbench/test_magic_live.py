"""The workbench with its widgets: what controls do, what is sent, and that nothing is left behind."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import json
import os
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tilebench
from tests.waiting import LONG
from tests.workbench.bench_kernels import functions
from tilebench.record import RunRecord
from tilebench.workbench import live
from tilebench.workbench.live import Workbench
from tilebench.workbench.packed import unpack
from tilebench.workbench.registry import close_all, open_benches

widgets = pytest.importorskip("anywidget")
SHAPES = {"M": 200, "N": 170, "K": 130}
# What one workbench may send for its state: the JSON of all its models, of which its script is two thirds.
MOST_STATE = 270_000


@pytest.fixture(scope="module")
def space() -> dict[str, Any]:
    return functions()


@pytest.fixture
def interactive(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(live, "is_interactive", lambda: True)
    yield
    close_all()


def models() -> dict[str, Any]:
    """Every widget model that is alive."""
    from ipywidgets.widgets import widget

    return dict(widget._instances)


def children() -> set[int]:
    """The processes that this one has started and that are alive; nothing where there is no /proc."""
    found: set[int] = set()
    for each in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = each.read_text().rpartition(")")[2].split()
            if int(fields[1]) == os.getpid() and fields[0] != "Z":
                found.add(int(each.parent.name))
    return found


def opened(space: dict[str, Any], **options: Any) -> Workbench:
    options = {"with_": SHAPES, "target": "cuda:sm_90a", "stages": ("tile", "laid_out", "cuda"), **options}
    bench = tilebench.workbench(space["gemm"], **options)
    assert bench.wait(LONG)
    return bench


def test_the_package_is_also_the_function(space: dict[str, Any]) -> None:
    import tilebench.workbench.bundle as bundle

    assert tilebench.workbench.bundle is bundle
    bench = tilebench.workbench(space["gemm"], with_=SHAPES, target="cuda:sm_80", sweep={"block_M": [32, 64]})
    assert bench.record is not None
    assert bench.set(block_M=32).record.parameters["block_M"] == 32
    shown = bench._repr_mimebundle_()
    assert "gemm" in shown["text/plain"]
    assert bench.freeze().closed
    assert bench.record is not None  # data stays
    assert "block_M" in repr(bench)


def said(bench: Workbench, **message: Any) -> None:
    """A message as a browser sends it; returns when it is answered."""
    bench._view.widget._handle_custom_msg(message, [])
    assert bench.wait(LONG)


def state(bench: Workbench) -> dict[str, Any]:
    """What the browser was told last, by name; controls and tabs by their names too."""
    found = {**bench._view.widget.state, "chart": bench._view.widget.measured["chart"]}
    for name in ("controls", "tabs"):
        found[name] = {each["name"]: each for each in found[name]}
    return found


def sent(bench: Workbench) -> dict[str, Any]:
    """The record that the browser was sent last."""
    return unpack(bench._view.widget.record)["record"]


def test_a_slider_moves_the_picture(space: dict[str, Any], interactive: None) -> None:
    bench = opened(space, sweep={"block_M": [32, 64, 128]})
    knob = state(bench)["controls"]["block_M"]
    assert (knob["labels"], knob["index"], knob["kind"]) == (["32", "64", "128"], 1, "knob")
    assert sent(bench)["parameters"]["block_M"] == 64
    said(bench, kind="set", name="block_M", index=2)
    assert bench.record is not None
    assert bench.record.parameters["block_M"] == 128
    assert sent(bench)["parameters"]["block_M"] == 128
    now = state(bench)
    assert now["controls"]["block_M"]["index"] == 2
    assert (now["status"]["text"], now["target"]) == ("up to date", "cuda:sm_90a")
    assert any("registers" in chip["text"] for chip in now["chips"])
    assert "resources" in now["tabs"]


def test_what_a_page_of_another_version_says_is_dropped(space: dict[str, Any], interactive: None) -> None:
    bench = opened(space, sweep={"block_M": [32, 64]})
    before = bench.session.wish
    for message in (
        {"kind": "set", "name": "gone", "index": 0}, {"kind": "set", "name": "block_M", "index": 9},
        {"kind": "set", "name": "block_M", "index": None}, {"kind": "toggle", "name": "explode", "on": True},
        {"kind": "restore", "number": 77}, {"kind": "restore"}, {"kind": "another"}, {},
    ):  # fmt: skip
        said(bench, **message)
    assert bench.session.wish == before
    bench._view.widget._handle_custom_msg("text", [])
    assert bench.error is None


def test_a_program_and_the_browser_see_the_same_position(space: dict[str, Any], interactive: None) -> None:
    bench = opened(space, sweep={"block_M": [32, 64]})
    bench.set(block_M=48).wait(LONG)
    knob = state(bench)["controls"]["block_M"]
    assert (knob["labels"], knob["index"]) == (["32", "64", "48"], 2)
    said(bench, kind="set", name="block_M", index=0)
    assert bench.session.wish.values["block_M"] == 32
    name = next(key for key, each in state(bench)["controls"].items() if each["kind"] == "choice")
    assert state(bench)["controls"][name]["labels"][0] == "as written"
    said(bench, kind="set", name=name, index=1)
    assert bench.session.wish.choices[name] is not None
    said(bench, kind="set", name=name, index=0)
    assert name not in bench.session.wish.choices


def test_an_illegal_position_is_shown_over_the_last_good_one(
    space: dict[str, Any], interactive: None
) -> None:
    bench = opened(space)
    bench.set(block_M=256, block_N=256, block_K=128)
    assert bench.wait(LONG)
    now = state(bench)
    assert "the shared memory of main is larger" in now["problem"]["what"]
    assert "the last good picture, of block_M=64" in now["stale"]
    assert now["status"]["text"] == "refused"
    bench.set(block_M=64, block_N=64, block_K=32)
    assert bench.wait(LONG)
    assert state(bench)["problem"] is None
    assert state(bench)["stale"] == ""


def test_another_target_has_other_stages(space: dict[str, Any], interactive: None) -> None:
    bench = opened(space)
    said(bench, kind="target", text="cpu")
    assert bench.record is not None
    now = state(bench)
    assert now["shown"] == ["tile", "loops", "llvm"]
    assert now["stages"] == ["source", "tile", "scheduled", "bounded", "loops", "llvm", "asm"]
    assert "laid_out is a stage of cuda: on cpu its usual stages stand in for it" in now["notes"]
    # What is made is there to be shown without asking anybody.
    made = [s.name for s in bench.record.stages if not s.pending]
    assert made == ["source", "tile", "scheduled", "bounded", "loops", "llvm", "asm"]
    said(bench, kind="stages", names=["tile", "asm"])
    assert state(bench)["shown"] == ["tile", "asm"]
    assert bench.record.stage("asm").text


def test_going_back_to_a_point_of_the_chart(
    space: dict[str, Any], interactive: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(kernel: Any, **_: Any) -> RunRecord:
        return RunRecord(kernel.name, kernel.target, {}, samples=(1e-3,) * 9, flops=1e6, bytes=1e6)

    bench = live.open_live(
        space["gemm"], with_=SHAPES, target="cpu", stages=("tile",), sweep={"block_M": [32, 64]}, run=True,
        measure=measure,
    )  # fmt: skip
    assert bench.wait(LONG)
    said(bench, kind="set", name="block_M", index=0)
    points = state(bench)["chart"]["points"]
    assert [p["values"]["block_M"] for p in points] == ["64", "32"]
    assert state(bench)["here"] == points[1]["number"]
    runs = len(bench.runs)
    said(bench, kind="restore", number=points[0]["number"])
    assert bench.session.wish.values["block_M"] == 64
    assert state(bench)["here"] == points[0]["number"]
    assert len(bench.runs) >= runs  # none is lost


def test_the_state_is_small(space: dict[str, Any], interactive: None) -> None:
    before = set(models())
    bench = opened(space, stages=("source", "tile", "laid_out", "threaded", "cuda", "ptx", "sass"))
    mine = [each for key, each in models().items() if key not in before]
    size = sum(len(json.dumps(each.get_state(), default=str)) for each in mine)
    assert bench.closed is False
    assert size < MOST_STATE, size


def test_fifty_reruns_leave_nothing(space: dict[str, Any], interactive: None) -> None:
    opened(space, stages=("tile",)).close()
    gc.collect()
    children_before = children()
    models_before = len(models())
    threads_before = threading.active_count()
    refs: list[weakref.ref[Any]] = []
    for _ in range(50):
        bench = tilebench.workbench(space["gemm"], with_=SHAPES, target="cuda:sm_90a", stages=("tile",))
        refs.append(weakref.ref(bench._view.widget))
        refs.append(weakref.ref(bench))
    assert open_benches() == (bench,)
    del bench
    close_all()
    gc.collect()
    assert len(models()) == models_before
    assert threading.active_count() == threads_before
    assert children() == children_before
    assert [each() for each in refs if each() is not None] == []


def test_without_anywidget_there_are_no_controls(monkeypatch: pytest.MonkeyPatch) -> None:
    class Kernel:
        _allow_stdin = True

    class Shell:
        kernel = Kernel()

    monkeypatch.delenv("TILEBENCH_HEADLESS", raising=False)
    monkeypatch.setattr(live, "shell_now", Shell)
    assert live.is_interactive()
    find = importlib.util.find_spec
    monkeypatch.setattr(
        live.importlib.util, "find_spec", lambda name: None if name == "anywidget" else find(name)
    )
    assert not live.is_interactive()
