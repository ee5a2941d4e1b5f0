"""The report without a browser: down to SASS where NVIDIA's compiler is, else with what gives it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.workbench.bench_kernels import GEMM
from tilebench.workbench.demo import STAGE_LINES, Demo
from tilebench.workbench.report import Section, report_html

LINE = "%tile gemm --with M=100 N=90 K=80 --target cuda:sm_80 --stages pipelined,threaded,cuda,ptx,sass"


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> Demo:
    """One that has measured the position of `LINE`: the same again is opened for its stages."""
    from tilebench.workbench import live

    opened = live.open_live

    def measured(*args: Any, **options: Any) -> Any:
        assert not options["run"]
        assert not options["check"]
        return opened(*args, **options)

    monkeypatch.setattr(live, "open_live", measured)
    found = Demo()
    found.cell("import tilebench\nimport tilebench.language as T\n" + GEMM, "kernels.py")
    found.measured.add(repr(("gemm", "cuda:sm_80", {"M": 100, "N": 90, "K": 80}, "")))
    return found


def report(demo: Demo) -> str:
    parts = demo.cell(LINE, "quickstart.ipynb cell [2]")
    html = report_html("tilebench", [Section("Down to SASS", tuple(parts), STAGE_LINES)])
    return html.partition("<script")[0]


def test_every_stage_down_to_sass(demo: Demo, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("nvidia")
    html = report(demo)
    assert re.findall(r'aria-label="stage (\w+)"', html) == ["pipelined", "threaded", "cuda", "ptx", "sass"]
    assert "not made yet" not in html
    assert "HMMA" in html
    assert demo.wrong == 0
    assert "stages pipelined, threaded, cuda, ptx, sass\n" in capsys.readouterr().out


def test_without_the_compiler_the_extra_is_named(
    demo: Demo, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from tilebench.targets.cuda.compiler import library

    monkeypatch.setattr(library, "_loaded", None)
    monkeypatch.setattr(library, "find_library", lambda: None)
    monkeypatch.setattr(library, "_system_library", lambda: None)
    monkeypatch.setenv("TILEBENCH_CACHE_DIR", str(tmp_path))
    html = report(demo)
    assert html.count("not made yet") == 2
    assert "__global__" in html
    said = capsys.readouterr().out
    assert "stages pipelined, threaded, cuda; no ptx, sass: the CUDA compiler NVRTC is not installed" in said
    for text in (said, html):
        assert "[cuda]" in text
    assert demo.wrong == 0
