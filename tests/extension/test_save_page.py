"""Saving from a page: files by the kernel's side, the position as a line, downloads without a kernel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tilebench
from tests.extension.answered_page import bench_page
from tests.extension.lab import browser_page
from tests.workbench.bench_kernels import functions
from tilebench.record import BenchRecord
from tilebench.workbench.front.script import script
from tilebench.workbench.parts import static_bundle

pytestmark = [pytest.mark.browser, pytest.mark.slow]

STATIC = """<!doctype html><meta charset=utf-8><body><div data-tilebench="{packed}"></div><script type=module>
const from = text => URL.createObjectURL(new Blob([text], {{type: 'text/javascript'}}));
const front = await import(from({script}));
await front.mountAll(document);
</script>"""


def test_the_menu_saves_and_goes_to_a_position(
    chromium: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bench = tilebench.workbench(functions()["gemm"], with_={"M": 100, "N": 70, "K": 50}, target="cuda:sm_80")
    with bench_page(bench, chromium, tmp_path) as page:
        opener = page.get_by_role("button", name="Save")
        opener.focus()
        page.keyboard.press("Enter")
        assert opener.get_attribute("aria-expanded") == "true"
        assert page.evaluate("document.activeElement.textContent") == "Kernel + schedule"
        page.keyboard.press("Enter")
        page.locator(".tbx-said", has_text="Saved gemm.py and gemm.toml").wait_for()
        assert {path.name for path in tmp_path.iterdir()} == {"bench.html", "gemm.py", "gemm.toml"}
        assert opener.get_attribute("aria-expanded") == "false"
        opener.click()
        line = page.get_by_role("textbox", name="position as a line")
        assert line.input_value() == bench.position
        line.fill(bench.position.replace("block_M=64", "block_M=32"))
        line.press("Enter")
        page.locator(".tbx-knob", has_text="block_M").locator("output", has_text="32").wait_for()
        assert bench.session.wish.values["block_M"] == 32
        opener.click()
        page.get_by_role("textbox", name="position as a line").fill("gemm blok_M=3")
        page.keyboard.press("Enter")
        page.locator(
            ".tbx-said", has_text="Not gone: this workbench has no blok_M; did you mean block_M?"
        ).wait_for()
    bench.close()


def test_a_page_without_a_kernel_hands_out_what_it_holds(chromium: str, tmp_path: Path) -> None:
    bench = tilebench.workbench(
        functions()["gemm"], with_={"M": 100, "N": 70, "K": 50}, target="cpu", run=True
    )
    bundle: dict[str, Any] = static_bundle(bench.session.picture)
    packed = next(each["packed"] for each in bundle.values() if isinstance(each, dict))
    (tmp_path / "page.html").write_text(STATIC.format(packed=packed, script=json.dumps(script())))
    with browser_page(chromium) as page:
        page.goto((tmp_path / "page.html").as_uri())
        page.locator(".tbx-row").first.wait_for()
        page.get_by_role("button", name="Save").click()
        with page.expect_download() as waiting:
            page.get_by_role("button", name="Record (.tbz)").click()
        assert waiting.value.suggested_filename == "gemm.tbz"
        waiting.value.save_as(tmp_path / "gemm.tbz")
        with page.expect_download() as waiting:
            page.get_by_role("button", name="Text of bounded").click()
        assert waiting.value.suggested_filename == "gemm.bounded.py"
        waiting.value.save_as(tmp_path / "bounded.py")
        assert page.console_errors == []
    assert bench.record is not None
    assert (tmp_path / "bounded.py").read_text() == bench.record.stage("bounded").text
    found = tilebench.open_record(tmp_path / "gemm.tbz")
    assert isinstance(found, BenchRecord)
    assert found.compilation.stage("bounded") == bench.record.stage("bounded")
    assert found.compilation.parameters == bench.record.parameters
    assert [run.config for run in found.runs] == [run.config for run in bench.runs]
    assert found.runs[0].seconds == pytest.approx(bench.runs[0].seconds, rel=1e-3)
    bench.close()
