"""Drawn kernels agree on every road, and a disagreement would be seen, made short and survived."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.fuzz import roads
from tests.fuzz.campaign import Campaign
from tests.fuzz.child import Child
from tests.fuzz.draw import draw
from tests.fuzz.expressions import FUNCTIONS
from tests.fuzz.program import HEAD, Program
from tests.fuzz.shrink import shrink

SEED, PROGRAMS = 0, 300
ADD = (
    HEAD
    + """@tilebench.jit
def kernel():
    @T.prim_func
    def main(A1: T.Tensor((40,), "float32"), O2: T.Tensor((40,), "float32")):
        with T.Kernel(2, threads=32) as bx:
            s3 = T.alloc_shared((20,), "float32")
            T.copy(A1[bx * 20], s3)
            for k in T.serial(2):
                for i in T.Parallel(20):
                    if i < 17:
                        s3[i] = T.exp(s3[i] * 0.5) + T.max(s3[i], 1.0)
            T.copy(s3, O2[bx * 20])
    return main
"""
)


def test_programs_agree_on_every_road() -> None:
    campaign = Campaign(PROGRAMS, SEED, jobs=min(2, os.cpu_count() or 1), nvrtc=100, shrinking=False)
    campaign.run()
    assert not campaign.findings, f"{campaign}"
    assert campaign.counts.total() == PROGRAMS
    # A generator that is refused or misunderstood most of the time would find nothing.
    assert campaign.counts["agree"] > 0.8 * PROGRAMS
    assert not campaign.counts["undefined"], f"{campaign}"


def test_drawing_is_the_same_everywhere_and_leaves_no_word_out() -> None:
    texts = [draw(seed).text for seed in range(600)]
    assert texts[:50] == [draw(seed).text for seed in range(50)]
    words = set(re.findall(r"T\.(\w+)", "\n".join(texts)))
    missing = {
        "Kernel", "Parallel", "Pipelined", "Tensor", "StridedTensor", "alloc_fragment", "alloc_global",
        "alloc_local", "alloc_shared", "alloc_var", "cast", "clear", "copy", "cumsum", "dynamic",
        "fill", "gemm",
        "get_thread_binding", "if_then_else", "max", "min", "reduce_max", "reduce_min", "reduce_sum",
        "serial", "threads", "unroll", "vectorized", "any_of", "all_of", "atomic_add",
        "atomic_max", "atomic_or", "device_assert", "macro", "print", "sync_grid", "view", "rng_rand",
        "alloc_reducer", "transpose",
    } - words  # fmt: skip
    assert not missing
    assert len(words & set(FUNCTIONS)) > 5


def test_a_wrong_value_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = roads.run_threaded

    def wrong(function: Any, arrays: Any, **words: Any) -> None:
        honest(function, arrays, **words)
        arrays["O2"].flat[-1] += 1

    monkeypatch.setattr(roads, "run_threaded", wrong)
    (said,) = roads.run(Program(ADD)).said
    assert said.key == ("cuda", "other values")
    assert "O2[39]" in said.detail


def test_a_program_is_made_short() -> None:
    """As if a maximum were wrong: what is left has one, and a meaning."""

    def fails(program: Program) -> bool:
        return "T.max" in program.text and not roads.run(program, only=()).said

    short = shrink(Program(ADD, target="cuda:sm_90a", inputs="wide", seed=3), fails)
    assert (short.target, short.inputs) == ("cuda:sm_80", "uniform")
    assert "T.max(0, 0)" in short.text
    assert len(short.text.split("def main")[1].splitlines()) < 7


@pytest.mark.parametrize(
    ("edit", "word", "kind"),
    [
        (("T.copy(A1[bx * 20], s3)", "pass"), roads.UNDEFINED, "nothing has written"),
        (("if i < 17:", "if i / 2 < 17:"), roads.REFUSED, "divides floats"),
        (("s3[i] = T.exp", "s3[0] = T.exp"), roads.UNDEFINED, "T.Parallel"),
    ],
)
def test_what_is_no_finding(edit: tuple[str, str], word: str, kind: str) -> None:
    (said,) = roads.run(replace(Program(ADD), text=ADD.replace(*edit))).said
    assert said.word == word
    assert kind in said.kind


@pytest.mark.parametrize(
    ("line", "kind"),
    [("while True: pass", "hangs: no end after 3 seconds"), ("import os; os._exit(7)", "died with 7")],
)
def test_a_program_that_hangs_or_dies_is_a_finding_and_the_next_one_runs(line: str, kind: str) -> None:
    child = Child(seconds=3)
    try:
        assert [said.kind for said in child.run(Program(line + "\n" + ADD)).findings] == [kind]
        assert str(child.run(Program(ADD))) == "all agree"
    finally:
        child.close()


def test_a_finding_is_a_file_that_runs_alone(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    text = Program(ADD, sizes={}, target="cuda:sm_90a", seed=5).file_text()
    path = tmp_path / "finding.py"
    path.write_text(text)
    exec(compile(text, str(path), "exec"), {"__name__": "__main__", "__file__": str(path)})
    assert capsys.readouterr().out == "all agree\n"


def test_arrays_are_those_of_the_seed() -> None:
    program = Program(ADD, inputs="special", seed=4)
    function = program.function(program.traced())
    one, two = program.arrays(function), program.arrays(function)
    assert np.array_equal(one["A1"], two["A1"], equal_nan=True)
    other = replace(program, seed=5).arrays(function)
    assert not np.array_equal(one["A1"], other["A1"], equal_nan=True)
