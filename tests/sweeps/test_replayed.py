"""Runs of an H200, from their files: the table, the best, noise, what a bench shows, and timelines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tilebench
from tilebench.profile.overlap import story_of, told
from tilebench.profile.positions import ENOUGH_RUNS, Position, difference
from tilebench.profile.timeline import timeline_text
from tilebench.sweeps.table import swept_names
from tilebench.workbench.front.build import bench_state
from tilebench.workbench.parts import run_bundle
from tilebench.workbench.sweep_view import sweep_bundle, sweep_picture

FOLDER = Path(__file__).parents[2] / "notebooks" / "h200"
SWEEPS = {"gemm_sweep": "FLOP/s", "softmax_sweep": "B/s"}


def swept(name: str) -> Any:
    return tilebench.open_sweep(FOLDER / f"{name}.tbz")


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.tbz")), ids=lambda path: path.stem)
def test_a_recording_is_small_and_names_no_machine_but_the_card(path: Path) -> None:
    assert path.stat().st_size < 50_000
    record: Any = tilebench.open_record(path)
    runs = record.runs if hasattr(record, "runs") else [record]
    assert {run.environment["gpu0_name"] for run in runs} == {"NVIDIA H200"}
    assert all("hostname" not in key for run in runs for key in run.environment)


@pytest.mark.parametrize("name", SWEEPS)
def test_every_configuration_was_checked_and_has_its_runs(name: str) -> None:
    made = swept(name)
    assert made.complete
    assert [row.state for row in made.rows] == ["timed"] * 8
    for row in made.rows:
        assert len(row.runs) == ENOUGH_RUNS
        assert all(run.error is not None and run.error <= run.bound for run in row.runs)
        assert all("CUDA events" in run.method and "cold caches" in run.method for run in row.runs)


@pytest.mark.parametrize("name", SWEEPS)
def test_the_best_is_the_fastest_and_noise_is_told_from_difference(name: str) -> None:
    """By the runs themselves: what the table says of each row is what their ranges say."""
    made = swept(name)
    best = Position(made.best.runs)
    assert best.seconds == min(Position(row.runs).seconds for row in made.rows)
    lines = made.table().splitlines()
    for row in made.rows:
        found = difference(Position(row.runs), best)
        if row is made.best or found is None:
            continue
        values = [str(row.config[n]) for n in swept_names(made.record)]
        (line,) = (line for line in lines if line.split()[: len(values)] == values)
        assert ("within noise" in line) == (found.low <= 0 <= found.high)
        assert "?" not in line
    assert SWEEPS[name] in lines[2]
    # Four runs of a configuration with all others between differ by less than a card's clock may move.
    spreads = [max(p.medians) / min(p.medians) for p in (Position(row.runs) for row in made.rows)]
    assert max(spreads) < 1.05


@pytest.mark.parametrize("name", SWEEPS)
def test_a_bench_shows_it_without_the_card(name: str) -> None:
    made = swept(name)
    state = bench_state(sweep_picture(made), "", made.kernel)
    assert len(state.chart.points) == len(made.rows)
    bundle = sweep_bundle(made)
    assert made.table() in bundle["text/plain"]
    assert "Measured ceilings of NVIDIA H200" in bundle["text/plain"]
    assert {stage.name for stage in made.record.best.stages} >= {"source", "laid_out", "threaded"}


@pytest.mark.parametrize("name", ["gemm_timeline", "softmax_timeline"])
def test_a_timeline_is_told_and_drawn(name: str) -> None:
    run: Any = tilebench.open_record(FOLDER / f"{name}.tbz")
    story = story_of(run)
    assert story is not None
    text = timeline_text(run)
    assert all(sentence in text for sentence in told(story))
    assert run.clocked_seconds > run.seconds > 0
    bundle = run_bundle([run])
    assert text in bundle["text/plain"]
    assert "<h3>Timeline" in bundle["text/html"]


def test_copies_of_the_ring_run_beside_the_product() -> None:
    """Three stages: while the first computation goes on, copies of later tiles are under way."""
    run: Any = tilebench.open_record(FOLDER / "gemm_timeline.tbz")
    sentence = next(one for one in told(story_of(run)) if one.startswith("Copies are under way"))
    assert int(sentence.split(" of that time")[0].rpartition("in ")[2].removesuffix(" %")) > 20
