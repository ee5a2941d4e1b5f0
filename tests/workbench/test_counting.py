"""Counting what lines do: in machine code that is not shown, in the simulator, by a report of ncu."""

from __future__ import annotations

import csv
import io
import json
import os
import threading
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilebench
from tests import line_kernels
from tests.simulated import run_threaded
from tests.waiting import is_running, until
from tilebench.errors import OptionError, TargetError
from tilebench.ir import parse_function
from tilebench.kernel.measuring.counted import count_simulated
from tilebench.kernel.measuring.package import Package, package_of
from tilebench.kernel.measuring.profiled import profile_lines, read_report, why_not_profiled
from tilebench.pictures.collect import pictures_of
from tilebench.profile.lines import line_sums
from tilebench.record import CompileRecord, LineCounter
from tilebench.record_files import load, save
from tilebench.recorder import make_record
from tilebench.runtime.cancel import Cancelled
from tilebench.simulator import Counters
from tilebench.targets import manifest
from tilebench.targets.cuda import ncu
from tilebench.workbench.front.answers import answer
from tilebench.workbench.front.build import bench_state
from tilebench.workbench.front.gutters import access_counters, gutters_of


@cache
def kernel() -> Any:
    return line_kernels.macro_gemm.compile(M=256, N=256, K=256, target="cuda:sm_80")


@cache
def package() -> Package:
    return package_of(kernel(), kernel().calls.binder.of(kernel().sizes).values)


@cache
def simulated() -> tuple[LineCounter, ...]:
    return count_simulated(package(), "threaded")


@cache
def record() -> CompileRecord:
    return make_record(kernel().compilation, kernel().compilation.stage_names)


def named(counters: tuple[LineCounter, ...], name: str) -> LineCounter:
    return next(each for each in counters if each.name == name)


def on_lines(counter: LineCounter, text: str, word: str) -> list[float]:
    return [value for value, line in zip(counter.values, text.splitlines(), strict=True) if word in line]


# -- the simulator
def test_a_block_moves_the_sectors_of_its_tiles() -> None:
    sectors = named(simulated(), "sim_sectors")
    # 64 rows and columns of a matrix of 256 float16: an operand's part is 32 KiB, the result's 8 KiB.
    assert sum(on_lines(sectors, package().stage_text, "T.cp_async(A_s")) == 64 * 256 * 2 / 32
    assert sum(on_lines(sectors, package().stage_text, "T.cp_async(B_s")) == 64 * 256 * 2 / 32
    assert sum(on_lines(sectors, package().stage_text, "T.vector_store(C[")) == 64 * 64 * 2 / 32
    assert sum(sectors.values) == 2 * 1024 + 256
    assert sum(named(simulated(), "sim_wasted").values) == 0


def test_statements_run_as_often_as_their_loops_turn() -> None:
    runs = named(simulated(), "sim_runs")
    # Four warps, 8 steps, 2 x 2 x 4 products of a warp in each.
    assert on_lines(runs, package().stage_text, "T.mma(") == [4 * 8 * 16]
    assert on_lines(runs, package().stage_text, "T.cp_async_wait(pending=1)") == [4 * 8]
    assert on_lines(runs, package().stage_text, "tid: T.int32 = T.thread_id()") == [4]


def test_passes_are_those_that_the_simulator_counts_by_buffer() -> None:
    function = parse_function(package().stage_text, manifest("cuda").registry, "x")
    counters = Counters(32, 4)
    arrays = {name: np.zeros((256, 256), np.float16) for name in "ABC"}
    run_threaded(function, arrays, [(0, 0, 0)], warp=32, counters=counters)
    by_buffer = sum(passes.wavefronts for passes in counters.shared.values())
    assert sum(named(simulated(), "sim_passes").values) == by_buffer > 0
    assert sum(named(simulated(), "sim_conflicts").values) == 0


def test_a_strided_read_wastes_sectors_and_a_column_conflicts() -> None:
    text = """\
@T.prim_func
def main(A: T.Tensor((32, 32), T.float32), O: T.Tensor((32,), T.float32)):
    with T.Kernel(1, threads=32, shared_bytes=4096) as bx:
        tid: T.int32 = T.thread_id()
        S = T.alloc_shared((1024,), T.float32, offset=0)
        S[tid * 32] = A[tid, 0]
        T.sync_threads()
        O[tid] = S[tid * 32]
"""
    function = parse_function(text, manifest("cuda").registry, "x")
    counters = Counters(32, 4)
    arrays = {"A": np.zeros((32, 32), np.float32), "O": np.zeros(32, np.float32)}
    run_threaded(function, arrays, warp=32, counters=counters)
    store, load_ = counters.lines[6], counters.lines[8]
    # A column of a matrix: each lane has a sector of its own, of which four would do.
    assert (store.sectors.moved, store.sectors.ideal) == (32, 4)
    assert (store.shared.wavefronts, store.shared.ideal, load_.shared.wavefronts) == (32, 1, 32)
    assert (load_.sectors.moved, load_.sectors.excess) == (4, 0)


