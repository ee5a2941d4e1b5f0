"""Figures of lines against counts of their own: nothing is lost, nothing counts twice, and links hold."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests import kernels, line_kernels
from tilebench.profile.lines import LineSums, line_counters, line_sums
from tilebench.record import CompileRecord, LineCounter, StageRecord
from tilebench.recorder import make_record

INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/")
STAGES = ("source", "tile", "scheduled", "bounded", "laid_out", "pipelined", "threaded")


@cache
def record(name: str, arch: str = "sm_80") -> CompileRecord:
    kernel = {
        "macro": lambda: line_kernels.macro_gemm.compile(M=256, N=256, K=256, target=f"cuda:{arch}"),
        "vector": lambda: line_kernels.vector_add.compile(N=65536, target=f"cuda:{arch}"),
        "gemm": lambda: kernels.gemm_kernel.compile(M=512, N=512, K=512, target=f"cuda:{arch}"),
        "sum": lambda: kernels.reduce_kernel.compile(M=256, N=1000, target=f"cuda:{arch}"),
    }[name]()
    return make_record(kernel.compilation, kernel.compilation.stage_names)


def counter(held: CompileRecord, name: str) -> LineCounter:
    return next(each for each in line_counters(held) if each.name == name)


def line_of(text: str, first: int = 1) -> int:
    """The line of this file of kernels that has `text`, the `first`th of them."""
    lines = Path(line_kernels.__file__).read_text().splitlines()
    return [number for number, line in enumerate(lines, 1) if text in line][first - 1]


def kin(stage: StageRecord, line: int) -> list[str]:
    return [text for text, lines in zip(stage.text.splitlines(), stage.lines, strict=True) if line in lines]


CASES = [(name, arch) for name in ("macro", "gemm", "sum", "vector") for arch in ("sm_75", "sm_80", "sm_90a")]


@pytest.mark.parametrize(("name", "arch"), CASES)
def test_the_source_adds_up_to_the_machine_code(name: str, arch: str) -> None:
    held = record(name, arch)
    sass = held.stage("sass")
    sums = line_sums(held, counter(held, "instructions"))
    # Counted here once more, from the text and the map alone.
    rows = [
        lines
        for text, lines in zip(sass.text.splitlines(), sass.lines, strict=True)
        if INSTRUCTION.search(text)
    ]
    assert sums.total == len(rows) > 20
    by_line = Counter(lines[0] for lines in rows if lines)
    assert {line: figure.value for line, figure in sums.user.items()} == by_line
    assert sums.none.value == sum(not lines for lines in rows) < len(rows) / 8
    for stage in STAGES:
        assert borne(sums, stage) == sums.total - sums.none.value, stage
    for stage in ("cuda", "ptx", "sass"):
        assert borne(sums, stage) == sums.total, stage


def borne(sums: LineSums, stage: str) -> float:
    shown = sums.of(stage)
    assert len(shown) == len(sums.record.stage(stage).text.splitlines())
    return sum(each.figure.value for each in shown if each is not None and each.bears)


def test_kinds_add_up_to_their_figure() -> None:
    held = record("gemm")
    sums = line_sums(held, counter(held, "instructions"))
    for figure in sums.user.values():
        assert sum(figure.kinds.values()) == figure.value
    gemm = next(f for line, f in sums.user.items() if "matrix product" in f.kinds)
    text = held.stage("sass").text
    assert gemm.kinds["matrix product"] == len(re.findall(r"\bHMMA\.", text))


def test_lines_of_one_source_line_have_one_figure_and_one_of_them_bears_it() -> None:
    held = record("macro")
    shown = line_sums(held, counter(held, "global_bytes")).of("pipelined")
    text = held.stage("pipelined").text.splitlines()
    copies = [k for k, line in enumerate(text) if "T.copy(A[" in line]
    assert len(copies) == 2  # before the loop, and in it
    first, second = (shown[k] for k in copies)
    assert first is not None
    assert second is not None
    assert first.figure is second.figure
    assert (first.bears, second.bears, second.first) == (True, False, copies[0] + 1)


def test_bytes_are_those_of_the_copies() -> None:
    held = record("macro")
    sums = line_sums(held, counter(held, "global_bytes"))
    # A tile of 64 x 32 float16 by 128 threads is 32 bytes a thread, stated twice ahead and once in the loop.
    for number in (1, 2):
        assert sums.user[line_of("load(", number + 1)].value == 3 * 64 * 32 * 2 / 128
    # The result, of 64 x 64 float16.
    assert sums.user[line_of("T.copy(C_l")].value == 64 * 64 * 2 / 128
    assert sums.total == 2 * 96 + 64


def test_bytes_of_shared_memory_are_those_that_the_ptx_asks_for() -> None:
    """Not what the text of the SASS adds in front of asynchronous copies: loads that never run."""
    held = record("macro")
    ptx = held.stage("ptx").text
    words = len(re.findall(r"ldmatrix[.\w]*\.x4", ptx)) + len(re.findall(r"cp\.async\.cg\.", ptx))
    assert words > 12
    assert "@!PT LDS" in held.stage("sass").text
    assert line_sums(held, counter(held, "shared_bytes")).total == 16 * words


def test_two_calls_of_one_helper_are_told_apart() -> None:
    """Loads of A and B are the same helper side by side: nvdisasm's comments call some of B's A's."""
    for arch, load in (("sm_75", "LDG"), ("sm_80", "LDGSTS")):
        sass = record("macro", arch).stage("sass")
        found = [kin(sass, line_of("load(", number + 1)) for number in (1, 2)]
        counts = [sum(bool(re.search(rf"\b{load}\.", text)) for text in each) for each in found]
        assert counts[0] == counts[1] > 0, arch


