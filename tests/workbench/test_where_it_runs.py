"""What is left of a bench where no script of ours runs: VS Code, Colab, GitHub, nbclient, nbconvert."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

import tilebench
from tests.extension.lab import browser_page
from tests.workbench.bench_kernels import GEMM, IMPORTS, functions
from tilebench.workbench.parts import static_html

nbformat = pytest.importorskip("nbformat")
SHAPES = {"M": 200, "N": 170, "K": 130}
WIDGETS = ("application/vnd.jupyter.widget-view+json", "Loading widget", "Error displaying widget", "VBox(")


class Found(HTMLParser):
    """The elements and attributes of a page, and what each `style` says."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]


@pytest.fixture(scope="module")
def html() -> str:
    bench = tilebench.workbench(
        functions()["gemm"],
        with_=SHAPES,
        target="cuda:sm_80",
        stages=("source", "laid_out", "cuda"),
        check=True,
    )
    assert bench.report.ok
    return static_html(bench.session.picture)


def test_the_html_form_asks_nobody_and_runs_nothing(html: str) -> None:
    found = Found(html)
    assert not {"script", "iframe", "link", "object", "embed", "form", "base", "meta"} & set(found.tags)
    names = {name for name, _ in found.attributes}
    assert not {name for name in names if name.startswith("on") or name in ("src", "srcset", "action")}
    addresses = [value for name, value in found.attributes if name in ("href", "xlink:href")]
    assert all(value.startswith("#") for value in addresses)
    assert re.findall(r"url\(|@import|https?://(?!www\.w3\.org)", html) == []


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("host", ["vscode", "colab", "github"])
def test_it_is_read_where_outputs_are_cleaned(html: str, host: str, chromium: str) -> None:
    cleaned = re.sub(r"<script.*?</script>", "", html, flags=re.S)
    if host == "github":  # neither sheets nor styles of elements
        cleaned = re.sub(r"<style.*?</style>", "", cleaned, flags=re.S)
        cleaned = re.sub(r'\sstyle="[^"]*"', "", cleaned)
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    theme = "background:#1e1e1e;color:#d4d4d4" if host == "vscode" else ""
    page_html = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><body style="{theme}">{cleaned}'
    )
    asked: list[str] = []
    with browser_page(chromium) as page:
        page.on("request", lambda request: asked.append(request.url))
        page.set_content(page_html)
        said = page.locator("body").inner_text()
        assert "T.prim_func" in said
        assert "gemm" in said
        assert "within" in said  # the check's verdict
        assert page.evaluate("document.documentElement.scrollWidth") <= 1400 or host == "github"
        assert [each for each in page.console_errors if "Content" in each] == []
    assert asked == []


def test_a_notebook_that_a_program_runs_is_small_and_prints_without_widgets() -> None:
    nbclient = pytest.importorskip("nbclient")
    nbconvert = pytest.importorskip("nbconvert")
    magic = "%%tile --with M=200 N=170 K=130 --target cuda:sm_80 --sweep block_M=32,64 --check\n"
    cells = [nbformat.v4.new_code_cell(text) for text in (IMPORTS + "%load_ext tilebench", magic + GEMM)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    assert "widgets" not in notebook.metadata
    assert len(json.dumps(notebook)) < 300_000
    exporter: Any = nbconvert.HTMLExporter(template_name="basic")
    body, _ = exporter.from_notebook_node(notebook)
    assert "T.prim_func" in body
    assert "registers" in body
    assert [word for word in WIDGETS if word in body] == []
