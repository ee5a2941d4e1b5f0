"""Products by warp groups and copies in boxes on a card of 9.0: right, and how fast beside torch.

`python tests/device/check_hopper.py [--quick]`. A row a shape and schedule: whether every element is what
float64 allows, registers and spills by the compiler, our time and torch's (CUDA events, cold L2, medians of
rounds in turn). Inputs are random, outputs poisoned with NaN. Exits non-zero when a row is wrong.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.device.check_card import seconds
from tests.kernels import gemm_nt_kernel
from tilebench.errors import TileError
from tilebench.schedule import Schedule

BOXES = {"copy": {"A_s": {"instruction": "tma"}, "B_s": {"instruction": "tma"}}}
GROUPS = {"gemm": {"C_l": {"instruction": "wgmma"}}}
SCHEDULES: dict[str, dict[str, Any]] = {
    "mma": {},
    "tma": BOXES,
    "wgmma": GROUPS,
    "tma wgmma": {**BOXES, **GROUPS},
    "roles mma": {**BOXES, "warp_specialize": True},
    "roles": {**BOXES, **GROUPS, "warp_specialize": True},
    "roles order": {**BOXES, **GROUPS, "warp_specialize": True, "order": 16},
    "roles persistent": {**BOXES, **GROUPS, "warp_specialize": True, "persistent": True, "order": 16},
}
SHAPES = [
    (1000, 1160, 1536), (4096, 4096, 4096), (8192, 8192, 8192), (1024, 1024, 1024), (4096, 14336, 4096),
    (2048, 2048, 8192),
]  # fmt: skip
TILES = [(128, 128, 64, 4, 256), (128, 256, 64, 4, 256)]


def row(
    torch: Any, shape: tuple[int, ...], tile: tuple[int, ...], turned: bool, name: str, flush: Any
) -> bool:
    """One row, and whether it is right or refused with a reason."""
    m, n, k = shape
    a = torch.randn(m, k, device="cuda").half()
    b = torch.randn(*((n, k) if turned else (k, n)), device="cuda").half()
    c = torch.full((m, n), float("nan"), device="cuda", dtype=torch.float16)
    other = b.T if turned else b
    said = f"{m}x{n}x{k} {'NT' if turned else 'NN'} {tile[:3]} x{tile[3]} {name}"
    try:
        kernel = gemm_nt_kernel.using(target="cuda", schedule=Schedule.of(**SCHEDULES[name]))(
            *shape, *tile, panel=0, turned=turned
        )
        kernel(a, b, c)
        torch.cuda.synchronize()
    except TileError as error:
        print(f"{said:60s} refused: {error.message}")
        return True
    exact = a.double() @ other.double()
    bound = (a.double().abs() @ other.double().abs()) * k * 2**-24 + exact.abs() * 2**-11 + 1e-6
    part = float(((c.double() - exact).abs() / bound).nan_to_num(float("inf")).max())
    ours = seconds(torch, lambda: kernel(a, b, c), flush)
    theirs = seconds(torch, lambda: torch.matmul(a, other), flush)
    again = seconds(torch, lambda: kernel(a, b, c), flush)
    resources = kernel.record().resources
    best = min(ours, again)
    rate = 2 * m * n * k / best * 1e-12
    verdict = "ok" if part <= 1 else "WRONG"
    code = f"{resources.registers} registers, {resources.spill_store_bytes} B spilled"
    times = f"{best * 1e6:8.1f} us {rate:6.1f} TFLOP/s, torch {theirs * 1e6:8.1f} us, {theirs / best:.3f}"
    print(f"{said:60s} {verdict:6s} {part:6.3f} of the bound, {code}, {times}", flush=True)
    return part <= 1


def main() -> int:
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the odd shape and 4096^3 alone")
    shapes = SHAPES[:2] if parser.parse_args().quick else SHAPES
    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    rows = [
        row(torch, shape, tile, turned, name, flush)
        for shape in shapes
        for turned in (True, False)
        for tile in TILES
        for name in SCHEDULES
    ]
    print(f"{sum(rows)} of {len(rows)} right or refused")
    return 0 if all(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
