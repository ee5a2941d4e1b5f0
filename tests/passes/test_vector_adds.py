"""Additions to neighbours in global memory: one access where a machine has it, unless more is asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.roads import ROADS, jitted
from tests.simulated import run_threaded

ADD = """
F = T.alloc_fragment((8, 64), "float32")
T.copy(A, F)
for i, j in T.Parallel(8, 64):
    T.atomic_add(C[i % 2, j], F[i, j])
"""
FOUND = """
for i, j in T.Parallel(8, 64):
    old = T.atomic_add(C[i % 2, j], A[i, j], return_prev=True)
"""


def arrays(width: int = 64) -> dict[str, Any]:
    random = np.random.default_rng(0)
    return {"A": random.integers(-9, 9, (8, 64)).astype(np.float32), "C": np.ones((2, width), np.float32)}


def on(target: str, body: str, given: dict[str, Any]) -> tuple[str, Any]:
    """The text of a thread, and what becomes of C in the simulator."""
    kernel = jitted(body, **given).using(target=target)()
    text = kernel.stage("threaded")
    after = {name: array.copy() for name, array in given.items()}
    run_threaded(kernel.compilation.functions["threaded"], after, warp=32)
    return text, after["C"]


def right(given: dict[str, Any]) -> Any:
    sums = given["C"].copy()
    sums[:, :64] += given["A"].reshape(4, 2, 64).sum(0)
    return sums


@pytest.mark.parametrize(
    ("target", "wide"), [("cuda:sm_90a", True), ("cuda:sm_90", True), ("cuda:sm_80", False)]
)
def test_neighbours_in_one_access(target: str, wide: bool) -> None:
    given = arrays()
    text, found = on(target, ADD, given)
    assert ("T.vector_add(C[" in text) == wide
    assert ("T.atomic_add(" in text) != wide
    np.testing.assert_array_equal(found, right(given))


@pytest.mark.parametrize(
    "body",
    [
        FOUND,
        ADD.replace("F[i, j])", 'F[i, j], memory_order="release")'),
        ADD.replace("C[i % 2, j]", "C[i % 2, 63 - j]"),
        ADD.replace("atomic_add", "atomic_max"),
    ],
)
def test_what_is_found_or_ordered_goes_one_by_one(body: str) -> None:
    assert "T.vector_add" not in on("cuda:sm_90a", body, arrays())[0]


def test_rows_that_begin_anywhere_go_one_by_one() -> None:
    given = arrays(65)
    text, found = on("cuda:sm_90a", ADD, given)
    assert "T.vector_add" not in text
    np.testing.assert_array_equal(found, right(given))


def test_the_card_gets_its_instruction() -> None:
    kernel = jitted(ADD, **arrays()).using(target="cuda:sm_90a")()
    assert "red.global.add.v4.f32" in str(kernel.stage("ptx"))
    assert "RED" in str(kernel.stage("sass"))


def test_everywhere_the_same() -> None:
    given = arrays()
    for road, run in ROADS.items():
        np.testing.assert_array_equal(run(jitted(ADD, **given), given)["C"], right(given), road)
