"""Opcodes of PTX and SASS explained in a browser, by the pointer and by the keyboard; words of the source."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tilebench
from tests.extension.answered_page import bench_page
from tests.extension.lab import drawn
from tests.library.test_opcodes import PTX, SASS
from tests.workbench.bench_kernels import functions

pytestmark = [pytest.mark.browser, pytest.mark.slow]
TABLE = json.loads((Path(tilebench.__file__).parent / "workbench" / "opcodes.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def page(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    bench = tilebench.workbench(
        functions()["gemm"], with_={"M": 256, "N": 256, "K": 128}, target="cuda:sm_80",
        stages=["source", "ptx", "sass"],
    )  # fmt: skip
    with bench_page(bench, chromium, tmp_path_factory.mktemp("page")) as opened:
        yield opened
    bench.close()


@pytest.mark.parametrize(("stage", "form", "language"), [("sass", SASS, "sass"), ("ptx", PTX, "ptx")])
def test_every_drawn_opcode_is_explained(page: Any, stage: str, form: Any, language: str) -> None:
    """What a row says of its opcode is what the table has, for all rows of three screens."""
    pane = page.locator(f"[data-stage={stage}]")
    pane.locator(".tbx-code").focus()
    # Each line as one row.
    page.keyboard.press("w")
    seen: set[str] = set()
    for key in ("Home", "PageDown", "PageDown", "End"):
        page.keyboard.press(key)
        drawn(page)
        rows = pane.locator(".tbx-row").evaluate_all(
            """rows => rows.map(row => {
                const own = [...row.childNodes].filter(node => node.nodeName !== 'I');
                const says = [...row.querySelectorAll('span[data-says]')].map(place => place.dataset.says);
                return [own.map(node => node.textContent).join(''), says];
            })"""
        )
        for text, says in rows:
            found = form.match(text)
            if found is None or ";" not in text or text.strip().startswith((".", "//")):
                continue
            seen.add(found[1])
            assert any(said.startswith(f"{found[1]}: {TABLE[language][found[1]]}") for said in says), text
    assert len(seen) > 8, seen
    page.keyboard.press("w")


def test_the_tip_says_what_opcode_and_parts_do(page: Any) -> None:
    pane = page.locator("[data-stage=sass]")
    tip = pane.locator(".tbx-tip")
    pane.locator(".tbx-code").focus()
    page.keyboard.press("/")
    page.keyboard.type("LDGSTS.E")
    page.keyboard.press("Enter")
    drawn(page)
    pane.locator(".tbx-row.tbx-now .tbx-said-of", has_text="LDGSTS").first.hover()
    said = tip.inner_text()
    assert said.startswith("LDGSTS: an asynchronous copy from global to shared memory")
    assert ".E: addresses have 64 bits" in said
    page.mouse.move(5, 5)
    page.keyboard.press("Escape")
    pane.locator(".tbx-code").focus()
    page.keyboard.press("i")
    assert "LDGSTS: an asynchronous copy from global to shared memory" in tip.inner_text()


def test_words_of_the_source_are_explained(page: Any) -> None:
    pane = page.locator("[data-stage=source]")
    pane.locator(".tbx-said-of", has_text="T.ceildiv").first.hover()
    said = pane.locator(".tbx-tip").inner_text()
    assert said.startswith("T.ceildiv(")
    assert "\n" in said
