"""The pages of the five symptoms: each ends in one command, and each command works."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.test_cli import called
from tests.workbench.bench_kernels import GEMM, IMPORTS
from tilebench.profile.symptoms import SYMPTOMS, list_of_symptoms, symptom

VALUES = ["-D", "M=64", "N=64", "K=64", "block_M=32", "block_N=32", "block_K=32", "num_stages=2"]
# What the command of each page says of a product on a card that is not here.
SAID = {
    "error-points-at-ir": ["T.gemm(A_s, B_s, C_l", "with T.Kernel("],
    "slower-than-expected": ["Bound by ", "Method: "],
    "slower-with-swizzle": ["No swizzle breaks a vector access.", "Passes over the banks: "],
    "wrong-on-another-card": ["in the simulator  all within bounds", "here "],
    "pipeline-does-not-overlap": ["steps", "load     A -> A_s", "plan_pipeline"],
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("symptoms") / "kernels.py"
    path.write_text(IMPORTS + GEMM, encoding="utf-8")
    return path


def test_there_is_a_page_for_each_symptom() -> None:
    assert {page.name for page in SYMPTOMS} == set(SAID)
    assert symptom("slower") is None


@pytest.mark.slow
@pytest.mark.parametrize("name", SAID)
def test_the_command_of_a_page_works(name: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Word for word as the page says it, for a kernel of this file."""
    status, page, _ = called(capsys, "help", name)
    assert status == 0
    command = page.rstrip().splitlines()[-1]
    assert command.startswith("Now: tilebench ")
    words = shlex.split(command.removeprefix("Now: tilebench ").replace("FILE:KERNEL", f"{file}:gemm"))
    # What is timed is timed on what is here; the others are asked of a card.
    target = [] if words[0] == "bench" and "--diagnosis" in words else ["--target", "cuda:sm_80"]
    status, out, err = called(capsys, *words, *VALUES, *target)
    assert (status, err) == (0, "")
    for told in SAID[name]:
        assert told in out, out


def test_help_lists_the_pages(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = called(capsys, "help")
    assert list_of_symptoms() in out
