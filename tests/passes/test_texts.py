"""Each pass of the common road and the GPU's alone, on the files in `texts/` (see `pass_texts`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.passes.pass_texts import check, pass_of, passes_of
from tilebench.language.words import registry
from tilebench.passes.gpu_road import GPU
from tilebench.passes.pipeline import COMMON
from tilebench.targets.cuda.machines import machine_of

PASSES = passes_of((*COMMON, *GPU))
FILES = sorted((Path(__file__).parent / "texts").glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_text(path: Path, request: pytest.FixtureRequest) -> None:
    # Most on the least machine; what came with products of warp groups on the one that has them.
    text = path.read_text()
    newer = any(word in text for word in ('"wgmma"', '"tma"', "cluster=", "dependent_launch="))
    machine = machine_of("sm_90a" if newer else "sm_80")
    check(path, PASSES, machine, registry(), request)


def test_every_pass_has_a_text() -> None:
    assert {pass_of(path) for path in FILES} == set(PASSES)
