"""One bench in several places of JupyterLab: a panel, a view of an output; and the way to its cell."""

from __future__ import annotations

from typing import Any

import pytest

from tests.extension.lab import becomes
from tests.extension.test_cell_editing import cell, page, run, write  # noqa: F401  (a fixture)
from tests.extension.test_live_bench import CELL, VISIBLE, settled

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def first(page: Any) -> Any:  # noqa: F811
    return cell(page).locator(".tbx")


def panel(page: Any) -> Any:  # noqa: F811
    return page.locator(".jp-LinkedOutputView .tbx")


def pinned(page: Any) -> list[str]:  # noqa: F811
    return [text.strip() for text in cell(page).locator(".tb-pinned-line").all_inner_texts()]


def line_of(page: Any, text: str) -> Any:  # noqa: F811
    return cell(page).locator(".cm-line", has_text=text).first


def beside(page: Any, text: str) -> None:  # noqa: F811
    """Click the mark beside a line of the cell."""
    line = line_of(page, text)
    line.scroll_into_view_if_needed()
    gutter, box = cell(page).locator(".tb-jump-gutter").bounding_box(), line.bounding_box()
    page.mouse.click(gutter["x"] + gutter["width"] / 2, box["y"] + box["height"] / 2)


SLOW = """seconds => {
    const real = window.plainStream ??= Blob.prototype.stream;
    const wait = () => new Promise(done => setTimeout(done, 1000 * seconds));
    const transform = async (part, out) => (await wait(), out.enqueue(part));
    const late = () => new TransformStream({transform});
    Blob.prototype.stream = function () { return real.call(this).pipeThrough(late()); };
}"""


def test_a_bench_that_is_long_in_coming_is_found_by_its_cell(page: Any) -> None:  # noqa: F811
    page.evaluate(SLOW, 3)
    run(page)
    becomes(page, lambda: cell(page).locator(".tb-jump").count(), 0)
    first(page).locator(".tbx-row").first.wait_for()
    cell(page).locator(".tb-jump").first.wait_for(timeout=5_000)
    page.evaluate("() => { Blob.prototype.stream = window.plainStream; }")
    settled(page)


def test_a_line_of_the_cell_finds_its_stage_lines(page: Any) -> None:  # noqa: F811
    cell(page).locator(".tb-jump").first.wait_for()
    beside(page, "T.gemm(")
    lit = first(page).locator("[data-stage=cuda] .tbx-row.tbx-lit")
    lit.first.wait_for()
    assert "Pinned to line 14 of the kernel" in first(page).locator(".tbx-said").inner_text()
    assert pinned(page) == ["T.gemm(A_s, B_s, C_l)"]
    # By the keyboard, and after an edit that moved the line.
    write(page, CELL.replace("            T.clear(", "            # a line more\n            T.clear("))
    line_of(page, "T.copy(C_l").click()
    page.keyboard.press("Control+Alt+j")
    page.wait_for_function("document.querySelector('.tbx-said').innerText.includes('line 15')")
    assert pinned(page) == ["T.copy(C_l, C[by * block_M, bx * block_N])"]
    # What the bench's kernel has not is said to be so.
    line_of(page, "# a line more").click()
    page.keyboard.press("Control+Alt+j")
    page.wait_for_function("document.querySelector('.tbx-said').innerText.includes('has no line')")
    assert '"# a line more"' in first(page).locator(".tbx-said").inner_text()


def test_a_line_of_the_bench_finds_its_line_in_the_cell(page: Any) -> None:  # noqa: F811
    # The text of now has a line more than the bench's.
    rows = first(page).locator("[data-stage=source] .tbx-code")
    rows.focus()
    page.keyboard.press("Home")
    for _ in range(8):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("g")
    becomes(page, lambda: page.evaluate("window.getSelection().toString()").strip(), "T.clear(C_l)")
    becomes(page, lambda: page.evaluate("document.activeElement.classList.contains('cm-content')"), True)
    becomes(page, lambda: line_of(page, "T.clear(C_l)").evaluate(VISIBLE), True)
    write(page, CELL)


def open_panel(page: Any, button: bool) -> None:  # noqa: F811
    if button:
        first(page).get_by_role("button", name="Panel", exact=True).click()
    else:
        page.evaluate("window.jupyterapp.commands.execute('tilebench:open-panel')")
    panel(page).locator(".tbx-row").first.wait_for()


