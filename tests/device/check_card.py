"""The four kernels on a real card against torch, all dtypes, odd sizes: `python tests/device/check_card.py`.

Prints a row a case: the largest error against a float64 computation on the device, torch's own
error, our time and torch's (CUDA events, cold L2, medians). Exits non-zero when a case is wrong.
Inputs are random and outputs poisoned. `--compile-only SM` compiles every case without a card.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.kernels import add_kernel, gemm_kernel, gemm_regions, reduce_kernel, softmax_kernel

EPS = {"float16": 2**-11, "bfloat16": 2**-8, "float32": 2**-24, "int32": 0.0, "float64": 2**-53}


def cases() -> list[tuple[str, Any, dict[str, Any], tuple[int, ...]]]:
    """(name, kernel function, parameters, shape)."""
    out: list[tuple[str, Any, dict[str, Any], tuple[int, ...]]] = []
    for dtype in ("float16", "bfloat16", "float32", "int32"):
        accum = "int32" if dtype == "int32" else "float32"
        for m, n in ((4096, 4096), (1000, 1100), (1001, 1003), (7, 5)):
            out.append(("add", add_kernel, {"dtype": dtype}, (m, n)))
        for m, n, k in ((1024, 1024, 1024), (1000, 1100, 1200), (1001, 517, 333), (17, 9, 5)):
            shape = (m, n, k)
            out.append(("gemm", gemm_kernel, {"dtype": dtype, "accum": accum}, shape))
        for options in ({"block_M": 64, "block_N": 96, "block_K": 16, "num_stages": 3, "threads": 128},):
            out.append(("gemm", gemm_kernel, {"dtype": dtype, "accum": accum, **options}, (1000, 1100, 1200)))
        out.append(("gemm regions", gemm_regions, {"dtype": dtype, "accum": accum}, (1000, 1100, 1200)))
        for m, n in ((4096, 4096), (1000, 1100), (1001, 1003), (3, 5)):
            out.append(("row sum", reduce_kernel, {"dtype": dtype, "accum": accum}, (m, n)))
            out.append(("row max", reduce_kernel, {"dtype": dtype, "accum": accum, "kind": "max"}, (m, n)))
        if dtype != "int32":
            for m, n in ((4096, 2048), (1000, 1100), (1001, 1003), (5, 48)):
                out.append(("softmax", softmax_kernel, {"dtype": dtype}, (m, n)))
    return out


def exact(name: str, torch: Any, inputs: list[Any]) -> Any:
    """The result in float64 (int64 for integers)."""
    wide = [x.double() if x.is_floating_point() else x.long() for x in inputs]
    if name == "add":
        return wide[0] + wide[1]
    if name.startswith("gemm"):
        product = inputs[0].double() @ inputs[1].double()
        return product if wide[0].is_floating_point() else product.long()
    if name == "row sum":
        return wide[0].sum(1)
    return wide[0].amax(1) if name == "row max" else torch.softmax(wide[0], 1)


def native(name: str, torch: Any, inputs: list[Any]) -> Any:
    """torch's own computation in the dtype, or None where torch has none on the device."""
    if name == "add":
        return lambda: inputs[0] + inputs[1]
    if name.startswith("gemm"):
        return (lambda: inputs[0] @ inputs[1]) if inputs[0].is_floating_point() else None
    if name == "row sum":
        return lambda: inputs[0].sum(1, dtype=inputs[0].dtype)
    return (lambda: inputs[0].amax(1)) if name == "row max" else (lambda: torch.softmax(inputs[0], 1))


