"""Instructions from another package: a matrix product of a warp, and a copy that goes on by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests import kernels
from tests.targets.test_toy_plugin import numbers, simulate
from tilebench.errors import LayoutError
from tilebench.ir import parse_function
from tilebench.kernel.edited import compile_from
from tilebench.simulator import SimulationError
from tilebench.targets import Manifest

pytestmark = pytest.mark.usefixtures("toy")


def product(m: int, n: int, k: int, **options: Any) -> Any:
    """A matrix product for the toy, in tiles of 16x16x8."""
    given = {"block_M": 16, "block_N": 16, "block_K": 8, "threads": 32, "dtype": "float32", **options}
    return kernels.gemm_kernel.using(target="toy")(m, n, k, **given)


# Even and odd sizes, one step and many, a ring of two and three, tiles that the instruction does not divide.
SHAPES = [
    ((64, 32, 64), {"num_stages": 2}),
    ((45, 36, 28), {"num_stages": 3}),
    ((45, 37, 29), {"num_stages": 3}),
    ((16, 16, 8), {"num_stages": 1}),
    ((20, 24, 36), {"num_stages": 3, "block_M": 12, "block_N": 20, "block_K": 12, "threads": 64}),
]


@pytest.mark.parametrize(("shape", "options"), SHAPES)
def test_products_by_the_warps_instruction_are_right(
    toy: Manifest, shape: tuple[int, int, int], options: dict[str, Any]
) -> None:
    m, n, k = shape
    kernel = product(m, n, k, **options)
    a, b, c = numbers(m, k), numbers(k, n), np.full((m, n), np.nan, np.float32)
    assert "T.toy_mma(" in kernel.stage("threaded")
    simulate(toy, kernel.compilation.functions["threaded"], [a, b, c])
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    if toy.available()[0]:
        ran = np.full((m, n), np.nan, np.float32)
        kernel(a, b, ran)
        np.testing.assert_allclose(ran, a @ b, rtol=1e-5)


def test_the_row_decides_where_the_accumulator_lies() -> None:
    text = product(64, 64, 64).stage("laid_out")
    # A warp's instruction of 4x4, repeated twice each way, and two by two warps: 8 x 4 threads, 8 registers.
    layout = "T.Fragment((16, 16), thread=((2, 1, 2), (4, 0, 1), (2, 1, 8), (2, 0, 8)), "
    assert layout + "value=((2, 1, 1), (2, 1, 4), (2, 0, 4)))" in text
    assert 'by=T.Instr("toy.mma")' in text


def test_a_ring_of_copies_that_go_on_is_issued_committed_and_waited_for() -> None:
    lines = [line.strip() for line in product(45, 36, 28, num_stages=3).stage("pipelined").splitlines()]
    told = [line.split("(")[0] + "(" + line.split("(")[1].split(",")[0] for line in lines if "(" in line]
    words = [line.split("[")[0].split(".version")[0] for line in told]
    start = words.index("for ko_first in T.unroll(2):")
    fetch = ["T.copy(A", "T.copy(B", 'T.commit("ko_ahead"']
    assert words[start:] == [
        "for ko_first in T.unroll(2):", *fetch,
        "for ko in T.serial(4):", 'T.wait("ko_ahead"', "T.gemm(A_s", *fetch,
        'T.wait("ko_ahead"', "T.copy(C_l",
    ]  # fmt: skip
    wait = next(line for line in lines if line.startswith("T.wait"))
    assert "pending=1" in wait


def wrong_ring(toy: Manifest, change: tuple[str, str]) -> None:
    """The threaded ring with one line changed, in the simulator."""
    text = product(45, 36, 28, num_stages=3).stage("threaded")
    assert change[0] in text
    function = parse_function(text.replace(*change), toy.registry)
    simulate(toy, function, [numbers(45, 28), numbers(28, 36), np.zeros((45, 36), np.float32)])


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        (('T.toy_wait("ko_ahead", pending=1)', 'T.toy_wait("ko_ahead", pending=2)'), "still writes it"),
        (('            T.toy_wait("ko_ahead", pending=1)\n', ""), "still writes it"),
        (('            T.sync_threads(why="A_s: read after write")\n', ""), "race"),
    ],
)
def test_a_ring_that_waits_wrongly_is_refused_by_the_simulator(
    toy: Manifest, change: tuple[str, str], refusal: str
) -> None:
    with pytest.raises(SimulationError, match=refusal):
        wrong_ring(toy, change)


def test_a_copy_without_aligned_neighbours_goes_through_registers() -> None:
    kernel = product(45, 37, 29, num_stages=3)
    assert "toy_copy_ahead" not in kernel.stage("threaded")
    told = [each.message for each in kernel.compilation.context.remarks if each.pass_name == "infer_layouts"]
    assert "toy.ahead does not take this copy: its accesses are of 4 bytes" in told


def test_asked_for_in_the_text_it_is_used_or_refused_at_its_line() -> None:
    kernel = product(64, 64, 64, num_stages=2)
    text = kernel.stage("laid_out")
    by_lanes = text.replace('by=T.Instr("toy.mma")', 'by=T.Instr("fma")')
    multiplied = compile_from("laid_out", by_lanes, like=kernel).stage("threaded")
    assert "T.toy_mma(" not in multiplied
    nonsense = text.replace('by=T.Instr("toy.mma")', 'by=T.Instr("nonsense")')
    missing = r"toy has no instruction for T\.gemm of float32, float32, float32"
    with pytest.raises(LayoutError, match=missing) as told:
        compile_from("laid_out", nonsense, like=kernel).stage("threaded")
    assert "found: by='nonsense'" in str(told.value)
    assert "its table holds: toy.mma (float32 float32 float32); fma" in str(told.value)
