"""The timeline of a bench: asked for, recorded in the simulator's steps where no card is, drawn from data."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import tilebench
from tests import kernels
from tilebench.plain import to_plain
from tilebench.record import ClockEvent, RunRecord
from tilebench.targets import manifest
from tilebench.workbench.clocking import ClocksShown
from tilebench.workbench.front.answers import answer
from tilebench.workbench.front.build import bench_state
from tilebench.workbench.front.lane_blocks import MOST_BARS, disturbance, lanes_of, run_blocks

WITH = {
    "M": 64,
    "N": 64,
    "K": 128,
    "block_M": 32,
    "block_N": 32,
    "block_K": 32,
    "num_stages": 3,
    "threads": 64,
}


def bench(target: str) -> Any:
    return tilebench.workbench(kernels.gemm_kernel, with_=WITH, target=target)


def tab(b: Any) -> Any:
    state = bench_state(b.session.picture, "b", "gemm", b.session.subject.knobs, live=True)
    return next(each for each in state.tabs if each.name == "timeline")


def test_a_timeline_is_recorded_when_it_is_asked_for() -> None:
    if manifest("cuda").available()[0]:
        pytest.skip("a card is here: its clocks are read")
    b = bench("cuda:sm_80")
    before = tab(b)
    assert [block.action.label for block in before.blocks if block.action] == ["Record"]
    answer(b, {"kind": "timeline"})
    b.session.clocks._thread.join()  # pyright: ignore[reportPrivateUsage]
    run = b.session.picture.clocks.run
    assert run.event_unit == "steps"
    after = tab(b)
    texts = [block.text for block in after.blocks]
    assert "Steps, not time: no card is here, and the simulator says only what comes before what." in texts
    (lanes,) = [block.lanes for block in after.blocks if block.lanes]
    assert [lane.name for lane in lanes.blocks[0].lanes] == ["warp 0", "warp 1"]
    assert lanes.a_microsecond == 0
    # Another position: what was recorded stays, and says of which one it is.
    b.set(block_M=64)
    assert any(block.text == "Recorded at block_M=32, not at the position of now." for block in tab(b).blocks)


def test_a_processor_has_no_clocks() -> None:
    (block,) = tab(bench("cpu")).blocks
    assert "has no clock that a kernel reads" in block.text
    assert block.action is None


def recorded(blocks: int = 2, warps: int = 4, turns: int = 20, **fields: Any) -> RunRecord:
    """Events as a card's: a load, a wait and a product a turn, warp after warp a little later."""
    events: list[ClockEvent] = []
    for block in range(blocks):
        for warp in range(warps):
            events.append(ClockEvent(block, warp, "block", "block", block, warp, turns * 100 + warp))
            for turn in range(turns):
                start = turn * 100 + warp
                for kind, begin, end in (("load", 0, 10), ("wait", 10, 40), ("compute", 40, 95)):
                    events.append(
                        ClockEvent(
                            block, warp, kind, f"the {kind}", turn, start + begin, start + end, line=30
                        )
                    )
    return RunRecord("gemm", "cuda:sm_90a", {}, events=tuple(events), **fields)


def test_lanes_are_the_events() -> None:
    run = recorded(environment={"gpu0_sm_clock": "1980 MHz"})
    data = lanes_of(run)
    assert (data.unit, data.a_microsecond, len(data.blocks)) == ("cycles", 1980, 2)
    lane = data.blocks[1].lanes[2]
    bars = [lane.bars[k : k + 4] for k in range(0, len(lane.bars), 4)]
    own = [e for e in run.events if (e.block, e.warp) == (1, 2) and e.kind != "block"]
    assert [(e.start, e.end - e.start, e.iteration) for e in own] == [(b[0], b[1], b[3]) for b in bars]
    assert [data.sites[bar[2]].kind for bar in bars[:3]] == ["load", "wait", "compute"]


def test_a_long_run_is_cut_to_what_a_state_carries() -> None:
    data = lanes_of(recorded(blocks=4, warps=8, turns=150))
    bars = sum(len(lane.bars) // 4 for block in data.blocks for lane in block.lanes)
    assert len(data.blocks) == 1
    assert bars <= MOST_BARS
    assert len(json.dumps(to_plain(data))) < 60_000


def test_the_disturbance_is_said() -> None:
    run = recorded(samples=(1e-5,), clocked_seconds=1.2e-5)
    assert disturbance(run) == (
        "10 us without clocks, 12 us with them: what is shown is the kernel slowed down 1.20 times."
    )
    tables = [block.table for block in run_blocks(run) if block.table]
    assert [row[0].text for row in tables[0].rows] == ["compute", "wait", "load"]
    assert tables[0].rows[0][5].text == "54.9 %"


def test_a_failure_is_said() -> None:
    b = bench("cuda:sm_80")
    shown = ClocksShown("failed", "cuda:sm_80", {}, why="the card is gone")
    b.session.board.show(clocks=shown)
    assert any(block.text == "No timeline: the card is gone" for block in tab(b).blocks)
    b.session.board.show(clocks=replace(shown, state="recording"))
    assert not any(block.action for block in tab(b).blocks)
