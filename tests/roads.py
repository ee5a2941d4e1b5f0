"""A kernel's body on the reference, the CPU and the simulator of the card: what is the same everywhere."""

from __future__ import annotations

from itertools import count
from textwrap import dedent, indent
from typing import Any

import numpy as np

import tilebench
from tests.simulated import run_threaded
from tilebench.errors import TileError, remember_source
from tilebench.reference import run_reference

CARD = "cuda:sm_80"
_numbers = count()


def jitted(body: str, *, launch: str = "1, threads=128", **arrays: Any) -> Any:
    """The jit function of a kernel with this body, whose parameters are the arrays in order; its block is b0.

    Line 1 of the body is line 7 of the text.
    """
    head = ", ".join(f'{name}: T.Tensor({a.shape}, "{a.dtype.name}")' for name, a in arrays.items())
    text = "import tilebench.language as T\n\ndef kernel():\n    @T.prim_func\n"
    text += f"    def main({head}):\n        with T.Kernel({launch}) as b0:\n"
    text += indent(dedent(body).strip(), " " * 12) + "\n    return main\n"
    name = f"roads{next(_numbers)}"
    remember_source(name, text)
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, name, "exec"), space)
    return tilebench.jit(space["kernel"])


def on_reference(function: Any, arrays: dict[str, Any], **parameters: Any) -> dict[str, Any]:
    """The arrays after the kernel of a jit function with its parameters, as every road gives them."""
    traced = function.using(target="cpu")(**parameters).compilation.functions["tile"]
    return {**arrays, **run_reference(traced, arrays)}


def on_cpu(function: Any, arrays: dict[str, Any], **parameters: Any) -> dict[str, Any]:
    after = {name: array.copy() for name, array in arrays.items()}
    function.using(target="cpu")(**parameters)(*after.values())
    return after


def on_simulator(function: Any, arrays: dict[str, Any], **parameters: Any) -> dict[str, Any]:
    kernel = function.using(target=CARD)(**parameters)
    kernel.stage("cuda")
    after = {name: array.copy() for name, array in arrays.items()}
    run_threaded(kernel.compilation.functions["threaded"], after, warp=32)
    return after


ROADS = {"reference": on_reference, "cpu": on_cpu, "simulator": on_simulator}


def everywhere(body: str, *, launch: str = "1, threads=128", **arrays: Any) -> dict[str, Any]:
    """The arrays after the kernel, which are the same, bit for bit, on all roads."""
    function = jitted(body, launch=launch, **arrays)
    found = {road: run(function, arrays) for road, run in ROADS.items()}
    for road, after in found.items():
        for name in arrays:
            np.testing.assert_array_equal(after[name], found["reference"][name], f"{name} on {road}")
    return found["cpu"]


def refused_everywhere(body: str, *, launch: str = "1, threads=128", **arrays: Any) -> TileError:
    """The error that every road raises for the kernel, the same on each."""
    errors: dict[str, TileError] = {}
    for road, run in ROADS.items():
        try:
            run(jitted(body, launch=launch, **arrays), arrays)
        except TileError as error:
            errors[road] = error
    assert list(errors) == list(ROADS)
    assert len({(type(error), error.message, error.hint) for error in errors.values()}) == 1
    return errors["cpu"]
