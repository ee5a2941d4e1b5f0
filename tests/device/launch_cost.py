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

from tests.kernels import add_kernel, gemm_nt_kernel
from tilebench.schedule import Schedule


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
    repeated = kernel.calls._repeated

    def the_long_way() -> None:
        kernel.calls._repeated = None
        kernel(a, b, c)

    def again() -> None:
        kernel.calls._repeated = repeated
        kernel(a, b, c)

    again()
    parts = {
        "kernel()": lambda: kernel(a, b, c),
        "repeated": lambda: repeated((a, b, c)),
        "without what an earlier call left": the_long_way,
        "and with it": again,
        "check": lambda: checker((a, b, c)),
        "executable": lambda: executable(infos),
        "launch": lambda: launch(stream, *pointers),
        "torch.add": lambda: torch.add(a, b, out=c),
    }
    print(dtype, ", ".join(f"{name} {cost(run):.2f} us" for name, run in parts.items()))
boxes = Schedule.of(copy={name: {"instruction": "tma"} for name in ("A_s", "B_s")})
boxed = gemm_nt_kernel.using(target="cuda:sm_90a", schedule=boxes)(128, 128, 128, 64, 64, 64, 2, 128)
p, q, r = (torch.ones(128, 128, device="cuda", dtype=torch.float16) for _ in range(3))
boxed(p, q, r)
ours, theirs = cost(lambda: boxed(p, q, r)), cost(lambda: torch.matmul(p, q, out=r))
print(f"with tensor maps: {ours:.2f} us, torch.matmul {theirs:.2f} us")
profile = cProfile.Profile()
profile.enable()
for _ in range(2000):
    kernel(a, b, c)
profile.disable()
pstats.Stats(profile).sort_stats("tottime").print_stats(12)
