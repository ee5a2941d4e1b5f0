"""Functions of several launches on a card: `python tests/device/check_programs.py`.

Right numbers on the caller's stream, on several streams at once, in a CUDA graph and from NumPy arrays, and
what a call costs beside one launch. Needs torch. Exits non-zero when a row is wrong.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import torch

import tilebench.language as T
from tests.kernel.test_programs import row_sums


def plainly(kernel: Any) -> float:
    a = torch.randint(-8, 9, (4096, 64), device="cuda").float()
    b = torch.empty(4096, device="cuda")
    kernel(a, b)
    return float((b - a.sum(1)).abs().max())


def on_a_side_stream(kernel: Any) -> float:
    worst = 0.0
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(20):
            worst = max(worst, plainly(kernel))
    torch.cuda.synchronize()
    return worst


def on_streams_at_once(kernel: Any) -> float:
    found: list[float] = []

    def work() -> None:
        found.append(on_a_side_stream(kernel))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return max(found) if len(found) == len(threads) else float("inf")


def in_a_graph(kernel: Any) -> float:
    a, b = torch.zeros((4096, 64), device="cuda"), torch.empty(4096, device="cuda")
    kernel(a, b)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel(a, b)
    worst = 0.0
    for _ in range(5):
        a.copy_(torch.randint(-8, 9, (4096, 64), device="cuda").float())
        b.zero_()
        graph.replay()
        torch.cuda.synchronize()
        worst = max(worst, float((b - a.sum(1)).abs().max()))
    return worst


def from_numpy(kernel: Any) -> float:
    a = np.random.default_rng(0).integers(-8, 9, (4096, 64)).astype(np.float32)
    b = np.zeros(4096, np.float32)
    kernel(a, b)
    return float(np.abs(b - a.sum(1)).max())


def timed(kernel: Any) -> float:
    found = kernel.bench(seconds=0.2)
    print("   ", found)
    return 0.0 if not found.failure else float("inf")


def cost(kernel: Any) -> float:
    a, b = torch.zeros((4096, 64), device="cuda"), torch.empty(4096, device="cuda")
    kernel(a, b)
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(2000):
        kernel(a, b)
    print(f"    {(time.perf_counter() - start) / 2000 * 1e6:.1f} us a call on the host")
    torch.cuda.synchronize()
    return 0.0


def main() -> int:
    fixed = row_sums.using(target="cuda")(4096, 64, 4)
    sized = row_sums.using(target="cuda")(T.dynamic("m"), 64, 4)
    checks: list[tuple[Callable[[Any], float], Any]] = [
        (check, kernel)
        for kernel in (fixed, sized)
        for check in (plainly, on_a_side_stream, on_streams_at_once, in_a_graph, from_numpy, cost)
    ]
    wrong = 0
    for check, kernel in [*checks, (timed, fixed)]:
        try:
            worst = check(kernel)
        except Exception as error:  # a row that fails is a row that is wrong
            print(f"{check.__name__}: {type(error).__name__}: {error}")
            worst = float("inf")
        wrong += worst > 0
        print(f"{check.__name__:24s} {'fixed' if kernel is fixed else 'sized':6s} {worst}")
    used = fixed.resources
    print("registers of each launch:", [each.registers for each in used.launches])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
