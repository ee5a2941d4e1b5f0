"""The whole system on a real card: check, bench and the rehearsal in the measuring child.

`python tests/device/check_system.py` runs each of the four kernels on NumPy arrays and on device
tensors, checks every element against the reference's bounds, times it in the child, and makes sure
that a kernel which never ends costs a child and nothing else. Exits non-zero on a failure.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ["TILEBENCH_GUARD"] = "first"

import torch

import tilebench
from tests.kernels import add_kernel, gemm_kernel, gemm_regions, reduce_kernel, softmax_kernel
from tilebench.profile.ceilings import device_ceilings

MEASURE = "tilebench.targets.cuda.run.ceilings:measure_device_ceilings"
ENDLESS = """
extern "C" __global__ void main_(const float* A, const float* B, float* C) {
  volatile float* c = C;
  while (c[0] != 12345.0f) { }
}
"""


def main() -> int:
    """Every case; the number of failures."""
    failures = 0
    cases = (
        (add_kernel, (4096, 4096), {"dtype": "float32"}),
        (add_kernel, (1001, 1003), {"dtype": "bfloat16"}),
        (gemm_kernel, (1000, 1100, 1200), {"dtype": "float16"}),
        (gemm_kernel, (257, 131, 67), {"dtype": "int32", "accum": "int32"}),
        (gemm_regions, (512, 512, 512), {"dtype": "float32"}),
        (reduce_kernel, (1001, 1003), {"dtype": "float16"}),
        (softmax_kernel, (1000, 1003), {"dtype": "float32"}),
    )
    for function, shape, options in cases:
        kernel = function.using(target="cuda")(*shape, **options)
        report = kernel.check()
        run = kernel.bench(seconds=0.2)
        failures += not report.ok or bool(run.failure)
        took = run.failure
        if run.seconds:
            rates = (run.bytes / run.seconds / 1e9, run.flops / run.seconds / 1e9)
            took = f"{run.seconds * 1e6:.1f} us, {rates[0]:.0f} GB/s, {rates[1]:.0f} GFLOP/s"
        what = f"{function.name} {shape} {options['dtype']}"
        print(f"{what}: ok={report.ok}, error {run.error} of {run.bound}, {took}")
    print("method:", run.method)
    print("environment:", dict(run.environment))
    print("ceilings:", device_ceilings(MEASURE, "cuda"))
    failures += endless()
    print("failures:", failures)
    return failures


def endless() -> int:
    """A kernel that never ends is stopped by the rehearsal's time-out; tensors stay usable."""
    os.environ["TILEBENCH_WORKER_TIMEOUT"] = "3"
    base = add_kernel.using(target="cuda")(64, 64, dtype="float32")
    text = base.stage("cuda")
    start = text.index('extern "C"')
    bad = tilebench.compile_from("cuda", text[:start] + ENDLESS.strip() + "\n", like=base)
    a, b, c = (torch.ones(64, 64, device="cuda") for _ in range(3))
    began = time.perf_counter()
    try:
        bad(a, b, c)
    except tilebench.TileError as error:
        print(
            f"endless kernel refused after {time.perf_counter() - began:.1f} s: {str(error).splitlines()[0]}"
        )
    else:
        print("the endless kernel came back")
        return 1
    base(a, b, c)
    torch.cuda.synchronize()
    good = bool((c == 2).all())
    print("tensors usable afterwards:", good)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