@pytest.mark.parametrize("button", [True, False])
def test_a_panel_shows_the_same_live_bench(page: Any, button: bool) -> None:  # noqa: F811
    open_panel(page, button)
    settled_both(page)
    for size in ((1280, 720), (1600, 1000)):
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.wait_for_timeout(400)
        for part in (".tbx-header", ".tbx-controls", ".tbx-stages", ".tbx-pane", ".tbx-tabs"):
            place = panel(page).locator(part).first
            becomes(page, lambda place=place, part=part: (part, place.evaluate(VISIBLE)), (part, True))
        assert panel(page).locator(".tbx-pane").first.bounding_box()["height"] > size[1] / 4
    page.set_viewport_size({"width": 1280, "height": 720})
    # In a narrow place tabs are folded below the panes, and open one at a time.
    body = panel(page).locator(".tbx-tab")
    assert not body.is_visible()
    panel(page).get_by_role("tab", name="Resources").click()
    assert body.is_visible()
    panel(page).get_by_role("tab", name="Resources").click()
    assert not body.is_visible()
    move_one_and_see_both(page)
    page.locator(".lm-TabBar-tab", has_text="Bench: gemm").locator(".lm-TabBar-tabCloseIcon").click()
    assert panel(page).count() == 0
    first_still_works(page)


def settled_both(page: Any) -> None:  # noqa: F811
    page.wait_for_function(
        "[...document.querySelectorAll('.tbx-status')].every(s => s.innerText.includes('up to date'))",
        timeout=60_000,
    )


def value_of(bench: Any) -> str:
    return bench.get_by_label("block_M").get_attribute("aria-valuetext")


def move_one_and_see_both(page: Any) -> None:  # noqa: F811
    """A key in one view moves the other too; where each is read stays its own."""
    before = value_of(first(page))
    assert value_of(panel(page)) == before
    panel(page).get_by_label("block_M").focus()
    page.keyboard.press("ArrowRight" if "1 of" in before or "2 of" in before else "ArrowLeft")
    becomes(page, lambda: value_of(panel(page)) == value_of(first(page)) != before, True)
    settled_both(page)
    assert value_of(panel(page)) == value_of(first(page)) != before
    shown = [pane.get_attribute("data-stage") for pane in first(page).locator(".tbx-pane").all()]
    panel(page).get_by_role("button", name="bounded", exact=True).click()
    assert [pane.get_attribute("data-stage") for pane in first(page).locator(".tbx-pane").all()] == shown
    assert panel(page).locator("[data-stage=bounded]").count() == 1
    # The plain form that is kept for a notebook without a kernel is hidden in both places.
    assert page.locator("[data-tilebench-fallback]:visible").count() == 0


def first_still_works(page: Any) -> None:  # noqa: F811
    before = value_of(first(page))
    first(page).get_by_label("block_M").focus()
    page.keyboard.press("ArrowLeft" if "3 of" in before else "ArrowRight")
    becomes(page, lambda: value_of(first(page)) != before, True)
    settled(page)
    assert value_of(first(page)) != before
    assert page.locator("[data-tilebench-fallback]:visible").count() == 0


def test_create_new_view_for_output(page: Any) -> None:  # noqa: F811
    page.evaluate(
        """async () => {
            const notebook = window.jupyterapp.shell.currentWidget.content;
            notebook.activeCellIndex = 1;
            await window.jupyterapp.commands.execute('notebook:create-output-view');
        }"""
    )
    panel(page).locator(".tbx-row").first.wait_for()
    settled_both(page)
    for part in (".tbx-header", ".tbx-controls", ".tbx-stages", ".tbx-pane", ".tbx-tabs"):
        assert panel(page).locator(part).first.evaluate(VISIBLE), part
    move_one_and_see_both(page)
    # A line that is chosen in the view is marked in the cell, and the other way round.
    # (In a low place the line is not drawn before it is gone to.)
    panel(page).locator("[data-stage=source] .tbx-code").focus()
    for key in ("Home", *["ArrowDown"] * 8, "Enter"):
        page.keyboard.press(key)
    assert pinned(page) == ["T.clear(C_l)"]
    beside(page, "T.gemm(")
    assert (
        panel(page)
        .locator("[data-stage=source] .tbx-row.tbx-lit")
        .first.inner_text()
        .strip()
        .startswith("14")
    )
    page.locator(".lm-TabBar-tab", has_text="Output View").locator(".lm-TabBar-tabCloseIcon").click()
    first_still_works(page)


