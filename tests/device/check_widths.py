"""Rows that vectors do not fill evenly, on a real card against torch: `python tests/device/check_widths.py`.

A row a case: our time and that of torch's product with a number, which moves the same bytes (CUDA events,
cold L2, medians), and the registers of a thread. Inputs are random and outputs poisoned. Exits non-zero when
a case is wrong.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.passes.test_vectors import by_name, by_variable, rms_norm, scaled

SHAPES = ((16384, 576), (16384, 200), (4096, 11008), (8192, 4096), (8192, 3000), (8192, 1000))


def microseconds(run: Any) -> float:
    from triton.testing import do_bench  # type: ignore[import-not-found]

    run()
    return float(do_bench(run, warmup=10, rep=60, return_mode="median")) * 1e3


def wanted(torch: Any, name: str, a: Any) -> list[Any]:
    """The outputs of a kernel in float64."""
    x, n = a.double(), a.shape[1]
    if name == "scaled":
        return [2 * x]
    if name == "rms_norm":
        return [x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-6)]
    if name == "by_name":
        return [x * x, x + x]
    column = torch.arange(n, device=x.device)
    edge = torch.where(column % 512 > 7, 2.0, 1.0).double()
    v = torch.where(column < n - 3, x, edge)
    return [v * v, v * torch.where(column < n - 3, 3, 2)]


def main() -> int:
    import torch

    wrong = 0
    for m, n in SHAPES:
        a = torch.randn(m, n, device="cuda", dtype=torch.float16)
        c, d = torch.empty_like(a), torch.empty_like(a)
        theirs = microseconds(lambda a=a, c=c: torch.mul(a, 2, out=c))
        for threads in (64, 128, 256):
            for kernel_of in (scaled, rms_norm, by_name, by_variable):
                kernel = kernel_of.using(target="cuda")(n, threads, m)
                outputs = [c] if kernel_of in (scaled, rms_norm) else [c, d]
                for output in outputs:
                    output.fill_(float("nan"))
                ours = microseconds(lambda kernel=kernel, a=a, outputs=outputs: kernel(a, *outputs))
                wants = wanted(torch, kernel_of.__name__, a)
                good = all(
                    bool(((got.double() - want).abs() <= 4e-3 * want.abs() + 1e-3).all())
                    for got, want in zip(outputs, wants, strict=True)
                )
                wrong += not good
                registers = kernel.record().resources.registers
                case = f"{kernel_of.__name__:11} {m:5} x {n:5}, {threads:3} threads"
                times = f"{ours:6.1f} us, torch * 2 {theirs:6.1f} us"
                print(f"{'right' if good else 'WRONG'}  {case}: {times}, {registers} registers", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
