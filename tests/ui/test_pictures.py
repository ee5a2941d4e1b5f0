"""Pictures in a real JupyterLab: they follow a slider, and an open tab gets what is made for it alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.ui.running import run_notebook
from tests.ui.test_bench import KERNEL, state

pytest.importorskip("playwright")
pytestmark = [pytest.mark.browser, pytest.mark.slow]
CELL = "%%tile --with M=512 N=512 K=512 --target cuda:sm_90a --sweep block_M=32,64 block_N=64,128" + KERNEL


@pytest.fixture(scope="module")
def cell(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The cell of a bench of a product on a card that is not here."""
    with run_notebook(chromium, tmp_path_factory, (CELL,)) as opened:
        found = opened.locator(".jp-CodeCell").nth(1)
        found.scroll_into_view_if_needed()
        state(found, "up to date")
        yield found


def test_values_of_sliders_come_to_the_tab_that_is_open(cell: Any) -> None:
    table = cell.locator("caption", has_text="Shared memory with other values of one slider")
    assert table.count() == 0
    cell.get_by_role("tab", name="Memory", exact=True).click()
    table.wait_for()
    # The value of now of each slider that changes anything.
    assert cell.get_by_role("cell", name="(now)").count() >= 3


def test_pictures_follow_a_slider(cell: Any, tmp_path: Path) -> None:
    cell.get_by_role("tab", name="Layouts", exact=True).click()
    tiles = cell.get_by_label("tile", exact=True)
    names = tiles.locator("option").all_inner_texts()
    assert any(name.startswith("B_s \N{EN DASH} shared memory 32x64 float32") for name in names)
    slider = cell.get_by_role("slider", name="block_N")
    slider.focus()
    slider.press("ArrowRight")
    cell.get_by_role("option", name="B_s \N{EN DASH} shared memory 32x128 float32").wait_for(state="attached")
    state(cell, "up to date")
    cell.screenshot(path=str(tmp_path / "pictures.png"))
    assert cell.locator(".tbx-cells-canvas").first.evaluate("canvas => canvas.width") > 0
