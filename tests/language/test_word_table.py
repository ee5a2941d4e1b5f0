"""The table of words is what runs: `support.json` and the page are made of kernels that were run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import tilebench.language as T
from tests.frontend.cell import run_cell
from tests.language.word_kernels import KERNELS, WordKernel
from tests.simulated import run_threaded
from tilebench.cli import main
from tilebench.errors import TileError
from tilebench.ir.sizes import for_sizes
from tilebench.language.known import MissingWord
from tilebench.language.word_table import TIERS, page, row_of, rows
from tilebench.reference import check_function

ROOM = Path(T.__file__).parent
SUPPORT, PAGE = ROOM / "support.json", ROOM / "WORDS.md"
# Words that are here to be refused by name.
REFUSED = ("access_ptr",)
ROADS = ("reference", "cpu", "simulator", "sm_80", "sm_90a")
_WORD = re.compile(r"\bT\.(\w+)")


def words_of(kernel: WordKernel) -> set[str]:
    return set(kernel.only or _WORD.findall(kernel.text))


def roads_of(kernel: WordKernel) -> set[str]:
    """Where a kernel gives the reference's numbers, or compiles."""
    jit = run_cell(kernel.text, f"word_kernel_{KERNELS.index(kernel)}")["kernel"]
    found: set[str] = set()
    for road in ("cpu", "simulator", "sm_80", "sm_90a"):
        try:
            if _right(jit, road, kernel):
                found |= {road, "reference"} if road in ("cpu", "simulator") else {road}
        except TileError:
            continue
    return found


def _right(jit: Any, road: str, kernel: WordKernel) -> bool:
    sizes = kernel.sizes
    target = {"cpu": "cpu", "simulator": f"cuda:{kernel.simulated}"}.get(road, f"cuda:{road}")
    constants = {name: size for name, size in sizes.items() if name == "N"}
    made = jit.using(target=target).kernel((), constants)
    rest = {name: size for name, size in sizes.items() if name not in constants}
    if road == "cpu":
        return made.check(sizes=rest or None).ok
    if road != "simulator":
        made.reach_code()
        return True
    made.stage("threaded")
    before = made.inputs(0, rest or None)
    after = {name: array.copy() for name, array in before.items()}
    run_threaded(for_sizes(made.compilation.functions["threaded"], rest), after, warp=32)
    return check_function(for_sizes(made.meaning, rest), before, after).ok


def test_the_table_is_made_of_what_runs(request: pytest.FixtureRequest) -> None:
    found: dict[str, set[str]] = {}
    for kernel in KERNELS:
        roads = roads_of(kernel)
        for word in words_of(kernel):
            found[word] = found.get(word, set(ROADS)) & roads
    table = {word: [road for road in ROADS if road in found[word]] for word in sorted(found)}
    if request.config.getoption("--update-golden"):
        lines = ",\n".join(f"{json.dumps(word)}: {json.dumps(roads)}" for word, roads in table.items())
        SUPPORT.write_text(f'{{"roads": {json.dumps(ROADS)}, "words": {{\n{lines}\n}}}}\n')
    assert json.loads(SUPPORT.read_text()) == {"roads": list(ROADS), "words": table}


def test_each_word_of_the_tiers_that_is_here_has_a_kernel() -> None:
    used = set().union(*(words_of(kernel) for kernel in KERNELS))
    for names in TIERS.values():
        assert [name for name in names if name in T.NAMES and name not in (*used, *REFUSED)] == []


def test_the_page_is_the_table(request: pytest.FixtureRequest) -> None:
    text = page(rows(T))
    if request.config.getoption("--update-golden"):
        PAGE.write_text(text)
    assert PAGE.read_text() == text


def test_help_tells_of_a_word(capsys: Any) -> None:
    assert main(["help", "T.copy"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("T.copy(src: Tile")
    assert told.endswith(
        "tier: core\ntests pass on: reference yes, cpu yes, simulator yes, sm_80 yes, sm_90a yes\n"
    )
    assert main(["help"]) == 0
    listed = capsys.readouterr().out
    assert "core words:\n  T.Kernel" in listed
    assert "  T.wgmma_gemm  " in listed
    assert main(["help", "T.cluster_sync"]) == 2
    assert "a schedule's cluster = [2, 1]" in capsys.readouterr().err
    assert main(["help", "T.copi"]) == 2
    assert "did you mean T.copy" in capsys.readouterr().err


def test_a_word_in_a_notebook_has_its_signature_and_its_text() -> None:
    for names in TIERS.values():
        for name in names:
            row = row_of(T, name)
            assert row.line, name
            assert row.signature.startswith(f"T.{name}") or not row.here
            if not row.here:
                with pytest.raises(MissingWord):
                    getattr(T, name)
