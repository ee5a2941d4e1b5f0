"""A live bench in Notebook 7, which takes the same widget and the same extension as JupyterLab."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from tests.extension.lab import becomes, browser_page, lab_server, open_notebook, run_all, write_notebook
from tests.extension.test_live_bench import CELL, settled

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ROOT = Path(__file__).resolve().parent.parent.parent


# What Notebook 7 says in the console by itself: a plugin of its own has no settings.
FOREIGN = "Cannot read properties of undefined (reading 'schema')"


def test_a_bench_answers_keys_and_links_lines(chromium: str, labextensions: Path, tmp_path: Path) -> None:
    if importlib.util.find_spec("notebook") is None:
        assert os.environ.get("CI") != "true", "CI tries Notebook 7: install the extra `test`"
        pytest.skip("Notebook 7 is not installed")
    root = tmp_path / "work"
    root.mkdir()
    cells = ["import tilebench, tilebench.language as T\n%load_ext tilebench", CELL]
    write_notebook(root / "bench.ipynb", cells)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.delenv("TILEBENCH_VERIFY", raising=False)
        with (
            lab_server(root, tmp_path / "home", labextensions, app="notebook") as address,
            browser_page(chromium) as page,
        ):
            open_notebook(page, address, "bench.ipynb", under="notebooks")
            run_all(page)
            settled(page)
            bench = page.locator(".tbx")
            bench.scroll_into_view_if_needed()
            slider = page.get_by_label("block_M")
            slider.focus()
            page.keyboard.press("ArrowRight")
            assert slider.get_attribute("aria-valuetext") == "128, 3 of 3"
            page.locator(".tbx-chips", has_text="24 KiB shared").wait_for()  # 16 before
            settled(page)
            page.locator("[data-stage=source] .tbx-row", has_text="T.gemm(").click()
            page.locator("[data-stage=cuda] .tbx-row.tbx-lit").first.wait_for()
            assert page.locator("[data-tilebench-fallback]").first.is_visible() is False
            # The extension: the cell is coloured, and its lines and those of the bench know each other.
            cell = page.locator(".jp-Notebook .jp-Cell").nth(1)
            assert cell.locator(".tb-magic").all_inner_texts() == ["%%tile"]
            pinned = cell.locator(".cm-line.tb-pinned-line")
            becomes(page, pinned.all_inner_texts, ["                T.gemm(A_s, B_s, C_l)"])
            page.evaluate("void window.jupyterapp.commands.execute('tilebench:open-panel')")
            page.locator(".tb-panel .tbx [data-stage=cuda] .tbx-row").first.wait_for()
            assert [text for text in page.console_errors if FOREIGN not in text] == []