def allowed(name: str, torch: Any, inputs: list[Any], want: Any, dtype: str) -> Any:
    """Error bound of each element: accumulation in float32, then one rounding to the dtype."""
    if dtype == "int32":
        return torch.zeros_like(want, dtype=torch.float64)
    out_eps, acc = EPS[dtype], 2.0**-24
    tiny = {"float16": 2.0**-25, "bfloat16": 2.0**-134, "float32": 2.0**-150}[dtype]
    if name.startswith("gemm"):
        k = inputs[0].shape[1]
        inner = k * acc * (inputs[0].double().abs() @ inputs[1].double().abs())
    elif name == "row sum":
        inner = inputs[0].shape[1] * acc * inputs[0].double().abs().sum(1)
    elif name == "softmax":
        inner = want * (inputs[0].shape[1] + 16) * acc
    else:
        inner = torch.zeros_like(want)
    return (inner + out_eps * (want.abs() + inner)) * 1.0000001 + tiny


def seconds(torch: Any, run: Any, flush: Any, count: int = 15) -> float:
    """Median device time of one launch with a cold L2."""
    samples: list[float] = []
    for _ in range(3):
        run()
    for _ in range(count):
        flush.zero_()
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        stop.record()
        stop.synchronize()
        samples.append(start.elapsed_time(stop) * 1e-3)
    return statistics.median(samples)


def run_case(torch: Any, case: tuple[str, Any, dict[str, Any], tuple[int, ...]], flush: Any) -> bool:
    """One row; whether it is right."""
    name, function, options, shape = case
    dtype = options["dtype"]
    kind = getattr(torch, dtype)
    m, n = shape[0], shape[1]
    shapes = [(m, n)] * (2 if name == "add" else 1)
    if name.startswith("gemm"):
        shapes = [(m, shape[2]), (shape[2], n)]
    if dtype == "int32":
        inputs = [torch.randint(-1000, 1000, s, device="cuda", dtype=kind) for s in shapes]
    else:
        inputs = [(torch.rand(s, device="cuda") * 2 - 1).to(kind) for s in shapes]
    out_shape = (m,) if name.startswith("row") else (m, n)
    out = torch.full(out_shape, float("nan") if dtype != "int32" else -2147483648, device="cuda", dtype=kind)
    kernel = function.using(target="cuda")(*shape, **options)
    kernel(*inputs, out)
    torch.cuda.synchronize()
    want = exact(name, torch, inputs)
    error = (out.double() - want.double()).abs()
    bound = allowed(name, torch, inputs, want.double(), dtype)
    wrong = int((~(error <= bound)).sum())
    theirs = native(name, torch, inputs)
    torch_error = float((theirs().double() - want.double()).abs().max()) if theirs else float("nan")
    ours = seconds(torch, lambda: kernel(*inputs, out), flush)
    other = seconds(torch, theirs, flush) if theirs else float("nan")
    held = kernel.resources
    verdict = "ok" if not wrong else f"WRONG {wrong}"
    there = float(bound.flatten()[error.argmax()])
    print(
        f"{name:13s} {dtype:9s} {'x'.join(map(str, shape)):16s} {verdict:4s} err {float(error.max()):.3g} "
        f"(bound {there:.3g}, torch {torch_error:.3g}) {ours * 1e6:8.1f} us, torch {other * 1e6:8.1f} us, "
        f"{held.registers} registers, {held.spill_store_bytes} spilled, {held.shared_bytes} shared",
        flush=True,
    )
    return not wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compile-only", metavar="SM")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    chosen = [each for each in cases() if args.only in each[0]]
    if args.compile_only:
        for name, function, options, shape in chosen:
            start = time.perf_counter()
            kernel = function.using(target=f"cuda:{args.compile_only}")(*shape, **options)
            held = kernel.resources
            took = (time.perf_counter() - start) * 1e3
            spilled = held.spill_store_bytes
            what = f"{name} {options['dtype']} {shape}"
            print(f"{what}: {held.registers} registers, {spilled} spilled, {took:.0f} ms")
        return 0
    import torch

    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    torch.backends.cuda.matmul.allow_tf32 = False
    right = [run_case(torch, each, flush) for each in chosen]
    print(f"{sum(right)} of {len(right)} right")
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
