"""The CPU target through the whole system: kernels in the tile language against NumPy on the same cores.

GEMM against `numpy.matmul` (OpenBLAS), of small floats against our own float32; add, softmax, norms and
running sums against the bandwidth of a copy of the same array by NumPy, split over as many threads;
attention against torch where it is installed. Rounds are interleaved, what comes first alternates, and
before each turn 200 ms pass because OpenBLAS's workers spin on after a call: 60 ms after it a
2-thread kernel of ours still had to share a core (115 against 187 GFLOP/s at 1024^3). Printed are
the ratio of the medians, the ratio of the best times, and what compiling took.

    python -m tests.bench.bench_cpu [gemm small add rows attention launch compile] [--threads 1 2]
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import os
import statistics
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import ml_dtypes
import numpy as np

from tests.bench import attention
from tests.targets.cpu import kernels, row_kernels

GEMMS = [(1024, 1024, 1024), (1000, 1100, 1200)]
# Multiples of the register block (6 rows, 64 columns); accumulator and operands stay under 1.8 MB of a
# second-level cache of 2. In CPU time of one thread 0.96 to 1.0 of NumPy at 1024^3, 0.93 to 0.96
# at 1000 x 1100 x 1200.
BLOCKS = [(384, 512, 128), (336, 576, 128), (504, 576, 128)]


def duel(theirs: Callable[[], Any], ours: Callable[[], Any], rounds: int) -> tuple[list[float], list[float]]:
    """Times of both, interleaved, after two turns to warm up."""
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(-2, rounds):
        order = ((0, theirs), (1, ours)) if turn % 2 else ((1, ours), (0, theirs))
        for k, call in order:
            time.sleep(0.2)
            start = time.perf_counter()
            call()
            if turn >= 0:
                times[k].append(time.perf_counter() - start)
    return times


def report(what: str, times: tuple[list[float], list[float]], work: tuple[float, float], unit: str) -> None:
    """One line: rates (work per second, in giga) and ratios of ours to theirs."""
    theirs, ours = (statistics.median(each) for each in times)
    a, b = work[0] / theirs * 1e-9, work[1] / ours * 1e-9
    best = (work[1] / min(times[1])) / (work[0] / min(times[0]))
    print(
        f"{what:44} theirs {a:7.2f} ours {b:7.2f} {unit}  ratio of medians {b / a:.3f}, of best {best:.3f}",
        flush=True,
    )


def bench_gemm(rounds: int, threads: int) -> None:
    rng = np.random.default_rng(0)
    for m, n, k in GEMMS:
        a, b = rng.random((m, k), np.float32), rng.random((k, n), np.float32)
        c, d = np.empty((m, n), np.float32), np.empty((m, n), np.float32)
        for block in BLOCKS:
            kernel = kernels.gemm.using(target="cpu")(m, n, k, *block)
            work = (2.0 * m * n * k,) * 2
            times = duel(lambda: np.matmul(a, b, out=d), lambda kernel=kernel: kernel(a, b, c), rounds)
            assert np.abs(c - d).max() < 2e-6 * k
            report(f"gemm f32 {m}x{n}x{k} tile {block}, {threads} threads", times, work, "GFLOP/s")


def copy_with(threads: int, target: Any, source: Any) -> None:
    """`numpy.copyto`, the rows shared out over threads."""
    edges = np.linspace(0, len(source), threads + 1).astype(int)
    parts = [(target[a:b], source[a:b]) for a, b in itertools.pairwise(edges)]
    others = [threading.Thread(target=np.copyto, args=each) for each in parts[1:]]
    for each in others:
        each.start()
    np.copyto(*parts[0])
    for each in others:
        each.join()


def bench_add(rounds: int, threads: int) -> None:
    rng = np.random.default_rng(0)
    for dtype, columns in (("float32", 4096), ("float16", 8192)):
        a, b = (rng.random((8192, columns), np.float32).astype(dtype) for _ in range(2))
        c, d = np.empty_like(a), np.empty_like(a)
        kernel = kernels.add.using(target="cpu")(8192, columns, 16, columns, dtype)
        times = duel(lambda: copy_with(threads, d, a), lambda: kernel(a, b, c), rounds)
        report(
            f"add {dtype} 8192x{columns} against a copy, {threads} threads",
            times,
            (2 * a.nbytes, 3 * a.nbytes),
            "GB/s",
        )


def bench_rows(rounds: int, threads: int) -> None:
    rng = np.random.default_rng(0)
    m, n = 16384, 2048
    a, (w, b) = rng.random((m, n), np.float32), rng.random((2, n), np.float32)
    c, d, means = np.empty_like(a), np.empty_like(a), np.empty(m, np.float32)
    cases: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "softmax": (kernels.softmax, (a, c)),
        "RMS norm": (row_kernels.rms_norm, (a, w, c)),
        "layer norm": (row_kernels.layer_norm, (a, w, b, c, means)),
        "cumsum": (row_kernels.running_sum, (a, c)),
    }
    for name, (function, arrays) in cases.items():
        kernel = function.using(target="cpu")(m, n, 16)
        times = duel(
            lambda: copy_with(threads, d, a),
            lambda kernel=kernel, arrays=arrays: kernel(*arrays), rounds,
        )  # fmt: skip
        report(f"{name} f32 {m}x{n} against a copy, {threads} threads", times, (2 * a.nbytes,) * 2, "GB/s")


def bench_small(rounds: int, threads: int) -> None:
    """Small floats against float32, both ours."""
    rng = np.random.default_rng(0)
    m, n, k = GEMMS[0]
    wide = [rng.random((m, k), np.float32), rng.random((k, n), np.float32)]
    c = np.empty((m, n), np.float32)
    for block in (BLOCKS[0], (128, 128, 32)):
        base = kernels.gemm.using(target="cpu")(m, n, k, *block)
        for dtype in (np.float16, ml_dtypes.bfloat16):
            name, narrow = np.dtype(dtype).name, [each.astype(dtype) for each in wide]
            kernel = kernels.gemm.using(target="cpu")(m, n, k, *block, dtype=name)
            times = duel(
                lambda base=base: base(*wide, c),
                lambda kernel=kernel, narrow=narrow: kernel(*narrow, c), rounds,
            )  # fmt: skip
            work = (2.0 * m * n * k,) * 2
            report(f"gemm {name} tile {block} against float32, {threads} threads", times, work, "GFLOP/s")


def bench_attention(rounds: int, threads: int) -> None:
    """4 heads, 1024 queries and keys of 64, in float32."""
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError:
        print("attention: torch is not installed")
        return
    torch.set_num_threads(threads)
    theirs_of = torch.nn.functional.scaled_dot_product_attention
    q, k, v = np.random.default_rng(0).standard_normal((3, 4, 1024, 64)).astype(np.float32)
    out, given = np.empty_like(q), [torch.from_numpy(each)[None] for each in (q, k, v)]
    for causal in (False, True):
        kernel = attention.forward.using(target="cpu")(4, 1024, 64, 128, 128, causal)
        kernel(q, k, v, out)
        assert np.abs(out - theirs_of(*given, is_causal=causal)[0].numpy()).max() < 2e-6
        times = duel(
            lambda causal=causal: theirs_of(*given, is_causal=causal),
            lambda kernel=kernel: kernel(q, k, v, out), rounds,
        )  # fmt: skip
        work = (2.0 * 2 * 4 * 1024 * 1024 * 64,) * 2
        name = "causal attention" if causal else "attention"
        report(f"{name} f32, {threads} threads", times, work, "GFLOP/s")


def few_threads(threads: int) -> AbstractContextManager[Any]:
    """NumPy's products on so many threads, where threadpoolctl is there to say so."""
    try:
        return importlib.import_module("threadpoolctl").threadpool_limits(threads)
    except ImportError:
        return nullcontext()