def test_running_the_cell_again_renews_every_view(page: Any) -> None:  # noqa: F811
    open_panel(page, button=False)
    write(page, CELL.replace("block_M=32,64,128", "block_M=16,32"))
    page.evaluate("window.jupyterapp.shell.activateById([...window.jupyterapp.shell.widgets('main')][0].id)")
    run(page)
    panel(page).locator(".tbx-row").first.wait_for()
    settled_both(page)
    assert first(page).count() == panel(page).count() == 1
    assert value_of(panel(page)) == value_of(first(page))
    assert value_of(first(page)) == "16, 1 of 2"


def test_the_line_of_a_kernel_in_a_plain_cell_is_found_too(page: Any) -> None:  # noqa: F811
    opens = "tilebench.workbench(gemm, with_={'M': 512, 'N': 512, 'K': 256}, target='cuda:sm_80')\n"
    write(page, CELL.partition("\n")[2] + opens)
    run(page)
    first(page).locator(".tbx-row").first.wait_for()
    settled_both(page)
    # Beside the panel that is still open the bench may have room for one stage alone.
    source = first(page).get_by_role("button", name="source", exact=True)
    if source.get_attribute("aria-pressed") != "true":
        source.click()
    first(page).locator("[data-stage=source] .tbx-code").focus()
    for key in ("Home", *["ArrowDown"] * 8, "g"):
        page.keyboard.press(key)
    becomes(page, lambda: page.evaluate("window.getSelection().toString()").strip(), "T.clear(C_l)")
    # What is in no cell any more is said to be so.
    write(page, opens)
    first(page).locator("[data-stage=source] .tbx-code").focus()
    page.keyboard.press("g")
    assert "is in no cell of this notebook" in first(page).locator(".tbx-said").inner_text()


def test_nothing_went_wrong_in_the_console(page: Any) -> None:  # noqa: F811
    assert page.console_errors == []


def test_a_window_of_its_own_shows_the_same_bench_and_follows_its_cell(page: Any) -> None:  # noqa: F811
    write(page, CELL)
    run(page)
    settled(first(page))
    with page.expect_popup() as opening:
        first(page).get_by_role("button", name="Window").click()
    window = opening.value
    window.set_viewport_size({"width": 1200, "height": 800})
    there = window.locator(".tbx")
    there.locator("[data-stage=cuda] .tbx-row").first.wait_for(timeout=30_000)
    assert window.title() == "Bench: gemm"
    assert there.evaluate(VISIBLE)
    assert there.bounding_box()["height"] > 700
    colours = "each => getComputedStyle(each).backgroundColor"
    assert there.evaluate(colours) == first(page).evaluate(colours)
    # A move there is one here, and the focus stays where it is.
    slider = there.get_by_label("block_M")
    slider.focus()
    window.keyboard.press("ArrowRight")
    first(page).locator(".tbx-chips", has_text="24 KiB shared").wait_for(timeout=30_000)
    there.locator(".tbx-chips", has_text="24 KiB shared").wait_for(timeout=30_000)
    assert first(page).get_by_label("block_M").get_attribute("aria-valuetext") == "128, 3 of 3"
    assert slider.evaluate("each => each.ownerDocument.activeElement === each")
    # Its lines and those of the cell know each other.
    there.locator("[data-stage=source] .tbx-row", has_text="T.gemm(").click()
    page.wait_for_function("document.querySelector('.tb-pinned-line')?.textContent.includes('T.gemm')")
    line_of(page, "T.clear(").click()
    page.keyboard.press("Control+Alt+j")
    there.locator("[data-stage=source] .tbx-lit", has_text="T.clear(").wait_for()
    # The cell's next bench is the window's; closing it leaves the other.
    write(page, CELL.replace("num_stages=2", "num_stages=3"))
    run(page)
    there.locator(".tbx-chips", has_text="24 KiB shared").wait_for(timeout=60_000)
    there.locator("[data-stage=laid_out] .tbx-row", has_text="T.Plan(3)").wait_for(timeout=30_000)
    window.close()
    settled(first(page))
    assert first(page).count() == 1
