"""The built extension in JupyterLab: records are shown, keys work, `%%tile` cells are marked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.extension.lab import becomes, browser_page, lab_server, open_notebook, run_all, write_notebook
from tilebench.record import (
    Choice,
    CompileRecord,
    ParamRecord,
    PlaceRecord,
    Remark,
    Resources,
    RunRecord,
    StageRecord,
)
from tilebench.workbench.bundle import RecordView, mime_bundle
from tilebench.workbench.packed import pack

MIME = "application/vnd.tilebench.record.v1+json"
pytestmark = [pytest.mark.browser, pytest.mark.slow]

SCROLLED = "document.querySelector('.jp-WindowedPanel-outer, .jp-Notebook').scrollTop"

TILE_CELL = """\
%%tile --with M=8 --run
def main(A):
    # T.copy in a comment
    T.copy(A, B)
    x = "T.clear" + A.T.clear
"""


def compile_record() -> CompileRecord:
    """Three stages of a few lines, with line maps and every table filled."""
    source = "with T.Kernel(4) as bx:\n    T.clear(C_l)\n    T.copy(C_l, C[bx])\n"
    laid = "with T.Kernel(4, threads=128) as bx:\n    T.fill(C_l, T.float32(0))\n    T.copy(C_l, C[bx])\n"
    cuda = "".join(f"// line {n}\n" for n in range(298)) + "c = 0.0f;\nout[bx] = c;\n"
    lines = ((7,), (8,), (9,))
    return CompileRecord(
        kernel="main",
        target="cuda:sm_90a",
        parameters={"M": 8},
        arguments=(ParamRecord("C", (8,), "float32", written=True, read=False),),
        stages=(
            StageRecord("source", "python", source, lines, seconds=0.001),
            StageRecord("bounded", "tile-ir", laid, lines),
            StageRecord("laid_out", "tile-ir", laid, lines),
            StageRecord("cuda", "cuda", cuda, ((),) * 298 + ((8,), (9,)), seconds=0.1),
            StageRecord("sass", "nvsass", "", pending=True),
        ),
        resources=Resources(128, registers=40, shared_bytes=49152, occupancy=0.5, limits={"registers": 12}),
        choices=(Choice("C_l", "swizzle", "on", "default", "to <avoid> conflicts"),),
        remarks=(Remark("coalesce", "missed", "stride 3", PlaceRecord("k.py", 9), {"sectors": 12}),),
        source_first_line=7,
    )


def displaying(bundle: dict[str, Any]) -> str:
    return f"from IPython.display import display\ndisplay({bundle!r}, raw=True)"


@pytest.fixture(scope="module")
def page(chromium: str, labextensions: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    root = tmp_path_factory.mktemp("notebooks")
    run = RunRecord("main", "cpu", {"M": 8}, samples=(3e-6, 1e-6, 2e-6), method="cold", flops=4e3)
    broken = {"record": {"kernel": "k"}, "runs": []}
    cells = [
        # A cell that fails would stop the run; what `%%tile` does in the kernel is tested elsewhere.
        displaying(mime_bundle(RecordView(compile_record(), [run])))
        + "\nget_ipython().register_magic_function(lambda line, cell: None, 'cell', 'tile')",
        displaying({MIME: {"format": 1, "packed": pack(broken)}, "text/plain": "plain"}),
        displaying({MIME: {"format": 99}, "text/plain": "plain"}),
        TILE_CELL,
        "# no tile cell\nT.copy(A, B)\n'%%tile'",
    ]
    write_notebook(root / "records.ipynb", cells)
    home = tmp_path_factory.mktemp("home")
    with lab_server(root, home, labextensions) as address, browser_page(chromium) as opened:
        open_notebook(opened, address, "records.ipynb")
        run_all(opened)
        opened.locator(".tb-failure").nth(1).wait_for()
        yield opened


def cell(page: Any, at: int) -> Any:
    return page.locator(".jp-Notebook .jp-Cell").nth(at)


def stages(output: Any) -> list[str]:
    return output.locator(".tbx-pane").evaluate_all("panes => panes.map(p => p.dataset.stage)")


def rows(output: Any, stage: str, kind: str = "") -> list[str]:
    """The texts of the rows of a pane that have a class, without their numbers."""
    found = output.locator(f"[data-stage={stage}] .tbx-row{kind}")
    return found.evaluate_all(
        "rows => rows.map(r => [...r.childNodes].slice(1).map(n => n.textContent).join(''))"
    )


def test_stages_stand_side_by_side_and_are_chosen_by_buttons(page: Any) -> None:
    output = cell(page, 0)
    # As many of the five as can be read beside each other.
    shown = stages(output)
    assert shown[0] == "source"
    assert shown[-1] == "sass"
    assert len(shown) < 5
    for name in shown[1:]:
        output.get_by_role("button", name=name, exact=True).click()
    for name in ("laid_out", "cuda", "bounded"):
        output.get_by_role("button", name=name, exact=True).click()
    assert stages(output) == ["source", "bounded", "laid_out", "cuda"]
    button = output.get_by_role("button", name="bounded", exact=True)
    assert button.get_attribute("aria-pressed") == "true"
    output.locator("[data-stage=bounded] .tbx-code").focus()
    page.keyboard.press("x")
    assert stages(output) == ["source", "laid_out", "cuda"]
    assert button.get_attribute("aria-pressed") == "false"


def test_a_line_chosen_by_keyboard_marks_its_kin_and_scrolls_only_their_pane(page: Any) -> None:
    output = cell(page, 0)
    source = output.locator("[data-stage=source] .tbx-code")
    source.focus()
    before = page.evaluate(SCROLLED)
    page.keyboard.press("ArrowDown")
    lit = rows(output, "laid_out", ".tbx-lit")  # a narrow pane breaks it in two
    assert " ".join(row.strip() for row in lit) == "T.fill(C_l, T.float32(0))"
    page.keyboard.press("Enter")
    assert rows(output, "cuda", ".tbx-lit") == ["c = 0.0f;"]
    assert page.evaluate(SCROLLED) == before
    chosen = source.get_attribute("aria-activedescendant")
    assert "T.clear(C_l)" in output.locator(f"#{chosen}").inner_text()
    assert "Pinned to line 8 of the kernel" in output.get_by_role("toolbar", name="stages").inner_text()
    page.keyboard.press("Escape")
    assert rows(output, "cuda", ".tbx-lit") == []


def test_what_stands_before_the_kernel_is_folded_and_opens(page: Any) -> None:
    output = cell(page, 0)
    told = [" 298 lines in front of the kernel"]
    becomes(page, lambda: [text[-len(told[0]) :] for text in rows(output, "cuda")[:1]], told)
    output.locator("[data-stage=cuda] .tbx-folded").click()
    assert rows(output, "cuda")[0] == "// line 0"
    # All of it is there, and little of it is drawn.
    assert output.locator("[data-stage=cuda] .tbx-row").count() < 90
    page.keyboard.press("End")
    output.locator("[data-stage=cuda] .tbx-code").focus()
    page.keyboard.press("End")
    assert rows(output, "cuda")[-1] == "out[bx] = c;"


def test_a_pane_is_searched_and_takes_all_the_width(page: Any) -> None:
    output = cell(page, 0)
    pane = output.locator("[data-stage=cuda]")
    pane.locator(".tbx-code").focus()
    page.keyboard.press("m")
    assert output.locator(".tbx-pane:visible").count() == 1
    page.keyboard.press("/")
    page.keyboard.type("line 20")
    assert pane.locator(".tbx-found").inner_text() == "1/11"
    page.keyboard.press("Enter")
    assert pane.locator(".tbx-found").inner_text() == "2/11"
    assert pane.locator("mark.tbx-hit").count() >= 1
    page.keyboard.press("Escape")
    page.keyboard.press("m")
    assert output.locator(".tbx-pane:visible").count() == 3


def test_texts_are_coloured(page: Any) -> None:
    output = cell(page, 0)
    words = output.locator("[data-stage=source] .tb-t-builtin")
    assert words.all_inner_texts() == ["T.clear", "T.copy"]
    assert output.locator("[data-stage=source] .tb-t-control").all_inner_texts() == ["T.Kernel"]


def test_tabs_are_walked_with_arrow_keys(page: Any) -> None:
    output = cell(page, 0)
    output.get_by_role("tab", name="Chart").focus()
    shown = output.get_by_role("tabpanel")
    assert "2 us" in shown.text_content()
    assert "2 GFLOP/s" in shown.text_content()
    page.keyboard.press("ArrowRight")
    assert output.get_by_role("tab", name="Resources").get_attribute("aria-selected") == "true"
    assert "48 KiB" in shown.inner_text()
    assert "50.0 %" in shown.inner_text()
    page.keyboard.press("ArrowRight")
    assert "sectors=12" in shown.inner_text()
    page.keyboard.press("ArrowRight")
    assert "to <avoid> conflicts" in shown.inner_text()
    page.keyboard.press("Home")
    assert output.locator(".tbx-plot").is_visible()


def test_a_broken_record_and_one_of_another_version_say_so(page: Any) -> None:
    assert "record.target is no string" in cell(page, 1).locator("[role=alert]").inner_text()
    assert "format 99" in cell(page, 2).locator("[role=alert]").inner_text()


def test_only_tile_cells_are_marked(page: Any) -> None:
    marked = cell(page, 3)
    assert marked.locator(".tb-magic").all_inner_texts() == ["%%tile"]
    assert marked.locator(".tb-magic-option").all_inner_texts() == ["--with", "--run"]
    assert marked.locator(".tb-tile-word").all_inner_texts() == ["T.copy"]
    plain = cell(page, 4)
    assert plain.locator(".tb-tile-word, .tb-magic, .tb-magic-line").count() == 0
    # Taking the magic away takes the marks away; giving it back brings them back.
    page.evaluate(
        """() => {
            const cell = window.jupyterapp.shell.currentWidget.content.widgets[3];
            cell.model.sharedModel.setSource(cell.model.sharedModel.getSource().replace('%%tile', '#'));
        }"""
    )
    assert marked.locator(".tb-tile-word").count() == 0
    page.evaluate(
        """() => {
            const cell = window.jupyterapp.shell.currentWidget.content.widgets[3];
            cell.model.sharedModel.setSource(cell.model.sharedModel.getSource().replace('#', '%%tile'));
        }"""
    )
    assert marked.locator(".tb-tile-word").all_inner_texts() == ["T.copy"]


def test_nothing_went_wrong_in_the_console(page: Any) -> None:
    assert page.console_errors == []
