"""Whole texts of errors that come up while a kernel is compiled, scheduled and called.

Renew with `pytest --update-golden` and read the diff. Texts of the front end are in `test_golden.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilebench
from tilebench.errors import TileError, remember_source
from tilebench.schedule import Schedule, parse_schedule

GOLDEN = Path(__file__).parent / "golden_use"

CELL = """\
import tilebench
import tilebench.language as T

@tilebench.jit(target="cuda:sm_80")
def matmul(M=256, N=256, K=512, block_M=64, block_N=64, block_K=32, num_stages=2, threads=128):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_s = T.alloc_shared((block_M, block_K), "float16")
            B_s = T.alloc_shared((block_K, block_N), "float16")
            C_l = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_l)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, k * block_K], A_s)
                T.copy(B[k * block_K, bx * block_N], B_s)
                T.gemm(A_s, B_s, C_l)
            for k in T.serial(2):
                for i, j in T.Parallel(block_M, block_N):
                    C_l[i, j] = C_l[i, j] * 2.0
            T.copy(C_l, C[by * block_M, bx * block_N])
    return main

@tilebench.jit(target="cuda:sm_80")
def shifted(N=64):
    @T.prim_func
    def main(A: T.Tensor((N, N), "float32"), C: T.StridedTensor((N, N), (2 * N, 1), "float32")):
        with T.Kernel(1) as bx:
            x = T.alloc_fragment((N, N), "float32")
            T.copy(A, x)
            for i, j in T.Parallel(N, N - 1):
                C[i, j] = x[i, j + 1]
            for i, j in T.Parallel(N, N):
                x[i, j] = x[j, i] + x[i, j]
    return main
"""


CELL += """
@tilebench.jit
def scaled():
    m, half = T.dynamic("m, half")
    @T.prim_func
    def main(
        A: T.Tensor((m, half * 2), "float16"), n: T.int8, alpha: T.float16,
        C: T.Tensor((m, half * 2), "float16"),
    ):
        with T.Kernel(m) as bx:
            for j in T.Parallel(64):
                if j < n:
                    C[bx, j] = A[bx, j] * alpha
    return main
