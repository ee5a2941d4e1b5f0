"""Steps of k that a loop writes out on the same sums are one statement of assembly in the CUDA text."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.targets.cuda.test_wgmma import NT, compiled, made
from tilebench.ir import Const, const_of, substitute, walk
from tilebench.language.structure import Unroll
from tilebench.targets.cuda.compiler.sass import disassemble
from tilebench.targets.cuda.instructions.wgmma import Wgmma

_CALL = re.compile(r"tb_wgmma_m\w+?_x(\d+)<([^>]*)>\(")
F16 = ("float16", "float16")
FP8 = ("float8_e4m3fn", "float8_e4m3fn")


def loops_of(kernel: Any) -> list[Unroll]:
    """The loops over products."""
    kernel.stage("threaded")
    function = kernel.compilation.functions["threaded"]
    return [each for each in walk(function) if isinstance(each, Unroll) and isinstance(each.body[0], Wgmma)]


def far(loop: Unroll, side: str, step: int) -> int:
    """How many bits a step's operand lies behind the first, by the addresses of both."""
    (one,) = loop.body
    first, other = (
        getattr(substitute(one, {loop.vars[0].name: Const(k)}), side).start[-1] for k in (0, step)
    )
    distance = const_of(other - first)
    assert distance is not None
    return distance * getattr(one, side).buffer.dtype.bits


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({"turned": (False, True)}, 4),
        ({"turned": (True, False)}, 4),
        ({"turned": NT, "fragments": "a"}, 4),
        ({"turned": NT, "ab": FP8, "promises": (False, True)}, 2),
        ({"turned": NT, "ab": ("int8", "int8"), "acc": "int32"}, 2),
    ],
)
def test_steps_are_as_far_apart_as_their_addresses(options: dict[str, Any], count: int) -> None:
    kernel = made(64, 64, 128, **{"tile": (64, 64, 64), "threads": 128, "stages": 1, **options})
    (loop,), calls = loops_of(kernel), _CALL.findall(kernel.stage("cuda"))
    (steps, given) = calls[0]
    assert (len(calls), int(steps), const_of(loop.stop)) == (1, count, count)
    *_, a, b = map(int, (each.strip("u ") for each in given.split(",") if "x" not in each))
    (one,) = loop.body
    assert isinstance(one, Wgmma)
    for step in range(1, count):
        assert step * a * (8 * 4 if one.a_form is None else 128) == far(loop, "a", step)
        assert step * b * 128 == far(loop, "b", step)
    code = compiled(kernel)
    added = [int(found) for found in re.findall(r"add\.s32 b_low, %r\d+, (-?\d+);", code.ptx)]
    assert added == [step * b for step in range(1, count)]
    assert code.advisories == ()
    # As many products as the stage before has.
    sass = disassemble(code.cubin).text
    assert len(re.findall(r"[HIQ]GMMA", sass)) == count


def test_a_sum_that_may_start_afresh_does_so_in_the_first_step_alone() -> None:
    kernel = made(64, 48, 192, turned=NT, tile=(64, 48, 64), threads=128, clear=1)
    assert "clear=k1 == 0 and ko == 1)" in kernel.stage("threaded")
    text, code = kernel.stage("cuda"), compiled(kernel)
    assert re.search(r"_x4<[^>]*>\(C_l, .*, !\(ko == 1\)\);", text)
    # The first takes a predicate that the loop decides; the others need none.
    found = re.findall(r"HGMMA\S+ R\d+, gdesc\[UR\d+\], R\d+(, U?P\d+)?", disassemble(code.cubin).text)
    assert [bool(each) for each in found] == [True, False, False, False]


def test_steps_in_panels_that_do_not_follow_each_other_stay_a_loop() -> None:
    kernel = made(64, 64, 128, turned=NT, tile=(64, 64, 128), threads=128, stages=1)
    (loop,) = loops_of(kernel)
    steps = [far(loop, "a", k + 1) - far(loop, "a", k) for k in range(7)]
    assert len(set(steps)) > 1
    assert not _CALL.search(kernel.stage("cuda"))
