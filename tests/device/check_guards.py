"""What torch's own look at tensors tells apart, and what it costs: `python tests/device/check_guards.py`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch

from tests.kernels import add_kernel
from tilebench.runtime import tensor_guards

start = time.perf_counter()
made = tensor_guards._maker()
took = 1e3 * (time.perf_counter() - start)
print(f"{torch.__version__}: relied on {made is not None}, asked once in {took:.2f} ms")
a, b, c = (torch.ones(64, 64, device="cuda") for _ in range(3))
guard = tensor_guards.guard_of((a, b, c))
if guard is not None:
    rows = {
        "same": ((a, b, torch.empty_like(c)), True), "host": ((a, b, c.cpu()), False),
        "dtype": ((a, b.half(), c), False), "turned": ((a.T, b, c), False), "shape": ((a[:8], b, c), False),
        "negative": ((a, torch._neg_view(b), c), False), "fewer": ((a, b), False),
        "gradient": ((a, b, c.clone().requires_grad_()), False),
    }  # fmt: skip
    for name, (tensors, expected) in rows.items():
        try:
            said = guard(*tensors)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        print(f"  {name:10s} {said} {'ok' if said is expected or name == 'fewer' else 'WRONG'}")
    with torch.inference_mode():
        print("  inference", guard(a, b, c), guard(*(torch.ones(64, 64, device="cuda") for _ in range(3))))
    start = time.perf_counter()
    for _ in range(20000):
        guard(a, b, c)
    print(f"  {(time.perf_counter() - start) / 20000 * 1e6:.3f} us a look")
kernel = add_kernel.using(target="cuda")(64, 64, dtype="float32")
kernel(a, b, c)
kept = kernel.calls._repeated._last
print("kept with a look:", kept is not None and kept.guard is not None)
