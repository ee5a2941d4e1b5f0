"""Maps of errors and timelines in a browser: by mouse and by keyboard, and what they light and say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import tilebench
from tests.extension.answered_page import bench_page
from tests.reference.test_error_map import ONE, add, wrong
from tilebench.reference import CheckReport
from tilebench.targets import manifest
from tilebench.workbench.live import Workbench

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def bench() -> Iterator[Workbench]:
    out = tilebench.workbench(add, with_={"M": 128, "N": 128}, target="cuda:sm_80")
    kernel = add.using(target="cuda:sm_80")(128, 128)
    report = wrong(kernel, "threaded", ONE, "T.cast(T.if_then_else(tid == 77, 2, 1), T.float32)")
    out.session.board.show(report=CheckReport((report,)))
    yield out
    out.close()


@pytest.fixture(scope="module")
def page(bench: Workbench, chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with bench_page(bench, chromium, tmp_path_factory.mktemp("drawn")) as opened:
        yield opened


def test_a_map_goes_from_tiles_to_elements_and_their_threads(page: Any) -> None:
    page.get_by_role("tab", name="Check").click()
    assert "what thread 77 of each block wrote" in page.locator(".tbx-tab").inner_text()
    said = page.locator(".tbx-errors-said")
    page.get_by_role("button", name="block (0, 0)").click()
    plot = page.locator(".tbx-errors-plot")
    plot.focus()
    # Thread 77 has columns 20 to 23 of row 9.
    for _ in range(9):
        page.keyboard.press("ArrowDown")
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    assert said.inner_text() == (
        "row 9, column 20 (block row 0, column 0): outside its bound; written by thread 77 (warp 2, lane 13)"
    )
    page.keyboard.press("ArrowLeft")
    assert said.inner_text() == (
        "row 9, column 19 (block row 0, column 0): exact; written by thread 76 (warp 2, lane 12)"
    )
    page.keyboard.press("Escape")
    assert page.get_by_role("button", name="all 128 x 128").get_attribute("aria-pressed") == "true"
    # By mouse: a square of the whole leads to its block.
    box = plot.locator("svg").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 22 / 128, box["y"] + box["height"] * 9.5 / 128)
    assert page.get_by_role("button", name="block (0, 0)").get_attribute("aria-pressed") == "true"
    assert plot.locator(".tbx-err5").count() == 1


def test_a_timeline_is_recorded_moved_in_and_lights_lines(page: Any) -> None:
    if manifest("cuda").available()[0]:
        pytest.skip("a card is here: its clocks are read")
    page.get_by_role("tab", name="Timeline").click()
    page.get_by_role("button", name="Record").click()
    plot = page.locator(".tbx-lanes-plot")
    plot.wait_for()
    assert "Steps, not time" in page.locator(".tbx-tab").inner_text()
    plot.focus()
    page.keyboard.press("ArrowRight")
    said = page.locator(".tbx-lanes-said")
    assert said.inner_text().startswith("warp 0: load, A -> t, line ")
    line = int(said.inner_text().split("line ")[1].split(",")[0])
    lit = page.locator("[data-stage=source] .tbx-lit .tbx-number")
    # A long line has more rows than the one with its number.
    assert {int(text) for text in lit.all_inner_texts() if text.strip()} == {line}
    page.keyboard.press("ArrowDown")
    assert said.inner_text().startswith("warp 1: load")
    wide = plot.locator("path").first.get_attribute("d")
    page.keyboard.press("+")
    assert plot.locator("path").first.get_attribute("d") != wide
    page.keyboard.press("Escape")
    # A page that takes the pointer for itself, to scroll by touch, ends a drag: nothing follows it then.
    page.keyboard.press("+")
    drag = """(plot, kinds) => {
        const x = plot.getBoundingClientRect().left + 300;
        const event = (kind, at) => new PointerEvent(kind, {pointerId: 1, clientX: x + 30 * at});
        kinds.forEach((kind, at) => plot.dispatchEvent(event(kind, at)));
    }"""
    plot.evaluate("plot => { plot.setPointerCapture = () => undefined; }")
    whole = plot.locator("path").first.get_attribute("d")
    plot.evaluate(drag, ["pointerdown", "pointercancel", "pointermove"])
    assert plot.locator("path").first.get_attribute("d") == whole
    plot.evaluate(drag, ["pointerdown", "pointermove", "pointerup"])
    moved = plot.locator("path").first.get_attribute("d")
    assert moved != whole
    plot.evaluate(drag, ["pointermove"])
    assert plot.locator("path").first.get_attribute("d") == moved
    page.keyboard.press("Escape")
    page.keyboard.press("Enter")
    page.mouse.move(5, 5)
    assert {int(text) for text in lit.all_inner_texts() if text.strip()} == {line}
