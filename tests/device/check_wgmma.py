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
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import torch

from tests.device.record_mma import bits, numbers, products
from tests.kernels import gemm_nt_kernel
from tests.targets.cuda.test_mma import product
from tests.targets.cuda.test_wgmma import ASKED, arrays_of, by_the_card
from tilebench.errors import TileError
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


class Form(NamedTuple):
    """One instruction of 64x8 (of integers, 64x16): operands, sums, how operands lie, where A is."""

    a: str
    b: str
    c: str
    k: int
    turned: tuple[bool, bool] = NT
    registers: bool = False


EIGHT, BYTES = ("float8_e4m3fn", "float8_e5m2"), ("int8", "uint8")
SHORT = {
    "float16": "f16", "bfloat16": "bf16", "float32": "tf32", "int8": "s8", "uint8": "u8",
    "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2",
}  # fmt: skip
FORMS = {
    f"{SHORT[form.a]}_{SHORT[form.b]}_{form.c}"
    + "".join("_t" if side else "_n" for side in form.turned)
    + ("_registers" if form.registers else ""): form
    for form in (
        *(
            Form(half, half, "float32", 16, (a, b), registers)
            for half in ("float16", "bfloat16") for a in (False, True) for b in (False, True)
            for registers in (False, True) if not (a and registers)
        ),
        Form("float16", "float16", "float16", 16), Form("bfloat16", "bfloat16", "bfloat16", 16),
        *(Form("float32", "float32", "float32", 8, registers=r) for r in (False, True)),
        *(Form(a, b, "int32", 32, registers=r) for a in BYTES for b in BYTES for r in (False, True)),
        *(Form(a, b, "float32", 32, registers=r) for a in EIGHT for b in EIGHT for r in (False, True)),
        Form("float8_e4m3fn", "float8_e4m3fn", "float16", 32),
    )
}  # fmt: skip


def on_card(array: Any) -> torch.Tensor:
    """A NumPy array, whatever its dtype, on the card: its bytes, since torch takes none of the narrow."""
    plain = torch.from_numpy(np.ascontiguousarray(array).view(np.uint8))
    return plain.cuda().view(getattr(torch, array.dtype.name))


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


def recorded(form: Form, given: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """What the card gives for A, B and C of one instruction each."""
    asked = Schedule.of(threads=128, gemm={"C_l": {"instruction": "wgmma"}})
    left, right, old = given
    count, n = old.shape[0], old.shape[2]
    kernel = products.using(target="cuda", schedule=asked)(
        count, 64, n, form.k, form.a, form.b, form.c, turned=form.turned, fast=True, registers=form.registers
    )
    assert "wgmma.mma_async" in kernel.stage("ptx")
    new = torch.full_like(old, 77)
    left = left.transpose(1, 2).contiguous() if form.turned[0] else left
    right = right if form.turned[1] else right.transpose(1, 2).contiguous()
    kernel(left, right, old, new)
    torch.cuda.synchronize()
    return new


def record(file: str, count: int = 3) -> None:
    """Products of one instruction, as `record_mma` does those of a warp: operands once for each triple of
    dtypes (B as it is with k along its rows), and what each form gives for them."""
    out: dict[str, Any] = {"device": torch.cuda.get_device_name()}
    known: dict[str, tuple[torch.Tensor, ...]] = {}
    for name, form in FORMS.items():
        triple = "_".join(name.split("_")[:3])
        if triple not in known:
            rng = np.random.default_rng(len(known))
            n = 16 if form.c == "int32" else 8
            left, right = (numbers(rng, (count, e, form.k), d) for e, d in ((64, form.a), (n, form.b)))
            old = numbers(rng, (count, 64, n), form.c)
            if form.c != "int32":
                old[:, ::3] = 0
            known[triple] = left, right, old
            out |= {f"{triple}_{key}": bits(each) for key, each in zip("abc", known[triple], strict=True)}
        try:
            out[name] = bits(recorded(form, known[triple]))
        except TileError as error:
            print(f"{name}: refused: {error.message}", flush=True)
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
    if len(sys.argv) > 1:
        record(sys.argv[1])
    check_bits()
    times(start + 55)


if __name__ == "__main__":
    main()
