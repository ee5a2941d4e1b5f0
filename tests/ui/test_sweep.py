"""Run sweep in a real JupyterLab: begun, stopped, taken up; the map, by keyboard; the best is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.ui.running import run_notebook

pytest.importorskip("playwright")
pytestmark = [pytest.mark.browser, pytest.mark.slow]
KERNEL = """
@tilebench.jit
def scaled(M, N, block_M=32, block_N=32, lanes=1):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M)) as (bx, by):
            for i, j in T.Parallel(block_M, block_N):
                B[by * block_M + i, bx * block_N + j] = A[by * block_M + i, bx * block_N + j] * 2.0

    return main
"""
SWEPT = "%%tile --with M=300 N=300 --target cpu --sweep block_M=-1,16,32,64 block_N=16,32" + KERNEL


@pytest.fixture(scope="module")
def page(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with run_notebook(chromium, tmp_path_factory, (SWEPT,)) as opened:
        yield opened


def test_a_sweep_is_begun_stopped_and_taken_up_from_the_bench(page: Any) -> None:
    cell = page.locator(".jp-CodeCell").nth(1)
    cell.scroll_into_view_if_needed()
    cell.get_by_role("button", name="Run sweep").click()
    cell.locator(".tbx-sweep-said:has-text('/32 runs')").wait_for()
    # The first rows are in the chart while it goes on.
    cell.locator(".tbx-plot [role=button]").first.wait_for(state="attached")
    cell.get_by_role("button", name="Stop sweep").click()
    cell.locator(".tbx-sweep-said:has-text('sweep stopped at')").wait_for()
    cell.get_by_role("button", name="Go on").click()
    cell.locator(".tbx-sweep-said:has-text('sweep done')").wait_for(timeout=180_000)
    assert cell.get_by_role("button", name="More runs").is_visible()


def test_the_map_and_the_table_of_a_sweep(page: Any) -> None:
    cell = page.locator(".jp-CodeCell").nth(1)
    assert cell.get_by_label("picture of the runs").input_value() == " heat"
    squares = cell.locator(".tbx-cell")
    assert squares.count() == 6
    assert cell.locator(".tbx-cell-illegal").count() == 2
    cell.get_by_role("tab", name="Sweep").click()
    table = cell.get_by_role("tabpanel")
    assert table.locator("tbody tr").count() == 8
    assert table.locator("td:has-text('illegal: ')").count() == 2
    cell.get_by_role("tab", name="Chart").click()


def test_a_square_is_gone_back_to_by_keyboard_alone(page: Any) -> None:
    cell = page.locator(".jp-CodeCell").nth(1)
    squares = cell.locator(".tbx-cell")
    stops = [square.get_attribute("tabindex") for square in squares.all()]
    assert sorted(stops) == ["-1"] * 5 + ["0"]
    squares.nth(stops.index("0")).focus()
    page.keyboard.press("End")
    wanted = page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.keyboard.press("Enter")
    block = wanted.partition("block_M=")[2].split()[0]
    cell.locator(f".tbx-knob:has(label:text-is('block_M')) output:text-is('{block}')").wait_for()
    cell.locator(f'.tbx-cell.tbx-here[aria-label="{wanted}"]').wait_for(state="attached")
    assert cell.locator(".tbx-cell.tbx-here").count() == 1


def test_kinds_of_picture_are_chosen_by_keyboard(page: Any) -> None:
    cell = page.locator(".jp-CodeCell").nth(1)
    kinds = cell.get_by_label("picture of the runs")
    kinds.focus()
    page.keyboard.press("Home")
    assert kinds.input_value() == ""
    assert cell.locator(".tbx-plot .tbx-point").count() >= 6
    kinds.select_option("block_M")
    assert cell.locator(".tbx-plot .tbx-series").count() == 2
    assert cell.locator(".tbx-plot .tbx-illegal").count() == 2
