"""What a bench leaves behind: files that run without it, records that open, its position as one line."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tilebench
from tests.workbench.bench_kernels import functions
from tilebench.errors import OptionError
from tilebench.record import BenchRecord
from tilebench.workbench.front.answers import answer
from tilebench.workbench.front.build import bench_state
from tilebench.workbench.keeping import start_values
from tilebench.workbench.live import Workbench
from tilebench.workbench.options import parse_line
from tilebench.workbench.position_text import read_position, spelled

ROOT = Path(__file__).resolve().parents[2]
SHAPES = {"M": 100, "N": 70, "K": 50}
START = "gemm M=100 N=70 K=50 block_M=64 block_N=64 block_K=32 num_stages=2 threads=128 target=cuda:sm_80"


@pytest.fixture
def bench() -> Iterator[Workbench]:
    out = tilebench.workbench(functions()["gemm"], with_=SHAPES, target="cuda:sm_80")
    yield out
    out.close()


def run(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, timeout=300, check=False, cwd="/",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def test_a_position_is_a_line_and_back(bench: Workbench) -> None:
    assert bench.position == START
    bench.set(block_M=32, **{"ko.num_stages": 3, "A_s.swizzle": False, "order": 4})
    there = bench.position
    assert there == START.replace("block_M=64", "block_M=32").replace(
        " target", " ko.num_stages=3 A_s.swizzle=False order=4 target"
    )
    bench.go(START)
    assert (bench.position, bench.session.wish.choices) == (START, {})
    bench.go(there)
    assert bench.position == there
    # What a line does not name stays; the kernel's name may be left out.
    bench.go("block_N=128 target=cpu")
    assert bench.position == there.replace("block_N=64", "block_N=128").replace(
        " ko.num_stages=3 A_s.swizzle=False order=4 target=cuda:sm_80", " target=cpu"
    )


def test_a_line_that_is_no_position_is_refused(bench: Workbench) -> None:
    for line, message in (
        ("other block_M=32", "this bench shows gemm"),
        ("gemm blok_M=32", "this workbench has no blok_M"),
        ("gemm --run", "--run is no part of a position"),
        ("gemm edited=3", "this workbench has no edit 3"),
        ("gemm edited=cuda", "edited=cuda names no edit"),
        ("gemm block_M=32 block_M=64", "block_M is given twice"),
    ):
        with pytest.raises(OptionError, match=message):
            bench.go(line)
    assert bench.position == START


def test_an_edit_is_part_of_a_position(bench: Workbench) -> None:
    assert bench.record is not None
    bench.edit("cuda", bench.record.stage("cuda").text + "// mine\n")
    there = bench.position
    assert there == START + " edited=1"
    bench.go(START)
    assert bench.session.wish.edit is None
    bench.go(there)
    assert bench.session.wish.edit is not None


def test_a_position_opens_a_bench_and_stands_on_a_line_of_tile(bench: Workbench) -> None:
    line = START.replace("block_M=64", "block_M=32") + " ko.num_stages=3"
    made = tilebench.workbench(functions()["gemm"], at=line)
    assert (made.session.wish.values["block_M"], dict(made.session.wish.choices)) == (
        32,
        {"ko.num_stages": 3},
    )
    assert made.record is not None
    assert made.record.target == "cuda:sm_80"
    made.close()
    options = parse_line(line + " --check")
    assert (options.kernel, options.target, options.check) == ("gemm", "cuda:sm_80", True)
    start = start_values(functions()["gemm"], options.values, options.target, options.position)
    # `threads` is a parameter of this kernel, and a choice of the schedule where it is none.
    assert (start.given["threads"], dict(start.choices)) == (128, {"ko.num_stages": 3})
    with pytest.raises(OptionError, match="M is given twice"):
        start_values(functions()["gemm"], {"M": 3}, None, line)
    with pytest.raises(OptionError, match="an edit is kept by the bench on which it was made"):
        start_values(functions()["gemm"], {}, None, {"edited": 1})
    with pytest.raises(OptionError, match="the target is given twice"):
        parse_line("gemm target=cpu --target cuda")


def test_values_are_spelled_so_that_a_line_reads_them_back() -> None:
    for value in (1, -2.5, True, None, "float16", "1", "True", "two words", "it's", (64, 128), "a=b"):
        line = "gemm " + shlex.quote(f"x={spelled(value)}")
        assert read_position(line).values == {"x": value}


def test_kernel_and_schedule_run_without_the_bench(bench: Workbench, tmp_path: Path) -> None:
    bench.set(block_M=32, **{"ko.num_stages": 3})
    paths = bench.save(tmp_path / "gemm.py")
    assert [path.name for path in paths] == ["gemm.py", "gemm.toml"]
    assert (
        "params = { block_M = 32, block_N = 64, block_K = 32, num_stages = 2, threads = 128 }"
        in (tmp_path / "gemm.toml").read_text()
    )
    found = run(paths[0])
    assert found.returncode == 0, found.stderr
    assert "all within bounds" in found.stdout
    with pytest.raises(OptionError, match="is there already"):
        bench.save(tmp_path / "gemm.py")


def test_a_record_holds_the_runs_and_opens(tmp_path: Path) -> None:
    bench = tilebench.workbench(functions()["gemm"], with_=SHAPES, target="cpu", run=True)
    bench.set(block_M=32)
    bench.save(tmp_path / "gemm.tbz")
    found = tilebench.open_record(tmp_path / "gemm.tbz")
    assert found == BenchRecord(bench.record, bench.runs)  # type: ignore[arg-type]
    assert len(found.runs) == 2
    with pytest.raises(OptionError, match="is there already"):
        bench.save(tmp_path / "gemm.tbz")
    bench.save(tmp_path / "gemm.tbz", overwrite=True)
    (script, _, record) = bench.save_measurement(tmp_path / "again.py")
    assert record.name == "again.tbz"
    assert [dict(run.config)["block_M"] for run in tilebench.open_record(record).runs] == [32]
    found_again = run(script)
    assert found_again.returncode == 0, found_again.stderr
    assert "to what was recorded" in found_again.stdout
    bench.close()


def test_a_page_asks_for_files_under_names_that_are_free(
    bench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def said() -> str:
        return bench_state(bench.session.picture, "tb1", "gemm", live=True).notice

    for name in ("gemm", "gemm_2"):
        answer(bench, {"kind": "save", "what": "kernel"})
        assert (
            said() == f"Saved {name}.py and {name}.toml in {tmp_path}: python {name}.py checks and times it."
        )
    answer(bench, {"kind": "save", "what": "record"})
    assert said() == f"Saved gemm.tbz in {tmp_path}: tilebench.open_record reads it."
    answer(bench, {"kind": "save", "what": "program"})
    assert said() == f"Saved gemm.cu in {tmp_path}."
    answer(bench, {"kind": "save", "what": "measurement"})
    assert said() == "Not saved: there is no measurement of gemm to repeat"
    answer(bench, {"kind": "save", "what": "anything"})
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "gemm.cu", "gemm.py", "gemm.tbz", "gemm.toml", "gemm_2.py", "gemm_2.toml",
    ]  # fmt: skip
    # A notice is of its moment.
    bench.set(block_M=32)
    assert said() == ""


def test_a_page_sends_a_bench_to_a_position(bench: Workbench) -> None:
    state: Any = bench_state(bench.session.picture, "tb1", "gemm", live=True)
    assert state.position == START
    answer(bench, {"kind": "go", "text": START.replace("block_M=64", "block_M=32")})
    assert bench.session.wish.values["block_M"] == 32
    answer(bench, {"kind": "go", "text": "gemm blok_M=1"})
    state = bench_state(bench.session.picture, "tb1", "gemm", live=True)
    assert state.notice == "Not gone: this workbench has no blok_M; did you mean block_M?"
