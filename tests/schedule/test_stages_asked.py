"""Stages that a schedule asks for and a loop cannot have are an error; those of a kernel's hint a remark."""

from __future__ import annotations

import pytest

from tests.everywhere import kernel_of
from tilebench.errors import ScheduleError
from tilebench.schedule import Schedule

BODY = """
F = T.alloc_fragment((64,), "float32")
for k in T.Pipelined(8, num_stages=3):
    T.copy(A[k, :], F)
    T.copy(F, O[k, :])
"""


def test_a_schedules_stages_are_not_lost_in_silence() -> None:
    kernel = kernel_of(BODY)
    hinted = kernel.using(target="cuda:sm_80")()
    hinted.stage("bounded")
    told = [r.message for r in hinted.compilation.context.remarks if r.pass_name == "plan_pipeline"]
    why = "no statement of its body copies from global to shared memory"
    assert told == [f"num_stages=3 has no effect: {why}"]
    for stages, refused in ((4, True), (1, False), (0, False)):
        asked = kernel.using(target="cuda:sm_80", schedule=Schedule.of(loop={"k": {"num_stages": stages}}))()
        if not refused:
            asked.stage("bounded")
            continue
        with pytest.raises(ScheduleError) as caught:
            asked.stage("bounded")
        assert caught.value.message == f"num_stages=4 of the schedule has no effect on this loop: {why}"
        assert caught.value.place is not None
        assert caught.value.place.line == 10
    asked = kernel.using(target="cpu", schedule=Schedule.of(loop={"k": {"num_stages": 4}}))()
    asked.stage("bounded")


def test_a_copy_that_converts_is_told_of() -> None:
    body = """
    S = T.alloc_shared((64,), "float16")
    for k in T.Pipelined(8, num_stages=3):
        T.copy(A[k, :], S)
        T.copy(S, O[k, :])
    """
    kernel = kernel_of(body).using(target="cuda:sm_80")()
    kernel.stage("threaded")
    told = [r.message for r in kernel.compilation.context.remarks]
    assert "the copy into S makes float16 of float32, in registers" in told
    assert "S passes through registers: loaded in front of what a step computes, stored behind it" in told
