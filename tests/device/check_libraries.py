"""Arrays of CuPy and torch on a card: `python tests/device/check_libraries.py`.

Values, streams, graphs, refusals, and the host time of calls with and without sizes.
"""

from __future__ import annotations

import statistics
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import cupy
import ml_dtypes
import numpy as np
import torch

import tilebench
import tilebench.language as T
from tests.kernels import add_kernel
from tilebench.errors import ArgumentError


@tilebench.jit(target="cuda")
def sized(dtype="float32"):
    m, n = T.dynamic("m, n")

    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), s: T.float32, C: T.Tensor((m, n), dtype)):
        with T.Kernel(T.ceildiv(n, 32), T.ceildiv(m, 32), threads=128) as (bx, by):
            for i, j in T.Parallel(32, 32):
                if by * 32 + i < m and bx * 32 + j < n:
                    C[by * 32 + i, bx * 32 + j] = A[by * 32 + i, bx * 32 + j] * T.cast(s, dtype)

    return main


def cost(run: Callable[[], Any], count: int = 400) -> float:
    """Median host microseconds of one call, the device idle."""
    out: list[float] = []
    for k in range(count):
        start = time.perf_counter_ns()
        run()
        out.append((time.perf_counter_ns() - start) / 1e3)
        if k % 50 == 0:
            torch.cuda.synchronize()
    return statistics.median(out)


def costs() -> None:
    fixed, any_size = add_kernel.using(target="cuda")(64, 64, dtype="float32"), sized()
    made = sized.using(out_idx=-1)()
    for name, ones in (
        ("torch", lambda: torch.ones(64, 64, device="cuda")),
        ("cupy", lambda: cupy.ones((64, 64), cupy.float32)),
    ):
        a, b, c = (ones() for _ in range(3))
        rows: dict[str, Callable[[], Any]] = {
            "fixed": lambda: fixed(a, b, c),
            "sized": lambda: any_size(a, 2.0, c),
            "sized, made": lambda: made(a, 2.0),
        }
        for run in rows.values():
            run()
        print(name, ", ".join(f"{key} {cost(run):.1f} us" for key, run in rows.items()), flush=True)
    a = torch.ones(64, 64, device="cuda")
    print(f"torch.add {cost(lambda: torch.add(a, a, out=a)):.1f} us, cupy.add", end=" ")
    b = cupy.ones((64, 64), cupy.float32)
    print(f"{cost(lambda: cupy.add(b, b, out=b)):.1f} us", flush=True)


def values(dtype: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((45, 77)).astype(getattr(ml_dtypes, dtype, dtype))
    a, c = cupy.asarray(x), cupy.full((45, 77), cupy.nan, x.dtype)
    kernel = sized(dtype)
    kernel(a, 0.5, c)
    want = x * x.dtype.type(0.5)
    assert np.array_equal(c.get(), want)
    found = sized.using(out_idx=-1)(dtype)(a, 0.5)
    assert isinstance(found, cupy.ndarray), type(found)
    assert np.array_equal(found.get(), want)
    beside = torch.full((45, 77), float("nan"), device="cuda", dtype=getattr(torch, dtype))
    torch.cuda.synchronize()
    kernel(a, 0.5, beside)
    cupy.cuda.runtime.deviceSynchronize()
    assert np.array_equal(beside.double().cpu().numpy(), want.astype(np.float64))


def streams() -> None:
    """On CuPy's current stream, behind what that stream still does."""
    kernel, stream = sized(), cupy.cuda.Stream(non_blocking=True)
    with stream:
        a = cupy.ones((2048, 2048), cupy.float32)
        for _ in range(20):
            a = a @ a / 2048
        c = cupy.full((2048, 2048), cupy.nan, cupy.float32)
        kernel(a, 3.0, c)
        d = c + 1
    stream.synchronize()
    assert np.allclose(d.get(), 4), d.get().flat[:3]


def graphs() -> None:
    kernel, stream = sized(), cupy.cuda.Stream(non_blocking=True)
    a, c = cupy.arange(4096, dtype=cupy.float32).reshape(64, 64), cupy.zeros((64, 64), cupy.float32)
    kernel(a, 1.0, c)
    cupy.cuda.runtime.deviceSynchronize()
    with stream:
        stream.begin_capture()
        kernel(a, 2.0, c)
        kernel(c, 2.0, a)
        graph = stream.end_capture()
    c.fill(0)
    cupy.cuda.runtime.deviceSynchronize()
    before = a.get()
    for _ in range(3):
        graph.launch(stream)
    stream.synchronize()
    assert np.array_equal(a.get(), before * 4**3)


def refusals() -> None:
    kernel = sized()
    a = cupy.ones((64, 64), cupy.float32)
    for wrong in (a.T[:, :32], a.astype(cupy.float64), np.ones((64, 64), np.float32)):
        try:
            kernel(a, 1.0, wrong)
        except ArgumentError as error:
            print("refused:", str(error).splitlines()[0])
        else:
            raise AssertionError(type(wrong))


def attempt(name: str, run: Callable[[], None]) -> None:
    try:
        run()
        print("ok  ", name, flush=True)
    except Exception:
        print("FAIL", name, "".join(traceback.format_exc().splitlines(True)[-6:]), flush=True)


def main() -> None:
    print(torch.cuda.get_device_name(), "torch", torch.__version__, "cupy", cupy.__version__)
    for dtype in ("float32", "float16", "float64", "bfloat16"):
        attempt(f"values of {dtype}", lambda dtype=dtype: values(dtype))
    for check in (streams, graphs, refusals, costs):
        attempt(check.__name__, check)


if __name__ == "__main__":
    main()
