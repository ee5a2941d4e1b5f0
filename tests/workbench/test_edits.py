"""Edited stages on a bench: compiled on from, told apart, left by a move, kept, brought back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import tilebench
from tests.workbench.bench_kernels import functions
from tilebench.errors import OptionError, TargetError
from tilebench.plain import to_plain
from tilebench.record_files import load, save
from tilebench.targets import manifest
from tilebench.workbench.front.answers import answer
from tilebench.workbench.front.build import bench_state
from tilebench.workbench.live import Workbench
from tilebench.workbench.parts import static_bundle

SHAPES = {"M": 100, "N": 70, "K": 50}


@pytest.fixture
def bench() -> Iterator[Workbench]:
    out = tilebench.workbench(functions()["gemm"], with_=SHAPES, target="cuda:sm_80")
    yield out
    out.close()


def text_of(bench: Workbench, stage: str) -> str:
    assert bench.record is not None
    return bench.record.stage(stage).text


def state_of(bench: Workbench) -> Any:
    picture = bench.session.picture
    return bench_state(picture, "tb1", "gemm", bench.session.subject.knobs, live=True)


def filled_with_one(bench: Workbench, stage: str = "threaded") -> str:
    text = text_of(bench, stage)
    assert "] = T.float32(0)" in text
    return text.replace("] = T.float32(0)", "] = T.float32(1)")


def test_later_stages_follow_an_edit_and_earlier_ones_stay(bench: Workbench) -> None:
    assert bench.record is not None
    before = {stage.name: stage.text for stage in bench.record.stages}
    edited = filled_with_one(bench)
    bench.edit("threaded", edited)
    assert bench.error is None
    for stage in ("source", "tile", "scheduled", "bounded", "laid_out", "pipelined"):
        assert text_of(bench, stage) == before[stage]
    assert text_of(bench, "threaded") == edited
    assert text_of(bench, "cuda") != before["cuda"]
    assert [edit.stage for edit in bench.record.edits] == ["threaded"]
    assert bench.record.edits[0].before == before["threaded"]
    state = state_of(bench)
    assert state.edits.edited == ("threaded",)
    assert (state.chips[0].text, state.chips[0].tone) == ("threaded edited", "warn")
    assert state.notes[0] == (
        "threaded edited by hand: what stands there and below threaded is not what the compiler makes"
    )
    assert "edited by hand: threaded" in static_bundle(bench.session.picture)["text/html"]
    bench.revert()
    assert {stage.name: stage.text for stage in bench.record.stages} == before
    assert (bench.record.edits, state_of(bench).edits.edited) == ((), ())


def test_a_saved_record_of_an_edit_does_not_pass_as_the_compiler_s(bench: Workbench, tmp_path: Any) -> None:
    bench.edit("threaded", filled_with_one(bench))
    assert bench.record is not None
    save(bench.record, tmp_path / "edited.tbz")
    assert load(tmp_path / "edited.tbz") == bench.record


def test_an_error_stands_in_the_text_that_was_edited(bench: Workbench) -> None:
    good = text_of(bench, "bounded")
    wrong = good.replace("T.gemm(A_s, ", "T.gemm(A_q, ")
    line = next(k for k, each in enumerate(wrong.splitlines(), 1) if "A_q" in each)
    bench.edit("bounded", wrong)
    assert bench.session.picture.stale
    assert text_of(bench, "bounded") == good
    problem = state_of(bench).problem
    assert (problem.stage, problem.line) == ("bounded", line)
    assert wrong.splitlines()[line - 1][problem.column : problem.end] == "A_q"
    assert problem.what == "stage error: the name A_q is not bound"
    # What is mended takes the place of what did not compile.
    bench.edit("bounded", good.replace("T.fill(C_local, T.float32(0))", "T.fill(C_local, T.float32(1))"))
    assert bench.error is None
    assert [edit.label for edit in bench.edits] == ["edit 1 of bounded"]


def test_what_a_later_pass_refuses_stands_at_its_line_of_the_edited_text(bench: Workbench) -> None:
    good = text_of(bench, "scheduled")
    # Of a line that the edit left alone: its place is the kernel's, and its line is found in the text.
    wrong = good.replace("A_s = T.alloc_shared((", "A_s = T.alloc_shared((900 * ", 1)
    bench.edit("scheduled", wrong if wrong != good else good + "?")
    problem = state_of(bench).problem
    assert problem is not None
    assert problem.stage == "scheduled"
    assert problem.line >= 1


def test_cuda_text_is_compiled_and_its_registers_follow(bench: Workbench) -> None:
    text = text_of(bench, "cuda")
    assert bench.record is not None
    assert bench.record.resources is not None
    name = text[text.rindex('extern "C"') :].partition("(")[0]
    assert name
    bench.edit("cuda", text + "\n// mine\n")
    assert bench.error is None
    assert text_of(bench, "cuda").endswith("// mine\n")
    bench.edit("cuda", text.replace("__syncthreads();", "__syncthreads(mine);", 1))
    assert isinstance(bench.error, TargetError)
    problem = state_of(bench).problem
    assert (problem.stage, "mine" in problem.what) == ("cuda", True)
    lines = text_of(bench, "cuda").splitlines()
    assert lines[problem.line - 1][problem.column : problem.end] == "mine"


def test_a_move_leaves_an_edit_that_can_be_brought_back(bench: Workbench) -> None:
    edited = filled_with_one(bench)
    bench.edit("threaded", edited)
    position = dict(bench.session.wish.position)
    bench.set(block_M=32)
    assert bench.record is not None
    assert bench.record.edits == ()
    state = state_of(bench)
    assert "edit 1 of threaded stays at its position: the list of edits goes back to it." in state.notes
    assert [(each.label, each.position, each.here) for each in state.edits.kept] == [
        ("edit 1 of threaded", "block_M=64", False)
    ]
    bench.back_to_edit(1)
    assert dict(bench.session.wish.position) == position
    assert text_of(bench, "threaded") == edited
    assert state_of(bench).edits.kept[0].here
    # Showing a stage, measuring or checking is no move.
    bench.set(stages=["cuda"])
    assert bench.session.wish.edit is not None
    with pytest.raises(OptionError, match="this workbench has no edit 7") as caught:
        bench.back_to_edit(7)
    assert caught.value.hint == "it has 1"


def test_edits_below_an_edit_go_and_those_above_stay(bench: Workbench) -> None:
    bench.edit("threaded", filled_with_one(bench))
    bench.edit("cuda", text_of(bench, "cuda") + "// mine\n")
    assert state_of(bench).edits.edited == ("threaded", "cuda")
    assert bench.edits[-1].label == "edit 2 of threaded and cuda"
    bench.revert("cuda")
    assert state_of(bench).edits.edited == ("threaded",)
    bench.back_to_edit(2)
    bench.edit("laid_out", text_of(bench, "laid_out") + "\n\n")
    # The compiler's own text at a stage is no edit, and what stood below is gone.
    assert state_of(bench).edits.edited == ()
    with pytest.raises(OptionError, match="there is no stage 'cud' to edit"):
        bench.edit("cud", "")


def test_an_edited_kernel_is_checked_in_the_simulator_where_its_card_is_not(bench: Workbench) -> None:
    if manifest("cuda").available()[0]:
        pytest.skip("a card is here")
    bench.edit("threaded", filled_with_one(bench))
    bench.set(check=True, run=True)
    assert bench.report is not None
    assert not bench.report.ok
    assert bench.runs == ()
    assert bench.session.picture.notes[0].endswith(
        "the edited kernel is not timed, and a check runs it in the simulator"
    )
    bench.edit("cuda", text_of(bench, "cuda") + "// mine\n")
    assert bench.report is None
    assert bench.session.picture.notes[0].endswith(
        "nothing here checks it (the simulator runs the stage threaded, "
        "and not the text of cuda that was edited)"
    )


def test_a_run_of_an_edit_is_a_point_of_its_own() -> None:
    bench = tilebench.workbench(functions()["gemm"], with_=SHAPES, target="cpu", run=True)
    text = text_of(bench, "bounded")
    bench.edit("bounded", text.replace("T.fill(C_local, T.float32(0))", "T.fill(C_local, T.float32(1))"))
    assert [run.edited for run in bench.runs] == [(), ("bounded",)]
    points = state_of(bench).chart.points
    assert [point.edited for point in points] == [False, True]
    assert "edited=edit 1 of bounded" in points[1].label
    bench.session.restore(1)
    assert bench.session.wish.edit is None
    bench.session.restore(2)
    assert bench.session.wish.edit is not None
    bench.close()


def test_llvm_text_that_ends_its_compiler_costs_a_message() -> None:
    bench = tilebench.workbench(functions()["gemm"], with_=SHAPES, target="cpu")
    text = text_of(bench, "llvm")
    start = text.index(":\n", text.index("define")) + 2
    bench.edit("llvm", text[:start] + '  call void asm sideeffect "no such thing", ""()\n' + text[start:])
    assert isinstance(bench.error, TargetError)
    assert bench.error.message.startswith("the compiler of cpu:")
    assert "ended its process over the edited text of llvm" in bench.error.message
    bench.edit("llvm", text[:start] + '  call void asm sideeffect "nop", ""()\n' + text[start:])
    assert bench.error is None
    bench.set(check=True)
    assert bench.report is not None
    assert bench.report.ok
    bench.close()


def test_a_browser_asks_for_edits(bench: Workbench) -> None:
    edited = filled_with_one(bench)
    answer(bench, {"kind": "edit", "stage": "threaded", "text": edited})
    assert text_of(bench, "threaded") == edited
    for stage, wrong in (("sass", ""), ("threaded", 3), ("no", "")):
        answer(bench, {"kind": "edit", "stage": stage, "text": wrong})
    assert text_of(bench, "threaded") == edited
    answer(bench, {"kind": "revert", "stage": "threaded"})
    assert bench.session.wish.edit is None
    answer(bench, {"kind": "edited", "number": 1})
    answer(bench, {"kind": "edited", "number": 9})
    assert bench.session.wish.edit is not None
    assert text_of(bench, "threaded") == edited
    # The texts travel with the record, and not with the state.
    assert len(json.dumps(to_plain(state_of(bench).edits))) < 500
