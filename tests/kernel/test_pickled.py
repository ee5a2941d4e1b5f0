"""`pickle`, `cloudpickle` and `copy` of kernel functions, kernels and schedules."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests import kernels
from tests.frontend.cell import run_cell
from tilebench.kernel import compile_from
from tilebench.schedule import Schedule, load_schedule

CELL = """\
import tilebench
import tilebench.language as T

SCALE = 3.0

def helper(x):
    return x * SCALE

class Kernels:
    @tilebench.jit(target="cpu")
    def scaled(N=4):
        @T.prim_func
        def main(C: T.Tensor((N,), "float32")):
            with T.Kernel(1) as bx:
                for i in T.Parallel(N):
                    C[i] = helper(T.cast(i, "float32"))
        return main

scaled = Kernels.scaled
"""


class Named:
    @tilebench.jit(target="cpu")
    def filled(N: int = 4) -> Any:
        @T.prim_func
        def main(C: T.Tensor((N,), "float32")):
            with T.Kernel(1):
                T.fill(C[0:N], 5.0)

        return main


def loaded(data: bytes) -> Any:
    return pickle.loads(data)  # noqa: S301


def result(kernel: Any) -> list[float]:
    out = np.zeros(4, np.float32)
    kernel(out)
    return out.tolist()


def elsewhere(data: bytes, tmp_path: Path) -> str:
    """What a kernel out of a pickle computes in another process."""
    (tmp_path / "kernel.pickle").write_bytes(data)
    code = (
        "import pickle, sys, numpy as np\n"
        "found = pickle.load(open(sys.argv[1], 'rb'))\n"
        "found = found() if hasattr(found, 'using') else found\n"
        "out = np.zeros(4, np.float32); found(out); print(out.tolist(), found.calls.traced.file)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONHASHSEED": "random"}
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "kernel.pickle")],
        capture_output=True, text=True, env=environment,
    )  # fmt: skip
    return run.stdout.strip() or run.stderr


@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps])
def test_a_function_of_a_module_is_itself(dumps: Any, tmp_path: Path) -> None:
    assert loaded(dumps(kernels.add_kernel)) is kernels.add_kernel
    assert loaded(dumps(Named.filled)) is Named.filled
    other = loaded(dumps(kernels.add_kernel.using(target="cuda:sm_80", out_idx=2)))
    assert (other.function, other.target, other.out_idx) == (kernels.add_kernel.function, "cuda:sm_80", (2,))
    assert elsewhere(dumps(Named.filled), tmp_path) == f"[5.0, 5.0, 5.0, 5.0] {__file__}"


@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps])
def test_a_function_of_a_notebook_goes_with_its_text(dumps: Any, tmp_path: Path) -> None:
    function = run_cell(CELL)["scaled"]
    assert result(loaded(dumps(function))()) == [0.0, 3.0, 6.0, 9.0]
    assert elsewhere(dumps(function), tmp_path) == "[0.0, 3.0, 6.0, 9.0] cell"
    assert elsewhere(dumps(function()), tmp_path) == "[0.0, 3.0, 6.0, 9.0] cell"


def test_a_function_that_names_itself_says_so() -> None:
    text = CELL.replace("        @T.prim_func", "        scaled\n        @T.prim_func")
    with pytest.raises(pickle.PicklingError, match=r"Kernels\.scaled is in no module and names itself"):
        pickle.dumps(run_cell(text)["scaled"])


def test_without_cloudpickle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(pickle.PicklingError, match="move it into one, or install cloudpickle"):
        pickle.dumps(run_cell(CELL)["scaled"])
    assert loaded(pickle.dumps(Named.filled)) is Named.filled


def test_copies() -> None:
    function = Named.filled
    assert copy.copy(function) is function
    assert copy.deepcopy({"made": [function]})["made"][0] is function
    kernel = function()
    for other in (copy.copy(kernel), copy.deepcopy([kernel])[0]):
        assert result(other) == [5.0] * 4
        assert other.calls is kernel.calls


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80"])
def test_kernels_keep_their_choices(target: str) -> None:
    schedule = Schedule.of(threads=64)
    kernel = kernels.gemm_kernel.using(target=target, schedule=schedule, out_idx=-1)(64, 64, 64)
    found = loaded(pickle.dumps(kernel))
    assert found.stages == kernel.stages
    for stage in kernel.stages[:4]:
        assert found.stage(stage) == kernel.stage(stage)
    assert (found.schedule, found.outputs, dict(found.parameters)) == (
        schedule,
        (2,),
        dict(kernel.parameters),
    )
    assert found.places() == kernel.places()


@pytest.mark.parametrize("stage", ["tile", "bounded", "threaded", "cuda"])
def test_kernels_of_edited_text(stage: str) -> None:
    kernel = kernels.add_kernel.using(target="cuda:sm_80")(100, 75)
    text = kernel.stage(stage).replace("100", "90", 1) if stage == "tile" else kernel.stage(stage) + "\n"
    made = compile_from(stage, text, like=kernel)
    found = loaded(pickle.dumps(made))
    assert found.stage(stage) == made.stage(stage)
    assert found.stage("cuda") == made.stage("cuda")


def test_sizes_of_a_kernel() -> None:
    @tilebench.jit(target="cpu")
    def made() -> Any:
        n = T.dynamic("n")

        @T.prim_func
        def main(C: T.Tensor((n,), "float32")):
            with T.Kernel(1):
                T.fill(C[0:4], 2.0)

        return main

    found = loaded(pickle.dumps(made().at({"n": 9})))
    assert dict(found.sizes) == {"n": 9}
    assert result(found) == [2.0] * 4


def test_schedules(tmp_path: Path) -> None:
    schedule = Schedule.of(threads=64)
    assert loaded(pickle.dumps(schedule)) == copy.deepcopy(schedule) == schedule
    (tmp_path / "s.toml").write_text('[[schedule]]\nwhen = "M <= 128"\nthreads = 64\n')
    file = load_schedule(tmp_path / "s.toml")
    for other in (loaded(pickle.dumps(file)), copy.deepcopy(file)):
        assert other.choose({"M": 64}) == file.choose({"M": 64})
    assert loaded(pickle.dumps(kernels.add_kernel.using(schedule=file))).schedule is not None


def test_a_hash_does_not_travel() -> None:
    function = kernels.add_kernel.using(target="cpu")(64, 64).calls.traced.function
    assert hash(function) == hash(loaded(pickle.dumps(function)))
    assert "_hash" not in function.__getstate__()