def test_the_sums_reach_the_source_without_loss() -> None:
    held = replace(record(), counters=simulated())
    sums = line_sums(held, named(simulated(), "sim_sectors"))
    shown = [each for each in sums.of("source") if each is not None]
    assert sum(each.figure.value for each in shown if each.bears) == sums.total == 2304
    found = {each.name: each.total for each in gutters_of(held)}
    assert found["sim_conflicts"] == "0 bank conflicts"
    assert found["sim_sectors"] == "2,304 global sectors"


def test_what_addresses_say_is_what_the_simulator_counts() -> None:
    held = record()
    found = {each.name: each for each in access_counters(held, pictures_of(kernel().compilation))}
    for static, name in (
        ("sectors", "sim_sectors"),
        ("wasted", "sim_wasted"),
        ("conflicts", "sim_conflicts"),
    ):
        run = line_sums(replace(held, counters=simulated()), named(simulated(), name))
        own = line_sums(held, found[static])
        assert own.total == run.total, name
        assert {k: f.value for k, f in own.user.items()} == {k: f.value for k, f in run.user.items()}, name


def test_counters_are_saved_with_the_record(tmp_path: Any) -> None:
    held = replace(record(), counters=simulated())
    save(held, tmp_path / "x.tbz")
    assert load(tmp_path / "x.tbz") == held


# -- the bench
@pytest.fixture
def bench() -> Any:
    opened = tilebench.workbench(
        line_kernels.macro_gemm, with_={"M": 256, "N": 256, "K": 256}, sweep={"num_stages": [2, 3]},
        target="cuda:sm_80",
    )  # fmt: skip
    yield opened
    opened.close()


def state(bench: Any) -> Any:
    return bench_state(bench.session.picture, "x", "x", bench.knobs, live=True)


def test_a_bench_offers_what_can_be_counted(bench: Any) -> None:
    assert [way.name for way in state(bench).countable] == ["code", "simulator"]
    assert "sass" not in [stage.name for stage in bench.record.stages]
    answer(bench, {"kind": "count", "name": "code"})
    assert "sass" in [stage.name for stage in bench.record.stages]
    assert bench.session.picture.shown == state(bench).shown != ("sass",)
    assert [way.name for way in state(bench).countable] == ["simulator"]
    # From then on at every position.
    bench.set(num_stages=5 - bench.record.parameters["num_stages"])
    assert "sass" in [stage.name for stage in bench.record.stages]


def test_the_simulator_counts_a_position_once(bench: Any) -> None:
    answer(bench, {"kind": "count", "name": "simulator"})
    assert bench.error is None
    counted = {each.name: sum(each.values) for each in bench.record.counters}
    assert counted["sim_sectors"] == 2304
    assert [way.name for way in state(bench).countable] == ["code"]
    first = bench.record.parameters["num_stages"]
    bench.set(num_stages=5 - first)
    assert bench.record.counters == ()
    assert [way.name for way in state(bench).countable] == ["code", "simulator"]
    bench.set(num_stages=first)
    assert {each.name: sum(each.values) for each in bench.record.counters} == counted


def test_what_no_way_is_called_is_dropped(bench: Any) -> None:
    before = bench.record
    answer(bench, {"kind": "count", "name": "nonsense"})
    assert bench.error is None
    assert json.dumps(len(bench.record.stages)) == json.dumps(len(before.stages))


# -- ncu
HEADS = (
    "Address", "Source", "Warp Stall Sampling (All Samples)", "Warp Stall Sampling (Not-issued Samples)",
    "# Samples", "Instructions Executed", "Thread Instructions Executed",
    "Predicated-On Thread Instructions Executed", "Divergent Branches", "Address Space", "Access Operation",
    "Access Size", "L1 Wavefronts Shared Excessive", "L1 Wavefronts Shared", "L1 Wavefronts Shared Ideal",
    "L2 Theoretical Sectors Global Excessive", "L2 Theoretical Sectors Global", "stall_barrier",
    "stall_long_sb", "stall_long_sb (Not Issued)",
)  # fmt: skip
BASE = 0x7F2A4C000000


def page(name: str = "main_", change: str = "") -> str:
    """A source page of the kernel as ncu prints it in CSV; its figures are made up, and not a card's."""
    out = io.StringIO()
    out.write("==PROF== Connected to process 1\n")
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    # The name alone, as it is asked for by `--kernel-name-base function`, and a comma more.
    writer.writerow(["Kernel Name", name, ""])
    writer.writerow(HEADS)
    for number, line in enumerate(record().stage("sass").text.splitlines()):
        if "/*" not in line:
            continue
        address, _, source = line.strip().removeprefix("/*").partition("*/")
        source = source.strip().rstrip(";")
        if change and source.startswith(change):
            source = "NOP"
        figures = [number, 1, number, 1000 + number, 32, 32, 0, "-", "-", "-", 2, 5, 3, 1, 4, 1, 7, 99]
        writer.writerow([hex(BASE + int(address, 16)), f"      {source}", *figures])
    writer.writerow([hex(BASE + 0x100000), "      BRA 0x100000", *[0] * (len(HEADS) - 2)])
    return out.getvalue()


