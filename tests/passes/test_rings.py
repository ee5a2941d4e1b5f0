"""Rings wherever a kernel has them: in turn, nested, guarded, of no, one or an unknown number of steps."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.everywhere import everywhere, kernel_of

HEAD = 'A: T.Tensor((96, 40), "float16"), B: T.Tensor((96, 40), "float16"), N: T.Tensor((4,), "int32"), O: T.Tensor((96, 40), "float32")'  # noqa: E501
TILES = """
A_s = T.alloc_shared((16, 40), "float16")
B_s = T.alloc_shared((16, 40), "float16")
C = T.alloc_fragment((16, 40), "float32")
"""
RING = """
for k in T.Pipelined({bounds}, num_stages={stages}):
    T.copy(A[k * 16, 0], A_s)
    T.copy(B[k * 16, 0], B_s)
    for i, j in T.Parallel(16, 40):
        C[i, j] = C[i, j] + A_s[15 - i, j] * B_s[i, 39 - j]
"""
OUT = "T.copy(C, O[{row}, 0])\n"


def indented(text: str, by: int = 4) -> str:
    return "".join(" " * by + line + "\n" if line.strip() else "" for line in text.splitlines())


def ring(bounds: str = "6", stages: int = 3) -> str:
    return RING.format(bounds=bounds, stages=stages)


def out(row: str = "0") -> str:
    return OUT.format(row=row)


CLEAR = "T.clear(C)\n"
STAGES = [2, 3, 4, 5]
NUMBERS = {"N": np.array([0, 1, 2, 6], np.int32)}
BODIES = {
    "in turn": lambda s: TILES + CLEAR + ring("6", s) + out() + ring("1, 4", s) + out("16"),
    "in turn, of other depths": lambda s: TILES + CLEAR + ring("6", s) + ring("2, 6", 7 - s) + out(),
    "of no step": lambda s: TILES + CLEAR + ring("N[0]", s) + out(),
    "of one step": lambda s: TILES + CLEAR + ring("N[1]", s) + out(),
    "of two steps": lambda s: TILES + CLEAR + ring("1, N[2]", s) + out(),
    "of as many as there are": lambda s: TILES + CLEAR + ring("N[3]", s) + out(),
    "from a number that is loaded": lambda s: TILES + CLEAR + ring("N[1], N[3]", s) + out(),
    "backwards": lambda s: TILES + CLEAR + ring("N[3], N[1]", s) + out(),
    "guarded": lambda s: (
        TILES
        + CLEAR
        + "if N[1] > 0:\n"
        + indented(ring("6", s))
        + "if N[0] > 0:\n"
        + indented(ring("6", s))
        + out()
    ),
    "in both branches": lambda s: (
        TILES + CLEAR + "if N[0] > 0:\n" + indented(ring("6", s)) + "else:\n" + indented(ring("3", s)) + out()
    ),
    "in a loop": lambda s: (
        TILES + "for m in T.serial(3):\n" + indented(CLEAR + ring("m, 6", s) + out("m * 16"))
    ),
    "in a loop of unknown length": lambda s: (
        TILES + "for m in T.serial(N[2]):\n" + indented(CLEAR + ring("m, N[3]", s) + out("m * 16"))
    ),
    "in a ring": lambda s: (
        TILES
        + 'W = T.alloc_shared((16, 40), "float16")\n'
        + f"for m in T.Pipelined(3, num_stages={s}):\n"
        + indented("T.copy(B[m * 16, 0], W)\n" + CLEAR + ring("m, 6", 3))
        + indented("for i, j in T.Parallel(16, 40):\n    O[m * 16 + i, j] = C[i, j] + W[15 - i, j]\n")
    ),
    "persistent": lambda s: (
        TILES
        + "for turn in T.serial(T.ceildiv(6, 4)):\n    tile = turn * 4 + N[1]\n    if tile < 6:\n"
        + indented(CLEAR + ring("tile, 6", s) + out("tile * 16"), 8)
    ),
    "with a branch in a step": lambda s: (
        TILES
        + CLEAR
        + ring("6", s)
        .replace("    for i, j", "    if k != 2:\n      for i, j")
        .replace("        C[i", "          C[i")
        + out()
    ),
    "with a conversion in a step": lambda s: (
        'W = T.alloc_shared((16, 40), "float32")\n'
        + TILES
        + CLEAR
        + ring("6", s)
        .replace("    for i, j", "    T.copy(A[k * 16, 0], W)\n    for i, j")
        .replace("B_s[i", "W[i")
        + out()
    ),
    "with a fragment in a step": lambda s: (
        'F = T.alloc_fragment((16, 40), "float16")\n'
        + TILES
        + CLEAR
        + ring("6", s)
        .replace("    for i, j", "    T.copy(A[k * 16, 0], F)\n    for i, j")
        .replace("B_s[i", "F[i")
        + out()
    ),
}


@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("name", sorted(BODIES))
def test_it_gives_what_it_gives_without_stages(name: str, stages: int) -> None:
    body = BODIES[name](stages)
    found = everywhere(body, HEAD, **NUMBERS)
    plain = everywhere(re.sub(r"num_stages=\d", "num_stages=0", body), HEAD, **NUMBERS)
    np.testing.assert_array_equal(found["O"], plain["O"])


def lines_of(body: str, arch: str = "sm_80") -> list[str]:
    text: Any = kernel_of(body, HEAD).using(target=f"cuda:{arch}")().stage("threaded")
    return text.splitlines()


def steps(lines: list[str]) -> list[str]:
    """The statements of the first loop over k, without those of loops inside."""
    start = next(n for n, line in enumerate(lines) if line.strip().startswith("for k in"))
    depth = len(lines[start]) - len(lines[start].lstrip())
    own: list[str] = []
    for line in lines[start + 1 :]:
        if len(line) - len(line.lstrip()) <= depth:
            break
        own.append(line.strip())
    return own


@pytest.mark.parametrize("arch", ["sm_75", "sm_80"])
@pytest.mark.parametrize("stages", STAGES)
def test_a_step_has_one_barrier(stages: int, arch: str) -> None:
    own = steps(lines_of(TILES + CLEAR + ring("6", stages) + out(), arch))
    assert sum(line.startswith("T.sync_threads") for line in own) == 1
    waits = [line for line in own if "wait" in line]
    pending = f"pending={stages - 2}" if stages > 2 else ""
    assert waits == ([f"T.cp_async_wait({pending})"] if arch == "sm_80" else [])


@pytest.mark.parametrize("stages", [3, 5])
def test_a_step_divides_by_no_number_of_versions(stages: int) -> None:
    assert not any("%" in line for line in steps(lines_of(TILES + CLEAR + ring("6", stages) + out())))


def test_a_loop_around_has_one_barrier_more_a_turn() -> None:
    body = TILES + "for m in T.serial(3):\n" + indented(CLEAR + ring("6", 3) + out("m * 16"))
    assert sum("T.sync_threads" in line for line in lines_of(body)) == 2
