"""A kernel of one block, as text, on every road: reference, CPU and simulator must give the same."""

from __future__ import annotations

import itertools
from textwrap import dedent, indent
from typing import Any

import numpy as np

from tests.simulated import run_threaded
from tilebench.errors import remember_source
from tilebench.reference import run_reference

HEAD = """\
import tilebench
import tilebench.language as T

@tilebench.jit
def kernel():
    @T.prim_func
    def main({head}):
        with T.Kernel(1, threads={threads}) as b0:
{body}
    return main
"""
SQUARE = 'A: T.Tensor((64, 64), "float32"), O: T.Tensor((64, 64), "float32")'
_NUMBERS = itertools.count()


def kernel_of(body: str, head: str = SQUARE, threads: int = 128) -> Any:
    """The jit function of a kernel: the statements of its one block, its arrays and its threads."""
    name = f"everywhere_{next(_NUMBERS)}"
    text = HEAD.format(head=head, threads=threads, body=indent(dedent(body).strip(), " " * 12))
    remember_source(name, text)
    space: dict[str, Any] = {"__name__": name}
    exec(compile(text, name, "exec"), space)
    return space["kernel"]


def arrays_of(function: Any) -> dict[str, Any]:
    """Small numbers for each array: floats in -2..2, integers in -4..4 or 0..4, bools."""
    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {}
    for each in function.params:
        if each.dtype.is_float:
            values: Any = rng.uniform(-2, 2, each.shape)
        elif each.dtype.name == "bool":
            values = rng.integers(0, 2, each.shape)
        else:
            values = rng.integers(-4 if each.dtype.kind == "int" else 0, 5, each.shape)
        arrays[each.name] = values.astype(each.dtype.numpy)
    return arrays


def everywhere(
    body: str, head: str = SQUARE, threads: int = 128, arch: str = "sm_80", exact: bool = True, **given: Any
) -> dict[str, Any]:
    """What a kernel leaves in its arrays, `given` by name or made up: the same on every road.

    `exact` is up to nothing, else up to what sums in another order can differ by. The CUDA text is made too.
    """
    jit = kernel_of(body, head, threads)
    kernel = jit.using(target=f"cuda:{arch}")()
    function = kernel.compilation.reference
    hidden = [kernel.arguments[k].name for k in kernel.hidden]
    arrays = {
        **arrays_of(function),
        **given,
        **{name: np.zeros_like(a) for name, a in arrays_of(function).items() if name in hidden},
    }
    expected = {**arrays, **run_reference(function, {k: v.copy() for k, v in arrays.items()})}
    kernel.stage("cuda")
    simulated = {name: each.copy() for name, each in arrays.items()}
    run_threaded(kernel.compilation.functions["threaded"], simulated, warp=32)
    on_host = {name: each.copy() for name, each in arrays.items()}
    for name in hidden:
        del on_host[name]  # a call brings its own
    jit.using(target="cpu")()(*on_host.values())
    for road, found in (("simulator", simulated), ("cpu", on_host)):
        for name, wanted in expected.items():
            if name not in found:
                continue
            if wanted.dtype.kind in "iub":
                np.testing.assert_array_equal(found[name], wanted, err_msg=f"{name}, {road}")
                continue
            one, two = found[name].astype(np.float64), wanted.astype(np.float64)
            bound = 0.0 if exact else 1e-4
            np.testing.assert_allclose(one, two, rtol=bound, atol=bound, err_msg=f"{name}, {road}")
    return expected
