"""Kernels that wait for memory, on a real card beside torch: `python tests/device/bench_streaming.py`.

A row a work and shape: the medians of our time, of torch's own operation and of `torch.compile`
(`--compile`), in rounds that take turns in one run (CUDA events, cold L2), with the bandwidth of each, the
ratio to the best of the others, and the registers of a thread. `--shapes 1001x1003,...` chooses shapes,
`--only WORD,...` works. Inputs are random, outputs poisoned, results held to float64. Exits non-zero when one
is wrong.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.device import streaming_kernels as kernels
from tests.kernels import add_kernel

SHAPES = ((16384, 8192), (16383, 8191), (1001, 1003), (1000, 1100))
EPS = 1e-5


@dataclass(frozen=True)
class Work:
    """A kernel with its `parameters` for a shape, torch's function, and how many arrays of it are moved.

    `arrays` names inputs (x, y of the shape, g, b of a row) and at the end the output: whole, turned, row or
    column.
    """

    name: str
    kernel: Any
    arrays: tuple[str, ...]
    native: Any
    moved: int
    choices: Any


def _blocks(*choices: tuple[int, int, int]) -> list[dict[str, int]]:
    return [{"block_M": m, "block_N": n, "threads": threads} for m, n, threads in choices]


def _elements(m: int, n: int) -> list[dict[str, int]]:
    if n > 2048:
        return _blocks((4, 1024, 256), (1, 2048, 256), (2, 1024, 256), (1, 2040, 256), (1, 1024, 128))
    return _blocks((1, 1024, 128), (4, 1024, 256), (2, 1024, 256), (1, 512, 64), (2, 512, 128))


def _rows(m: int, n: int) -> list[dict[str, int]]:
    """A block for some rows that it holds whole; the last number is how many are to run together."""
    if n <= 2048:
        sets = ((1, 128, 1), (1, 64, 1), (2, 128, 1), (4, 256, 1))
    elif n % 8:
        sets = ((1, 224, 4), (1, 352, 3), (1, 256, 1), (1, 128, 1))
    else:
        sets = ((1, 256, 4), (2, 256, 1), (1, 256, 1), (1, 128, 1))
    return [{"block_M": rows, "threads": threads, "blocks": blocks} for rows, threads, blocks in sets]


def _columns(m: int, n: int) -> list[dict[str, int]]:
    if n <= 2048:
        sets = ((16, 128, 16, 128), (16, 256, 8, 128), (32, 128, 8, 128))
    elif n % 8:
        sets = ((16, 256, 64, 256), (16, 512, 64, 256), (8, 2040, 64, 256))
    else:
        sets = ((32, 512, 32, 256), (16, 512, 64, 256))
    names = ("block_M", "block_N", "splits", "threads")
    return [dict(zip(names, each, strict=True)) for each in sets]


def _whole_columns(m: int, n: int) -> list[dict[str, int]]:
    if n <= 2048:
        return _blocks((256, 16, 512), (512, 16, 512))
    if n % 8:
        return _blocks((128, 32, 512), (256, 32, 512))
    return _blocks((256, 64, 1024), (512, 64, 1024), (128, 64, 512))


def _tiles(m: int, n: int) -> list[dict[str, int]]:
    if n % 8:
        return _blocks((128, 64, 256), (64, 64, 256), (64, 128, 256))
    return _blocks((128, 128, 256), (64, 64, 256), (128, 64, 256))


def _products(m: int, n: int) -> list[dict[str, int]]:
    if n <= 2048:
        return _blocks((1, 1024, 128), (2, 1024, 128), (4, 1024, 256))
    if n % 8:
        # With the shift of a row these are whole vectors for all threads.
        return _blocks((1, 8192, 256), (1, 2808, 352), (1, 2040, 256))
    return _blocks((1, 8192, 256), (2, 2048, 128))


WORKS = (
    Work("add", add_kernel, ("x", "y", "whole"), lambda t, x, y: x + y, 3, _elements),
    Work("gelu+bias", kernels.gelu_bias, ("x", "b", "whole"),
         lambda t, x, b: t.nn.functional.gelu(x + b), 2, _elements),
    Work("gelu power", kernels.gelu_bias_by_powers, ("x", "b", "whole"),
         lambda t, x, b: t.nn.functional.gelu(x + b), 2, _elements),
    Work("rms norm", kernels.rms_norm, ("x", "g", "whole"),
         lambda t, x, g: t.nn.functional.rms_norm(x, x.shape[1:], g, EPS), 2, _rows),
    Work("layer norm", kernels.layer_norm, ("x", "g", "b", "whole"),
         lambda t, x, g, b: t.nn.functional.layer_norm(x, x.shape[1:], g, b, EPS), 2, _rows),
    Work("softmax", kernels.softmax, ("x", "whole"), lambda t, x: t.softmax(x, -1), 2, _rows),
    Work("row sum", kernels.row_sum, ("x", "row"), lambda t, x: x.sum(1), 1, _rows),
    Work("column sum", kernels.column_sum, ("x", "column"), lambda t, x: x.sum(0), 1, _columns),
    Work("col once", kernels.column_sum_at_once, ("x", "column"), lambda t, x: x.sum(0), 1, _whole_columns),
    Work("transpose", kernels.transpose, ("x", "turned"), lambda t, x: x.T.contiguous(), 2, _tiles),
    Work("gemv", kernels.gemv, ("x", "g", "row"), lambda t, x, g: x @ g, 1, _products),
)  # fmt: skip


def arrays_of(torch: Any, m: int, n: int) -> dict[str, Any]:
    torch.manual_seed(7)
    half = {"device": "cuda", "dtype": torch.float16}
    shapes = {"x": (m, n), "y": (m, n), "g": (n,), "b": (n,)}
    out = {"whole": (m, n), "turned": (n, m), "row": (m,), "column": (n,)}
    return {name: torch.randn(shape, **half) for name, shape in shapes.items()} | {
        name: torch.full(shape, float("nan"), **half) for name, shape in out.items()
    }


def medians(torch: Any, runs: list[Any], rounds: int) -> list[float]:
    """The median microseconds of each, taking turns, each with a cold L2."""
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    events: list[list[tuple[Any, Any]]] = [[] for _ in runs]
    for _ in range(rounds):
        for k, run in enumerate(runs):
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            flush.zero_()
            first.record()
            run()
            last.record()
            events[k].append((first, last))
    torch.cuda.synchronize()
    return [1e3 * statistics.median(a.elapsed_time(b) for a, b in pairs) for pairs in events]


def is_right(torch: Any, work: Work, inputs: list[Any], got: Any) -> bool:
    """Whether an output is near that of float64."""
    want = work.native(torch, *(array.double() for array in inputs))
    size = inputs[0].shape[1] if work.arrays[-1] == "row" else inputs[0].shape[0]
    slack = 2**-10 * size**0.5 if work.moved == 1 else 2e-3
    return bool(((got.double() - want).abs() <= 4e-3 * want.abs() + slack).all())


def bench(torch: Any, work: Work, arrays: dict[str, Any], args: Any) -> bool:
    """The rows of a work; whether all results are right."""
    m, n = arrays["x"].shape
    used = [arrays[name] for name in work.arrays]
    inputs, output = used[:-1], used[-1]
    choices = work.choices(m, n)[: None if args.sweep else 1]
    kernels_of = [work.kernel.using(target="cuda")(M=m, N=n, **choice) for choice in choices]
    with ThreadPoolExecutor(8) as pool:
        # Their compilation takes longer than they do.
        list(pool.map(lambda kernel: kernel.record(()), kernels_of))
    right: list[bool] = []
    for kernel in kernels_of:
        output.fill_(float("nan"))
        kernel(*used)
        right.append(is_right(torch, work, inputs, output))
    peers = [lambda: work.native(torch, *inputs)]
    if args.compile:
        torch._dynamo.reset()
        inner = torch.compile(lambda *a: work.native(torch, *a), dynamic=False)
        inner(*inputs)
        peers.append(lambda: inner(*inputs))
    times = medians(torch, [*[partial(kernel, *used) for kernel in kernels_of], *peers], args.rounds)
    size = work.moved * m * n * 2
    others = times[len(choices) :]
    for choice, kernel, time, good in zip(choices, kernels_of, times, right, strict=False):
        shown = " ".join(f"{t:7.1f} {size / t * 1e-3:5.0f}" for t in (time, *others))
        registers = kernel.record(()).resources.registers
        named = ",".join(map(str, choice.values()))
        verdict = "ok" if good else "WRONG"
        ratio = min(others) / time
        print(f"{work.name:10} {m}x{n} {verdict} {shown} {ratio:5.2f} {registers:3} {named}", flush=True)
    return all(right)


def main() -> int:
    import torch

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument(
        "--sweep", action="store_true", help="all blocks that a work names, not the first alone"
    )
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--shapes", default=",".join(f"{m}x{n}" for m, n in SHAPES))
    args = parser.parse_args()
    chosen = [work for work in WORKS if any(word in work.name for word in args.only.split(","))]
    peers = "torch, compiled" if args.compile else "torch"
    print(f"{torch.cuda.get_device_name()}; us and GB/s: ours, {peers}; ratio, registers")
    right = True
    for shape in args.shapes.split(","):
        m, n = map(int, shape.split("x"))
        arrays = arrays_of(torch, m, n)
        copied = arrays["whole"]
        (time,) = medians(torch, [lambda c=copied, x=arrays["x"]: c.copy_(x)], args.rounds)
        print(f"copy        {m}x{n:5}       {time:8.1f} {4 * m * n / time * 1e-3:6.0f}")
        for work in chosen:
            right &= bench(torch, work, arrays, args)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
