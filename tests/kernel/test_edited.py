"""Compilation that starts from the text of a stage, as it was and edited."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests import kernels
from tilebench.errors import IRError, OptionError, TargetError
from tilebench.kernel import Kernel, compile_from
from tilebench.kernel.calls.variants import Variant
from tilebench.record import EditRecord, StageRecord
from tilebench.schedule import Schedule

SHAPES = {
    "add": (kernels.add_kernel, (100, 75)), "gemm": (kernels.gemm_kernel, (100, 75, 90)),
    "sum": (kernels.reduce_kernel, (33, 100)), "softmax": (kernels.softmax_kernel, (5, 47)),
}  # fmt: skip
TARGETS = {
    "null": ("tile", "scheduled", "bounded"), "cpu": ("tile", "scheduled", "bounded"),
    "cuda:sm_80": ("tile", "scheduled", "bounded", "laid_out", "pipelined", "threaded"),
}  # fmt: skip


def kernel_of(name: str, target: str) -> Kernel:
    function, shape = SHAPES[name]
    return function.using(target=target)(*shape)


def last_ir(kernel: Kernel) -> str:
    return list(kernel.compilation.rows)[-1].name


@pytest.mark.parametrize("target", list(TARGETS))
@pytest.mark.parametrize("name", list(SHAPES))
def test_every_stage_leads_where_the_whole_road_does(name: str, target: str) -> None:
    kernel = kernel_of(name, target)
    last = last_ir(kernel)
    end = kernel.stage(last)
    for stage in TARGETS[target]:
        made = compile_from(stage, kernel.stage(stage), target=target)
        assert made.stages[:2] == ("source", stage)
        assert made.stage(last) == end, stage
        assert made.stage(stage) == kernel.stage(stage)
        if target.startswith("cuda"):
            assert made.stage("cuda") == kernel.stage("cuda")


@pytest.mark.parametrize("stage", TARGETS["cuda:sm_80"])
def test_like_a_kernel_places_and_work_are_those_of_the_source(stage: str) -> None:
    kernel = kernel_of("gemm", "cuda:sm_80")
    made = compile_from(stage, kernel.stage(stage), like=kernel)
    assert made.target == kernel.target
    assert made.arguments == kernel.arguments
    assert made.places() == kernel.places()
    one, two = kernel.record((stage, "cuda")), made.record((stage, "cuda"))
    assert two.stage("cuda").lines == one.stage("cuda").lines
    assert (two.flops, two.bytes) == (one.flops, one.bytes)


def line_of(record: StageRecord, text: str) -> int:
    return next(k for k, line in enumerate(record.text.splitlines()) if text in line)


def test_an_edit_acts_and_keeps_the_places_of_other_lines() -> None:
    kernel = kernel_of("gemm", "cuda:sm_80")
    text = kernel.stage("scheduled")
    fill = "        T.fill(C_l, T.float32(0))\n"
    edited = text.replace(
        fill, fill.replace("(0)", "(1)") + "        y = T.alloc_shared((3, 5), T.float32)\n"
    )
    made = compile_from("scheduled", edited, like=kernel)
    before, after = kernel.record(("scheduled",)).stages[0], made.record(("scheduled",)).stages[0]
    for mark in ("A_s = ", "T.Pipelined", "T.gemm", "T.copy(C_l"):
        assert after.lines[line_of(after, mark)] == before.lines[line_of(before, mark)] != ()
    assert after.lines[line_of(after, "y = ")] == ()
    assert "= 0x1p+0f" in made.stage("cuda") or "1.0f" in made.stage("cuda")
    assert (
        "shared" in made.stage("laid_out").splitlines()[line_of(made.record(("laid_out",)).stages[0], "y = ")]
    )


def test_an_error_in_edited_text_stands_at_its_line_of_the_text() -> None:
    kernel = kernel_of("gemm", "cuda:sm_80")
    text = kernel.stage("bounded")
    number = next(k for k, line in enumerate(text.splitlines(), 1) if "T.gemm" in line)
    with pytest.raises(IRError, match="B_q is not bound") as caught:
        compile_from("bounded", text.replace("T.gemm(A_s, B_s", "T.gemm(A_s, B_q"), like=kernel)
    assert caught.value.place is not None
    assert (caught.value.place.file, caught.value.place.line) == ("<bounded stage>", number)
    assert caught.value.place.text.strip().startswith("T.gemm(A_s, B_q")
    with pytest.raises(IRError) as caught:
        compile_from("bounded", text.replace("T.gemm(", "T.gemm)"), like=kernel)
    assert caught.value.place is not None
    assert caught.value.place.line == number
    with pytest.raises(IRError, match="C has rank 2, used with 1 indices in stage bounded") as caught:
        compile_from("bounded", text + "    C[0] = T.float16(1)\n")
    assert caught.value.place is not None
    assert caught.value.place.line == len(text.splitlines()) + 1


def test_a_stranger_s_text_is_parsed_and_not_run() -> None:
    for text in ("__import__('os')", "def f():\n    print(1)\n", "def f(A: print(1)):\n    pass\n"):
        with pytest.raises(IRError):
            compile_from("tile", text, target="cpu")


def test_cuda_text_of_a_kernel() -> None:
    kernel = kernel_of("add", "cuda:sm_80")
    text = kernel.stage("cuda")
    comment = "// edited by hand"
    edited = text.replace("{\n", "{\n    " + comment + "\n", 1)
    made = compile_from("cuda", edited, like=kernel)
    assert made.stage("cuda") == edited
    assert kernel.stage("cuda") == text
    before, after = kernel.record(("cuda",)).stages[0], made.record(("cuda",)).stages[0]
    assert len(after.lines) == len(before.lines) + 1
    moved = line_of(after, comment)
    assert after.lines[moved] == ()
    assert after.lines[:moved] == before.lines[:moved]
    assert after.lines[moved + 1 :] == before.lines[moved:]
    with pytest.raises(OptionError, match="does not say how to launch it"):
        compile_from("cuda", text, target="cuda:sm_80")


def test_where_compilation_cannot_start() -> None:
    kernel = kernel_of("add", "cpu")
    for stage in ("source", "laid_out", "sass", "asm", "til"):
        with pytest.raises(OptionError, match="cannot start at"):
            compile_from(stage, "", like=kernel)
    with pytest.raises(OptionError, match="has another road than null"):
        compile_from("bounded", kernel.stage("bounded"), like=kernel, target="null")


def test_an_edited_kernel_runs_and_checks() -> None:
    kernel = kernel_of("add", "cpu")
    edited = kernel.stage("bounded").replace("] + B[", "] - B[")
    assert edited != kernel.stage("bounded")
    made: Any = compile_from("bounded", edited, like=kernel)
    a, b, c = (
        np.full((100, 75), 3, np.float16),
        np.full((100, 75), 1, np.float16),
        np.zeros((100, 75), np.float16),
    )
    made(a, b, c)
    assert (c == 2).all()
    # The reference follows the text, not the kernel that it came from.
    assert made.check().ok


def test_below_the_stages_of_whole_tiles_the_meaning_is_the_kernel_s() -> None:
    kernel = kernel_of("add", "cuda:sm_80")
    made = compile_from("threaded", kernel.stage("threaded"), like=kernel)
    assert made.meaning == kernel.compilation.traced.function
    alone = compile_from("threaded", kernel.stage("threaded"), target="cuda:sm_80")
    assert alone.meaning is None
    assert [(p.read, p.written) for p in alone.arguments] == [(True, False), (True, False), (False, True)]
    with pytest.raises(OptionError, match="says what threads do"):
        alone.check()


def test_schedule_and_outputs_are_those_of_the_kernel_it_came_from() -> None:
    schedule = Schedule.of(threads=64, loop={"ko": {"num_stages": 3}})
    kernel = kernels.gemm_kernel.using(target="cuda:sm_80", schedule=schedule, out_idx=-1)(100, 75, 90)
    for stage in ("tile", "bounded", "cuda"):
        made = compile_from(stage, kernel.stage(stage), like=kernel)
        assert made.outputs == kernel.outputs == (2,)
        assert made.stage("threaded") == kernel.stage("threaded")
        found = {(c.address, c.name): c.origin for c in made.record(("threaded",)).choices}
        assert found["kernel", "threads"] == found["loop ko", "num_stages"] == "call"


def test_what_stands_above_an_edit_stays_and_the_record_says_what_was_edited() -> None:
    kernel = kernel_of("gemm", "cuda:sm_80")
    text = kernel.stage("laid_out")
    edited = text.replace("T.float32(0)", "T.float32(1)")
    made = compile_from("laid_out", edited, like=kernel)
    assert made.stages == kernel.stages
    for stage in ("source", "tile", "scheduled", "bounded"):
        assert made.stage(stage) == kernel.stage(stage)
    assert made.stage("cuda") != kernel.stage("cuda")
    record = made.record(("bounded", "laid_out"))
    assert record.edits == (EditRecord("laid_out", text),)
    assert kernel.record(("laid_out",)).edits == ()
    # Decisions of the passes above stand in it, and those of passes that did not run do not.
    assert {each.message for each in record.remarks} <= {each.message for each in kernel.record().remarks}


def test_edits_follow_each_other_and_the_compiler_s_text_is_none() -> None:
    kernel = kernel_of("add", "cuda:sm_80")
    once = compile_from("threaded", kernel.stage("threaded").replace("] + B", "] - B"), like=kernel)
    text = once.stage("cuda")
    twice = compile_from("cuda", text + "// mine\n", like=once)
    assert [edit.stage for edit in twice.compilation.edits] == ["threaded", "cuda"]
    assert twice.compilation.edits[1].before == text
    assert twice.stage("threaded") == once.stage("threaded")
    # What stood below an edit is gone with the next edit above it.
    above = compile_from("laid_out", twice.stage("laid_out") + "\n\n", like=twice)
    assert above.compilation.edits == ()
    again = compile_from("cuda", twice.stage("cuda") + "// more\n", like=twice)
    assert again.compilation.edits == (
        once.compilation.edits[0],
        EditRecord("cuda", text),
    )
    back = compile_from("cuda", text, like=twice)
    assert back.compilation.edits == once.compilation.edits
    alone = compile_from("threaded", kernel.stage("threaded"), target="cuda:sm_80")
    assert alone.compilation.edits == (EditRecord("threaded"),)


def test_a_run_of_an_edited_kernel_says_so() -> None:
    kernel = kernel_of("add", "cpu")
    made = kernel.edited("bounded", kernel.stage("bounded").replace("] + B[", "] - B["))
    run = made.bench(rounds=5, seconds=0.05)
    assert run.edited == ("bounded",)
    assert str(run).startswith(f"{kernel.name} on {kernel.target}, bounded edited by hand: ")
    assert kernel.bench(rounds=5, seconds=0.05).edited == ()


def test_text_of_another_makers_compiler_is_refused_at_its_line() -> None:
    kernel = kernel_of("gemm", "cuda:sm_80")
    text = kernel.stage("cuda")
    number = next(k for k, line in enumerate(text.splitlines(), 1) if "__syncthreads();" in line)
    made = compile_from("cuda", text.replace("__syncthreads();", "__syncthreads(nobody);", 1), like=kernel)
    with pytest.raises(TargetError) as caught:
        made.stage("ptx")
    place = caught.value.place
    assert place is not None
    assert (place.file, place.line) == ("<cuda stage>", number)
    assert place.text[place.column : place.end_column] == "nobody"
    assert '"nobody" is undefined' in caught.value.message

    kernel = kernel_of("add", "cpu")
    text = kernel.stage("llvm")
    number = next(k for k, line in enumerate(text.splitlines(), 1) if " = load " in line)
    made = compile_from("llvm", text.replace(" = load ", " = lode ", 1), like=kernel)
    with pytest.raises(TargetError, match="LLVM refuses the text: expected instruction opcode") as caught:
        made.stage("asm")
    place = caught.value.place
    assert place is not None
    assert (place.file, place.line) == ("<llvm stage>", number)
    assert place.text[place.column : place.end_column] == "lode"


def test_nothing_takes_the_unedited_code_in_place_of_the_edited() -> None:
    kernel = kernel_of("add", "cuda:sm_80")
    made = compile_from("cuda", kernel.stage("cuda") + "// mine\n", like=kernel)
    with pytest.raises(TargetError, match="these arrays need another variant"):
        made.calls.compiled(Variant(aligned=False))
    with pytest.raises(TargetError, match="clocks is made from the stage tile, and the text of cuda"):
        made.with_clocks()
    assert compile_from("tile", kernel.stage("tile"), like=kernel).with_clocks().stage("cuda")
