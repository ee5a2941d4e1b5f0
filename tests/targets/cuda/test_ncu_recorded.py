"""Counts of lines as an H200 gave them to ncu: a product of 256^3 with a ring of copies, in `tests/recorded`.

The page is ncu's own, of which instructions without accesses and empty columns are left out; beside it is the
record of the code that ran. It says three things that no made-up page did: a comma behind the kernel's name,
passes of asynchronous copies by lines of memory, and warps that a predicate keeps off counted along.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from tests import line_kernels
from tilebench.kernel.measuring.counted import count_simulated
from tilebench.kernel.measuring.package import package_of
from tilebench.profile.lines import line_sums
from tilebench.record_files import load
from tilebench.recorder import make_record
from tilebench.targets.cuda.ncu import OFF_TOO, read

FOLDER = Path(__file__).parents[2] / "recorded"
BLOCKS = 16


@cache
def counted() -> tuple[Any, dict[str, Any]]:
    record: Any = load(FOLDER / "macro_gemm.tbz")
    found = read((FOLDER / "macro_gemm.page.csv").read_text("utf-8"), record)
    return record, {counter.name: counter for counter in found}


def by_line(name: str) -> dict[int, float]:
    """The figures of the user's lines, the first of them the kernel function's."""
    record, found = counted()
    sums = line_sums(record, found[name])
    return {line: each.value for line, each in sums.user.items() if each.value}


def text(line: int) -> str:
    record, _ = counted()
    source = record.stage("source")
    return source.text.splitlines()[line - record.source_first_line].strip()


def test_the_cards_figures_stand_on_the_users_lines() -> None:
    lines = {text(line): value for line, value in by_line("ncu_sectors").items()}
    assert lines == {
        "load(A, A_s, by * 64, ko * 32)": 19712, "load(B, B_s, ko * 32, bx * 64)": 21504,
        "T.copy(C_l, C[by * 64, bx * 64])": 4096,
    }  # fmt: skip
    assert sum(by_line("ncu_passes").values()) == 37120
    assert sum(by_line("ncu_samples").values()) == 39


def test_where_no_predicate_keeps_warps_off_the_simulator_counts_the_same() -> None:
    # The same warps' instructions as those that ran, which sm_90a has too, and takes no more by itself.
    kernel = line_kernels.macro_gemm.compile(M=256, N=256, K=256, target="cuda:sm_80")
    record = make_record(kernel.compilation, ("source", "threaded"))
    here = {c.name: line_sums(record, c).user for c in count_simulated(package_of(kernel, {}), "threaded")}
    first = record.source_first_line - counted()[0].source_first_line
    for card, simulated, words in (
        ("ncu_sectors", "sim_sectors", "T.copy(C_l, C"), ("ncu_passes", "sim_passes", "T.gemm(")
    ):  # fmt: skip
        ((line, value),) = ((n, value) for n, value in by_line(card).items() if text(n).startswith(words))
        assert here[simulated][line + first].value * BLOCKS == value


def test_an_instruction_of_a_ring_says_that_warps_kept_off_count_too() -> None:
    record, found = counted()
    sass = record.stage("sass").text.splitlines()
    copies = [n for n, line in enumerate(sass) if "LDGSTS" in line and found["ncu_sectors"].values[n]]
    marked = [n for n in copies if found["ncu_sectors"].kinds[n] == OFF_TOO]
    assert [("@!P0" in sass[n]) for n in copies] == [(n in marked) for n in copies]
    # Four warps of a block copy 512 bytes each, 16 sectors: at the start of the ring nobody is kept off.
    assert {found["ncu_sectors"].values[n] for n in copies if n not in marked} == {4 * BLOCKS * 16}
    # In its steps 384 warps copy and 128 are kept off: 6144 sectors, and 1 or 32 for each of those.
    assert {found["ncu_sectors"].values[n] for n in marked} == {6144 + 128, 6144 + 128 * 32}
