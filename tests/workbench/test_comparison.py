"""What a bench is compared with beside its own past: pins with names, and this position on another target."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import tilebench
from tests.workbench.bench_kernels import functions
from tilebench.errors import OptionError, TargetError
from tilebench.workbench.comparison import MOST_PINS
from tilebench.workbench.front.answers import answer
from tilebench.workbench.front.build import bench_state
from tilebench.workbench.live import Workbench

SHAPES = {"M": 100, "N": 70, "K": 50}


@pytest.fixture
def bench() -> Iterator[Workbench]:
    out = tilebench.workbench(functions()["gemm"], with_=SHAPES, target="cuda:sm_80")
    yield out
    out.close()


def state_of(bench: Workbench) -> Any:
    return bench_state(bench.session.picture, "tb1", "gemm", bench.session.subject.knobs, live=True)


def test_pins_have_names_and_stay_as_they_were(bench: Workbench) -> None:
    own = "block_M=64 block_N=64 block_K=32 num_stages=2 threads=128 cuda:sm_80"
    assert bench.pin() == own
    first = bench.record
    bench.set(block_M=32, **{"ko.num_stages": 3})
    assert bench.pin("small") == "small"
    bench.edit("cuda", bench.record.stage("cuda").text + "// mine\n")  # type: ignore[union-attr]
    assert bench.pin().endswith("ko.num_stages=3 cuda:sm_80 edit 1 of cuda")
    assert list(bench.pins) == list(state_of(bench).pins) == [own, "small", bench.pin()]
    assert bench.pins[own] is first
    bench.unpin("small")
    assert next(iter(bench.pins)) == own
    assert "small" not in state_of(bench).pins
    with pytest.raises(OptionError, match="nothing is pinned as smal") as caught:
        bench.compare(pin="smal")
    assert "pins: block_M=64" in caught.value.hint


def test_a_pin_is_compared_with_and_its_resources_are_told(bench: Workbench) -> None:
    bench.pin("base")
    base = bench.record
    assert bench.compared is None
    bench.set(block_M=32)
    bench.compare(pin="base")
    assert bench.compared is not None
    assert bench.compared.record is base
    assert bench.record is not None
    then, now = base.resources, bench.record.resources  # type: ignore[union-attr]
    assert then is not None
    assert now is not None
    said = state_of(bench).compared.said
    assert said.startswith(
        f"base has 128 threads, {then.registers} registers ({now.registers} here), 16 KiB shared"
    )
    assert said in state_of(bench).notes
    # A pin does not move with the bench, and lets go.
    bench.set(block_M=128)
    assert bench.compared.record is base
    bench.compare()
    assert (bench.compared, state_of(bench).compared) == (None, None)


def test_another_target_is_compiled_for_the_position_and_the_bench_stays(bench: Workbench) -> None:
    bench.compare(target="cuda:sm_90a")
    assert bench.record is not None
    assert bench.record.target == "cuda:sm_80"
    assert bench.session.wish.target == "cuda:sm_80"
    assert bench.compared is not None
    assert bench.compared.record is not None
    alone = functions()["gemm"].using(target="cuda:sm_90a")(**SHAPES)
    assert bench.compared.record.stage("cuda").text == alone.stage("cuda")
    assert bench.compared.record.resources == alone.resources
    assert len(bench.history) == 1
    bench.set(block_M=32)
    moved = functions()["gemm"].using(target="cuda:sm_90a")(**SHAPES, block_M=32)
    assert bench.compared.record.stage("cuda").text == moved.stage("cuda")
    # Of another road: what both have is compared, and nothing is said of registers that a processor has not.
    bench.compare(target="cpu")
    assert "loops" in {stage.name for stage in bench.compared.record.stages}
    assert state_of(bench).compared.said == "compared with cpu"


def test_a_target_that_refuses_the_position_says_why(bench: Workbench) -> None:
    bench.set(block_M=256, block_N=256, block_K=128, num_stages=1, threads=256)
    assert bench.error is None
    bench.compare(target="cuda:sm_86")
    state = state_of(bench)
    assert bench.error is None
    assert bench.compared is not None
    assert bench.compared.problem
    assert bench.compared.problem in state.compared.said
    with pytest.raises(TargetError):
        bench.compare(target="cuda:sm_1")
    with pytest.raises(OptionError, match="one pin or one target"):
        bench.compare(target="cpu", pin="base")


def test_a_page_pins_and_compares(bench: Workbench) -> None:
    answer(bench, {"kind": "pin", "name": "base"})
    assert state_of(bench).notice == "Pinned as base"
    answer(bench, {"kind": "compare", "what": "pin", "name": "base"})
    assert (state_of(bench).compared.kind, state_of(bench).compared.name) == ("pin", "base")
    for what, name in (("pin", "gone"), ("target", "nowhere"), ("", ""), ("what", "base")):
        answer(bench, {"kind": "compare", "what": what, "name": name})
        assert state_of(bench).compared is None
    answer(bench, {"kind": "compare", "what": "target", "name": "cuda:sm_90a"})
    assert state_of(bench).compared.name == "cuda:sm_90a"


def test_pins_do_not_pile_up(bench: Workbench) -> None:
    for number in range(MOST_PINS + 3):
        bench.pin(str(number))
    assert list(bench.pins) == [str(number) for number in range(3, MOST_PINS + 3)]
