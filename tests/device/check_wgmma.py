"""Products of warp groups on a card: `python tests/device/check_wgmma.py [RECORD.npz]`.

Each kernel's result against sums formed as the simulator forms them, to the last bit, over shapes, transposes
and operands; what one instruction gives on hard numbers, recorded for the tests; and times beside the
instructions that are taken unasked, and torch's own.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import torch

from tests.device.record_mma import bits, numbers, products
from tests.kernels import gemm_nt_kernel
from tests.targets.cuda.test_mma import product
from tests.targets.cuda.test_wgmma import ASKED, arrays_of, by_the_card
from tilebench.schedule import Schedule

NT = (False, True)
SMALL: dict[str, Any] = {"tile": (64, 48, 64), "threads": 128, "turned": NT}
CASES: tuple[tuple[tuple[int, int, int], dict[str, Any]], ...] = (
    *(
        ((200, 150, 136), {"tile": (128, 96, 64), "threads": 256, "turned": (a, b), "stages": stages})
        for a in (False, True) for b in (False, True) for stages in (1, 3)
    ),
    ((300, 520, 200), {"tile": (128, 256, 64), "threads": 256, "turned": NT, "stages": 4}),
    ((100, 72, 64), {"tile": (48, 40, 32), "threads": 128}),
    ((64, 96, 64), {"tile": (64, 96, 64), "threads": 256, "stages": 1}),
    ((70, 40, 64), {"tile": (128, 64, 16), "threads": 384, "stages": 3}),
    ((128, 64, 64), {"tile": (64, 64, 64), "threads": 128, "fragments": "a"}),
    ((128, 128, 96), {"tile": (64, 128, 48), "threads": 128, "ab": ("bfloat16", "bfloat16"), "turned": NT}),
    ((64, 96, 128), {**SMALL, "ab": ("int8", "uint8"), "acc": "int32"}),
    ((64, 96, 128), {**SMALL, "ab": ("float32", "float32"), "promises": (True, False)}),
    ((64, 96, 128), {**SMALL, "ab": ("float8_e4m3fn", "float8_e5m2"), "promises": (False, True)}),
)  # fmt: skip
# Operands, sums, k of one instruction of 64x8.
KINDS = {
    "f16": ("float16", "float16", "float32", 16), "bf16": ("bfloat16", "bfloat16", "float32", 16),
    "s8": ("int8", "uint8", "int32", 32), "tf32": ("float32", "float32", "float32", 8),
    "e4m3": ("float8_e4m3fn", "float8_e5m2", "float32", 32),
}  # fmt: skip


def on_card(array: Any) -> torch.Tensor:
    """A NumPy array, whatever its dtype, on the card."""
    name = array.dtype.name
    plain = torch.from_numpy(
        array.view(f"u{array.itemsize}" if array.dtype.kind == "V" else array.dtype).copy()
    )
    return plain.view(getattr(torch, name)).cuda() if array.dtype.kind == "V" else plain.cuda()


def check_bits() -> None:
    for shape, options in CASES:
        kernel = product.using(target="cuda", schedule=ASKED)(*shape, **options)
        assert "wgmma.mma_async" in kernel.stage("ptx")
        arrays = arrays_of(shape, options)
        tensors = {name: on_card(array) for name, array in arrays.items()}
        kernel(tensors["A"], tensors["B"], tensors["C"])
        torch.cuda.synchronize()
        found, wanted = tensors["C"].cpu().numpy(), by_the_card(arrays, options)
        off = int((found != wanted).sum())
        size = float(np.abs(found.astype(np.float64) - wanted).max())
        print(
            "bits",
            shape,
            options,
            "same" if not off else f"{off} of {found.size} differ, by {size:.3g}",
            flush=True,
        )


def record(file: str) -> None:
    """Products of one instruction, as `record_mma` does those of a warp."""
    rng = np.random.default_rng(0)
    out: dict[str, Any] = {"device": torch.cuda.get_device_name()}
    asked = Schedule.of(threads=128, gemm={"C_l": {"instruction": "wgmma"}})
    for name, (a, b, c, k) in KINDS.items():
        count, n = 18, 16 if c == "int32" else 8
        kernel = products.using(target="cuda", schedule=asked)(
            count, 64, n, k, a, b, c, turned=True, fast=True
        )
        left, right = numbers(rng, (count, 64, k), a), numbers(rng, (count, n, k), b)
        old = numbers(rng, (count, 64, n), c)
        if c == "float32":
            old[::3] = 0
        new = torch.full_like(old, 77)
        kernel(left, right, old, new)
        torch.cuda.synchronize()
        for letter, tensor in zip("abcd", (left, right, old, new), strict=True):
            out[f"{name}_{letter}"] = bits(tensor)
    np.savez_compressed(file, **out)
    print("recorded", Path(file).stat().st_size, "bytes on", out["device"], flush=True)


def median(run: Callable[[], Any], flush: torch.Tensor, count: int = 5) -> float:
    """Milliseconds of one launch with a cold cache."""
    run()
    took: list[float] = []
    for _ in range(count):
        flush.zero_()
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        run()
        last.record()
        torch.cuda.synchronize()
        took.append(first.elapsed_time(last))
    return statistics.median(took)


IN_BOXES = Schedule.of(
    gemm={"C_l": {"instruction": "wgmma"}}, copy={name: {"instruction": "tma"} for name in ("A_s", "B_s")}
)
# A name for what is asked, the schedule, the tile, threads and stages.
CONFIGURATIONS = (
    ("wgmma and tma", IN_BOXES, (128, 256, 64), 256, 4), ("wgmma", ASKED, (128, 256, 64), 256, 4),
    ("wgmma and tma", IN_BOXES, (256, 128, 64), 256, 4), ("wgmma", ASKED, (128, 256, 64), 256, 3),
    ("wgmma and tma", IN_BOXES, (128, 128, 64), 256, 3), ("wgmma", ASKED, (128, 128, 64), 128, 3),
    ("nothing", None, (128, 128, 64), 128, 3),
)  # fmt: skip


def times(until: float) -> None:
    flush = torch.empty(64 << 20, dtype=torch.int32, device="cuda")
    for size, turned in ((8192, True), (8192, False), (4096, True), (4096, False)):
        a = torch.randn(size, size, device="cuda", dtype=torch.float16)
        b = torch.randn(size, size, device="cuda", dtype=torch.float16)
        c = torch.empty(size, size, device="cuda", dtype=torch.float16)
        right = b.T if turned else b
        wanted, work, what = a @ right, 2 * size**3 / 1e9, f"time {size} {'NT' if turned else 'NN'}"
        own = median(lambda x=a, y=right: torch.matmul(x, y), flush)
        print(what, f"torch {work / own:.0f} TFLOP/s", flush=True)
        for name, asked, tile, threads, stages in CONFIGURATIONS:
            if time.time() > until:
                return
            kernel = gemm_nt_kernel.using(target="cuda", schedule=asked)(
                size, size, size, *tile, stages, threads, turned=turned
            )
            took = median(lambda run=kernel, x=a, y=b, z=c: run(x, y, z), flush)
            off = ((c.float() - wanted.float()).abs().max() / wanted.float().abs().max()).item()
            used = kernel.resources
            print(
                what, name, tile, threads, stages, f"{work / took:.0f} TFLOP/s, off by {off:.1e}", flush=True
            )
            print(f"    {used.registers} registers, {used.spill_store_bytes} bytes spilled", flush=True)


def main() -> None:
    start = time.time()
    check_bits()
    if len(sys.argv) > 1:
        record(sys.argv[1])
    times(start + 55)


if __name__ == "__main__":
    main()
