"""One kernel on every road: the reference, the CPU, and the CUDA path in the simulator."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilebench
import tilebench.language as T
from tests.simulated import run_threaded
from tilebench.ir.dtypes import ALL
from tilebench.reference import run_reference

Array = np.ndarray[Any, Any]


def results(factory: Any, given: tuple[Any, ...], *arrays: Array) -> dict[str, list[Array]]:
    """What every array holds afterwards, by road; `factory` is a jit function, `given` its parameters."""
    kernel = factory.using(target="cpu")(*given)
    names = [each.name for each in kernel.meaning.params]
    stored = run_reference(kernel.meaning, dict(zip(names, arrays, strict=True)))
    found = {"reference": [stored.get(name, a) for name, a in zip(names, arrays, strict=True)]}
    found["cpu"] = [a.copy() for a in arrays]
    kernel(*found["cpu"])
    found["cuda"] = [a.copy() for a in arrays]
    kernel = factory.using(target="cuda:sm_80")(*given)
    assert kernel.stage("cuda")
    threaded = kernel.compilation.functions["threaded"]
    run_threaded(threaded, dict(zip(names, found["cuda"], strict=True)), warp=32)
    return found


def everywhere(factory: Any, given: tuple[Any, ...], *arrays: Array) -> Array:
    """The last array after the kernel, the same on every road and in the check against error bounds."""
    found = results(factory, given, *arrays)
    want = found["reference"][-1]
    for road in ("cpu", "cuda"):
        np.testing.assert_array_equal(wide(found[road][-1]), wide(want), err_msg=road)
    factory.using(target="cpu")(*given).check(*[a.copy() for a in arrays]).raise_if_wrong()
    return want


def wide(array: Array) -> Array:
    """Narrow floats as doubles, which NumPy compares."""
    return array.astype(np.float64) if array.dtype.kind in "fV" else array


@tilebench.jit
def one(f, dtype, out, n):
    """`f(a)` of every element."""

    @T.prim_func
    def main(A: T.Tensor((n,), dtype), C: T.Tensor((n,), out)):
        with T.Kernel(1, threads=32) as b0:
            for i in T.Parallel(n):
                C[i] = f(A[i])

    return main


@tilebench.jit
def two(f, dtype, other, out, n):
    """`f(a, b)` of every pair."""

    @T.prim_func
    def main(A: T.Tensor((n,), dtype), B: T.Tensor((n,), other), C: T.Tensor((n,), out)):
        with T.Kernel(1, threads=32) as b0:
            for i in T.Parallel(n):
                C[i] = f(A[i], B[i])

    return main


def of_one(f: Any, a: Array, out: str) -> Array:
    """`f(a)` on every road, stored as `out`."""
    return everywhere(one, (f, a.dtype.name, out, len(a)), a, np.zeros(len(a), ALL[out].numpy))


def of_two(f: Any, a: Array, b: Array, out: str) -> Array:
    """`f(a, b)` on every road, stored as `out`."""
    given = (f, a.dtype.name, b.dtype.name, out, len(a))
    return everywhere(two, given, a, b, np.zeros(len(a), ALL[out].numpy))