"""


@pytest.fixture(scope="module")
def cell() -> dict[str, Any]:
    remember_source("cell", CELL)
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(CELL, "cell", "exec"), space)
    return space


def scheduled(stage: str = "threaded", **choices: Any) -> Callable[[dict[str, Any]], object]:
    return lambda cell: cell["matmul"].using(schedule=Schedule.of(**choices))().stage(stage)


def with_file(text: str) -> Callable[[dict[str, Any]], object]:
    return lambda cell: cell["matmul"].using(schedule=parse_schedule(text, "h200.toml"))().stage("scheduled")


def compiled(stage: str = "threaded", **values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda cell: cell["matmul"](**values).stage(stage)


def called(*arrays: Any, **values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda cell: cell["matmul"].using(target="cpu")(64, 64, 64, **values)(*arrays)


def array(*shape: int, dtype: str = "float16") -> Any:
    return np.zeros(shape, dtype)


def sized(*arguments: Any) -> Callable[[dict[str, Any]], object]:
    return lambda cell: cell["scaled"].using(target="cpu")()(*arguments)


ONE, RESULT = array(64, 64), array(64, 64, dtype="float32")
CASES: dict[str, Callable[[dict[str, Any]], object]] = {
    # arrays
    "array_shape": called(array(64, 32), ONE, RESULT),
    "array_rank": called(array(64), ONE, RESULT),
    "array_dtype": called(ONE, array(64, 64, dtype="float32"), RESULT),
    "array_stride": called(ONE, ONE.T, RESULT),
    "array_own_stride": lambda cell: cell["shifted"].using(target="cpu")()(RESULT, RESULT.copy()),
    "array_count": called(ONE, RESULT),
    "array_kind": called([[1.0]], ONE, RESULT),
    "array_masked": called(np.ma.masked_array(ONE, ONE > 0), ONE, RESULT),
    # sizes and scalars of a call
    "size_disagrees": sized(array(4, 8), 2, 1.0, array(5, 8)),
    "size_of_one": sized(array(4, 7), 2, 1.0, array(4, 7)),
    "size_rank": sized(array(4), 2, 1.0, array(4, 8)),
    "size_dtype": sized(array(4, 8, dtype="float32"), 2, 1.0, array(4, 8)),
    "size_missing": lambda cell: cell["scaled"].using(target="cpu")().check(sizes={"m": 4}),
    "size_unknown": lambda cell: cell["scaled"].using(target="cpu")().check(sizes={"mm": 4}),
    "size_large": lambda cell: cell["scaled"].using(target="cpu")().check(
        sizes={"m": 2**31 - 1, "n": 4, "half": 8, "alpha": 1.0}
    ),
    "scalar_fraction": sized(array(4, 8), 2.5, 1.0, array(4, 8)),
    "scalar_range": sized(array(4, 8), 300, 1.0, array(4, 8)),
    "scalar_float_range": sized(array(4, 8), 3, 1e6, array(4, 8)),
    "scalar_array": sized(array(4, 8), 3, array(4), array(4, 8)),
    "scalar_count": sized(array(4, 8), array(4, 8)),
    # what a card has
    "threads_many": compiled(threads=2048),
    "threads_warps": compiled(threads=100),
    "shared_stages_16": compiled(K=4096, block_M=128, block_N=128, block_K=32, num_stages=11),
    "shared_stages_32": compiled(K=4096, block_M=128, block_N=128, block_K=64, num_stages=6),
    "shared_stages_64": compiled(K=4096, block_M=128, block_N=128, block_K=128, num_stages=3),
    "shared_plain": compiled(block_M=256, block_N=256, block_K=256, num_stages=1),
    # targets
    "grid_blocks": compiled(M=2**23, N=64),
    "target_kind": lambda cell: cell["matmul"].using(target=80)(),
    "target_unknown": lambda cell: cell["matmul"].using(target="cud")(),
    "target_card": lambda cell: cell["matmul"].using(target="cuda:sm_99")(),
    "target_null_variant": lambda cell: cell["matmul"].using(target="null:x")(),
    "stage_unknown": compiled("treaded"),
    # schedules
    "schedule_unknown_address": scheduled(buffer={"As": {"swizzle": True}}),
    "schedule_ambiguous_address": scheduled(loop={"k": {"num_stages": 2}}),
    "schedule_serial_loop": scheduled(loop={"k#2": {"num_stages": 2}}),
    "schedule_option": scheduled(loop={"k#1": {"num_stagess": 2}}),
    "schedule_value": scheduled(threads="many"),
    "schedule_instruction": scheduled(gemm={"C_l": {"instruction": "wgmma"}}),
    "schedule_params": scheduled(params={"block_m": 32}),
    "schedule_toml": with_file('[[schedule]]\nwhen = "M > 3"\nthreads = = 4\n'),
    "schedule_condition": with_file('[[schedule]]\nwhen = "block > 3"\nthreads = 64\n'),
    "schedule_rule_option": with_file('[[schedule]]\nthreads = 64\n[[schedule]]\nthread = 64\n'),
    # parameters and options
    "parameter_unknown": lambda cell: cell["matmul"](block_m=32),
    "parameter_many": lambda cell: cell["matmul"](*range(9)),
    "jit_option": lambda cell: tilebench.jit(targets="cpu"),
    # layouts
    "fragment_orders": lambda cell: cell["shifted"]().stage("laid_out"),
    # texts of stages
    "stage_start": lambda cell: tilebench.compile_from("source", "x", target="cuda:sm_80"),
    "stage_no_launch": lambda cell: tilebench.compile_from("cuda", "x", target="cuda:sm_80"),
    "stage_text": lambda cell: tilebench.compile_from(
        "bounded", cell["matmul"]().stage("bounded").replace("T.gemm(", "T.gem("), like=cell["matmul"]()
    ),
    "stage_form": lambda cell: tilebench.compile_from(
        "laid_out", cell["matmul"]().stage("bounded"), target="cuda:sm_80"
    ),
}  # fmt: skip


def message(cell: dict[str, Any], name: str) -> TileError:
    with pytest.raises(TileError) as caught:
        CASES[name](cell)
    return caught.value


NO_PLACE = {
    "target_kind", "target_unknown", "target_card", "target_null_variant", "stage_unknown", "schedule_option",
    "schedule_value", "jit_option", "size_unknown", "stage_start", "stage_no_launch",
}  # fmt: skip


@pytest.mark.parametrize("name", list(CASES))
def test_message(cell: dict[str, Any], name: str, request: pytest.FixtureRequest) -> None:
    error = message(cell, name)
    text = error.explain() + "\n"
    path = GOLDEN / f"{name}.txt"
    if request.config.getoption("--update-golden"):
        path.write_text(text, encoding="utf-8")
    assert path.is_file(), "no golden text; run with --update-golden and read it"
    assert text == path.read_text(encoding="utf-8")
    assert error.title != "internal error"
    assert (error.place is None) == (name in NO_PLACE)
    if error.place is not None:
        assert error.place.file in ("cell", "h200.toml", "<bounded stage>", "<laid_out stage>")


@pytest.mark.parametrize("stages", [10, 5, 2])
def test_what_a_message_says_fits_does_fit(cell: dict[str, Any], stages: int) -> None:
    block = {10: 32, 5: 64, 2: 128}[stages]
    kernel = cell["matmul"](K=4096, block_M=128, block_N=128, block_K=block, num_stages=stages)
    assert f"shared_bytes={stages * 512 * block}" in kernel.stage("threaded")


def test_cuda_packages_missing(
    cell: dict[str, Any], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    from tilebench.targets.cuda.compiler import library

    monkeypatch.setattr(library, "_loaded", None)
    monkeypatch.setattr(library, "find_library", lambda: None)
    monkeypatch.setattr(library, "_system_library", lambda: None)
    kernel = cell["matmul"](256, 256, 480)
    assert "__global__" in kernel.stage("cuda")
    with pytest.raises(TileError) as caught:
        kernel.stage("ptx")
    text = caught.value.explain() + "\n"
    path = GOLDEN / "cuda_missing.txt"
    if request.config.getoption("--update-golden"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_no_golden_without_a_case_and_no_file_of_ours_in_any() -> None:
    assert {each.stem for each in GOLDEN.glob("*.txt")} == {*CASES, "cuda_missing"}
    for folder in (GOLDEN, GOLDEN.parent / "golden"):
        for each in folder.glob("*.txt"):
            text = each.read_text(encoding="utf-8")
            assert "tilebench/" not in text, each.name
            assert ".py" not in text, each.name
            assert "{" not in text.replace("{ panels = 8", "").replace("{'", ""), each.name
