"""What of a difference is a decision, and what only follows from sizes."""

from __future__ import annotations

from functools import cache

import pytest

from tests import kernels
from tilebench.record import CompileRecord
from tilebench.recorder import make_record
from tilebench.workbench.diff import TextDiff, text_diff
from tilebench.workbench.sizes import Sizes, names_around

WIDER = Sizes.of(
    {"block": 64, "stages": 2, "dtype": "float16"}, {"block": 128, "stages": 2, "dtype": "float16"}
)


@cache
def record(**parameters: int) -> CompileRecord:
    compilation = kernels.gemm_kernel.compile(
        M=1024,
        N=1024,
        K=1024,
        **{"block_M": 64, "block_N": 64, "threads": 128, **parameters},
        target="cuda:sm_80",
    ).compilation
    return make_record(compilation, compilation.stage_names[:-2])


def between(stage: str, old: CompileRecord, new: CompileRecord) -> TextDiff:
    return text_diff(old.stage(stage).text, new.stage(stage).text, Sizes.of(old.parameters, new.parameters))


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("A_s = T.alloc_shared((64, 32))", "A_s = T.alloc_shared((128, 32))", "sized"),
        ("for k in T.serial(16):", "for k in T.serial(8):", "sized"),
        ("x = a % 4096", "x = a % 16384", "sized"),  # two extents
        ("x = a & 63", "x = a & 127", "sized"),  # a mask is one less than a size
        ("x = a & 0x3f", "x = a & 0x7f", "sized"),
        ("x = a % 2", "x = a % 3", "changed"),
        ("T.copy(A, B, by=T.Instr(bytes=8))", "T.copy(A, B, by=T.Instr(bytes=16))", "changed"),
        ("L = T.S((8,), swizzle=T.Swizzle(2, 3, 3))", "L = T.S((8,), swizzle=T.Swizzle(4, 3, 3))", "changed"),
        ("x = y * T.float32(2)", "x = y * T.float32(4)", "changed"),
        ("for k in T.serial(16):", "for k in T.unroll(16):", "changed"),
        ("for k in T.serial(16):", "for k in T.unroll(8):", "changed"),
        ("f(16)", "f(16, 32)", "changed"),
        ("with T.Kernel(4, shared_bytes=3072):", "with T.Kernel(4, shared_bytes=4096):", "sized"),
        ("x = 1", "x = 1", "same"),
    ],
)  # fmt: skip
def test_a_line_is_changed_or_only_its_sizes(old: str, new: str, kind: str) -> None:
    assert [line.kind for line in text_diff(old, new, WIDER).lines] == [kind]


def test_the_words_of_a_mixed_line_are_told_apart() -> None:
    old = 'T.copy(A[x * 64], s, by=T.Instr("ld", bytes=8))'
    new = 'T.copy(A[x * 128], s, by=T.Instr("ld", bytes=16))'
    [line] = text_diff(old, new, WIDER).lines
    assert line.kind == "changed"
    assert [new[a:b] for a, b in line.spans] == ["16"]
    assert [new[a:b] for a, b in line.sizes] == ["128"]


def test_without_moved_parameters_a_number_is_a_change() -> None:
    same = Sizes.of({"block": 64}, {"block": 64})
    assert [line.kind for line in text_diff("f(64)", "f(128)", same).lines] == ["changed"]
    assert [line.kind for line in text_diff("f(64)", "f(128)").lines] == ["changed"]


def test_a_parameter_that_has_become_its_number_is_no_change_of_meaning() -> None:
    [line] = text_diff(
        "A: T.Tensor((block, n), dtype)",
        "A: T.Tensor((64, n), T.float16)",
        Sizes.of({}, {"block": 64, "dtype": "float16"}),
    ).lines
    assert line.kind == "sized"
    [line] = text_diff("f(block)", "f(65)", Sizes.of({}, {"block": 64})).lines
    assert line.kind == "changed"


def test_names_around_a_word() -> None:
    words = ["T", "(", "(", "1", ",", "2", ")", ",", "a", "=", "S", "(", "3", ",", "b", "=", "4", ")", ")"]
    assert names_around(words, 3) == {"(", "T"}
    assert names_around(words, 12) == {"S", "a", "T"}
    assert names_around(words, 16) == {"b", "S", "a", "T"}


def test_a_larger_block_changes_sizes_alone() -> None:
    old, new = record(), record(block_M=128)
    for stage in ("tile", "scheduled", "bounded", "laid_out", "pipelined", "threaded", "cuda"):
        found = between(stage, old, new)
        assert (found.count("changed"), found.count("new"), found.count("removed")) == (0, 0, 0), stage
        assert found.count("sized") >= 4, stage
        # What is not told apart from nothing would be all the same: without the parameters they are changes.
        plain = text_diff(old.stage(stage).text, new.stage(stage).text)
        assert plain.count("changed") == found.count("sized")
    assert between("laid_out", old, new).told().startswith("0 new, 0 changed, ")


def test_more_stages_are_a_decision() -> None:
    found = between("bounded", record(), record(num_stages=3))
    assert found.count("sized") == 0
    assert found.count("changed") >= 1
