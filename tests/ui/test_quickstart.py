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
            open_notebook(opened, address, "quickstart.ipynb")
            opened.root = root
            opened.evaluate("void window.jupyterapp.commands.execute('application:toggle-left-area')")
            opened.evaluate("void window.jupyterapp.commands.execute('notebook:run-all-cells')")
            opened.wait_for_function(RAN_ALL, timeout=180_000)
            yield opened


def gemm_cell(page: Any) -> Any:
    """The cell with the sliders of the GEMM, in view."""
    cell = page.locator(".jp-Cell:has(.tbx):has-text('T.Pipelined')").first
    cell.scroll_into_view_if_needed()
    cell.locator(".tbx-status:has-text('up to date')").wait_for()
    return cell


def slider(cell: Any, name: str) -> Any:
    """The control that the keyboard moves."""
    return cell.get_by_label(name, exact=True)


def text_of(cell: Any, stage: str) -> str:
    """The rows of a pane that are drawn."""
    return cell.locator(f"[data-stage={stage}] .tbx-sheet").text_content()


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
    before = [text_of(cell, "tile"), cell.locator(".tbx-chips").text_content()]
    assert "(64,32),T.float16)" in "".join(before[0].split())
    assert cell.locator(".tbx-plot .tbx-point").count() == 1
    shot(cell, "before")
    slider(cell, "block_M").focus()
    page.keyboard.press("ArrowRight")
    cell.locator("[data-stage=tile] .tbx-row:has-text('128, 32)')").wait_for()
    cell.locator(".tbx-plot .tbx-point").nth(1).wait_for()
    gemm_cell(page)
    assert cell.locator(".tbx-chips").text_content() != before[1]
    assert cell.get_by_role("tab", name="Moves").inner_text().endswith("2")
    assert cell.locator(".tbx-spark").count() == 1
    shot(cell, "after")
    assert page.evaluate("document.activeElement.type") == "range", "the slider keeps the focus"


def test_what_a_reader_closed_and_scrolled_stays(page: Any) -> None:
    cell = gemm_cell(page)
    cell.locator("[data-stage=tile] .tbx-code").focus()
    page.keyboard.press("x")
    assert cell.locator("[data-stage=tile]").count() == 0
    code = cell.locator("[data-stage=laid_out] .tbx-code")
    code.evaluate("each => { each.scrollTop = 40 }")
    top = code.evaluate("each => each.scrollTop")
    slider(cell, "block_N").focus()
    page.keyboard.press("ArrowRight")
    cell.locator("[data-stage=cuda] .tbx-row").first.wait_for()
    gemm_cell(page)
    assert cell.locator("[data-stage=tile]").count() == 0
    assert code.evaluate("each => each.scrollTop") == top
    cell.get_by_role("button", name="tile", exact=True).click()
    assert cell.locator("[data-stage=tile]").count() == 1


def test_a_position_that_does_not_fit_says_why_over_the_last_picture(page: Any) -> None:
    cell = gemm_cell(page)
    for name in ("block_K", "num_stages"):
        slider(cell, name).focus()
        for _ in range(4):
            page.keyboard.press("ArrowRight")
    problem = cell.locator(".tbx-problem")
    problem.wait_for()
    assert "together 262176" in problem.text_content()
    assert "Below: the last good picture" in cell.locator(".tbx-notes").text_content()
    shot(cell, "refused")
    slider(cell, "num_stages").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    problem.wait_for(state="detached")


def test_running_the_cell_again_replaces_its_workbench(page: Any) -> None:
    cell = gemm_cell(page)
    cell.locator(".jp-InputArea-editor").click()
    cell.locator(".tbx").evaluate("bench => { bench.dataset.old = 'yes' }")
    page.evaluate("void window.jupyterapp.commands.execute('notebook:run-cell')")
    cell.locator(".tbx[data-old]").wait_for(state="detached")
    gemm_cell(page)
    assert cell.locator(".tbx").count() == 1
    assert slider(cell, "block_M").get_attribute("aria-valuetext").startswith("64,")
    assert cell.locator("[data-tilebench-fallback]").count() == 1
    assert page.console_errors == []
    slider(cell, "block_N").focus()
    page.keyboard.press("ArrowRight")
    cell.locator("[data-stage=laid_out] .tbx-row:has-text('128')").first.wait_for()
    gemm_cell(page)


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
