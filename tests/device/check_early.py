"""Products in a row that begin early, and hints for caches: `python tests/device/check_early.py [--make]`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch

from tests.device.check_card import seconds
from tests.device.check_clusters import BASE, LOW, WIDE, stay
from tests.kernels import gemm_nt_kernel
from tilebench.schedule import Schedule

CHAIN = 40


def made(shape: tuple[int, ...], tile: tuple[int, ...], **chosen: Any) -> Any:
    schedule = Schedule.of(**{**BASE, **chosen})
    return gemm_nt_kernel.using(target="cuda:sm_90a", schedule=schedule)(*shape, *tile, panel=0)


def hinted(a: str, b: str) -> dict[str, Any]:
    named = {"A_s": a, "B_s": b}
    return {"copy": {name: {"instruction": "tma", "eviction": how} for name, how in named.items()}}


N = 1024
chains = {early: made((N, N, N), LOW, dependent_launch=early) for early in (False, True)}
EVICTIONS = (("evict_normal", "evict_normal"), ("evict_first", "evict_last"), ("evict_last", "evict_first"))
hints = {pair: made((8192,) * 3, WIDE, **stay(16), **hinted(*pair)) for pair in EVICTIONS}
if "--make" in sys.argv:
    for kernel in (*chains.values(), *hints.values()):
        kernel.reach_code()
    sys.exit()
a = torch.randn(N, N, device="cuda").half()
w = (torch.randn(N, N, device="cuda") / 32).half()
results = []
for early, kernel in chains.items():
    x, y = a.clone(), torch.empty_like(a)

    def chain(kernel: Any = kernel, x: Any = x, y: Any = y) -> None:
        for _ in range(CHAIN // 2):
            kernel(x, w, y)
            kernel(y, w, x)

    chain()
    held = torch.cuda.CUDAGraph()
    with torch.cuda.graph(held):
        chain()
    times = []
    for _ in range(30):
        x.copy_(a)
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        held.replay()
        stop.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(stop) / CHAIN * 1e3)
    results.append(x.clone())
    print(
        f"{N}^3 in a row, {'early' if early else 'plain'}: {sorted(times)[len(times) // 2]:.2f} us each",
        flush=True,
    )
print("the same bits:", torch.equal(*results))
p, q = (torch.randn(8192, 8192, device="cuda").half() for _ in range(2))
r = torch.empty_like(p)
flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
for _ in range(2):
    for pair, kernel in hints.items():
        kernel(p, q, r)
        print(f"8192^3 {pair} {seconds(torch, lambda: kernel(p, q, r), flush, 9) * 1e6:.1f} us", flush=True)
