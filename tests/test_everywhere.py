"""`run --everywhere`: what each target makes of a kernel, with those that refuse it told apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilebench.cli import main
from tilebench.targets import manifest

KERNELS = """
import tilebench
import tilebench.language as T


@tilebench.jit
def large(rows):
    @T.prim_func
    def main(A: T.Tensor((rows, 64), "float32"), O: T.Tensor((rows, 64), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((rows, 64), "float32")
            T.copy(A, S)
            T.copy(S, O)

    return main


@tilebench.jit
def unwritten():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), O: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((64, 64), "float32")
            T.copy(A[0:32, 0:64], S[0:32, 0:64])
            T.copy(S, O)

    return main
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS, encoding="utf-8")
    return str(path)


def rows_of(out: str) -> dict[str, str]:
    """By target what stands behind it."""
    rows = [line.split() for line in out.splitlines()]
    return {words[0]: " ".join(words[1:]) for words in rows if ":" in words[0]}


def test_a_target_that_refuses_is_not_wrong(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """80 KB of shared memory: more than a block of sm_75 has."""
    status = main(["run", f"{file}:large", "--everywhere", "-D", "rows=320"])
    out = capsys.readouterr().out
    found = rows_of(out)
    assert "cuda:sm_75" in manifest("cuda").presentation.machines
    assert found["cuda:sm_75"].startswith("refused: ")
    assert "shared" in found["cuda:sm_75"]
    assert found["cuda:sm_90a"] == "in the simulator all within bounds"
    assert "no result on cuda:sm_75" in out
    assert "the kernel is refused there, for the reasons above" in out
    assert "wrong" not in out
    assert status == 0


def test_what_the_simulator_refuses_is_wrong_there(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["run", f"{file}:unwritten", "--everywhere"])
    found = rows_of(capsys.readouterr().out)
    words = "in the simulator failed: S is read before anything was written there"
    assert found["cuda:sm_90a"] == words
    assert status == 1
