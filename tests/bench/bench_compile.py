"""How long compiling takes: each stage of some kernels, warm, with new parameters each time.

    python -m tests.bench.bench_compile [gemm regions add sum softmax forward backward]
        [--target cuda:sm_80] [--rounds 20]

Times are medians in milliseconds. New parameters each round: caches of layouts by extents do not
help, as when a slider moves. `check` is the verifier after each stage, `print` its text. Then
fresh processes: importing tilebench, and from nothing to CUDA text. Budgets: 12 ms to CUDA text for
a GEMM, 26 for attention and 36 for its gradients (the best of many), 250 ms to import.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests import kernels
from tests.bench import attention
from tilebench.frontend import trace
from tilebench.ir import print_function, verify
from tilebench.passes.context import Context
from tilebench.passes.pipeline import COMMON
from tilebench.targets import Build, resolve

ROOT = Path(__file__).resolve().parent.parent.parent
BUDGET = {"gemm": 12.0, "forward": 26.0, "backward": 36.0, "import": 250.0, "fresh": 600.0}


def _gemm(k: int) -> dict[str, Any]:
    sizes = {"M": 1000 + k, "N": 1100 + k, "K": 1200 + k}
    return {**sizes, "block_M": 64 + 16 * (k % 7), "block_N": 48 + 16 * (k % 5), "block_K": 16 + 4 * (k % 9)}


def _attention(k: int) -> dict[str, Any]:
    shape = {"heads": 4, "seq": 1024 + 64 * k, "dim": 64, "block_M": 64, "block_N": 64}
    return {**shape, "causal": True, "dtype": "float16"}


CASES: dict[str, tuple[Any, Callable[[int], dict[str, Any]]]] = {
    "gemm": (kernels.gemm_kernel, _gemm),
    "regions": (kernels.gemm_regions, _gemm),
    "add": (
        kernels.add_kernel,
        lambda k: {"M": 1000 + k, "N": 1100, "block_M": 16 + k, "block_N": 64 + 2 * k},
    ),
    "sum": (
        kernels.reduce_kernel,
        lambda k: {"M": 1000 + k, "N": 1100, "block_M": 4 + k, "block_N": 64 + 2 * k},
    ),
    "softmax": (kernels.softmax_kernel, lambda k: {"M": 1000, "N": 500 + k, "block_M": 2 + k % 3}),
    "forward": (attention.forward, _attention),
    "backward": (attention.backward, _attention),
}


def stages(kernel: Any, values: dict[str, Any], target: str) -> dict[str, float]:
    """Milliseconds of each step of one compilation."""
    out: dict[str, float] = {}
    began = time.perf_counter()

    def lap(name: str) -> None:
        nonlocal began
        now = time.perf_counter()
        out[name] = out.get(name, 0.0) + (now - began) * 1e3
        began = time.perf_counter()

    function = trace(kernel.function, values).function
    lap("tile")
    manifest, machine = resolve(target)
    context = Context(machine)
    lap("resolve")
    for row in (*COMMON, *manifest.road):
        for _, step in row.passes:
            function = step(function, context)
        lap(row.name)
        verify(function, row.forms)
        lap("check")
        print_function(function)
        lap("print")
    build = Build(function, machine, context)
    for step in manifest.steps:
        if step.tier == "text":
            step.run(build)
            lap(step.name)
    return out


def measure(name: str, target: str, rounds: int) -> float:
    """Print the medians of a kernel's stages; returns the sum without printing the stages' texts."""
    kernel, values = CASES[name]
    for k in range(3):
        stages(kernel, values(k + 100), target)
    found = [stages(kernel, values(k), target) for k in range(rounds)]
    medians = {key: statistics.median(each[key] for each in found) for key in found[0]}
    totals = [sum(each.values()) - each["print"] for each in found]
    total = statistics.median(totals)
    cells = "  ".join(f"{key} {value:.2f}" for key, value in medians.items())
    budget = f" of {BUDGET[name]:.0f}" if name in BUDGET else ""
    print(f"{name:8} {total:6.2f} (best {min(totals):.2f}){budget} ms without print | {cells}")
    return total


def fresh(code: str, times: int = 5) -> float:
    """Median milliseconds of a new process that runs `code`, the interpreter's own start left out.

    With bytecode written before, as an installed package has it: compiling the sources in each
    process (`PYTHONDONTWRITEBYTECODE`) costs another 0.4 s.
    """
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

    def once(text: str, environment: dict[str, str]) -> float:
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", text], cwd=ROOT, check=True, env=environment)
        return (time.perf_counter() - began) * 1e3

    with tempfile.TemporaryDirectory() as bytecode:
        environment = {**inherited, "PYTHONPYCACHEPREFIX": bytecode}
        once(code, environment)
        return statistics.median(once(code, environment) - once("pass", environment) for _ in range(times))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", choices=[*CASES, []], default=[])
    parser.add_argument("--target", default="cuda:sm_80")
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    for name in given.names or list(CASES):
        measure(name, given.target, given.rounds)
    print(f"import   {fresh('import tilebench'):6.0f} of {BUDGET['import']:.0f} ms, a new process")
    print(f"language {fresh('import tilebench, tilebench.language'):6.0f} ms, a new process")
    make = f"kernels.gemm_kernel.using(target={given.target!r})(512, 512, 512).stage('cuda')"
    text = f"from tests import kernels; {make}"
    print(f"fresh    {fresh(text):6.0f} of {BUDGET['fresh']:.0f} ms, from a new process to text")


if __name__ == "__main__":
    main()
