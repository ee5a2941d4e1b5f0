"""Clocks in a kernel: what they time, that results stay the same, and what is said where there is no card."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests import kernels
from tests.simulated import run_threaded
from tilebench.errors import LanguageError, TargetError
from tilebench.kernel import Kernel
from tilebench.profile.timeline import TimedSite, events_of, sites_of, timeline_text
from tilebench.record import RunRecord

TILE = {"block_M": 32, "block_N": 32, "block_K": 32, "threads": 64}


def gemm(target: str = "cuda:sm_80") -> Kernel:
    return kernels.gemm_kernel.using(target=target)(M=64, N=64, K=128, num_stages=3, **TILE)


def ran(kernel: Kernel) -> dict[str, Any]:
    kernel.stage("cuda")
    arrays = kernel.inputs(0)
    arrays["clock_events"][...] = 0
    run_threaded(kernel.compilation.functions["threaded"], arrays, warp=32)
    return arrays


def test_each_statement_of_each_warp_is_timed_in_order() -> None:
    kernel = gemm().with_clocks()
    arrays = ran(kernel)
    plain = gemm().inputs(0)
    run_threaded(plainly(gemm()), plain, warp=32)
    assert np.array_equal(arrays["C"], plain["C"])
    sites = sites_of(kernel.record([]).remarks)
    events = events_of(arrays["clock_events"], sites)
    assert {event.block for event in events} == {0, 1, 2, 3}
    for block in range(4):
        for warp in range(2):
            own = [event for event in events if (event.block, event.warp) == (block, warp)]
            whole, rest = own[0], own[1:]
            assert whole.kind == "block"
            assert {event.kind for event in rest} == {"load", "wait", "barrier", "compute", "store"}
            assert all(whole.start <= event.start < event.end <= whole.end for event in rest)
            assert [event.start for event in rest] == sorted(event.start for event in rest)
            products = [event for event in rest if event.name == "gemm C_l"]
            assert [event.iteration for event in products] == [0, 1, 2, 3]
    assert all(event.line > 0 for event in events if event.kind == "compute")


def plainly(kernel: Kernel) -> Any:
    kernel.stage("cuda")
    return kernel.compilation.functions["threaded"]


def test_a_kernel_without_clocks_has_none() -> None:
    assert "clock" not in gemm().stage("cuda")
    text = gemm().with_clocks().stage("cuda")
    assert "clock64" in text
    assert "globaltimer" in text


def test_the_code_is_made_for_a_card() -> None:
    assert gemm("cuda:sm_90a").with_clocks().resources.registers


def test_a_processor_has_no_clock() -> None:
    with pytest.raises(TargetError, match=r"cpu:.* has no clock that a kernel reads"):
        gemm("cpu").with_clocks()


def test_a_timeline_without_a_card_says_what_is_missing() -> None:
    from tilebench.targets import manifest

    if manifest("cuda").available()[0]:
        pytest.skip("a card is here")
    with pytest.raises(TargetError, match="is compiled for cuda:sm_80, which cannot run here"):
        gemm().timeline()


def test_a_function_of_two_launches_is_refused() -> None:
    from tests.everywhere import kernel_of

    body = "O[0, 0] = A[0, 0]\nT.sync_grid()\nO[1, 0] = A[1, 0]"
    two = kernel_of(body).using(target="cuda:sm_80")()
    with pytest.raises(LanguageError, match="has 2 launches, and clocks are of one"):
        two.with_clocks()


def test_a_timeline_is_a_table_and_a_strip_a_warp() -> None:
    kernel = gemm().with_clocks()
    events = events_of(ran(kernel)["clock_events"], sites_of(kernel.record([]).remarks))
    record = RunRecord("gemm", "cuda:sm_80", {}, samples=(1e-5,), events=events, clocked_seconds=1.1e-5)
    text = timeline_text(record)
    lines = text.splitlines()
    assert lines[0] == "gemm on cuda:sm_80: 10 us without clocks, 11 us with them (1.10 times)"
    assert lines[1].startswith("block 0 on multiprocessor 0: 2 warps, ")
    assert any(line.split()[:3] == ["compute", "gemm", "C_l"] for line in lines)
    strips = [line for line in lines if line.startswith("  warp ")]
    assert len(strips) == 2
    assert all("C" in strip and "S" in strip for strip in strips)
    assert timeline_text(RunRecord("gemm", "cpu", {}, failure="no card")) == "gemm on cpu: no card"


def test_a_timeline_of_steps_speaks_of_no_time_and_no_place() -> None:
    steps = gemm().steps()
    assert re.search(r" on cuda:sm_80: \d+ events of its warps in steps, no time of a launch$", str(steps))
    text = timeline_text(steps)
    first, second, *_ = text.splitlines()
    assert first == "gemm_kernel on cuda:sm_80: steps of the simulator, in their order; they are no time"
    assert second.startswith("block 0: 2 warps, ")
    assert " steps each " in text
    assert " of the steps\n" in text
    assert "  a column is 1 step: L load" in text
    for word in ("cycle", "multiprocessor", "of the time"):
        assert word not in text


def test_what_does_not_fit_is_left_out() -> None:
    """The rows of a warp end; what comes behind is counted on and not stored."""
    rows = np.zeros((1, 1, 4, 4), np.int64)
    rows[0, 0, 0] = (7, 1000, 50, 90)
    rows[0, 0, 1:] = [(1, k, 50 + k, 60 + k) for k in range(3)]
    block, *rest = events_of(rows, [TimedSite(1, "compute", "gemm C")])
    assert (block.kind, block.iteration, block.start, block.end, block.since) == ("block", 7, 0, 40, 0)
    assert [(e.iteration, e.start, e.end) for e in rest] == [(k, k, 10 + k) for k in range(3)]


def test_what_is_timed_is_planned_as_without_clocks() -> None:
    plain, timed = (
        gemm().stage("pipelined").splitlines(),
        gemm().with_clocks().stage("pipelined").splitlines(),
    )
    differ = [line for line in timed if line not in plain]
    assert [line.strip().split("(")[0] for line in differ] == ["def main", "with T.Kernel"]


def test_events_are_saved_with_their_run(tmp_path: Any) -> None:
    from tilebench.record_files import load, save

    kernel = gemm().with_clocks()
    events = events_of(ran(kernel)["clock_events"], sites_of(kernel.record([]).remarks))
    record = RunRecord("gemm", "cuda:sm_80", {}, samples=(1e-5,), events=events, clocked_seconds=1.1e-5)
    save(record, tmp_path / "run.tbz")
    assert load(tmp_path / "run.tbz") == record
