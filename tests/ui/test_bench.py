"""Benches in a real JupyterLab: two cells with one kernel, the stop button, a kernel that is gone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.ui.running import run_notebook

pytest.importorskip("playwright")
pytestmark = [pytest.mark.browser, pytest.mark.slow]
KERNEL = """
@tilebench.jit
def gemm(M, N, K, block_M=64, block_N=64, block_K=32, num_stages=2):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float32"), B: T.Tensor((K, N), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M)) as (bx, by):
            A_s = T.alloc_shared((block_M, block_K), "float32")
            B_s = T.alloc_shared((block_K, block_N), "float32")
            C_l = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_l)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, ko * block_K], A_s)
                T.copy(B[ko * block_K, bx * block_N], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C[by * block_M, bx * block_N])

    return main
"""
SMALL = "%%tile --with M=100 N=100 K=100 --target cpu --stages tile,loops --run" + KERNEL
# The reference takes seconds for these: something to stop.
LARGE = "%%tile --with M=1500 N=1500 K=1500 --target cpu --stages tile --check" + KERNEL
KERNEL_OF_NOTEBOOK = "window.jupyterapp.shell.currentWidget.sessionContext.session.kernel"


@pytest.fixture(scope="module")
def page(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Three cells that define one kernel name, run from the top."""
    with run_notebook(chromium, tmp_path_factory, (SMALL, SMALL, LARGE)) as opened:
        yield opened


def bench(page: Any, number: int) -> Any:
    """The cell of a bench, in view."""
    cell = page.locator(".jp-CodeCell").nth(number)
    cell.scroll_into_view_if_needed()
    return cell


def state(cell: Any, text: str) -> None:
    # The large check takes more than a minute where others keep the machine busy.
    cell.locator(f".tbx-status:has-text('{text}')").wait_for(timeout=240_000)


def test_two_cells_show_one_kernel_and_a_stage_costs_no_measurement(page: Any) -> None:
    first, second = bench(page, 1), bench(page, 2)
    for cell in (first, second):
        state(cell, "up to date")
        assert cell.locator(".tbx").count() == 1
    chart = first.locator(".tbx-chart").text_content()
    assert "4: " in chart
    first.get_by_role("button", name="bounded", exact=True).click()
    first.locator("[data-stage=bounded] .tbx-row").first.wait_for()
    state(first, "up to date")
    assert first.locator(".tbx-chart").text_content() == chart
    first.get_by_role("button", name="Again").click()
    first.locator(".tbx-chart:has-text('8: ')").wait_for(state="attached")


def test_the_stop_button_stops_a_bench_between_cells(page: Any) -> None:
    cell = bench(page, 3)
    state(cell, "up to date")
    cell.get_by_role("button", name="Again").click()
    state(cell, "checking")
    # What is over sooner than a second has no clock.
    for seconds in (0.9, 1.1):
        page.wait_for_function(
            "s => [...document.querySelectorAll('.tbx-clock')].some(e => parseFloat(e.innerText) > s)",
            arg=seconds,
        )
    page.evaluate(f"void {KERNEL_OF_NOTEBOOK}.interrupt()")
    state(cell, "stopped")
    assert "Again takes up what was stopped" in cell.locator(".tbx-notes").inner_text()
    cell.get_by_role("button", name="Again").click()
    state(cell, "up to date")
    cell.get_by_role("tab", name="Check").click()
    assert "all within their bounds" in cell.get_by_role("tabpanel").inner_text()


def test_a_kernel_that_is_gone_leaves_a_line_and_a_picture(page: Any) -> None:
    page.evaluate("window.jupyterapp.commands.execute('docmanager:save').then(() => 0)")
    page.evaluate(f"{KERNEL_OF_NOTEBOOK}.restart().then(() => 0)")
    cell = bench(page, 1)
    cell.locator(".tbx-gone:has-text('run this cell again')").wait_for()
    page.reload()
    page.wait_for_selector(".jp-Notebook .jp-CodeCell")
    cell = bench(page, 1)
    cell.locator("[data-tilebench-fallback] .note:has-text('run this cell again')").wait_for()
    assert "T.prim_func" in cell.locator("[data-tilebench-fallback]").inner_text()
    page.wait_for_selector("text=Error displaying widget", state="attached")
    assert not any(line.is_visible() for line in page.locator("text=Error displaying widget").all())
