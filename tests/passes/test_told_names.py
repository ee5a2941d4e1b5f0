"""What a stage says of the names that it defines, against counts of its own."""

from __future__ import annotations

import re
from functools import cache

import numpy as np

from tests import kernels
from tilebench.ir import WordStmt
from tilebench.kernel import Kernel, compile_from
from tilebench.language.lowered.arguments import ARGUMENTS
from tilebench.language.words import registry
from tilebench.passes.analysis.told_names import told_names
from tilebench.record import CompileRecord
from tilebench.targets import manifest, names

M, N, K = 1000, 1100, 1200


@cache
def gemm() -> Kernel:
    kernel = kernels.gemm_kernel.using(target="cuda:sm_80")(M, N, K, 64, 64, 32, num_stages=2, threads=128)
    kernel.stage("pipelined")
    return kernel


def record() -> CompileRecord:
    return gemm().record(("tile", "laid_out", "pipelined"))


def test_each_definition_of_a_text_is_told_and_one_value_alike_in_all_stages() -> None:
    stages = {stage.name: stage for stage in record().stages}
    for name in ("laid_out", "pipelined"):
        defined = re.findall(r"^    (\w+) = T\.(?:Fragment|SharedLayout)\(", stages[name].text, re.MULTILINE)
        assert list(stages[name].names) == defined
        assert len(defined) >= 5
    assert stages["laid_out"].names.items() <= stages["pipelined"].names.items()
    assert stages["tile"].names == {}


def test_registers_instructions_and_uses_are_told() -> None:
    said = record().stage("laid_out").names["C_l_frag"].splitlines()
    assert said[0] == "64 x 64 elements on 128 threads, 32 a thread"
    assert "as mma leaves the result of T.gemm, 16 x 8 x 16 at a time" in said
    assert "layout of C_l (32 registers a thread), C_l_narrow (16 registers a thread)" in said
    assert said[-1] == "mapping of T.copy"


def test_what_is_asked_for_of_moved_memory_is_counted_in_sectors() -> None:
    """Rows of B are 2200 bytes apart, so that runs of 128 bytes begin inside of sectors."""
    said = record().stage("laid_out").names["B_s_map"]
    found = re.search(r"reads B (\d+) bytes at a time, (\d+)% of what memory moves is asked for", said)
    assert found is not None
    width = int(found[1])
    lanes, columns = 128 // width, 64 * 2 // width
    moved = asked = 0
    for first in range(4):  # a thread's four accesses, 8 rows apart
        rows = [first * 8 + lane // columns for lane in range(2 * lanes)]
        starts = [row * N * 2 + lane % columns * width for lane, row in enumerate(rows)]
        sectors = {byte // 32 for start in starts for byte in range(start, start + width)}
        moved, asked = moved + 32 * len(sectors), asked + width * len(starts)
    assert (width, found[2]) == (8, f"{100 * asked / moved:.0f}")


def test_passes_over_the_banks_are_those_that_chose_the_layout() -> None:
    chosen = {r.message.split(":")[0]: r for r in record().remarks if r.pass_name == "choose_shared"}
    for tile in ("A_s", "B_s"):
        said = record().stage("laid_out").names[f"{tile}_swizzle"]
        values = chosen[tile].values
        assert (
            f"{tile}: {values['wavefronts']:.2f} passes over the banks for each that is needed, "
            f"{values['row_major']:.2f} in plain rows"
        ) in said


def test_an_edited_layout_is_told_with_its_conflicts() -> None:
    text = gemm().stage("laid_out")
    edited = re.sub(r"A_s_swizzle = .*", "A_s_swizzle = T.SharedLayout((64, 32), (32, 1))", text)
    kernel = compile_from("laid_out", edited, like=gemm())
    function = kernel.compilation.functions["laid_out"]
    told = told_names(function, kernel.compilation.print("laid_out").names, kernel.compilation.machine)
    assert "A_s_swizzle" not in told
    plain = "layout=T.SharedLayout((64, 32), (32, 1)"
    text = kernel.stage("laid_out").replace(plain, f"{plain}, swizzle=T.Swizzle(1, 3, 5)")
    again = compile_from("laid_out", text, like=gemm())
    said = again.record(("laid_out",)).stage("laid_out").names["A_s_swizzle"]
    found = re.search(r"A_s: ([\d.]+) passes", said)
    assert found is not None
    assert float(found[1]) > 1


def test_every_decision_that_is_printed_has_its_line_and_no_line_is_of_nothing() -> None:
    found = {id(each): each for each in (registry(), *(manifest(name).registry for name in names()))}
    words: list[type[WordStmt]] = [w.cls for each in found.values() for w in each.statements.values()]
    printed = {mark.name for cls in words for mark in cls.marks}
    decided = {mark.name for cls in words for mark in cls.decisions}
    assert ARGUMENTS.keys() <= printed
    assert decided - ARGUMENTS.keys() == set()
    assert all(line and not line.endswith(".") for line in ARGUMENTS.values())
    assert np.all([len(line) < 110 for line in ARGUMENTS.values()])