def bench_launch(rounds: int, threads: int) -> None:
    a = np.ones((16, 16), np.float32)
    c = np.empty_like(a)
    kernel = kernels.add.using(target="cpu")(16, 16, 16, 16)
    kernel(a, a, c)
    spent: list[float] = []
    for _ in range(1000 * rounds):
        start = time.perf_counter()
        kernel(a, a, c)
        spent.append(time.perf_counter() - start)
    print(f"call of a 16x16 add: median {statistics.median(spent) * 1e6:.1f} us, {threads} threads")


def bench_compile(rounds: int, threads: int) -> None:
    spent: list[float] = []
    for turn in range(rounds + 1):
        kernel = kernels.gemm.using(target="cpu")(1030 + turn, 1024, 1024, 256, 512, 256)
        start = time.perf_counter()
        kernel.executable()
        spent.append(time.perf_counter() - start)
    stages = {name: f"{seconds * 1e3:.1f}" for name, seconds in kernel.compilation.seconds.items()}
    print(
        f"gemm, tile to loaded code: median {statistics.median(spent[1:]) * 1e3:.1f} ms; "
        f"the last one by stage {stages}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "what", nargs="*", default=["gemm", "small", "add", "rows", "attention", "launch", "compile"]
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    os.environ["TILEBENCH_CACHE"] = "0"
    for threads in given.threads:
        os.environ["TILEBENCH_CPU_THREADS"] = str(threads)
        with few_threads(threads):
            for each in given.what:
                globals()[f"bench_{each}"](given.rounds, threads)


if __name__ == "__main__":
    main()
