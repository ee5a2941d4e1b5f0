"""Panes in a browser: columns beside the lines, what they say, differences, and how a long text scrolls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests import line_kernels
from tests.extension.bench_page import page_of
from tests.extension.lab import becomes, browser_page
from tilebench.profile.lines import line_counters, line_sums
from tilebench.record import CompileRecord, StageRecord
from tilebench.recorder import make_record
from tilebench.workbench.diff import text_diff
from tilebench.workbench.sizes import Sizes

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SHOWN = ("source", "pipelined", "cuda", "sass")
# Lines of machine code of a large kernel.
MANY = 5000


def record(size: int) -> CompileRecord:
    compilation = line_kernels.macro_gemm.compile(M=256, N=size, K=256, target="cuda:sm_80").compilation
    return make_record(compilation, compilation.stage_names)


@pytest.fixture(scope="module")
def records() -> tuple[CompileRecord, CompileRecord]:
    return record(256), record(512)


@pytest.fixture
def page(chromium: str, records: tuple[CompileRecord, ...], tmp_path: Path) -> Iterator[Any]:
    address = page_of(records, SHOWN, tmp_path / "bench.html")
    with browser_page(chromium) as opened:
        opened.set_viewport_size({"width": 1600, "height": 1000})
        opened.goto(address.as_uri())
        opened.locator("[data-stage=sass] .tbx-row").first.wait_for()
        yield opened
        assert opened.console_errors == []


def row(page: Any, stage: str, text: str) -> Any:
    return page.locator(f"[data-stage={stage}] .tbx-row", has_text=text).first


def test_a_figure_is_chosen_by_a_key_and_stands_beside_the_lines(page: Any, records: Any) -> None:
    sums = line_sums(records[0], line_counters(records[0])[0])
    source = page.locator("[data-stage=source] .tbx-code")
    source.focus()
    page.keyboard.press("f")
    assert page.get_by_label("figure beside the lines").input_value() == "instructions"
    gemm = next(f for f in sums.user.values() if "matrix product" in f.kinds)
    cell = row(page, "source", "T.gemm(").locator("[data-gutter=instructions]")
    assert cell.inner_text().strip() == f"{gemm.value:.0f}"
    for stage in SHOWN:
        assert (
            page.locator(f"[data-stage={stage}] .tbx-totals").inner_text() == f"{sums.total:.0f} instructions"
        )
    page.keyboard.press("F")
    assert page.locator("[data-gutter=instructions]").count() == 0


def test_a_list_of_figures_stays_while_a_picture_comes(page: Any) -> None:
    """It may be open: what it offers is made anew only when that has changed."""
    select = page.get_by_label("figure beside the lines")
    select.evaluate("select => { window.first = select.options[1]; }")
    page.evaluate("move(1)")
    page.locator("[data-stage=pipelined] .tbx-row", has_text="T.Kernel(8").first.wait_for()
    assert select.evaluate("select => select.options[1] === window.first")


@pytest.mark.parametrize(("released", "chosen"), [("T.gemm(", True), ("T.clear(", False)])
def test_a_line_pressed_while_a_picture_comes_is_chosen(page: Any, released: str, chosen: bool) -> None:
    """Browsers tell of no click where the element that was pressed is gone."""
    row(page, "source", "T.gemm(").hover()
    page.mouse.down()
    pressed = row(page, "source", "T.gemm(").element_handle()
    page.evaluate("move(1)")
    page.wait_for_function("each => !each.isConnected", arg=pressed)
    row(page, "source", released).hover()
    page.mouse.up()
    page.wait_for_timeout(100)
    assert page.locator(".tbx-said").inner_text().startswith("Pinned to line") == chosen


def test_a_figure_chosen_while_one_pane_fills_the_bench_stands_in_all(page: Any) -> None:
    page.locator("[data-stage=cuda] .tbx-code").focus()
    page.keyboard.press("m")
    page.keyboard.press("f")
    figures = "[data-gutter=instructions][data-says]"
    assert page.locator(f"[data-stage=cuda] {figures}").count() > 5
    # The others are hidden, and are laid out when they are seen again.
    assert page.locator(f"[data-stage=pipelined] {figures}").count() == 0
    page.keyboard.press("m")
    assert page.locator(f"[data-stage=pipelined] {figures}").count() > 5


def test_folded_tabs_are_drawn_when_they_open(page: Any) -> None:
    page.set_viewport_size({"width": 600, "height": 900})
    page.locator(".tbx-narrow").wait_for()
    page.evaluate("document.querySelector('.tbx-tab').replaceChildren()")
    page.evaluate("move(1)")
    page.locator("[data-stage] .tbx-row", has_text="T.Kernel(8").first.wait_for(state="attached")
    assert page.locator(".tbx-tab > *").count() == 0
    page.get_by_role("tab", name="Resources").click()
    assert "registers" in page.locator(".tbx-tab").inner_text()
    page.get_by_role("tab", name="Resources").click()
    assert page.locator(".tbx-tab").is_hidden()


def test_the_rest_of_a_line_stands_deeper_than_its_beginning(page: Any) -> None:
    """Also where lines are deep and the pane is narrow, as far as a word has room there."""
    found = page.locator("[data-stage=source] .tbx-row").evaluate_all(
        """rows => rows.map(row => {
            const text = [...row.childNodes].slice(1).map(node => node.textContent).join('');
            return [Number(row.dataset.line), text.length - text.trimStart().length];
        })"""
    )
    first: dict[int, int] = {}
    rest: list[tuple[int, int]] = []
    for line, depth in found:
        if line in first and first[line] <= 12:
            rest.append((line, depth - first[line]))
        first.setdefault(line, depth)
    assert len(rest) > 5
    assert [line for line, deeper in rest if deeper < 2] == []


def test_pointing_at_a_figure_says_what_it_means(page: Any) -> None:
    page.get_by_label("figure beside the lines").select_option("instructions")
    row(page, "source", "T.gemm(").locator("[data-gutter=instructions]").hover()
    tip = page.locator("[data-stage=source] .tbx-tip")
    assert re.match(r"\d+ of \d+ instructions: 16 matrix product, ", tip.inner_text())


def test_control_codes_stand_beside_machine_code_and_the_keyboard_reads_them(page: Any) -> None:
    page.locator("[data-stage=sass] .tbx-code").click()
    codes = page.locator("[data-stage=sass] [data-gutter=control][data-says]")
    # Beside three other panes there is room for stall and yield, alone for all of it.
    assert re.fullmatch(r"[ 1]\d[ y] ", codes.nth(5).text_content()), codes.nth(5).text_content()
    page.keyboard.press("m")
    first = page.locator("[data-stage=sass] .tbx-row", has=page.locator("[data-gutter=control]"))
    code = first.nth(2).locator("[data-gutter=control]").text_content()
    assert re.fullmatch(r"[ 1]\d[ y] [.\d][.\d] [.\d]{6}[ r] ", code), code
    page.keyboard.press("i")
    assert (
        "the warp's next instruction comes at least"
        in page.locator("[data-stage=sass] .tbx-tip").inner_text()
    )
    page.keyboard.press("c")
    assert page.locator("[data-gutter=control]").count() == 0
    assert page.locator("[data-stage=sass] button[aria-pressed=false]").count() == 1
    page.keyboard.press("c")
    assert page.locator("[data-gutter=control]").count() > 10


def test_a_line_of_a_macro_lights_what_it_became_everywhere(page: Any) -> None:
    row(page, "source", "frag[i, j] =").click()
    page.mouse.move(2, 2)
    for stage, word in (("pipelined", "* T.float32(2)"), ("cuda", "2.0f;"), ("sass", "FADD")):
        lit = page.locator(f"[data-stage={stage}] .tbx-row.tbx-lit").all_inner_texts()
        assert lit, stage
        assert any(word in text for text in lit), (stage, lit[:3])


def test_two_uses_of_a_macro_are_no_kin(page: Any) -> None:
    row(page, "source", "load(A, A_s").click()
    page.mouse.move(2, 2)
    lit = " ".join(page.locator("[data-stage=pipelined] .tbx-row.tbx-lit").all_inner_texts())
    assert "T.copy(A[" in lit
    assert "T.copy(B[" not in lit


def test_the_prelude_is_folded_and_the_pane_opens_on_the_kernel(page: Any) -> None:
    rows = page.locator("[data-stage=cuda] .tbx-row").all_inner_texts()
    assert re.search(r"\d+ lines in front of the kernel", rows[0])
    assert any("__global__" in text for text in rows[:6])


def test_a_difference_says_what_only_sizes_changed(page: Any, records: Any) -> None:
    page.evaluate("move(1)")
    page.get_by_label("compared with").select_option("last")
    sizes = Sizes.of(records[0].parameters, records[1].parameters)
    for stage in ("pipelined", "cuda"):
        found = text_diff(records[0].stage(stage).text, records[1].stage(stage).text, sizes)
        delta = page.locator(f"[data-stage={stage}] .tbx-delta")
        becomes(page, delta.inner_text, found.summary())
        assert found.count("sized") >= 1
        assert f"{found.count('sized')} only in sizes" in delta.get_attribute("title")
    assert row(page, "pipelined", "T.Kernel(").locator("mark.tbx-size").first.inner_text() == "8"


SCROLL = """async element => {
    const times = [], work = [];
    let last = await new Promise(requestAnimationFrame);
    for (let at = 0; at < 240; at += 1) {
        const start = performance.now();
        element.scrollTop += 260;
        element.dispatchEvent(new Event('scroll'));
        element.getBoundingClientRect();
        work.push(performance.now() - start);
        const now = await new Promise(requestAnimationFrame);
        times.push(now - last);
        last = now;
    }
    const middle = list => [...list].sort((a, b) => a - b)[list.length >> 1];
    const quarter = [...work].sort((a, b) => a - b)[work.length >> 2];
    return {frame: middle(times), work: middle(work), quarter, worst: Math.max(...work)};
}"""


def long_record(base: CompileRecord) -> CompileRecord:
    """The same with machine code repeated to as many lines as a large kernel has."""

    def long(stage: StageRecord) -> StageRecord:
        lines = stage.text.splitlines()
        times = MANY // len(lines) + 1
        return replace(
            stage, text="\n".join((lines * times)[:MANY]), lines=(stage.lines * times)[:MANY],
            made_lines=(stage.made_lines * times)[:MANY], previous=(), beside=(stage.beside * times)[:MANY],
        )  # fmt: skip

    return replace(base, stages=tuple(long(s) if s.name == "sass" else s for s in base.stages))


def test_five_thousand_lines_scroll_at_sixty_frames_a_second(
    chromium: str, records: Any, tmp_path: Path
) -> None:
    address = page_of([long_record(records[0])], SHOWN, tmp_path / "long.html")
    with browser_page(chromium) as page:
        page.set_viewport_size({"width": 1600, "height": 1000})
        page.goto(address.as_uri())
        page.locator("[data-stage=sass] .tbx-row").first.wait_for()
        page.get_by_label("figure beside the lines").select_option("instructions")
        found = page.locator("[data-stage=sass] .tbx-code").evaluate(SCROLL)
        print(
            f"\n{MANY} lines: {found['frame']:.1f} ms a frame, {found['work']:.1f} ms of work,"
            f" at most {found['worst']:.1f}"
        )
        assert page.locator("[data-stage=sass] .tbx-row").count() < 120
        # Of the faster ones: with other work on the machine a frame is late for reasons that are not ours.
        assert found["quarter"] < 12
