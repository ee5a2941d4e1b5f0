"""Pictures in a browser: who holds what, banks, sectors, memory; read by keys, kept as sliders move."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.extension.answered_page import bench_page
from tests.workbench.bench_kernels import functions
from tilebench.pictures.tile_layouts import TileLayout
from tilebench.workbench import live
from tilebench.workbench.live import Workbench

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SIZES = {"M": 512, "N": 512, "K": 512}
# Cells that are looked at, of each tile: by keys there, one after the other.
LOOKED_AT = 24


@pytest.fixture(scope="module")
def bench() -> Iterator[Workbench]:
    kernel: Any = functions()["gemm"]
    out = live.open_live(
        kernel, with_=SIZES, target="cuda:sm_90", sweep={"block_M": [64, 128], "block_N": [64, 128]}
    )
    yield out
    out.close()


@pytest.fixture(scope="module")
def page(bench: Workbench, chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with bench_page(bench, chromium, tmp_path_factory.mktemp("page")) as opened:
        yield opened


def open_tab(page: Any, name: str) -> None:
    page.get_by_role("tab", name=name, exact=True).click()


def choose(page: Any, label: str, start: str) -> None:
    """Choose the option that begins so."""
    select = page.get_by_label(label, exact=True)
    names = select.locator("option").all_inner_texts()
    select.select_option(label=next(name for name in names if name.startswith(start)))


def said(page: Any, at: int = 0) -> str:
    return page.locator(".tbx-cells-said").nth(at).inner_text()


def pictured(bench: Workbench, name: str) -> TileLayout:
    found: Any = bench.session.picture.pictures
    return next(layout for layout in found.layouts if layout.name == name)


def walk(page: Any, layout: TileLayout, at: int = 0) -> Iterator[tuple[tuple[int, int], str]]:
    """Go to cells of a tile by keys; the coordinates and what is said there."""
    rows, columns = layout.extents
    view = page.locator(".tbx-cells-view").nth(at)
    view.focus()
    page.keyboard.press("PageUp")
    page.keyboard.press("Home")
    row = column = 0
    rng = np.random.default_rng(0)
    for _ in range(LOOKED_AT):
        key, by = [("ArrowDown", (1, 0)), ("ArrowRight", (0, 1)), ("Shift+ArrowDown", (8, 0)),
                   ("Shift+ArrowRight", (0, 8)), ("ArrowUp", (-1, 0))][rng.integers(0, 5)]  # fmt: skip
        page.keyboard.press(key)
        row, column = min(max(row + by[0], 0), rows - 1), min(max(column + by[1], 0), columns - 1)
        yield (row, column), said(page, at)


@pytest.mark.parametrize(
    "name", ["C_local", "C_local_as", "mma m16n8k16: A", "mma m16n8k16: B", "copy A to A_s"]
)
def test_each_cell_says_who_holds_it(page: Any, bench: Workbench, name: str) -> None:
    """Expanded from its modes in the browser, a tile is what enumeration in Python gives."""
    open_tab(page, "Layouts")
    choose(page, "tile", name)
    layout = pictured(bench, name)
    unit = "step" if layout.kind == "mapping" else "register"
    for (row, column), words in walk(page, layout):
        ((thread, register),) = layout.holders((row, column))
        lane = f"(warp {thread // 32}, lane {thread % 32})"
        assert words == f"row {row}, column {column}: thread {thread}, {unit} {register} {lane}"


@pytest.mark.parametrize("name", ["A_s", "B_s"])
def test_banks_with_and_without_the_swizzle(page: Any, bench: Workbench, name: str) -> None:
    open_tab(page, "Layouts")
    choose(page, "tile", name)
    layout = pictured(bench, name)
    plain = TileLayout(name, "shared", 0, "float16", 16, layout.extents, modes=layout.modes)
    assert page.locator(".tbx-side-by-side h4").all_inner_texts() == [
        "as it is: the bank of each element", "without the swizzle",
    ]  # fmt: skip
    for at, shown in ((0, layout), (1, plain)):
        for index, words in walk(page, shown, at):
            byte = shown.offset(index) * 2
            where = f"row {index[0]}, column {index[1]}"
            assert words == f"{where}: byte {byte} of the buffer, bank {byte // 4 % 32}"


def test_a_row_a_pass_as_many_as_are_counted(page: Any, bench: Workbench) -> None:
    """Each access of the bench: the rows that the browser draws are what the compiler's analysis counts."""
    open_tab(page, "Accesses")
    found: Any = bench.session.picture.pictures
    select = page.get_by_label("access", exact=True)
    names = select.locator("option").all_inner_texts()
    assert len(names) == len(found.accesses) == 7
    for one in found.accesses:
        access = one.access
        how = "written" if access.written else "read"
        start = f"line {access.line}: {access.buffer} {how} by {access.word}"
        select.select_option(label=next(name for name in names if name.startswith(start)))
        titles = page.locator(".tbx-side-by-side h4").all_inner_texts()
        unit = "passes" if access.scope == "shared" else "sectors"
        assert titles[0] == f"as it is: {access.worst} {unit}"
        if one.other is not None:
            assert titles[1] == f"{one.other.words}: {one.other.worst} passes"


def test_the_lanes_are_a_table_too(page: Any) -> None:
    open_tab(page, "Accesses")
    choose(page, "access", "line 13: A read")
    page.get_by_text("The lanes as a table").first.click()
    rows = page.locator(".tbx-twin table tbody tr")
    rows.nth(31).wait_for(state="attached")
    assert rows.count() == 32
    assert rows.nth(1).locator("td").all_inner_texts() == ["1", "16", "0"]


