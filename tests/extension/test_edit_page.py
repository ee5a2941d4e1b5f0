"""Stages edited in a browser: typed, refused at the line, compiled on from, left, brought back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import tilebench
from tests.extension.answered_page import bench_page
from tests.workbench.bench_kernels import functions
from tilebench.workbench.live import Workbench

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FILL = "] = T.float32(0)"


@pytest.fixture(scope="module")
def bench() -> Iterator[Workbench]:
    out = tilebench.workbench(
        functions()["gemm"], with_={"M": 100, "N": 70, "K": 50}, target="cuda:sm_80",
        stages=["source", "threaded", "cuda"],
    )  # fmt: skip
    yield out
    out.close()


@pytest.fixture(scope="module")
def page(bench: Workbench, chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with bench_page(bench, chromium, tmp_path_factory.mktemp("page")) as opened:
        yield opened


def pane(page: Any, stage: str) -> Any:
    return page.locator(f"[data-stage={stage}]")


def rows(page: Any, stage: str) -> str:
    return pane(page, stage).locator(".tbx-sheet").inner_text()


def test_e_opens_an_editor_with_the_stage_s_text(page: Any, bench: Workbench) -> None:
    pane(page, "threaded").locator(".tbx-row").first.click()
    page.keyboard.press("e")
    area = pane(page, "threaded").get_by_role("textbox", name="text of the stage threaded")
    assert bench.record is not None
    assert area.input_value() == bench.record.stage("threaded").text
    assert area.evaluate("area => document.activeElement === area")
    numbers = pane(page, "threaded").locator(".tbx-edit-numbers").inner_text().split("\n")
    assert numbers == [str(k + 1) for k in range(len(area.input_value().split("\n")))]
    # The coloured lines say the same as the field, letter on letter.
    assert pane(page, "threaded").locator(".tbx-edit-lines").inner_text() == area.input_value().rstrip("\n")
    boxes = [pane(page, "threaded").locator(f".tbx-edit-{part}").bounding_box() for part in ("area", "back")]
    assert boxes[0] == boxes[1]


def test_what_is_wrong_stands_at_its_line_with_what_to_do(page: Any, bench: Workbench) -> None:
    area = pane(page, "threaded").locator("textarea")
    good = area.input_value()
    area.fill(good.replace(FILL, FILL.replace("float32", "float33"), 1))
    assert "changed; Ctrl+Enter" in pane(page, "threaded").locator(".tbx-edit-bar").inner_text()
    page.keyboard.press("Control+Enter")
    problem = pane(page, "threaded").locator(".tbx-edit-problem")
    problem.wait_for()
    line = next(k for k, each in enumerate(good.split("\n"), 1) if FILL in each)
    assert "stage error: there is no function T.float33" in problem.inner_text()
    assert f"at <threaded stage>:{line}" in problem.inner_text()
    assert "^^^^" in problem.inner_text()
    # The mark stands below the word that is meant; the card above the panes does not say it again.
    mark = pane(page, "threaded").locator(".tbx-edit-carets")
    assert mark.evaluate("mark => mark.style.top") == f"{(line - 1) * 18}px"
    wrong = area.input_value().split("\n")[line - 1]
    assert mark.evaluate("mark => mark.style.left") == f"{wrong.index('T.float33')}ch"
    assert page.locator(".tbx-notes .tbx-problem").count() == 0
    assert "float33" in area.input_value()


def test_later_stages_follow_and_the_bench_says_that_it_is_edited(page: Any, bench: Workbench) -> None:
    area = pane(page, "threaded").locator("textarea")
    area.fill(area.input_value().replace("T.float33(0)", "T.float32(1)", 1))
    page.keyboard.press("Control+Enter")
    page.locator(".tbx-chips", has_text="threaded edited").wait_for()
    assert "threaded edited by hand" in page.locator(".tbx-notes").inner_text()
    pane(page, "threaded").locator(".tbx-edit-problem").wait_for(state="hidden")
    # The panes were made anew around it: the field is the same one, and has the focus.
    assert pane(page, "threaded").locator("textarea").evaluate("area => document.activeElement === area")
    page.keyboard.press("Escape")
    assert pane(page, "threaded").locator("textarea").count() == 0
    assert pane(page, "threaded").locator(".tbx-head").inner_text().startswith("threaded")
    assert "edited" in pane(page, "threaded").locator(".tbx-head").inner_text()
    # Compared with what the compiler made: one line.
    assert pane(page, "threaded").locator(".tbx-delta").inner_text() == "~1"
    assert "= 1.0f;" in bench.session.picture.record.stage("cuda").text  # type: ignore[union-attr]


def test_a_move_leaves_the_edit_and_the_list_brings_it_back(page: Any, bench: Workbench) -> None:
    page.get_by_role("slider", name="block_M").focus()
    page.keyboard.press("ArrowLeft")
    page.locator(".tbx-notes", has_text="edit 1 of threaded stays at its position").wait_for()
    assert page.locator(".tbx-chips", has_text="edited").count() == 0
    choice = page.get_by_role("combobox", name="edited texts")
    assert choice.locator("option").all_inner_texts() == [
        "what the compiler makes",
        "edit 1 of threaded at block_M=64",
    ]
    choice.select_option("1")
    page.locator(".tbx-chips", has_text="threaded edited").wait_for()
    assert bench.session.wish.values["block_M"] == 64
    choice.select_option("")
    page.locator(".tbx-chips", has_text="threads").wait_for()
    page.wait_for_function("!document.querySelector('.tbx-chips').innerText.includes('edited')")
    assert bench.session.wish.edit is None


def test_what_was_written_and_not_compiled_is_not_lost(page: Any, bench: Workbench) -> None:
    pane(page, "cuda").locator(".tbx-row").last.click()
    page.keyboard.press("e")
    area = pane(page, "cuda").locator("textarea")
    area.press("Control+End")
    page.keyboard.type("// a thought")
    # A slider moves the bench meanwhile: what is written stays, and is told apart.
    bench.set(block_N=128)
    page.evaluate("async () => window.told(await window.ask({kind: 'nothing'}))")
    pane(page, "cuda").locator(".tbx-edit-bar", has_text="this text was written before").wait_for()
    assert area.input_value().endswith("// a thought")
    page.keyboard.press("Escape")
    pane(page, "cuda").locator(".tbx-code").focus()
    page.keyboard.press("e")
    assert pane(page, "cuda").locator("textarea").input_value().endswith("// a thought")
    pane(page, "cuda").get_by_role("button", name="Take the new text").click()
    assert bench.record is not None
    assert pane(page, "cuda").locator("textarea").input_value() == bench.record.stage("cuda").text
    page.keyboard.press("Escape")
