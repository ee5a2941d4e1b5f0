"""The list of what texts are compared with, in a browser: the bench's past, pins by name, other targets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tilebench
from tests.extension.answered_page import bench_page
from tests.workbench.bench_kernels import functions

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def delta(page: Any, stage: str) -> str:
    return page.locator(f"[data-stage={stage}] .tbx-delta").inner_text()


def test_pins_and_targets_are_compared_with_by_name(chromium: str, tmp_path: Path) -> None:
    bench = tilebench.workbench(
        functions()["gemm"], with_={"M": 100, "N": 70, "K": 50}, target="cuda:sm_80", stages=["tile", "cuda"]
    )
    with bench_page(bench, chromium, tmp_path) as page:
        for name in ("base", "again"):
            page.get_by_role("button", name="Pin", exact=True).click()
            page.get_by_role("textbox", name="name of the pin").fill(name)
            page.keyboard.press("Enter")
            page.locator(".tbx-said", has_text=f"Pinned as {name}").wait_for()
        against = page.get_by_role("combobox", name="compared with")
        assert against.locator("optgroup[label=pinned] option").all_inner_texts() == ["base", "again"]
        assert (
            "cuda:sm_90a" in against.locator("optgroup[label='this position for'] option").all_inner_texts()
        )
        page.get_by_role("slider", name="block_M").focus()
        page.keyboard.press("ArrowLeft")
        page.locator(".tbx-knob", has_text="block_M").locator("output", has_text="32").wait_for()
        against.select_option("pin base")
        page.locator(".tbx-notes", has_text="base has 128 threads").wait_for()
        page.wait_for_function(
            "document.querySelector('[data-stage=cuda] .tbx-delta').textContent !== 'unchanged'"
        )
        assert against.input_value() == "pin base"
        page.get_by_role("slider", name="block_M").focus()
        page.keyboard.press("ArrowRight")
        page.locator(".tbx-knob", has_text="block_M").locator("output", has_text="64").wait_for()
        page.wait_for_function(
            "document.querySelector('[data-stage=cuda] .tbx-delta').textContent === 'unchanged'"
        )
        against.select_option("target cuda:sm_75")
        page.locator(".tbx-notes", has_text="cuda:sm_75 has").wait_for()
        page.wait_for_function(
            "document.querySelector('[data-stage=cuda] .tbx-delta').textContent !== 'unchanged'"
        )
        assert page.locator(".tbx-target").input_value() == bench.session.wish.target == "cuda:sm_80"
        against.select_option("nothing")
        page.wait_for_function("document.querySelector('[data-stage=cuda] .tbx-delta').textContent === ''")
        assert bench.session.wish.against is None
    bench.close()
