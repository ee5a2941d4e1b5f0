"""Line maps: every line of every stage leads to the kernel's line that it came from."""

from __future__ import annotations

from typing import Any

import pytest

import tilebench.language as T
from tests import kernels
from tilebench.errors import TargetError
from tilebench.kernel import Kernel
from tilebench.kernel.measuring.package import package_of
from tilebench.passes.analysis.count_work import count_work
from tilebench.record import CompileRecord, StageRecord


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return kernels.gemm_kernel.using(target="cuda:sm_80")(100, 75, 90, block_M=32, block_N=32, threads=64)


@pytest.fixture(scope="module")
def record(kernel: Kernel) -> CompileRecord:
    for stage in ("threaded", "sass"):
        kernel.stage(stage)
    return kernel.record(kernel.stages)


def source_text(record: CompileRecord, line: int) -> str:
    return record.stage("source").text.splitlines()[line - record.source_first_line].strip()


def texts_of(record: CompileRecord, stage: StageRecord, mark: str) -> set[str]:
    """The source lines that the stage's lines with a mark came from."""
    out: set[str] = set()
    for text, lines in zip(stage.text.splitlines(), stage.lines, strict=True):
        if mark in text:
            out |= {source_text(record, each) for each in lines}
    return out


IR = ("tile", "scheduled", "bounded", "laid_out", "pipelined", "threaded")


def test_all_stages_are_there_in_order(record: CompileRecord) -> None:
    assert [each.name for each in record.stages] == ["source", *IR, "cuda", "ptx", "sass"]
    assert not any(each.pending for each in record.stages)
    assert record.stage("source").text.startswith("@tilebench.jit\ndef gemm_kernel(")


@pytest.mark.parametrize("name", [*IR, "cuda", "ptx", "sass"])
def test_lines_lead_into_the_kernel(record: CompileRecord, name: str) -> None:
    stage = record.stage(name)
    assert len(stage.lines) == len(stage.text.splitlines())
    first = record.source_first_line
    inside = range(first, first + len(record.stage("source").text.splitlines()))
    found = [each for lines in stage.lines for each in lines]
    assert found
    assert all(each in inside for each in found)
    assert any("T.gemm(" in source_text(record, each) for each in found)


def test_lines_of_the_stage_above_are_lines_of_its_text(record: CompileRecord) -> None:
    for above, stage in zip(record.stages, record.stages[1:], strict=False):
        count = len(above.text.splitlines())
        found = [each for lines in stage.previous for each in lines]
        assert found, stage.name
        assert all(1 <= each <= count for each in found), stage.name


def test_every_line_of_the_tile_stages_has_its_line(record: CompileRecord) -> None:
    for name in IR:
        stage = record.stage(name)
        for text, lines in zip(stage.text.splitlines()[1:], stage.lines[1:], strict=True):
            assert len(lines) == 1, f"{name}: {text}"


@pytest.mark.parametrize(("stage", "mark"), [("cuda", "tb_mma"), ("ptx", "mma.sync"), ("sass", "HMMA")])
def test_products_come_from_the_gemm(record: CompileRecord, stage: str, mark: str) -> None:
    found = texts_of(record, record.stage(stage), mark)
    assert found <= {"T.gemm(A_s, B_s, C_l)"}
    if stage != "cuda":
        assert found == {"T.gemm(A_s, B_s, C_l)"}


def test_memory_instructions_come_from_the_copies(record: CompileRecord) -> None:
    sass = record.stage("sass")
    assert texts_of(record, sass, "STG") == {"T.copy(C_l, C[by * block_M, bx * block_N])"}
    # Rows of 90 elements go in pairs by themselves; those of 75 pass through registers.
    assert texts_of(record, sass, "LDGSTS") == {"T.copy(A[by * block_M, ko * block_K], A_s)"}
    assert texts_of(record, sass, "LDG.") == {"T.copy(B[ko * block_K, bx * block_N], B_s)"}


def test_work_shape_and_resources(record: CompileRecord) -> None:
    assert record.flops == 2 * 100 * 75 * 90
    assert record.bytes == 2 * (100 * 90 + 90 * 75 + 100 * 75)
    assert record.grid == (3, 4)
    assert record.resources is not None
    assert record.resources.threads == 64
    assert record.resources.registers is not None
    assert record.resources.registers > 16
    assert [(p.name, p.read, p.written) for p in record.arguments] == [
        ("A", True, False), ("B", True, False), ("C", False, True),
    ]  # fmt: skip
    assert record.seconds == pytest.approx(sum(each.seconds for each in record.stages), rel=1e-6)
    assert "nvrtc" in record.versions


def test_what_is_made_in_the_background_is_pending_until_then() -> None:
    kernel = kernels.add_kernel.using(target="cuda:sm_80")(64, 64, threads=32)
    record = kernel.record()
    assert record.stage("sass").pending
    assert record.stage("sass").text == ""
    assert not record.stage("ptx").pending


def test_a_record_of_what_was_asked_for_makes_no_more() -> None:
    kernel = kernels.add_kernel.using(target="cuda:sm_80")(72, 64, threads=32)
    record = kernel.record(("tile", "bounded"))
    assert [each.name for each in record.stages] == ["tile", "bounded"]
    assert set(kernel.compilation.functions) == {"tile", "scheduled", "bounded"}
    assert kernel.compilation.build is None
    assert record.versions == {"tilebench": record.versions["tilebench"]}


def test_shared_memory_has_no_figure_before_its_map() -> None:
    kernel = kernels.gemm_kernel.using(target="cuda:sm_80")(100, 75, 90)
    assert kernel.record(("tile", "scheduled", "laid_out")).resources is None
    placed = kernel.record(("tile", "threaded")).resources
    assert placed is not None
    assert placed.shared_bytes > 0
    assert placed.shared_bytes == kernel.resources.shared_bytes


def test_a_target_that_ends_early_says_that_it_knows_no_resources() -> None:
    kernel = kernels.add_kernel.using(target="null")(72, 64, threads=32)
    with pytest.raises(TargetError, match=r"null does not say what a block of .* takes"):
        _ = kernel.resources


def test_the_work_of_a_kernel_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts, records and packages of one kernel share a count; other sizes have their own."""
    counted: list[Any] = []

    def count(function: Any) -> Any:
        counted.append(function)
        return count_work(function)

    monkeypatch.setattr("tilebench.compiler.count_work", count)
    kernel = kernels.gemm_kernel.using(target="cuda:sm_80")(100, 75, 90)
    assert kernel.stage("tile").startswith("@T.prim_func")
    assert counted == []
    flops = {kernel.record(("tile",)).flops, kernel.record(("laid_out",)).flops}
    flops.add(package_of(kernel, {}).flops)
    assert kernel.resources.threads == 256
    assert (flops, len(counted)) == ({2.0 * 100 * 75 * 90}, 1)
    sized = kernels.gemm_kernel.using(target="cpu")(T.dynamic("m"), 75, 90)
    found = [package_of(sized, {"m": m}).flops for m in (10, 20, 10)]
    assert found == [2.0 * m * 75 * 90 for m in (10, 20, 10)]
    assert len(counted) == 3
