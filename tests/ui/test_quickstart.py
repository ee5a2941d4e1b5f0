"""The quickstart in a real JupyterLab: it runs, a slider moved by keyboard changes stages and chart."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.extension.lab import RAN_ALL, browser_page, lab_server, open_notebook

pytest.importorskip("playwright")
ROOT = Path(__file__).resolve().parent.parent.parent
# TILEBENCH_... variables belong to the package; this one is the tests' own.
SHOTS = os.environ.get("SCREENSHOTS", "")
pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def page(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The quickstart, run from the top."""
    root = tmp_path_factory.mktemp("work")
    shutil.copy(ROOT / "notebooks" / "quickstart.ipynb", root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.delenv("TILEBENCH_VERIFY", raising=False)
        with lab_server(root, tmp_path_factory.mktemp("home")) as address, browser_page(chromium) as opened:
            opened.set_default_timeout(60_000)
            open_notebook(opened, address, "quickstart.ipynb")
            opened.root = root
            opened.evaluate("void window.jupyterapp.commands.execute('application:toggle-left-area')")
            opened.evaluate("void window.jupyterapp.commands.execute('notebook:run-all-cells')")
            opened.wait_for_function(RAN_ALL, timeout=120_000)
            yield opened


def gemm_cell(page: Any) -> Any:
    """The cell with the sliders of the GEMM, in view."""
    cell = page.locator(".jp-Cell:has(.part-stages):has-text('T.Pipelined')").first
    cell.scroll_into_view_if_needed()
    cell.locator(".part-status:has-text('up to date')").wait_for()
    return cell


def slider(cell: Any, name: str) -> Any:
    """The handle that the keyboard moves."""
    return cell.locator(f".widget-hslider:has(label:text-is('{name}')) .noUi-handle").first


def shot(cell: Any, name: str) -> None:
    if SHOTS:
        cell.screenshot(path=str(Path(SHOTS) / f"{name}.png"))


def test_no_cell_failed(page: Any) -> None:
    failed = page.evaluate(
        """window.jupyterapp.shell.currentWidget.content.widgets
            .filter(cell => cell.model.type === 'code')
            .flatMap(cell => cell.model.outputs.toJSON()).filter(out => out.output_type === 'error')
            .map(out => out.evalue)"""
    )
    assert failed == []
    assert page.console_errors == []


def test_a_slider_moved_by_keyboard_changes_stages_figures_and_chart(page: Any) -> None:
    cell = gemm_cell(page)
    stages, chart, chips = (cell.locator(f".part-{name}") for name in ("stages", "chart", "status"))
    before = [each.text_content() for each in (stages, chart, chips)]
    assert "block_M=64" in before[0]
    assert chart.locator("svg").count() == 1
    shot(cell, "before")
    handle = slider(cell, "block_M")
    handle.focus()
    page.keyboard.press("ArrowRight")
    cell.locator(".part-stages .hd:has-text('block_M=128')").wait_for(timeout=10_000)
    assert "A_s = T.alloc_shared((128, 32), T.float16)" in stages.text_content()
    cell.locator(".part-chart svg:has-text('block_M=128')").wait_for(timeout=30_000)
    after = [each.text_content() for each in (stages, chart, chips)]
    assert all(a != b for a, b in zip(before, after, strict=True))
    assert cell.locator(".part-history tbody tr").count() == 2
    shot(cell, "after")
    assert page.evaluate("document.activeElement.classList.contains('noUi-handle')"), (
        "the slider keeps the focus"
    )


def test_what_a_reader_folded_and_scrolled_stays(page: Any) -> None:
    cell = gemm_cell(page)
    pane = cell.locator("details[id$='-tile']")
    pane.locator("summary").click()
    assert pane.evaluate("each => each.open") is False
    code = cell.locator("details[id$='-laid_out'] .code")
    code.evaluate("each => { each.scrollTop = 40 }")
    top = code.evaluate("each => each.scrollTop")
    slider(cell, "block_N").focus()
    page.keyboard.press("ArrowRight")
    cell.locator(".part-stages .hd:has-text('block_N=128')").wait_for()
    assert pane.evaluate("each => each.open") is False
    assert code.evaluate("each => each.scrollTop") == top
    pane.locator("summary").click()


def test_a_position_that_does_not_fit_says_why_over_the_last_picture(page: Any) -> None:
    cell = gemm_cell(page)
    for name in ("block_K", "num_stages"):
        slider(cell, name).focus()
        for _ in range(4):
            page.keyboard.press("ArrowRight")
    problem = cell.locator(".part-problem .err")
    problem.wait_for()
    assert "together 262144" in problem.text_content()
    assert "Below: the last good picture" in cell.locator(".part-stages").text_content()
    shot(cell, "refused")
    slider(cell, "num_stages").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    problem.wait_for(state="detached")


def test_running_the_cell_again_replaces_its_workbench(page: Any) -> None:
    cell = gemm_cell(page)
    cell.locator(".jp-InputArea-editor").click()
    old = cell.locator(".part-stages details").first.get_attribute("id")
    page.evaluate("void window.jupyterapp.commands.execute('notebook:run-cell')")
    page.wait_for_function(
        "old => document.querySelector(`[id='${old}']`) === null",
        arg=old,
    )
    cell.locator(".part-status:has-text('up to date')").wait_for()
    assert cell.locator(".part-stages").count() == 1
    assert cell.locator(".tilebench-controls").count() == 1
    assert "block_M=64 " in cell.locator(".part-stages .hd").text_content()
    assert cell.locator("[data-tilebench-fallback]").count() == 1
    assert page.console_errors == []
    slider(cell, "block_N").focus()
    page.keyboard.press("ArrowRight")
    cell.locator(".part-stages .hd:has-text('block_N=128')").wait_for()


def test_the_saved_notebook_shows_the_last_picture_without_widgets(page: Any) -> None:
    gemm_cell(page)
    page.evaluate("window.jupyterapp.commands.execute('docmanager:save').then(() => 0)")
    path: Path = page.root / "quickstart.ipynb"
    text = path.read_text(encoding="utf-8")
    assert len(text) < 400_000
    assert "data-tilebench-fallback" in text
    assert "block_N=128" in text
    # The static form is in the page, and hidden while the controls are there.
    assert page.locator("[data-tilebench-fallback]").first.is_visible() is False
