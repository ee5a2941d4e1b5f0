"""Hints that the CPU has no use for are told as such: in the choices, in the remarks, in the plan."""

from __future__ import annotations

from typing import Any

from tests.targets.cpu import kernels
from tilebench.schedule import Schedule

SHAPES = {"M": 96, "N": 96, "K": 96, "block_M": 48, "block_N": 48, "block_K": 32}
ALONE = "not used by cpu: a block runs on one core"
ORDER = "not used by cpu: blocks run in the order of their numbers"
STAGES = "not used by cpu: a block runs on one core, so copies do not run ahead"
BANKS = "not used by cpu: scratch memory has no banks"
WARPS = "not used by cpu: a block has no warps to split a tile over"
WIDTH = "not used by cpu: copies use the widest vectors of the processor"


def bounded(target: str, schedule: Any = None, stages: int = 3) -> Any:
    kernel: Any = kernels.gemm.using(target=target, schedule=schedule)(**SHAPES, stages=stages)
    return kernel.stage("bounded"), kernel.record(("bounded",))


def test_choices_say_what_the_cpu_does_not_use() -> None:
    _, record = bounded("cpu")
    assert [(c.address, c.name, c.value, c.origin, c.why) for c in record.choices] == [
        ("kernel", "threads", "128", "default", ALONE),
        ("kernel", "order", "none", "default", ORDER),
        ("loop ko", "num_stages", "3", "kernel", STAGES),
        ("buffer A_s", "swizzle", "none", "default", BANKS),
        ("buffer B_s", "swizzle", "none", "default", BANKS),
        ("gemm C_l", "policy", "none", "default", WARPS),
    ]


def test_what_a_schedule_asks_for_in_vain_is_told_too() -> None:
    wanted = Schedule.of(
        threads=64, loop={"ko": {"num_stages": 4}}, buffer={"A_s": {"swizzle": True}},
        gemm={"C_l": {"policy": "full_row"}}, copy={"A_s": {"vector": 2}},
    )  # fmt: skip
    _, record = bounded("cpu", wanted)
    told = {(c.address, c.name): (c.value, c.origin, c.why) for c in record.choices if c.origin == "call"}
    assert told == {
        ("kernel", "threads"): ("64", "call", ALONE),
        ("loop ko", "num_stages"): ("4", "call", STAGES),
        ("buffer A_s", "swizzle"): ("True", "call", BANKS),
        ("gemm C_l", "policy"): ("full_row", "call", WARPS),
        ("copy A_s", "vector"): ("2", "call", WIDTH),
    }


def test_the_plan_has_one_stage_and_a_remark_says_why() -> None:
    text, record = bounded("cpu")
    assert "plan=T.Plan(1)" in text
    assert "T.Stage" not in text
    told = [(r.kind, r.message) for r in record.remarks if r.pass_name == "plan_pipeline"]
    assert told == [("note", f"num_stages=3 is {STAGES}")]


def test_no_remark_where_no_stages_were_asked_for() -> None:
    _, record = bounded("cpu", stages=0)
    assert [r for r in record.remarks if r.pass_name == "plan_pipeline"] == []


def test_a_target_that_uses_them_says_nothing_of_the_kind() -> None:
    text, record = bounded("cuda:sm_80")
    assert "plan=T.Plan(3)" in text
    assert not [c for c in record.choices if "not used" in c.why]
    assert "note" not in {r.kind for r in record.remarks if r.pass_name == "plan_pipeline"}
