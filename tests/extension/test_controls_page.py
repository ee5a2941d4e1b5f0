"""Controls in a browser: a move stands until a state has it in it, however late that comes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tilebench
from tests.extension.answered_page import bench_page, data_of
from tests.extension.lab import becomes
from tests.workbench.bench_kernels import functions

pytestmark = [pytest.mark.browser, pytest.mark.slow]

# What the page asks waits until it is let through, one by one, as on a busy kernel.
HOLD = """() => {
    const ask = window.ask;
    window.held = [];
    window.ask = message => new Promise(done => window.held.push(() => ask(message).then(done)));
}"""
LET_ONE = "async () => { window.held.shift()(); }"


def said(page: Any) -> str:
    return str(page.get_by_label("block_M").get_attribute("aria-valuetext"))


def title(page: Any) -> str:
    """The position of the state that was drawn last."""
    return str(page.locator(".tbx-save-line").input_value())


def test_an_older_state_does_not_move_a_slider_back(chromium: str, tmp_path: Path) -> None:
    bench = tilebench.workbench(
        functions()["gemm"], with_={"M": 256, "N": 256, "K": 128}, target="cuda:sm_80",
        sweep={"block_M": [32, 64, 128]}, stages=["tile"],
    ).set(block_M=32)  # fmt: skip
    with bench_page(bench, chromium, tmp_path) as page:
        page.evaluate(HOLD)
        page.get_by_label("block_M").focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        assert said(page) == "128, 3 of 3"
        page.wait_for_function("window.held.length === 2")
        page.evaluate(LET_ONE)
        becomes(page, lambda: "block_M=64" in title(page), True)  # drawn, and older than the slider
        assert said(page) == "128, 3 of 3"
        page.evaluate(LET_ONE)
        becomes(page, lambda: "block_M=128" in title(page), True)
        assert said(page) == "128, 3 of 3"
        # What another asks for moves it at once, however short ago a person did.
        bench.set(block_M=32)
        page.evaluate("next => window.told(next)", data_of(bench))
        becomes(page, lambda: said(page), "32, 1 of 3")
    bench.close()
