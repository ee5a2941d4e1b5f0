"""What a kernel takes from outside itself: a changed constant or helper makes another kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilebench
from tilebench.errors import remember_source

CELL = """\
import tilebench
import tilebench.language as T

SCALE, TABLE = 3.0, [1.0, 2.0]

def helper(x):
    return x * SCALE

@tilebench.jit(target="cpu")
def scaled(N=4):
    @T.prim_func
    def main(C: T.Tensor((N,), "float32")):
        with T.Kernel(1) as bx:
            for i in T.Parallel(N):
                C[i] = helper(T.cast(i, "float32")) + TABLE[1]
    return main
"""


@pytest.fixture
def space() -> dict[str, Any]:
    remember_source("outside", CELL)
    made: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(CELL, "outside", "exec", dont_inherit=True), made)
    return made


def result(space: dict[str, Any]) -> list[float]:
    out = np.zeros(4, np.float32)
    space["scaled"]()(out)
    return out.tolist()


def test_the_same_outside_gives_the_same_kernel(space: dict[str, Any]) -> None:
    assert space["scaled"]() is space["scaled"]()


def test_a_changed_constant_helper_or_entry_of_a_list_is_seen(space: dict[str, Any]) -> None:
    assert result(space) == [2.0, 5.0, 8.0, 11.0]
    space["SCALE"] = 4.0
    assert result(space) == [2.0, 6.0, 10.0, 14.0]
    space["TABLE"][1] = 0.0
    assert result(space) == [0.0, 4.0, 8.0, 12.0]
    text = "def helper(x):\n    return x + SCALE\n"
    remember_source("outside two", text)
    exec(compile(text, "outside two", "exec", dont_inherit=True), space)
    assert result(space) == [4.0, 5.0, 6.0, 7.0]
    space["SCALE"] = 3.0
    assert result(space) == [3.0, 4.0, 5.0, 6.0]


def test_a_variable_of_an_enclosing_function_is_seen() -> None:
    text = CELL.partition("SCALE")[0] + "def make():\n    shift = 1.0\n"
    text += '    @tilebench.jit(target="cpu")\n    def scaled(N=4):\n        @T.prim_func\n'
    text += '        def main(C: T.Tensor((N,), "float32")):\n            with T.Kernel(1) as bx:\n'
    text += "                for i in T.Parallel(N):\n                    C[i] = shift\n        return main\n"
    text += "    def move(to):\n        nonlocal shift\n        shift = to\n    return scaled, move\n"
    remember_source("outside three", text)
    made: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, "outside three", "exec", dont_inherit=True), made)
    scaled, move = made["make"]()
    out = np.zeros(4, np.float32)
    scaled()(out)
    assert out[0] == 1.0
    move(7.0)
    scaled()(out)
    assert out[0] == 7.0


def test_functions_that_call_each_other_and_long_lists_end(space: dict[str, Any]) -> None:
    exec("def again(x):\n    return once(x)\ndef once(x):\n    return again(x)\n", space)
    space["TABLE"] = [0.0, 2.0] + [None] * 100_000
    space["helper"] = lambda x: x * tilebench.language.float32(2)  # type: ignore[misc]
    assert space["scaled"]() is space["scaled"]()