def test_a_report_of_ncu_is_read_line_by_line() -> None:
    found = read_report(page(), record())
    text = record().stage("sass").text.splitlines()
    for number, line in enumerate(text):
        there = "/*" in line
        assert named(found, "ncu_samples").values[number] == (number if there else 0)
        assert named(found, "ncu_runs").values[number] == (1000 + number if there else 0)
        assert named(found, "ncu_conflicts").values[number] == (2 if there else 0)
    assert {kind for kind in named(found, "ncu_samples").kinds if kind} == {"long_sb"}
    assert [each.name for each in found] == [
        "ncu_samples", "ncu_runs", "ncu_sectors", "ncu_wasted", "ncu_passes", "ncu_conflicts",
    ]  # fmt: skip


def test_the_cards_counts_reach_the_source() -> None:
    found = read_report(page(), record())
    sums = line_sums(record(), named(found, "ncu_samples"))
    shown = [each for each in sums.of("source") if each is not None]
    assert sum(each.figure.value for each in shown if each.bears) + sums.none.value == sums.total


def test_a_report_of_another_kernel_is_refused() -> None:
    with pytest.raises(TargetError) as caught:
        read_report(page("other"), record())
    assert caught.value.message == "this report of ncu is of other kernels"
    assert "expected: main_" in caught.value.explain()


def test_a_report_of_other_code_is_refused() -> None:
    with pytest.raises(TargetError) as caught:
        read_report(page(change="HMMA"), record())
    assert caught.value.message == "this report of ncu is of other code"


def test_a_text_that_is_no_report_is_refused() -> None:
    with pytest.raises(TargetError, match="this report of ncu is of other kernels"):
        read_report("nothing", record())


def test_a_run_collects_and_prints_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked of ncu, with a stand-in for it: it was not run on a card here."""
    asked: list[list[str]] = []

    def said(command: Any, cancel: threading.Event) -> str:
        asked.append(list(command))
        return page()

    monkeypatch.setattr(ncu, "_said", said)
    found = profile_lines(package(), record())
    assert sum(named(found, "ncu_runs").values) > 0
    collect, show = asked
    assert collect[:3] == ["ncu", "--section", "SourceCounters"]
    assert collect[collect.index("--kernel-name") + 1] == "regex:^(main_)$"
    assert collect[-3:-1] == ["-m", "tilebench.kernel.measuring.profiled"]
    assert show[:2] == ["ncu", "--import"]
    assert show[-5:] == ["--page", "source", "--csv", "--print-source", "sass"]


def test_a_cancelled_count_ends_ncu_and_what_it_profiles(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A stand-in for ncu, which starts a program and waits for it as ncu does."""
    child = tmp_path / "child"
    stand_in = tmp_path / "ncu"
    stand_in.write_text(f"#!/bin/sh\nsleep 300 &\necho $! > {child}.new; mv {child}.new {child}\nwait\n")
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    cancel = threading.Event()

    def stop() -> None:
        until(child.exists)
        stopped.append(time.perf_counter())
        cancel.set()

    stopped: list[float] = []
    threading.Thread(target=stop).start()
    with pytest.raises(Cancelled, match="counting on the lines was stopped"):
        profile_lines(package(), record(), cancel=cancel)
    assert time.perf_counter() - stopped[0] < 20
    number = int(child.read_text())
    until(lambda: not is_running(number))


def test_a_bench_takes_a_report_of_ncu(bench: Any) -> None:
    bench.set(num_stages=3)
    bench.count(report=page())
    assert {each.name for each in bench.record.counters} >= {"ncu_samples", "ncu_runs"}
    assert [way.name for way in state(bench).countable] == ["simulator"]
    with pytest.raises(TargetError, match="this report of ncu is of other kernels"):
        bench.count(report=page("other"))


def test_a_way_that_there_is_not_is_told(bench: Any) -> None:
    with pytest.raises(OptionError) as caught:
        bench.count("gdb")
    assert caught.value.message == "lines are not counted by 'gdb'"
    assert "expected: code, simulator, card" in caught.value.explain()


def test_without_a_card_ncu_is_not_offered() -> None:
    if not manifest("cuda").available()[0]:
        assert why_not_profiled(kernel().compilation) == manifest("cuda").available()[1]
    cpu = line_kernels.vector_add.compile(N=4096, target="cpu")
    assert why_not_profiled(cpu.compilation) == "cpu has no profiler that counts on lines"
