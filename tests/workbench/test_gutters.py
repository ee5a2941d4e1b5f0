"""Columns beside the lines: what a cell shows, what it says in words, and that they travel with a record."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest

from tests import line_kernels
from tilebench.record import CompileRecord, LineCounter
from tilebench.recorder import make_record
from tilebench.workbench.bundle import RecordView, mime_bundle
from tilebench.workbench.front.gutters import DITTO, gutters_of, number, plain_gutters, short_number
from tilebench.workbench.front.state import GutterData
from tilebench.workbench.packed import MIME, unpack


@cache
def record(stages: tuple[str, ...] = ()) -> CompileRecord:
    compilation = line_kernels.macro_gemm.compile(M=256, N=256, K=256, target="cuda:sm_80").compilation
    return make_record(compilation, stages or compilation.stage_names)


def gutter(name: str) -> GutterData:
    return next(each for each in gutters_of(record()) if each.name == name)


def shown(name: str, stage: str, text: str) -> list[tuple[str, str]]:
    """The texts and words beside the lines of a stage that have `text`."""
    held = gutter(name)
    lines = record().stage(stage).text.splitlines()
    cells = [held.cells[at] for at, line in zip(held.stages[stage], lines, strict=True) if text in line]
    return [(cell.text, cell.says) for cell in cells]


def line_of(text: str) -> int:
    """The line of the file of kernels that has `text`."""
    lines = Path(line_kernels.__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_there_is_a_gutter_for_each_counter_and_one_for_control_codes() -> None:
    names = [(each.name, each.choice) for each in gutters_of(record())]
    assert names == [
        ("control", False), ("instructions", True), ("matrix", True), ("global_bytes", True),
        ("shared_bytes", True),
    ]  # fmt: skip
    assert list(gutter("control").stages) == ["sass"]
    assert list(gutter("instructions").stages) == [stage.name for stage in record().stages]


def test_a_cell_says_its_part_of_the_whole() -> None:
    total = len(re.findall(r"/\*[0-9a-f]{4}\*/", record().stage("sass").text))
    assert gutter("instructions").total == f"{total} instructions"
    [(text, says)] = shown("instructions", "source", "T.gemm(")
    assert says.startswith(f"{text} of {total} instructions: 16 matrix product, ")
    assert shown("matrix", "source", "T.gemm(") == [("16", "16 matrix instructions")]
    assert shown("global_bytes", "source", "T.copy(C_l") == [
        ("64", "64 B of 256 B global bytes a thread: STG")
    ]


def test_lines_that_share_a_figure_show_it_once() -> None:
    cells = shown("global_bytes", "pipelined", "T.copy(A[")
    assert [text for text, _ in cells] == ["96", DITTO]
    line = next(
        k for k, text in enumerate(record().stage("pipelined").text.splitlines(), 1) if "T.copy(A[" in text
    )
    assert cells[1][1].splitlines()[-1] == f"together with line {line} of this text, where it counts"


def test_a_macros_line_says_that_it_is_a_part() -> None:
    [(text, says)] = shown("instructions", "source", "frag[i, j] = frag[i, j] * by")
    assert int(text) >= 32
    assert says.splitlines()[-1] == "part of the figures of the lines that use this one"
    body = line_of("frag[i, j] = frag[i, j] * by")
    [(_, call)] = shown("instructions", "source", "scale(C_l")
    assert f"of it serve line {body} too, and count here alone" in call


def test_shades_are_parts_of_the_most() -> None:
    held = gutter("instructions")
    cells = [held.cells[at] for at in held.stages["source"] if at >= 0]
    most = max(cells, key=lambda cell: int(cell.text))
    assert most.shade == 100
    for cell in cells:
        assert cell.shade == max(1, round(100 * int(cell.text) / int(most.text)))


def test_instructions_have_no_column_of_ones_beside_themselves() -> None:
    assert set(gutter("instructions").stages["sass"]) == {-1}
    assert set(gutter("instructions").stages["cuda"]) != {-1}


def test_control_codes_stand_beside_every_instruction() -> None:
    held = gutter("control")
    for at, line in zip(held.stages["sass"], record().stage("sass").text.splitlines(), strict=True):
        assert (at >= 0) == ("/*" in line)
        if at >= 0:
            assert re.fullmatch(r"[ 1]\d[ y] [.\d][.\d] [.\d]{6}[ r]", held.cells[at].text)
            assert held.cells[at].says.startswith("stall ")


def test_without_machine_code_there_is_none() -> None:
    assert gutters_of(record(("source", "tile", "laid_out", "threaded", "cuda", "ptx"))) == ()


def test_a_counter_of_a_run_is_one_too() -> None:
    from dataclasses import replace

    base = record(("source", "threaded"))
    count = len(base.stage("threaded").text.splitlines())
    held = replace(base, counters=(LineCounter("x", "passes", "threaded", (2.5,) * count, says="Counted."),))
    [found] = gutters_of(held)
    assert found.total == f"{number(2.5 * count)} passes"
    assert found.says.startswith("Counted.")


def test_they_travel_with_the_record() -> None:
    held = unpack(mime_bundle(RecordView(record(), stage_names=("source", "cuda", "sass")))[MIME]["packed"])
    plain = json.loads(json.dumps(held["gutters"]))
    assert plain == plain_gutters(
        record(),
        {"source", "tile", "scheduled", "bounded", "laid_out", "pipelined", "threaded", "cuda", "sass"},
    )
    assert "ptx" not in plain[1]["stages"]
    assert len(plain[0]["cells"]) < 120


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (7, "7"),
        (1024, "1024"),
        (12345, "12.3k"),
        (4.5e6, "4.5M"),
        (2e9, "2G"),
        (0.25, "0.25"),
        (99.96, "100"),
    ],
)
def test_short_numbers(value: float, text: str) -> None:
    assert short_number(value) == text


def test_numbers_with_units() -> None:
    assert [number(7), number(12345, "B"), number(2.5)] == ["7", "12,345 B", "2.5"]