def test_a_macros_lines_find_what_they_became() -> None:
    held = record("macro")
    call, body = line_of("scale(C_l"), line_of("frag[i, j] = frag[i, j] * by")
    for stage in ("tile", "laid_out", "pipelined", "threaded", "cuda", "ptx", "sass"):
        both = set(kin(held.stage(stage), body))
        assert both, stage
        assert both <= set(kin(held.stage(stage), call)), stage
    # A macro that is used twice, outside of the kernel function: its line has what both calls became.
    twice = line_of("T.copy(src[row, col], dst)")
    calls = [kin(held.stage("sass"), line_of("load(", k)) for k in (2, 3)]
    assert Counter(kin(held.stage("sass"), twice)) == Counter(calls[0]) + Counter(calls[1])


def test_a_macros_line_shows_its_part_and_does_not_bear_it() -> None:
    held = record("macro")
    sums = line_sums(held, counter(held, "instructions"))
    source = sums.of("source")
    at = line_of("frag[i, j] = frag[i, j] * by") - held.source_first_line
    inner, call = source[at], source[line_of("scale(C_l") - held.source_first_line]
    assert inner is not None
    assert call is not None
    assert (inner.inner, inner.bears, call.bears) == (True, False, True)
    assert inner.figure.value <= call.figure.value
    assert call.figure.also[line_of("frag[i, j] = frag[i, j] * by")] == inner.figure.value


def test_a_copy_in_a_pipelined_loop_finds_all_that_it_became() -> None:
    held = record("macro")
    line = line_of("load(", 2)
    pipelined = [text.strip() for text in kin(held.stage("pipelined"), line)]
    copies = [text for text in pipelined if text.startswith("T.copy(A[")]
    assert ["ko_first" in copies[0], "(ko + 2)" in copies[1]] == [True, True]
    cuda = [text for text in kin(held.stage("cuda"), line) if "tb_cp_async" in text]
    assert len(cuda) == 2  # both are there in the emitted text
    sass = [text for text in kin(held.stage("sass"), line) if "LDGSTS" in text]
    assert len(sass) == 2 * 2 + 2  # two vectors, two steps ahead of the loop and one in it
    assert sum("@!P" in text for text in sass) == 2
    ptx = [text for text in kin(held.stage("ptx"), line) if "cp.async.cg" in text]
    assert len(ptx) == 6


def test_a_vectorised_loop_finds_its_vectors() -> None:
    held = record("vector")
    line = line_of("C[bx * block + i] =")
    assert kin(held.stage("source"), line)
    assert any("T.vector_load" in text for text in kin(held.stage("threaded"), line))
    sass = kin(held.stage("sass"), line)
    # 1024 floats by 128 threads are two vectors of four: two loads from each array, two stores.
    assert [sum(word in text for text in sass) for word in ("LDG.E.128", "STG.E.128", "FADD")] == [4, 2, 8]
    sums = line_sums(held, counter(held, "global_bytes"))
    assert sums.user[line].value == 6 * 16


def test_a_gemm_finds_its_instructions_in_every_stage() -> None:
    held = record("macro")
    line = line_of("T.gemm(")
    for stage, word in (
        ("tile", "T.gemm"),
        ("pipelined", "T.gemm"),
        ("threaded", "mma"),
        ("ptx", "mma.sync"),
        ("sass", "HMMA"),
    ):
        found = [text for text in kin(held.stage(stage), line) if word in text]
        everywhere = [text for text in held.stage(stage).text.splitlines() if word in text]
        assert found == everywhere, stage


def test_a_counter_of_a_text_in_the_middle_is_summed_upward() -> None:
    held = record("macro")
    cuda = held.stage("cuda")
    values = tuple(float(bool(lines)) for lines in cuda.lines)
    sums = line_sums(held, LineCounter("x", "lines", "cuda", values))
    assert sums.total == sum(values) == borne(sums, "source") == borne(sums, "threaded")


def test_a_counter_in_the_middle_is_exact_one_text_below() -> None:
    held = record("macro")
    threaded = held.stage("threaded").text.splitlines()
    values = tuple(float("T.cp_async(" in line) * (k + 1) for k, line in enumerate(threaded))
    sums = line_sums(held, LineCounter("x", "lines", "threaded", values))
    shown = zip(
        sums.of("cuda"), held.stage("cuda").text.splitlines(), held.stage("cuda").previous, strict=True
    )
    for each, text, above in shown:
        if "tb_cp_async_16" in text and above:
            assert each is not None, text
            assert each.figure.value == above[0]
    assert borne(sums, "cuda") == sums.total == sum(values)


def test_code_that_serves_two_lines_counts_once_and_is_said() -> None:
    text = "a\nb\n"
    stages = (
        StageRecord("source", "python", text, ((1,), (2,))),
        StageRecord("cuda", "cuda", "x\n", ((1, 2),)),
    )
    held = CompileRecord("k", "cuda:sm_80", {}, (), stages)
    sums = line_sums(held, LineCounter("x", "lines", "cuda", (3.0,)))
    assert (sums.user[1].value, sums.user[1].also) == (3.0, {2: 3.0})
    assert borne(sums, "source") == 3.0
    assert [each is not None and each.inner for each in sums.of("source")] == [False, True]
