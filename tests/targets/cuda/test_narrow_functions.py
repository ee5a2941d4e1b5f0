"""Functions of 8-bit floats have code: they are worked out in float32 and rounded once."""

from __future__ import annotations

import pytest

from tests.fuzz.program import HEAD, Program
from tests.fuzz.roads import run

WORDS = "exp exp2 log log2 sqrt rsqrt tanh floor ceil erf sin cos sigmoid abs"


def every_function(dtype: str, inputs: str) -> Program:
    calls = [f"T.{word}(A1[i])" for word in WORDS.split()]
    calls += ["T.pow(A1[i], A1[i])", "T.max(A1[i], -A1[i])", "T.min(A1[i], A1[0])"]
    lines = [f"                O2[{number}, i] = {call}" for number, call in enumerate(calls)]
    text = f"""{HEAD}@tilebench.jit
def kernel():
    @T.prim_func
    def main(A1: T.Tensor((64,), "{dtype}"), O2: T.Tensor(({len(calls)}, 64), "{dtype}")):
        with T.Kernel(1, threads=64) as bx:
            for i in T.Parallel(64):
"""
    return Program(text + "\n".join(lines) + "\n    return main\n", inputs=inputs, seed=2)


@pytest.mark.parametrize("inputs", ["uniform", "special"])
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_every_function_on_every_road(dtype: str, inputs: str) -> None:
    assert str(run(every_function(dtype, inputs), nvrtc=True)) == "all agree"


@pytest.mark.gpu
@pytest.mark.parametrize("inputs", ["uniform", "special"])
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_every_function_on_a_card(dtype: str, inputs: str) -> None:
    assert str(run(every_function(dtype, inputs), only=("card",))) == "all agree"
