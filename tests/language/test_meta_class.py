"""Classes of which kernels make objects: `T.meta_class`, and `x[0]` of a scalar."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.roads import CARD, jitted, on_cpu, on_reference, on_simulator
from tilebench.errors import LanguageError, ShapeError


@T.meta_class
class Walk:
    """Tiles of a worker: every `step`-th from its number on."""

    def __init__(self, total: int, name: str | None = None) -> None:
        self._at = T.alloc_var(T.int32)
        self._turn = T.alloc_var("int32")
        self.total = total

    @property
    def at(self) -> Any:
        return self._at[0]

    @staticmethod
    def scaled(x: Any) -> Any:
        return x * 10

    def init(self, first: Any) -> None:
        self._at[0] = first
        self._turn[0] = 0

    def valid(self) -> Any:
        return self._at[0] < self.total

    def go(self, step: Any) -> None:
        self._at[0] = self._at[0] + step
        if self._turn[0] < 2:
            self._turn[0] += 1


@tilebench.jit
def walked(total: int) -> Any:
    @T.prim_func
    def main(O: T.Tensor((total,), "int32")):  # noqa: E741
        with T.Kernel(3, threads=32) as bx:
            walk = Walk(total, name="walk")
            walk.init(bx)
            while walk.valid():
                before = walk.at
                walk.go(3)
                O[before] = walk.scaled(before) + walk._turn[0]

    return main


def test_methods_that_store_stand_in_the_kernel() -> None:
    arrays = {"O": np.zeros(11, np.int32)}
    wanted = [10 * k + min(k // 3 + 1, 2) for k in range(11)]
    for road in (on_reference, on_cpu, on_simulator):
        assert road(walked, arrays, total=11)["O"].tolist() == wanted
    assert "while" in walked.using(target=CARD)(11).stage("tile")


def test_a_scalar_is_an_array_of_one() -> None:
    body = """
        x = T.alloc_var("float32", init=2.0)
        x[0] = x[0] * 3
        y = x[0]
        x[0] += 1
        A[0] = x
        A[1] = y
    """
    found = on_reference(jitted(body, A=np.zeros(2, np.float32)), {"A": np.zeros(2, np.float32)})
    assert found["A"].tolist() == [7.0, 6.0]
    for wrong in ("x[1] = 2.0", "A[0] = x[1]"):
        with pytest.raises(ShapeError, match="x is one scalar"):
            jitted(f'x = T.alloc_var("float32")\n{wrong}', A=np.zeros(2, np.float32)).using(target="cpu")()


def test_what_is_no_class() -> None:
    with pytest.raises(LanguageError, match=r"@T\.meta_class marks a class, found function"):
        T.meta_class(lambda: None)  # type: ignore[arg-type]
