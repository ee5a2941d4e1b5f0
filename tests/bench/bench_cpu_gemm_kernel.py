"""A tile program's GEMM, hand-built from the CPU emitters, against NumPy on the same cores.

The structure is that of a kernel with copies to shared memory: per block, C_l is cleared; over K in
steps of block_K the tiles of A and B are copied to scratch (B into panels) and multiplied; C_l is
copied out. Rounds are interleaved; printed are the median of the ratios within a round, the ratio
of the best times, and what the compiler took.

    python tests/bench/bench_cpu_gemm_kernel.py [--threads 1 2] [--blocks 512x512x128 ...] [--rounds 15]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import threadpoolctl

from tilebench.targets.cpu.llvm import Function, Module, Value, const, vector
from tilebench.targets.cpu.machine import host_isa
from tilebench.targets.cpu.microkernel.gemm import (
    Block,
    PrefetchedRegion,
    TileOperand,
    emit_gemm,
    emit_pack,
    padded_rows,
    register_block,
    row_stride,
)
from tilebench.targets.cpu.run.jit import compile_text
from tilebench.targets.cpu.run.pool import Launcher

# A fill(0) right before the loop can become "the first step writes instead of adding".
FIRST_WRITES = True
PREFETCH = False  # no gain here, see `PrefetchedRegion`
SHAPES = [(1024, 1024, 1024), (1000, 1100, 1200)]
F32 = "float32"


@dataclass(frozen=True)
class Tile:
    m: int
    n: int
    k: int
    register: Block

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}, registers {self.register.rows}x{self.register.vectors}"


def build(shape: tuple[int, int, int], tile: Tile) -> tuple[Module, int, int]:
    """The module with `gemm`, its scratch bytes and its grid."""
    m, n, k = shape
    module = Module(host_isa())
    isa = module.isa
    f = module.function(
        "gemm", [("args", "ptr"), ("cancel", "ptr"), ("begin", "i64"), ("end", "i64"), ("scratch", "ptr")]
    )
    args, _, begin, end, scratch = f.arguments
    a, b, c = (f.load(f.at(args, at, "i64"), "ptr") for at in range(3))
    width = tile.register.vectors * isa.lanes(4)
    panels, lda = -(-tile.n // width), row_stride(isa, tile.k, 4)
    ldc = row_stride(isa, panels * width, 4)
    a_s = TileOperand(scratch, F32, lda, padded=True)
    used = padded_rows(tile.m) * lda
    b_s = TileOperand(
        f.at(scratch, used, "float"), F32, width, panel=width, panel_stride=width * tile.k, padded=True
    )
    used += panels * width * tile.k
    c_s = TileOperand(f.at(scratch, used, "float"), F32, ldc, padded=True)
    used += padded_rows(tile.m) * ldc
    across = -(-n // tile.n)
    with f.loop(begin, end) as block:
        by = f.binary("sdiv", block.index, across)
        row, column = f.mul(by, tile.m), f.mul(f.sub(block.index, f.mul(by, across)), tile.n)
        rows, columns = f.imin(f.sub(m, row), tile.m), f.imin(f.sub(n, column), tile.n)
        if not FIRST_WRITES:
            clear(f, c_s, rows, panels * width)
        with f.loop(0, k, tile.k) as step:
            depth = f.imin(f.sub(k, step.index), tile.k)
            a_g, b_g, c_g = (TileOperand(p, F32, each) for p, each in ((a, k), (b, n), (c, n)))
            emit_pack(f, corner(f, a_g, row, step.index), a_s, rows, depth)
            emit_pack(f, corner(f, b_g, step.index, column), b_s, depth, columns)
            following = f.add(step.index, tile.k)
            near = [
                PrefetchedRegion(a_g.at(f, row, following), k * 4, tile.m, tile.k * 4, k % 16 == 0),
                PrefetchedRegion(b_g.at(f, following, column), n * 4, tile.k, tile.n * 4, n % 16 == 0),
            ]
            most = (tile.m, tile.n)
            emit_gemm(
                f,
                a_s,
                b_s,
                c_s,
                rows,
                columns,
                depth,
                block=tile.register,
                prefetch=near if PREFETCH else (),
                accumulate=f.compare("ne", step.index, 0) if FIRST_WRITES else True,
                most=most,
            )
        emit_pack(f, c_s, corner(f, c_g, row, column), rows, columns, zero_rest=False)
    f.ret()
    return module, used * 4, across * -(-m // tile.m)


def corner(f: Function, matrix: TileOperand, row: Value, column: Value) -> TileOperand:
    return TileOperand(matrix.at(f, row, column), matrix.dtype, matrix.row)


def clear(f: Function, tile: TileOperand, rows: Value, columns: int) -> None:
    lanes = f.isa.lanes(4)
    with f.loop(0, rows) as r, f.loop(0, columns, lanes) as j:
        f.store(const(0, vector("float", lanes)), tile.at(f, r.index, j.index))


def compiled(
    shape: tuple[int, int, int], tile: Tile, arguments: Any, threads: int
) -> tuple[Callable[[], None], float]:
    start = time.perf_counter()
    module, size, grid = build(shape, tile)
    made = compile_text(module.text(), ("gemm",))
    spent = time.perf_counter() - start
    run = Launcher(made.address("gemm"), size, endless=True, keep=made)
    return lambda: run(arguments.ctypes.data, grid, threads=threads), spent


def measure(shape: tuple[int, int, int], tiles: list[Tile], threads: int, rounds: int) -> None:
    m, n, k = shape
    rng = np.random.default_rng(0)
    a, b = rng.random((m, k), np.float32), rng.random((k, n), np.float32)
    c, theirs = np.empty((m, n), np.float32), np.empty((m, n), np.float32)
    arguments = np.array([each.ctypes.data for each in (a, b, c)], np.int64)
    candidates: list[Callable[[], Any]] = [lambda: np.matmul(a, b, out=theirs)]
    compile_seconds = [0.0]
    np.matmul(a, b, out=theirs)
    for tile in tiles:
        call, spent = compiled(shape, tile, arguments, threads)
        c.fill(np.nan)
        call()
        assert np.abs(c - theirs).max() < 2e-6 * k, tile
        candidates.append(call)
        compile_seconds.append(spent)
    times: list[list[float]] = [[] for _ in candidates]
    for _ in range(rounds):
        for call, kept in zip(candidates, times, strict=True):
            # OpenBLAS's workers spin for some 30 ms after a call and would hold a core of ours.
            time.sleep(0.06)
            call()
            start = time.perf_counter()
            call()
            kept.append(time.perf_counter() - start)
    work = 2e-9 * m * n * k
    print(
        f"{m}x{n}x{k}, {threads} threads: NumPy {work / statistics.median(times[0]):.0f} GFLOP/s "
        f"(best {work / min(times[0]):.0f})"
    )
    for tile, kept, spent in zip(tiles, times[1:], compile_seconds[1:], strict=True):
        ratio = statistics.median(x / y for x, y in zip(times[0], kept, strict=True))
        print(
            f"  {tile!s:36} {work / statistics.median(kept):6.0f} GFLOP/s  of NumPy: median {ratio:.3f}, "
            f"best {min(times[0]) / min(kept):.3f}  compile {spent * 1e3:.0f} ms"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--blocks", nargs="+", default=["256x576x128", "384x576x128"])
    parser.add_argument("--registers", nargs="+", default=[])
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    own = register_block(host_isa())
    registers = [Block(*map(int, each.split("x"))) for each in given.registers] or [own]
    tiles = [Tile(*map(int, each.split("x")), register) for each in given.blocks for register in registers]
    for each in threadpoolctl.threadpool_info():
        print({key: each.get(key) for key in ("internal_api", "version", "architecture", "num_threads")})
    for threads in given.threads:
        with threadpoolctl.threadpool_limits(threads):
            for shape in SHAPES:
                measure(shape, tiles, threads, given.rounds)


if __name__ == "__main__":
    main()
