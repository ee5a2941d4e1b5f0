"""Editing a `%%tile` cell in JupyterLab: marks of a run and without one, F8, what hovering says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.extension.lab import becomes, browser_page, lab_server, open_notebook, run_all, write_notebook
from tests.extension.test_live_bench import CELL, settled

pytestmark = [pytest.mark.browser, pytest.mark.slow]

HEAD = "import tilebench, tilebench.language as T\n%load_ext tilebench"
BROKEN = CELL.replace("T.gemm(A_s, B_s, C_l)", "T.gemm(A_s, C_l, C_l)")


@pytest.fixture(scope="module")
def page(chromium: str, labextensions: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    root = tmp_path_factory.mktemp("notebooks")
    write_notebook(root / "cells.ipynb", (HEAD, CELL))
    with (
        lab_server(root, tmp_path_factory.mktemp("home"), labextensions) as address,
        browser_page(chromium) as opened,
    ):
        opened.set_viewport_size({"width": 1280, "height": 720})
        open_notebook(opened, address, "cells.ipynb")
        run_all(opened)
        settled(opened)
        yield opened


def cell(page: Any) -> Any:
    return page.locator(".jp-Notebook .jp-Cell").nth(1)


def write(page: Any, text: str) -> None:
    page.evaluate(
        """text => {
            const cell = window.jupyterapp.shell.currentWidget.content.widgets[1];
            cell.model.sharedModel.setSource(text);
        }""",
        text,
    )


def run(page: Any) -> None:
    """Run the tile cell and wait for its end."""
    page.evaluate(
        """async () => {
            const notebook = window.jupyterapp.shell.currentWidget.content;
            notebook.activeCellIndex = 1;
            notebook.deselectAll();
            await window.jupyterapp.commands.execute('notebook:run-cell');
        }"""
    )


def ranges(page: Any, kind: str = "error") -> list[str]:
    """The texts with a wavy line of one kind; a text of several colours is one."""
    return page.evaluate(
        """kind => {
            const out = [];
            for (const line of document.querySelectorAll('.jp-Cell')[1].querySelectorAll('.cm-line')) {
                const found = [...line.querySelectorAll(`.cm-lintRange-${kind}`)].map(e => e.textContent);
                if (found.length) out.push(found.join(''));
            }
            return out;
        }""",
        kind,
    )


def marked(page: Any, expected: list[str], kind: str = "error") -> None:
    """These texts have a wavy line, at last and after the editor had its time to change them."""
    page.wait_for_timeout(400)
    becomes(page, lambda: ranges(page, kind), expected)


def gutter(page: Any, kind: str) -> int:
    return cell(page).locator(f".cm-lint-marker-{kind}").count()


def tip(page: Any, place: Any) -> str:
    page.mouse.move(3, 3)
    place.scroll_into_view_if_needed()
    place.hover()
    shown = page.locator(".cm-tooltip-hover")
    shown.wait_for()
    return shown.inner_text()


def test_an_error_is_marked_at_its_range_until_its_text_changes(page: Any) -> None:
    write(page, BROKEN)
    run(page)
    marked(page, ["T.gemm(A_s, C_l, C_l)"])
    becomes(page, lambda: gutter(page, "error"), 1)
    # Places that have a part in it are marked more softly.
    starts = ["T.alloc_shared", "T.alloc_fragme"]
    becomes(page, lambda: [text[:14] for text in ranges(page, "info")], starts)
    said = tip(page, cell(page).locator(".cm-lintRange-error").first)
    assert "the operands of this gemm disagree on k" in said
    assert "the same k in both" in said
    assert "32 in dimension 1 of A_s" in said
    # An edit elsewhere moves the mark along; one at the place ends it.
    write(
        page,
        BROKEN.replace(
            "            T.clear(C_l)\n", "            # one line more\n            T.clear(C_l)\n"
        ),
    )
    marked(page, ["T.gemm(A_s, C_l, C_l)"])
    write(page, BROKEN.replace("C_l, C_l)", "B_s, C_l)"))
    marked(page, [])
    write(page, BROKEN)
    run(page)
    marked(page, ["T.gemm(A_s, C_l, C_l)"])
    write(page, CELL)
    run(page)
    marked(page, [])


def test_the_output_of_marks_takes_no_room(page: Any) -> None:
    write(page, BROKEN)
    run(page)
    outputs = cell(page).locator(".jp-OutputArea-child")
    read = "outputs => outputs.slice(0, 2).map(output => output.offsetHeight > 50)"
    becomes(page, lambda: outputs.evaluate_all(read), [False, True])
    page.wait_for_timeout(300)
    assert outputs.evaluate_all("outputs => outputs[0].offsetHeight") == 0


def test_f8_goes_from_mark_to_mark_and_reads_them(page: Any) -> None:
    write(page, BROKEN)
    run(page)
    marked(page, ["T.gemm(A_s, C_l, C_l)"])
    cell(page).locator(".cm-content").click(position={"x": 5, "y": 5})
    page.keyboard.press("Control+Home")
    for start in ("T.alloc_shared", "T.alloc_fragme", "T.gemm(A_s, C_", "T.alloc_shared"):
        page.keyboard.press("F8")
        becomes(page, lambda: page.evaluate("window.getSelection().toString()")[:14], start)
    page.keyboard.press("Shift+F8")
    becomes(page, lambda: page.evaluate("window.getSelection().toString()"), "T.gemm(A_s, C_l, C_l)")
    said = cell(page).locator(".cm-announced").inner_text()
    assert "error, line 14: shape error: the operands of this gemm disagree on k" in said


def test_what_the_language_has_not_is_marked_without_running(page: Any) -> None:
    write(page, CELL.replace("T.clear(", "T.claer(").replace("--with", "--wiht"))
    marked(page, ["--wiht"])
    marked(page, ["T.claer"], "warning")
    assert "did you mean T.clear?" in tip(page, cell(page).locator(".cm-lintRange-warning").first)
    assert "did you mean --with?" in tip(page, cell(page).locator(".cm-lintRange-error").first)
    write(page, "%%tile\n# T.claer\nx = 'T.claer'\ny = A.T.claer\nT.cluster_sync(x)\n")
    marked(page, ["T.cluster_sync"], "warning")
    assert "Hopper" in tip(page, cell(page).locator(".cm-lintRange-warning").first)
    # Another cell has none of it.
    write(page, "T.claer(1)\n")
    marked(page, [], "warning")
    becomes(page, cell(page).locator(".cm-gutter-lint").count, 0)


def test_hovering_tells_of_words_and_options(page: Any) -> None:
    write(page, CELL)
    said = tip(page, cell(page).locator(".tb-tile-word", has_text="T.gemm").first)
    assert "T.gemm(A: Tile, B: Tile, C: Tile" in said
    assert "Add a product of tiles" in said
    assert "cuda:sm_75: fma; mma (float16, int8, uint8)" in said
    assert "values that a slider walks" in tip(
        page, cell(page).locator(".tb-magic-option", has_text="--sweep")
    )


def completions(page: Any, text: str, whole: Callable[[list[str]], bool]) -> list[str]:
    """What Tab offers at `|` of a text, when the list is whole; it stays open."""
    page.keyboard.press("Escape")
    at = text.index("|")
    write(page, text.replace("|", ""))
    cell(page).locator(".cm-content").click(position={"x": 5, "y": 5})
    page.keyboard.press("Control+Home")
    for _ in range(at):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Tab")
    items = page.locator(".jp-Completer-item .jp-Completer-match")
    page.wait_for_timeout(700)  # another maker of completions may still add to it
    becomes(page, lambda: whole(items.all_inner_texts()), True)
    return items.all_inner_texts()


def text_of(page: Any) -> str:
    return page.evaluate(
        "window.jupyterapp.shell.currentWidget.content.widgets[1].model.sharedModel.getSource()"
    )


def test_completion_of_names_says_their_signatures(page: Any) -> None:
    alone = ["reduce_sum(buffer, out, dim, clear, batch)"]
    # One choice is put in at once where there is no other.
    completions(page, "%%tile\nT.reduce_s|", lambda found: found == alone or "T.reduce_sum" in text_of(page))
    found = completions(page, "%%tile\nT.alloc_|", lambda found: len(found) > 3)
    names = [text.partition("(")[0] for text in found]
    assert names == sorted(set(names))
    assert {"alloc_shared", "alloc_fragment", "alloc_local", "alloc_var"} <= set(names)
    assert any(text.startswith("alloc_shared(shape, dtype") for text in found)
    page.keyboard.press("Enter")
    becomes(page, lambda: text_of(page).endswith(f"T.{names[0]}"), True)


def test_completion_of_options_and_their_values(page: Any) -> None:
    options = ["--schedule", "--stages", "--sweep"]
    found = completions(
        page,
        "%%tile --s|\n" + CELL.partition("\n")[2],
        lambda found: [text.partition(" ")[0] for text in found] == options,
    )
    assert "--sweep values that a slider walks" in [" ".join(text.split()) for text in found]
    values = ["16,32,64,128,256", "16", "32"]
    text = "%%tile --with M=4 --sweep block_M=|\n" + CELL.partition("\n")[2]
    completions(page, text, lambda found: found[:3] == values)
    page.keyboard.press("Enter")
    chosen = "%%tile --with M=4 --sweep block_M=16,32,64,128,256\n"
    becomes(page, lambda: text_of(page)[: len(chosen)], chosen)
    completions(page, "%%tile --target cuda:sm_9|\n", lambda found: found == ["cuda:sm_90", "cuda:sm_90a"])
    page.keyboard.press("Escape")


def test_a_bench_marks_what_it_says_of_lines(page: Any) -> None:
    """The diagnosis and missed remarks of the bench stand in the editor too, and follow the slider."""
    copied = "T.copy(B[ko * block_K, bx * block_N], B_s)"
    mark = (
        cell(page)
        .locator(".cm-lintRange-info", has_text="T.copy")
        .or_(cell(page).locator(".cm-lintRange-info", has_text="block_N], B_s"))
    )
    write(page, CELL.replace("N=512", "N=510").replace("--sweep", "--sweep N=510,512 --sweep"))
    run(page)
    settled(page)
    mark.first.wait_for()
    assert copied in ranges(page, "info")
    # Rows of 512 divide by every width of access.
    page.get_by_label("N", exact=True).press("ArrowRight")
    mark.first.wait_for(state="detached")
    assert copied not in ranges(page, "info")
    page.get_by_label("N", exact=True).press("ArrowLeft")
    mark.first.wait_for()
    assert copied in ranges(page, "info")


def test_nothing_went_wrong_in_the_console(page: Any) -> None:
    assert page.console_errors == []
