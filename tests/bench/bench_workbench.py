"""How long a slider's move takes in the kernel: stages, resources, SASS, for the GEMM of the quickstart.

    python -m tests.bench.bench_workbench [--target cuda:sm_90a] [--moves 12]

From a position that is asked for to the record that the widget is sent, without the browser; every position
is new, so no cache helps. Medians in milliseconds beside their budgets (design, section 7): 100 to stage
text, 300 to resources, 400 more to SASS. NVRTC's and nvdisasm's own times are in them.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from typing import Any

from tests.workbench.bench_kernels import functions

BUDGET = {"stages": 100.0, "resources": 300.0, "sass": 700.0}


def positions(count: int) -> list[dict[str, int]]:
    """Positions that are legal and new, one choice changed at a time as a hand does."""
    every = [{"block_M": m, "block_N": n} for m in (48, 80, 96, 112) for n in (32, 48, 80, 96)]
    return every[:count]


def moves(target: str, count: int) -> dict[str, list[float]]:
    """Milliseconds of each tier, a list a tier."""
    import tilebench
    from tilebench.workbench import live

    live.is_interactive = lambda: True
    bench = tilebench.workbench(
        functions()["gemm"], with_={"M": 1000, "N": 1100, "K": 1200}, target=target,
        stages=("tile", "laid_out", "cuda", "sass"),
    )  # fmt: skip
    bench.wait()
    view: Any = bench._view.widget
    said: list[float] = []
    view.observe(lambda _: said.append(time.perf_counter()), ["record"])
    out: dict[str, list[float]] = {name: [] for name in BUDGET}
    for each in positions(count):
        said.clear()
        began = time.perf_counter()
        bench.set(**each)
        bench.wait()
        assert bench.error is None, bench.error
        times = [(when - began) * 1e3 for when in said]
        # Text first, then the same with the time of compiling in its head, then the disassembly.
        out["stages"].append(times[0])
        out["resources"].append(times[1] if len(times) > 2 else times[-1])
        out["sass"].append(times[-1])
    bench.close()
    return out


def main() -> int:
    """Print the table; 1 when a median is over its budget."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--target", default="cuda:sm_90a")
    parser.add_argument("--moves", type=int, default=12)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TILEBENCH_CACHE_DIR"] = folder
        found = moves(options.target, options.moves)
    over = 0
    print(f"{'to':<12}{'median ms':>10}{'worst':>8}{'budget':>8}{'ratio':>7}")
    for name, times in found.items():
        middle = statistics.median(times)
        over += middle > BUDGET[name]
        print(f"{name:<12}{middle:>10.0f}{max(times):>8.0f}{BUDGET[name]:>8.0f}{middle / BUDGET[name]:>7.2f}")
    return 1 if over else 0


if __name__ == "__main__":
    raise SystemExit(main())
