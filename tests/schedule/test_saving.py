"""A schedule written as a file reads back to the same choices."""

from __future__ import annotations

from pathlib import Path

import pytest

import tilebench
from tests.kernels import gemm_kernel, gemm_regions
from tilebench.errors import ScheduleError
from tilebench.schedule import Schedule, load_schedule, parse_schedule, schedule_text

FULL = Schedule.of(
    params={"block_M": 64, "dtype": "float16", "fast": True, "sizes": (1, 2)},
    threads=256,
    order={"panels": 8, "axis": "column"},
    loop={"ko": {"num_stages": 3}},
    buffer={"A_s": {"swizzle": True}},
    gemm={"C_l#2": {"policy": "full_row", "instruction": "fma"}},
    copy={"A_s": {"vector": 4}},
)


def test_the_text_is_a_rule_a_person_would_write() -> None:
    assert (
        schedule_text(FULL, "M <= 128")
        == """\
[[schedule]]
when = "M <= 128"
threads = 256
order = { panels = 8, axis = "column" }
params = { block_M = 64, dtype = "float16", fast = true, sizes = [1, 2] }
[schedule.loop.ko]
num_stages = 3
[schedule.buffer.A_s]
swizzle = true
[schedule.gemm."C_l#2"]
policy = "full_row"
instruction = "fma"
[schedule.copy.A_s]
vector = 4
"""
    )


def test_it_reads_back_to_the_same_choices(tmp_path: Path) -> None:
    path = tilebench.save_schedule(FULL, tmp_path / "card.toml", "M <= 128")
    read = load_schedule(path)
    assert read.choose({"M": 129}) is None
    held = read.choose({"M": 128})
    assert held is not None
    assert [(d.kind, d.address, d.name, d.value) for d in held.directives] == [
        (d.kind, d.address, d.name, d.value) for d in FULL.directives
    ]
    assert held.params == {**FULL.params, "sizes": [1, 2]}


def test_the_last_choice_about_a_thing_is_the_one_written() -> None:
    twice = Schedule.of(threads=64, loop={"ko": {"num_stages": 4}}).over(
        Schedule.of(threads=256, order=8, loop={"ko": {"num_stages": 2}})
    )
    held = parse_schedule(schedule_text(twice)).choose({})
    assert held is not None
    assert held.key == twice.key


def test_no_order_is_written_as_false() -> None:
    held = parse_schedule(schedule_text(Schedule.of(order=False))).choose({})
    assert held is not None
    assert held.directives[0].value is None


def test_what_toml_cannot_hold_is_told() -> None:
    with pytest.raises(ScheduleError, match="cannot hold"):
        schedule_text(Schedule(params={"f": object()}))


def test_a_workbench_saves_the_position_of_its_controls(tmp_path: Path) -> None:
    bench = tilebench.workbench(
        gemm_kernel,
        with_={"M": 64, "N": 64, "K": 64},
        target="cuda:sm_80",
        sweep={"block_M": (32, 64)},
        stages=["tile"],
    )
    bench.set(block_M=32, **{"A_s.swizzle": False})
    path = bench.save_schedule(tmp_path / "mine.toml")
    bench.close()
    held = load_schedule(path).choose({})
    assert held is not None
    assert held.params["block_M"] == 32
    assert "M" not in held.params
    assert [(d.kind, d.address, d.name, d.value) for d in held.directives] == [
        ("buffer", "A_s", "swizzle", False)
    ]
    kernel = gemm_kernel.compile(64, 64, 64, target="cuda:sm_80", schedule=path)
    assert kernel.parameters["block_M"] == 32


def test_a_saved_schedule_acts_like_the_value(tmp_path: Path) -> None:
    value = Schedule.of(threads=128, loop={"ko": {"num_stages": 3}}, params={"block_M": 64, "block_N": 64})
    path = tilebench.save_schedule(value, tmp_path / "s.toml")
    texts = [
        gemm_regions.compile(100, 90, 80, target="cuda:sm_80", schedule=each).stage("pipelined")
        for each in (value, path)
    ]
    assert texts[0] == texts[1]


def test_a_file_that_is_there_is_not_overwritten_by_itself(tmp_path: Path) -> None:
    path = tilebench.save_schedule(FULL, tmp_path / "card.toml")
    before = path.read_text()
    with pytest.raises(ScheduleError, match=r"card\.toml is there already") as caught:
        tilebench.save_schedule(Schedule.of(threads=64), path)
    assert caught.value.hint == "give another name, or overwrite=True"
    assert path.read_text() == before
    tilebench.save_schedule(Schedule.of(threads=64), path, overwrite=True)
    assert path.read_text() == "[[schedule]]\nthreads = 64\n"


def test_a_file_that_cannot_be_written_and_what_is_no_schedule_are_told(tmp_path: Path) -> None:
    with pytest.raises(ScheduleError, match="cannot be written: No such file or directory"):
        tilebench.save_schedule(FULL, tmp_path / "missing" / "gemm.toml")
    for given in ({"threads": 256}, 5):
        with pytest.raises(ScheduleError, match="this is no schedule") as caught:
            gemm_kernel.using(schedule=given)
        assert f"found: {type(given).__name__}" in str(caught.value)
        with pytest.raises(ScheduleError, match="this is no schedule"):
            tilebench.save_schedule(given, tmp_path / "gemm.toml")  # pyright: ignore[reportArgumentType]
    assert not list(tmp_path.iterdir())
