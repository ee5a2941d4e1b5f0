"""How long it takes to find a kernel again: a call of a jit function, beside one of the kernel.

    python -m tests.bench.bench_lookup

Microseconds, the least of several runs. Budgets: 10 with two parameters, 15 with eight. On a quiet core:
2.9 and 5.1, and 81 and 190 before calls with plain arguments had a way of their own.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

import tilebench
import tilebench.language as T

SCALE = 2.0
BUDGET = {"two parameters": 10.0, "eight parameters": 15.0}


def scaled(x: Any) -> Any:
    return x * SCALE


@tilebench.jit(target="cpu")
def two(N: int, block: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block)) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = scaled(A[bx * block + i])

    return main


@tilebench.jit(target="cpu")
def eight(N: int, block: int, c: int, d: int, e: float, f: float, dtype: str, shape: Any = None) -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block)) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = scaled(A[bx * block + i])

    return main


def least(call: Callable[[], object], times: int) -> float:
    """Microseconds of a call."""
    call()
    return min(timeit.repeat(call, number=times, repeat=9)) / times * 1e6


def measure() -> dict[str, float]:
    """Microseconds of each way to a kernel, by name."""
    a, b = np.ones(1000, np.float32), np.empty(1000, np.float32)
    kernel = two(1000, 128)
    return {
        "two parameters": least(lambda: two(1000, 128), 5000),
        "eight parameters": least(
            lambda: eight(1000, block=128, c=3, d=4, e=0.5, f=2.0, dtype="float32"), 5000
        ),
        "a tuple among eight": least(lambda: eight(1000, 128, 3, 4, 0.5, 2.0, "float32", (1, 2)), 500),
        "look up and run": least(lambda: two(1000, 128)(a, b), 2000),
        "run the kept kernel": least(lambda: kernel(a, b), 2000),
    }


if __name__ == "__main__":
    for name, time in measure().items():
        budget = f" of {BUDGET[name]:.0f}" if name in BUDGET else ""
        print(f"{name:20} {time:7.1f}{budget} us")
