"""The workbench with its widgets: what controls do, what is sent, and that nothing is left behind."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tilebench
from tests.workbench.bench_kernels import functions
from tilebench.workbench import live
from tilebench.workbench.controls import all_below
from tilebench.workbench.live import Workbench
from tilebench.workbench.registry import close_all, open_benches

widgets = pytest.importorskip("ipywidgets")
SHAPES = {"M": 200, "N": 170, "K": 130}
# What one workbench may send for its state: the JSON of all its models.
MOST_STATE = 200_000


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
    assert bench.wait(30)
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


def test_a_slider_moves_the_picture(space: dict[str, Any], interactive: None) -> None:
    bench = opened(space, sweep={"block_M": [32, 64, 128]})
    controls, view = bench._controls, bench._view.widget
    slider = next(w for w in all_below(bench._box) if getattr(w, "description", "") == "block_M")
    assert [each[-1] for each in slider.options] == [32, 64, 128]
    assert slider.continuous_update is False
    before = view.stages
    slider.value = 128
    assert bench.wait(30)
    assert bench.record is not None
    assert bench.record.parameters["block_M"] == 128
    assert view.stages != before
    assert "block_M=128" in view.stages
    assert "up to date" in view.status
    assert "registers" in view.details
    assert controls.target.value == "cuda:sm_90a"


def test_an_illegal_position_is_shown_over_the_last_good_one(
    space: dict[str, Any], interactive: None
) -> None:
    bench = opened(space)
    view = bench._view.widget
    bench.set(block_M=256, block_N=256, block_K=128)
    assert bench.wait(30)
    assert "the shared memory of main is larger" in view.problem
    assert "the last good picture" in view.stages
    assert "refused" in view.status
    bench.set(block_M=64, block_N=64, block_K=32)
    assert bench.wait(30)
    assert view.problem == ""
    assert "the last good picture" not in view.stages


def test_another_target_has_other_stages(space: dict[str, Any], interactive: None) -> None:
    bench = opened(space)
    bench._controls.target.value = "cpu"
    assert bench.wait(30)
    assert bench.record is not None
    assert [s.name for s in bench.record.stages] == ["tile", "loops", "llvm"]
    assert "laid_out is a stage of cuda: on cpu its usual stages stand in for it" in bench._view.widget.status
    names = [w.description for w in bench._controls._stage_row.children[1:]]
    assert names == ["source", "tile", "scheduled", "bounded", "loops", "llvm", "asm"]
    bench._controls._stages["bounded"].value = True
    assert bench.wait(30)
    assert [s.name for s in bench.record.stages] == ["tile", "bounded", "loops", "llvm"]


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


def test_without_anywidget_plain_html_shows_the_same(
    space: dict[str, Any], interactive: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tilebench.workbench import view

    find = view.importlib.util.find_spec
    monkeypatch.setattr(
        view.importlib.util, "find_spec", lambda name: None if name == "anywidget" else find(name)
    )
    before = len(models())
    bench = opened(space)
    assert "block_M=64" in bench._view._plain.places["stages"].value
    bench.set(block_M=128)
    assert bench.wait(30)
    assert "block_M=128" in bench._view._plain.places["stages"].value
    bench.close()
    assert len(models()) == before
