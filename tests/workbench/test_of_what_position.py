"""What is kept from position to position is kept only where it is of the position that is shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import tilebench
from tilebench.errors import TargetError, remember_source
from tilebench.workbench.subject import Subject

SIZED = """
import tilebench
import tilebench.language as T

@tilebench.jit
def sized(block=64):
    M = T.dynamic("M")
    @T.prim_func
    def main(A: T.Tensor((M, 40), "float32"), B: T.Tensor((M, 40), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=64) as bx:
            for i, j in T.Parallel(block, 40):
                B[bx * block + i, j] = A[bx * block + i, j] * 2.0
    return main

@tilebench.jit
def by_mode(mode=0, block=32):
    @T.prim_func
    def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
        with T.Kernel(T.ceildiv(256, block if mode == 1 else 64)) as bx:
            for i in T.Parallel(block if mode == 1 else 64):
                B[bx * (block if mode == 1 else 64) + i] = A[bx * (block if mode == 1 else 64) + i] * 2.0
    return main
"""


def functions() -> dict[str, Any]:
    remember_source("of_what_position", SIZED)
    space: dict[str, Any] = {"__name__": "of_what_position"}
    exec(compile(SIZED, "of_what_position", "exec"), space)
    return space


def test_accesses_are_of_the_sizes_that_a_call_brings() -> None:
    bench = tilebench.workbench(functions()["sized"], with_={"M": 3}, target="cuda:sm_80")
    few = bench.session.picture.own_pictures
    bench.set(M=1000)
    many = bench.session.picture.own_pictures
    assert few is not None
    assert many is not None
    counts = [[access.access.passes for access in one.accesses] for one in (few, many)]
    assert counts[0] != counts[1]
    bench.close()


def test_pictures_of_another_position_are_not_the_record_s_own() -> None:
    bench = tilebench.workbench(functions()["sized"], with_={"M": 64}, target="cuda:sm_80")
    picture = bench.session.picture
    assert picture.own_pictures is picture.pictures is not None
    moved = replace(picture, wish=replace(picture.wish, values={**picture.wish.values, "block": 32}))
    assert moved.own_pictures is None
    assert replace(picture, stale=True).own_pictures is None
    bench.close()


def test_a_control_that_changes_nothing_here_is_tried_again_elsewhere() -> None:
    bench = tilebench.workbench(
        functions()["by_mode"], sweep={"mode": [0, 1], "block": [16, 32]}, target="cpu:x86-64-v3"
    )
    assert "block" in bench.session.picture.idle
    bench.set(mode=1)
    assert "block" not in bench.session.picture.idle
    bench.close()


def test_one_kernel_is_made_once_for_a_target_and_a_schedule_and_the_newest_are_kept() -> None:
    kernel = functions()["by_mode"].using(target="cuda:sm_80")()
    subject = Subject(kernel)
    wish = replace(subject.first_wish((), False, False), target="cuda:sm_80")
    there = replace(wish, target="cuda:sm_90a")
    assert subject.make(wish) is kernel
    other = subject.make(there)
    assert (other.target, subject.make(there)) == ("cuda:sm_90a", other)
    made = [subject.make(replace(wish, choices={"order": order})) for order in range(40)]
    assert len(subject._made) == 32  # pyright: ignore[reportPrivateUsage]
    assert subject.make(replace(wish, choices={"order": 39})) is made[39]
    assert subject.make(replace(wish, choices={"order": 0})) is not made[0]
    alone = tilebench.compile_from("scheduled", kernel.stage("scheduled"), target="cuda:sm_80")
    late = Subject(alone)
    assert late.make(wish) is alone
    with pytest.raises(TargetError, match="the text of scheduled was edited"):
        late.make(there)
