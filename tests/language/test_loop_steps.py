"""Loops in the manner of `range`: any start, stop and step, known or read from a tensor, on every target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.frontend.cell import run_cell
from tests.simulated import run_threaded
from tilebench.errors import LanguageError, ShapeError

KERNEL = """\
import tilebench
import tilebench.language as T

@tilebench.jit
def made(a=0, b=0, c=1):
    @T.prim_func
    def main(P: T.Tensor((3,), "int32"), O: T.Tensor((17,), "int32")):
        with T.Kernel(1, threads=32):
            n = T.alloc_var("int32", init=0)
            for i in {loop}:
                O[n] = i
                n = n + 1
            O[16] = n
    return main
"""
RANGES = [
    (0, 7, 2), (7, 0, -1), (7, -1, -2), (7, 0, 1), (0, 7, -1), (0, 0, 1), (3, 3, -3), (-5, 6, 3), (6, -6, -5),
    (5, 4, -9), (2**31 - 5, 2**31 - 1, 3), (-(2**31) + 4, -(2**31), -3),
]  # fmt: skip
WORDS = ("range", "T.serial", "T.unroll")


def expected(bounds: tuple[int, int, int]) -> list[int]:
    found = list(range(*bounds)) if bounds[2] else []
    return found + [0] * (16 - len(found)) + [len(found)]


def agree(text: str, given: list[int], values: tuple[int, ...] = ()) -> list[int]:
    """What the kernel writes on the CPU; the same in the simulator, and by the reference."""
    function = run_cell(text)["made"]
    p = np.array(given, np.int32)
    cpu, simulated = np.zeros(17, np.int32), np.zeros(17, np.int32)
    kernel = function.using(target="cpu")(*values)
    kernel(p.copy(), cpu)
    kernel.check(p, np.zeros(17, np.int32)).raise_if_wrong()
    other = function.using(target="cuda:sm_80")(*values)
    other.stage("cuda")
    run_threaded(other.compilation.functions["threaded"], {"P": p.copy(), "O": simulated}, warp=32)
    assert cpu.tolist() == simulated.tolist()
    return cpu.tolist()


@pytest.mark.parametrize("bounds", RANGES)
def test_a_step_that_is_known(bounds: tuple[int, int, int]) -> None:
    word = WORDS[RANGES.index(bounds) % 3]
    assert agree(KERNEL.format(loop=f"{word}(a, b, c)"), [0, 0, 0], bounds) == expected(bounds)


@pytest.mark.parametrize("bounds", [*RANGES, (0, 7, 0)])
def test_a_step_from_a_tensor(bounds: tuple[int, int, int]) -> None:
    assert agree(KERNEL.format(loop="range(P[0], P[1], P[2])"), list(bounds)) == expected(bounds)


def test_start_and_stop_from_a_tensor_with_a_known_step() -> None:
    assert agree(KERNEL.format(loop="range(P[0], P[1], -2)"), [7, 0, 0]) == expected((7, 0, -2))
    assert agree(KERNEL.format(loop="range(P[0], P[1], 3)"), [1, 9, 0]) == expected((1, 9, 3))


@pytest.mark.parametrize("change", ["P[2] = 5", "P[0] = 9", "P[1] = 0"])
@pytest.mark.parametrize("bounds", [(0, 7, 2), (7, 0, -2)])
def test_bounds_are_read_once(change: str, bounds: tuple[int, int, int]) -> None:
    text = KERNEL.format(loop="range(P[0], P[1], P[2])").replace(
        "O[n] = i", f"O[n] = i\n                {change}"
    )
    assert agree(text, list(bounds)) == expected(bounds)


@pytest.mark.parametrize("change", ["P[1] = 0", "P[1] = 3"])
def test_a_stop_is_read_once(change: str) -> None:
    text = KERNEL.format(loop="range(P[1])").replace("O[n] = i", f"O[n] = i\n                {change}")
    assert agree(text, [0, 7, 0]) == expected((0, 7, 1))


def test_a_variable_of_the_block_as_bound_that_its_loop_changes() -> None:
    text = KERNEL.format(loop="range(m)").replace(
        "for i", "m = T.alloc_var('int32', init=5)\n            for i"
    )
    text = text.replace("O[n] = i", "O[n] = i\n                m = m - 1")
    assert agree(text, [0, 0, 0]) == expected((0, 5, 1))


def test_a_tile_at_a_variable_that_counts_down() -> None:
    text = KERNEL.format(loop="T.serial(12, -1, -4)").replace("O[n] = i", "T.fill(O[i : i + 4], i)")
    assert agree(text, [0, 0, 0])[:16] == [0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12]


def test_what_is_no_step() -> None:
    with pytest.raises(ShapeError, match=r"the step of T\.serial is 0") as caught:
        run_cell(KERNEL.format(loop="range(0, 7, 0)"))["made"].using(target="cpu")()
    assert caught.value.place is not None
    assert caught.value.place.line == 10
    with pytest.raises(LanguageError, match=r"the step of T\.unroll must be an integer, found float32"):
        run_cell(KERNEL.format(loop="T.unroll(0, 7, 2.0)"))["made"].using(target="cpu")()


def test_a_list_of_python_may_count_down_too() -> None:
    found: Any = agree(KERNEL.format(loop="list(range(4, 0, -2))"), [0, 0, 0])
    assert found == expected((4, 0, -2))
