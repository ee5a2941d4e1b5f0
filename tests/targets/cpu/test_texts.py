"""Each pass of the CPU's own road alone, on the files in `texts/` (see `tests/passes/pass_texts`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.passes.pass_texts import check, pass_of, passes_of
from tilebench.targets.cpu import manifest
from tilebench.targets.cpu.machine import cpu_machine, named_isa

PASSES = passes_of(manifest().road)
FILES = sorted((Path(__file__).parent / "texts").glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_text(path: Path, request: pytest.FixtureRequest) -> None:
    # One instruction set, so that the text does not depend on the machine of the test.
    check(path, PASSES, cpu_machine(named_isa("x86-64-v4")), manifest().registry, request)


def test_every_pass_has_a_text() -> None:
    assert {pass_of(path) for path in FILES} == set(PASSES)
