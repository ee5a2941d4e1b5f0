"""Names and words of a stage explained in a browser: by the pointer, by the keyboard, definitions folded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import tilebench
from tests.extension.answered_page import bench_page
from tests.workbench.bench_kernels import functions
from tilebench.workbench.live import Workbench

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def bench() -> Iterator[Workbench]:
    out = tilebench.workbench(
        functions()["gemm"], with_={"M": 100, "N": 70, "K": 50}, target="cuda:sm_80",
        stages=["source", "laid_out"],
    )  # fmt: skip
    yield out
    out.close()


@pytest.fixture(scope="module")
def page(bench: Workbench, chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with bench_page(bench, chromium, tmp_path_factory.mktemp("page")) as opened:
        yield opened


def test_definitions_are_folded_open_and_fold_again(page: Any, bench: Workbench) -> None:
    pane = page.locator("[data-stage=laid_out]")
    assert bench.record is not None
    names = bench.record.stage("laid_out").names
    assert pane.locator(".tbx-folded").inner_text().strip() == (
        f"\N{BLACK RIGHT-POINTING SMALL TRIANGLE} {len(names)} lines that define layouts and mappings"
    )
    assert " = T.Fragment(" not in pane.inner_text()
    pane.locator(".tbx-folded").click()
    assert pane.locator(".tbx-folded").count() == 0
    assert pane.inner_text().count("= T.Fragment(") + pane.inner_text().count("= T.SharedLayout(") == len(
        names
    )
    pane.locator(".tbx-row[data-line='3'] .tbx-number").first.click()
    assert pane.locator(".tbx-folded").count() == 1


def test_a_name_a_word_and_an_argument_are_explained_where_the_pointer_rests(
    page: Any, bench: Workbench
) -> None:
    pane, tip = page.locator("[data-stage=laid_out]"), page.locator("[data-stage=laid_out] .tbx-tip")
    assert bench.record is not None
    said = bench.record.stage("laid_out").names
    name = next(name for name in said if name.endswith("_frag"))
    pane.locator(".tbx-said-of", has_text=name).first.hover()
    assert tip.inner_text() == f"{name}: {said[name]}"
    pane.get_by_text("T.alloc_fragment", exact=True).first.hover()
    assert tip.inner_text().startswith("A tile in registers")
    pane.locator(".tbx-said-of", has_text="layout").first.hover()
    assert tip.inner_text().startswith("layout=: where its elements live")
    page.mouse.move(5, 5)
    assert not tip.is_visible()


def test_the_key_i_tells_all_of_a_line_also_of_rows_that_it_goes_on_in(page: Any, bench: Workbench) -> None:
    pane, tip = page.locator("[data-stage=laid_out]"), page.locator("[data-stage=laid_out] .tbx-tip")
    assert bench.record is not None
    lines = bench.record.stage("laid_out").text.splitlines()
    line = next(k for k, text in enumerate(lines) if "T.copy(A[" in text)
    assert pane.locator(f".tbx-row[data-line='{line}']").count() > 1
    pane.locator(f".tbx-row[data-line='{line}']").first.click()
    page.keyboard.press("i")
    told = tip.inner_text().replace("\N{EM SPACE}", "")
    name = lines[line].rsplit("map=", 1)[1].rstrip(")")
    assert f"{name}: {bench.record.stage('laid_out').names[name]}" in told
    assert told.startswith(f"{name}: ")
    assert "map=: which thread does which elements" in told
    number, bound = next((k, text) for k, text in enumerate(lines, 1) if "A_s = T.alloc_shared(" in text)
    assert f"line {number}: {bound.strip()}" in told
    assert "line 2: A: T.Tensor((100, 50), T.float16)" in told
    page.keyboard.press("ArrowDown")
    assert not tip.is_visible()
