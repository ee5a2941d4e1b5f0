"""Which benches are open: by cell, not by kernel name; and what is left of one that is closed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import tilebench
from tests.waiting import LONG
from tests.workbench.bench_kernels import functions
from tilebench.workbench import interrupts, live, registry
from tilebench.workbench.parts import line_bundle, static_html
from tilebench.workbench.registry import CellRun, cell_now, close_all, open_benches

SHAPES = {"M": 200, "N": 170, "K": 130}


@pytest.fixture(scope="module")
def space() -> dict[str, Any]:
    return functions()


@pytest.fixture
def cells(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[CellRun]]:
    """The cell that is said to run is the last of the list."""
    close_all()
    running = [CellRun()]
    monkeypatch.setattr(registry, "cell_now", lambda _: running[-1])
    yield running
    close_all()


def opened(space: dict[str, Any], name: str = "gemm") -> live.Workbench:
    values = SHAPES if name == "gemm" else {"N": 1000}
    return tilebench.workbench(space[name], with_=values, target="cuda:sm_80", stages=("tile",))


def test_two_cells_may_show_one_kernel(space: dict[str, Any], cells: list[CellRun]) -> None:
    cells.append(CellRun("a", "1"))
    first = opened(space)
    cells.append(CellRun("b", "2"))
    second = opened(space)
    assert open_benches() == (first, second)
    assert not first.closed
    # Run again, also with a kernel of another name, a cell replaces its own.
    cells.append(CellRun("a", "3"))
    third, fourth = opened(space, "double"), opened(space)
    assert first.closed
    assert open_benches() == (second, third, fourth)


def test_without_cells_the_name_decides(space: dict[str, Any], cells: list[CellRun]) -> None:
    first, other = opened(space), opened(space, "double")
    second = opened(space)
    assert first.closed
    assert open_benches() == (other, second)


def test_there_is_an_end_to_what_deleted_cells_leave(
    space: dict[str, Any], cells: list[CellRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "MOST_OPEN", 2)
    for number in range(4):
        cells.append(CellRun(f"cell {number}", "1"))
        opened(space)
    assert [bench.cell.identity for bench in open_benches()] == ["cell 2", "cell 3"]


def test_a_cell_is_what_the_front_end_says() -> None:
    parent = {"header": {"msg_id": "7"}, "metadata": {"cellId": "abc"}}
    assert cell_now(SimpleNamespace(get_parent=lambda: parent)) == CellRun("abc", "7")
    assert cell_now(SimpleNamespace(get_parent=dict)) == CellRun()
    assert cell_now(None) == CellRun()


def test_what_is_left_of_a_closed_bench(
    space: dict[str, Any], cells: list[CellRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ipywidgets")
    monkeypatch.setattr(live, "is_interactive", lambda: True)
    shown: list[dict[str, Any]] = []

    class Output:
        def update(self, bundle: dict[str, Any], raw: bool) -> None:
            shown.append(bundle)

    first = opened(space)
    assert first.wait(LONG)
    first._view_output = first._static_output = Output()
    assert opened(space) in open_benches()
    line, picture = shown[-2:]
    assert "gemm was opened again. To have controls here, run this cell." in line["text/html"]
    assert "gone with the kernel" not in picture["text/html"]
    assert "T.prim_func" in picture["text/html"]
    assert line_bundle("") == {"text/html": "", "text/plain": ""}


def test_the_static_form_says_why_there_are_no_controls(space: dict[str, Any], cells: list[CellRun]) -> None:
    bench = opened(space)
    html = static_html(bench.session.picture, fallback="tb7")
    assert "gone with the kernel that made them. To have them, run this cell again." in html
    assert '[data-tilebench-fallback="tb7"])>.jp-OutputArea-output.jupyter-widgets:not(:has(*))' in html
    assert "gone with the kernel" not in static_html(bench.session.picture)


class Shell:
    """What `interrupts` asks of a shell in a notebook kernel."""

    def __init__(self, handler: Any = signal.SIG_IGN) -> None:
        self.events = self
        self.callbacks: dict[str, list[Any]] = {"post_run_cell": []}
        self.kernel = SimpleNamespace(saved_sigint_handler=handler)

    def register(self, event: str, function: Any) -> None:
        self.callbacks[event].append(function)

    def unregister(self, event: str, function: Any) -> None:
        self.callbacks[event].remove(function)


def test_the_stop_button_stops_the_benches(
    space: dict[str, Any], cells: list[CellRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = opened(space)
    stopped = threading.Event()
    monkeypatch.setattr(bench.session, "stop", stopped.set)
    shell = Shell()
    interrupts.watch(shell)
    interrupts.watch(shell)
    (after_cell,) = shell.callbacks["post_run_cell"]
    after_cell(SimpleNamespace(error_in_exec=ValueError(), error_before_exec=None))
    assert not stopped.is_set()
    after_cell(SimpleNamespace(error_in_exec=KeyboardInterrupt(), error_before_exec=None))
    assert stopped.is_set()
    stopped.clear()
    shell.kernel.saved_sigint_handler(signal.SIGINT, None)
    assert stopped.wait(LONG)
    interrupts.unwatch(shell)
    assert shell.callbacks["post_run_cell"] == []
    assert shell.kernel.saved_sigint_handler is signal.SIG_IGN
    other = Shell(handler=signal.default_int_handler)
    interrupts.watch(other)
    assert other.kernel.saved_sigint_handler is signal.default_int_handler
    interrupts.watch(SimpleNamespace(events=Shell().events))  # a shell of a terminal


def test_an_interrupt_while_a_bench_opens_leaves_it_stopped_in_its_cell(
    space: dict[str, Any], cells: list[CellRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ipywidgets")
    shown: list[live.Workbench] = []

    def interrupted(*_: Any) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(live, "is_interactive", lambda: True)
    monkeypatch.setattr("tilebench.workbench.session.Session.settle", interrupted)
    monkeypatch.setattr(live.Workbench, "show", lambda bench: shown.append(bench))
    with pytest.raises(KeyboardInterrupt):
        opened(space)
    (bench,) = shown
    assert open_benches() == (bench,)
    assert bench.wait(LONG)
    assert bench.session.picture.status.phase == "cancelled"
    bench.again()
    assert bench.wait(LONG)
    assert bench.session.picture.status.phase == "done"
    assert bench.record is not None
