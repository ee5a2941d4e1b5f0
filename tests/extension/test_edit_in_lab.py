"""Editing a stage and saving in a real JupyterLab: its keys belong to the editor while it has the focus."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.extension.lab import browser_page, lab_server, open_notebook, run_all, write_notebook
from tests.extension.test_live_bench import CELL, settled

pytestmark = [pytest.mark.browser, pytest.mark.slow]

# Shown in one cell and frozen in the next, in front of the bench that stays.
FROZEN = """\
%%tile --with M=512 N=512 K=256 --target cuda:sm_80
"""
FREEZE = "tilebench.workbench.registry.open_benches()[0].freeze()"

COUNTS = """window.jupyterapp.shell.currentWidget.content.widgets
    .map(cell => cell.model.type === 'code' ? cell.model.executionCount : null)"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notebooks")


@pytest.fixture(scope="module")
def page(chromium: str, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    head = "import tilebench, tilebench.language as T, tilebench.workbench.registry\n%load_ext tilebench"
    cells = [head, FROZEN + CELL.partition("\n")[2], FREEZE, CELL]
    write_notebook(root / "bench.ipynb", cells)
    with lab_server(root, tmp_path_factory.mktemp("home")) as address, browser_page(chromium) as opened:
        opened.set_viewport_size({"width": 1600, "height": 1000})
        open_notebook(opened, address, "bench.ipynb")
        run_all(opened)
        opened.locator(".tbx .tbx-row").first.wait_for()
        settled(opened)
        yield opened


def test_what_is_typed_is_the_editor_s_and_ctrl_enter_runs_no_cell(page: Any) -> None:
    counts = page.evaluate(COUNTS)
    pane = page.locator(".jp-OutputArea .tbx").last.locator("[data-stage=cuda]")
    pane.locator(".tbx-row").first.click()
    page.keyboard.press("e")
    area = pane.locator("textarea")
    area.wait_for()
    area.press("Control+End")
    # Commands of a notebook, each of them: cells above and below, deleting one, undoing that, lines, save.
    page.keyboard.type("// a b dd z l x 00")
    assert area.input_value().endswith("// a b dd z l x 00")
    page.keyboard.press("Control+Enter")
    page.locator(".tbx-chips", has_text="cuda edited").wait_for()
    settled(page)
    assert page.evaluate(COUNTS) == counts
    assert area.evaluate("area => document.activeElement === area")
    page.keyboard.press("Escape")
    area.wait_for(state="detached")
    pane.locator(".tbx-code").press("End")
    pane.locator(".tbx-row", has_text="// a b dd z l x 00").wait_for()
    page.get_by_role("combobox", name="edited texts").select_option("")
    page.wait_for_function(
        "!document.querySelector('.tbx-chips').innerText.includes('edited')", timeout=60_000
    )


def test_the_menu_saves_beside_the_notebook(page: Any, root: Path) -> None:
    page.locator(".tbx").get_by_role("button", name="Save").click()
    page.locator(".tbx").get_by_role("button", name="Kernel + schedule").click()
    page.locator(".tbx-said", has_text="Saved gemm.py and gemm.toml in").wait_for()
    assert "def gemm(M, N, K" in (root / "gemm.py").read_text()
    assert "It stands by its stage" not in (root / "gemm.py").read_text()
    assert "block_M = 64" in (root / "gemm.toml").read_text()


def test_a_frozen_bench_leaves_a_small_picture_and_no_widget(page: Any, root: Path) -> None:
    page.evaluate("window.jupyterapp.commands.execute('docmanager:save').then(() => 0)")
    saved = nbformat.read(root / "bench.ipynb", 4)
    outputs = saved.cells[1].outputs
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    assert "application/vnd.jupyter.widget-view+json" not in kinds
    assert any("gemm" in output["data"].get("text/html", "") for output in outputs)
    assert len(json.dumps(outputs)) < 120_000
    # The live one beside it has its widget, and its static form for readers without a kernel.
    assert "application/vnd.jupyter.widget-view+json" in {
        kind for output in saved.cells[3].outputs for kind in output.get("data", {})
    }


def test_nothing_went_wrong_in_the_console(page: Any) -> None:
    assert page.console_errors == []
