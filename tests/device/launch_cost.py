"""Host time of a launch by `kernel(a, b, c)` on torch tensors: `python tests/device/launch_cost.py`."""

from __future__ import annotations

import cProfile
import pstats
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch

from tests.kernels import add_kernel


def cost(run: object, count: int = 400) -> float:
    """Median host microseconds of one call, the device idle."""
    out: list[float] = []
    for k in range(count):
        start = time.perf_counter_ns()
        run()  # type: ignore[operator]
        out.append((time.perf_counter_ns() - start) / 1e3)
        if k % 50 == 0:
            torch.cuda.synchronize()
    return statistics.median(out)


for dtype in ("float16", "float32"):
    kernel = add_kernel.using(target="cuda")(64, 64, dtype=dtype)
    a, b, c = (torch.ones(64, 64, device="cuda", dtype=getattr(torch, dtype)) for _ in range(3))
    kernel(a, b, c)
    executable, checker = (
        kernel.executable(),
        kernel.calls.checker(kernel.calls.described((a, b, c))[0], (a, b, c)),
    )
    infos = checker((a, b, c))
    launch = executable.launch_on(0)
    pointers = [each.pointer for each in infos]
    stream = torch.cuda.current_stream().cuda_stream
    parts = {
        "kernel()": lambda: kernel(a, b, c),
        "check": lambda: checker((a, b, c)),
        "executable": lambda: executable(infos),
        "launch": lambda: launch(stream, *pointers),
        "torch.add": lambda: torch.add(a, b, out=c),
    }
    print(dtype, ", ".join(f"{name} {cost(run):.2f} us" for name, run in parts.items()))
profile = cProfile.Profile()
profile.enable()
for _ in range(2000):
    kernel(a, b, c)
profile.disable()
pstats.Stats(profile).sort_stats("tottime").print_stats(12)