def test_a_thread_is_a_table_too(page: Any, bench: Workbench) -> None:
    open_tab(page, "Layouts")
    choose(page, "tile", "C_local \N{EN DASH}")
    view = page.locator(".tbx-cells-view").first
    view.focus()
    page.keyboard.press("PageUp")
    page.keyboard.press("Home")
    page.get_by_text("The chosen thread as a table").click()
    page.locator(".tbx-twin table tbody tr").first.wait_for()
    rows = page.locator(".tbx-twin table tbody tr").all_inner_texts()
    fragment = pictured(bench, "C_local").fragment
    where = [part[0].tolist() for part in fragment.all_coordinates]
    assert [row.split("\t") for row in rows] == [
        [str(register), f"{i}, {j}"] for register, (i, j) in enumerate(zip(*where, strict=True))
    ]


def test_buffers_are_walked_by_keys(page: Any) -> None:
    open_tab(page, "Memory")
    first = page.get_by_role("img", name=re.compile("^A_s: 8 KiB in 2 stages of 4 KiB from byte 0"))
    first.focus()
    page.keyboard.press("ArrowRight")
    assert said(page).startswith("B_s: 8 KiB in 2 stages of 4 KiB from byte 8192")


def test_a_tab_that_is_opened_asks_for_what_it_needs(page: Any) -> None:
    """What other values would take is worked out for the open tab alone, and comes behind it."""
    open_tab(page, "Memory")
    page.get_by_text("Shared memory with other values of one slider").wait_for()
    assert page.get_by_role("cell", name="128", exact=True).count() >= 2


def test_choices_stay_as_a_slider_moves(page: Any, bench: Workbench) -> None:
    open_tab(page, "Layouts")
    choose(page, "tile", "B_s")
    view = page.locator(".tbx-cells-view").first
    view.focus()
    for key in ("PageUp", "Home", "ArrowDown"):
        page.keyboard.press(key)
    page.get_by_role("button", name="larger cells").first.click()
    before = page.locator(".tbx-cells-sheet").first.evaluate("sheet => sheet.style.width")
    slider = page.get_by_role("slider", name="block_N")
    slider.focus()
    slider.press("ArrowRight")
    page.get_by_role("option", name="B_s \N{EN DASH} shared memory 32x128 float16, line 9").wait_for(
        state="attached"
    )
    assert page.get_by_label("tile", exact=True).evaluate("e => e.selectedOptions[0].text").startswith("B_s")
    assert said(page).startswith(f"row 1, column 0: byte {pictured(bench, 'B_s').offset((1, 0)) * 2} of")
    wider = page.locator(".tbx-cells-sheet").first.evaluate("sheet => sheet.style.width")
    assert (int(wider[:-2]) - 34) == 2 * (int(before[:-2]) - 34)
    slider.press("ArrowLeft")
    page.get_by_role("option", name="B_s \N{EN DASH} shared memory 32x64 float16, line 9").wait_for(
        state="attached"
    )


DRAWN = """async () => {
  const times = [];
  const real = window.requestAnimationFrame;
  window.requestAnimationFrame = f => real(now => {
    const from = performance.now();
    f(now);
    times.push(performance.now() - from);
  });
  const view = document.querySelector('.tbx-cells-view');
  for (let at = 0; at < 20; at += 1) {
    view.dispatchEvent(new KeyboardEvent('keydown', {key: at % 2 ? 'ArrowUp' : 'ArrowDown', bubbles: true}));
    await new Promise(done => real(() => real(done)));
  }
  window.requestAnimationFrame = real;
  return times.sort((a, b) => a - b)[Math.floor(times.length / 2)];
}"""


def test_a_large_tile_is_drawn_within_a_frame(page: Any) -> None:
    """128 by 128 elements of 128 threads, at the size that fits and with numbers; medians in milliseconds."""
    for name, label in (("block_M", "ArrowRight"), ("block_N", "ArrowRight")):
        slider = page.get_by_role("slider", name=name)
        slider.focus()
        slider.press(label)
    open_tab(page, "Layouts")
    page.get_by_role("option", name=re.compile("^C_local . fragment 128x128 float32")).wait_for(
        state="attached"
    )
    choose(page, "tile", "C_local \N{EN DASH}")
    page.get_by_role("button", name="fit", exact=True).first.click()
    small = page.evaluate(DRAWN)
    for _ in range(8):
        page.get_by_role("button", name="larger cells").first.click()
    large = page.evaluate(DRAWN)
    assert small < 16, small
    assert large < 16, large


def test_another_card_is_chosen_without_compiling(page: Any, bench: Workbench) -> None:
    open_tab(page, "Resources")
    target = bench.session.wish.target
    choose(page, "card", "cuda:sm_86")
    assert page.get_by_text("84 multiprocessors with").count() == 1
    assert bench.session.wish.target == target


def test_a_grid_that_left_the_page_and_came_back_fits_its_place(page: Any) -> None:
    """A notebook takes outputs that are out of sight out of the page."""
    open_tab(page, "Layouts")
    fits = """async place => {
        const bench = window.bench ??= document.querySelector('.tbx');
        const frame = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
        place(bench);
        await frame(); await frame();
        const [view, canvas] = ['.tbx-cells-view', '.tbx-cells-canvas'].map(one => bench.querySelector(one));
        return [view.clientWidth, canvas.clientWidth];
    }"""
    page.evaluate(f"({fits})(bench => {{ window.home = bench.parentElement; bench.remove(); }})")
    narrow = page.evaluate(f"({fits})(bench => {{ home.style.width = '1000px'; home.append(bench); }})")
    assert narrow[0] == narrow[1] > 0
    wide = page.evaluate(f"({fits})(() => {{ home.style.width = ''; }})")
    assert wide[0] == wide[1] > narrow[0]
