"""Work of a call counted while the reference runs: what only data decide is counted too, and told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests import kernels
from tilebench.cli import main
from tilebench.errors import OptionError
from tilebench.kernel.edited import compile_from
from tilebench.kernel.measuring.worked import count_call, work_text

OPEN = """
import tilebench
import tilebench.language as T


@tilebench.jit
def up_to(N):
    @T.prim_func
    def main(L: T.Tensor((1,), "int32"), A: T.Tensor((N,), "float32"), O: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.serial(L[0]):
                O[i] = A[i] * 3 + 1

    return main
"""


def test_a_product_does_what_its_formula_says() -> None:
    kernel = kernels.gemm_kernel.using(target="cpu")(20, 15, 18, block_M=16, block_N=16, block_K=16)
    found = count_call(kernel)
    assert found.flops == 2 * 20 * 15 * 18
    assert dict(found.read) == {"A": 20 * 18 * 2, "B": 18 * 15 * 2}
    assert dict(found.written) == {"C": 20 * 15 * 2}


def test_data_decide_and_the_run_says_how_much(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    space: dict[str, object] = {}
    path = tmp_path / "open.py"
    path.write_text(OPEN, encoding="utf-8")
    exec(compile(OPEN, str(path), "exec"), space)
    up_to = space["up_to"]
    kernel = up_to.using(target="cpu")(64)  # type: ignore[attr-defined]
    a, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    for turns in (0, 7, 40):
        lengths = np.array([turns], np.int32)
        found = count_call(kernel, lengths, a, out)
        assert (found.flops, dict(found.written)) == (2.0 * turns, {"O": 4 * turns} if turns else {})
        assert (a == 1).all()
        assert (out == 0).all()
    assert work_text(kernel, np.array([7], np.int32), a, out).splitlines() == [
        "Work of this run, counted by the reference: 14 operations, 60 bytes (32 read, 28 written)",
        "Work by the text: data decide how much it is, so no rate is shown of this kernel",
    ]


def test_the_command_tells_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = Path(kernels.__file__).read_text(encoding="utf-8")
    (tmp_path / "k.py").write_text(text, encoding="utf-8")
    words = ["run", f"{tmp_path / 'k.py'}:gemm_kernel", "--target", "cpu", "--work", "-D"]
    assert main([*words, "M=20", "N=15", "K=18", "block_M=16", "block_N=16", "block_K=16"]) == 0
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Work")]
    run, text = told
    assert run.endswith(" by the reference: 10,800 operations, 1,860 bytes (1,260 read, 600 written)")
    assert text == "Work by the text: 10,800 operations, 1,860 bytes"


def test_code_without_a_meaning_is_refused() -> None:
    kernel = kernels.add_kernel.using(target="cuda:sm_80")(20, 15)
    alone = compile_from("threaded", kernel.stage("threaded"), target="cuda:sm_80")
    with pytest.raises(OptionError, match="nothing says what main means: it starts at threaded"):
        count_call(alone)
