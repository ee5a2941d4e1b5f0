"""Rings of products that fetch the next step's first operands before the last products of a step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.kernels import gemm_nt_kernel
from tests.simulated import card_words, run_threaded
from tilebench.ir import parse_function
from tilebench.simulator import SimulationError

OPTIONS = {
    "block_M": 64, "block_N": 64, "block_K": 64, "num_stages": 2, "threads": 128, "panel": 0, "turned": False,
    "out": "float32",
}  # fmt: skip
SAID = "the first operands of a step are fetched in front of the last products of the step before"


def made(m: int, n: int, k: int, arch: str = "sm_80", **options: Any) -> Any:
    kernel = gemm_nt_kernel.using(target=f"cuda:{arch}")(M=m, N=n, K=k, **{**OPTIONS, **options})
    kernel.stage("cuda")
    return kernel


def is_rotated(kernel: Any) -> bool:
    return SAID in [remark.message for remark in kernel.compilation.context.remarks]


def result(function: Any, m: int, n: int, k: int, b_turned: bool = False) -> tuple[Any, Any]:
    rng = np.random.default_rng(k)
    a, b = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    c = np.full((m, n), 7, np.float32)
    right = np.ascontiguousarray(b.T) if b_turned else b
    run_threaded(function, {"A": a, "B": right, "C": c}, warp=32)
    return c, a.astype(np.float32) @ b.astype(np.float32)


@pytest.mark.parametrize("k", [8, 64, 128, 200, 448, 1024, 1160])
@pytest.mark.parametrize(("stages", "b_turned"), [(2, False), (3, True), (4, False)])
def test_products_are_right_whatever_number_of_steps_there_is(k: int, stages: int, b_turned: bool) -> None:
    kernel = made(72, 64, k, num_stages=stages, turned=b_turned)
    # Deeper rings issue their copies behind the products, and have no stall there.
    assert is_rotated(kernel) == (min(stages, -(-k // 64)) == 2)
    found, wanted = result(kernel.compilation.functions["threaded"], 72, 64, k, b_turned)
    np.testing.assert_array_equal(found, wanted)


def test_a_step_has_one_barrier_and_one_wait() -> None:
    lines = [line.strip() for line in made(64, 64, 1024).stage("threaded").splitlines()]
    start = next(n for n, line in enumerate(lines) if line.startswith("for ko in"))
    ends = [n for n, line in enumerate(lines) if n > start and line.startswith("T.cp_async_wait()")]
    step = lines[start : ends[1]]
    assert sum(line.startswith("T.sync_threads") for line in step) == 1
    assert sum(line.startswith("T.cp_async_wait") for line in step) == 1
    assert sum(line.startswith("T.mma(") for line in step) == 4
    assert sum(line.startswith("if ") for line in step) == 1


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"block_K": 32}, "of two parts"),
        ({"block_K": 48}, "of three parts"),
        ({"num_stages": 1}, "no ring"),
        ({"num_stages": 3}, "copies are issued behind the products"),
        ({"block_M": 128, "block_N": 256}, "more registers than a thread has"),
        ({"dtype": "float32"}, "multiplied element by element"),
    ],
)
def test_others_stay_as_they_are(options: dict[str, Any], why: str) -> None:
    assert not is_rotated(made(128, 256, 256, **options)), why
    assert not is_rotated(made(128, 256, 256, "sm_75")), "copies pass through registers"


@pytest.mark.parametrize(
    ("old", "new", "refusal"),
    [
        ('            T.sync_threads(why="A_s: write after write")\n', "", "race"),
        (f"{' ' * 12}T.cp_async_wait()\n", f"{' ' * 12}T.cp_async_wait(pending=1)\n", "still writes"),
    ],
)
def test_without_its_barrier_or_wait_it_is_refused(old: str, new: str, refusal: str) -> None:
    text = made(64, 64, 1024).stage("threaded")
    assert text.count(old) == 1
    with pytest.raises(SimulationError, match=refusal):
        result(parse_function(text.replace(old, new), card_words()), 64, 64, 1024)
