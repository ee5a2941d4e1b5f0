"""Records for the tests of the views: one GEMM as it reads on every stage, and runs around it.

The texts in `data/` follow the shape of the real stages; the CUDA text is complete, and its PTX and
SASS were made from it with NVRTC and nvdisasm 13.5 for sm_80 (220 registers, no spills).
"""

from __future__ import annotations

import re
from pathlib import Path

from tilebench.record import (
    Choice,
    CompileRecord,
    Diagnostic,
    ParamRecord,
    PlaceRecord,
    Remark,
    Resources,
    RunRecord,
    StageRecord,
)

DATA = Path(__file__).parent / "data"
FILE = "<cell 4>"
FIRST = 2
STAGES = (
    ("source", "python", 0.0), ("tile", "tile-ir", 0.0021), ("scheduled", "tile-ir", 0.0006),
    ("bounded", "tile-ir", 0.0012), ("laid_out", "tile-ir", 0.0046), ("pipelined", "tile-ir", 0.0018),
    ("threaded", "tile-ir", 0.0039), ("cuda", "cuda", 0.0024), ("ptx", "ptx", 0.031),
    ("sass", "nvsass", 0.24),
)  # fmt: skip
CONFIG = {"M": 1000, "N": 1100, "K": 1200, "block_M": 128, "block_N": 128, "block_K": 32, "num_stages": 3}

# Which line of the cell each word of a lowered line goes back to, first match wins.
_ORIGINS = (
    (r"\bC\.at|\bC\[|to_half|T\.cast|row < 1000 [&a]|int32 = (by|bx)|int (row|col) = b", 15),
    (r"ldmatrix|mma|T\.gemm|unsigned a\[", 14),
    (r"\bB_s = |\(B_s, 0", 8), (r"\bA_s = ", 7),
    (r"24576|\bB\[|B_s|\bB \+|/ 16;|// 16\b", 13), (r"\bA\[|A_s|\bA \+|/ 4;|// 4\b", 12),
    (r"\bko\b|wait|barrier|commit|sync", 11), (r"fill|= T\.float32\(0\)|= 0\.0f|clear", 10),
    (r"C_l = |\bc = |float c\[", 9), (r"Kernel|blockIdx|threadIdx|lane|warp", 6),
)  # fmt: skip


def _origin(line: str) -> tuple[int, ...]:
    return next(((at,) for pattern, at in _ORIGINS if re.search(pattern, line)), ())


def _lines(name: str, text: str) -> tuple[tuple[int, ...], ...]:
    lines = text.splitlines()
    if name == "source":
        return tuple((FIRST + at,) for at in range(len(lines)))
    if name == "ptx":
        cuda, now, out = _lines("cuda", text_of("cuda")), (), []
        for line in lines:
            loc = re.match(r"\s*\.loc\s+\d+ (\d+)", line)
            now = cuda[int(loc[1]) - 2] if loc and 2 <= int(loc[1]) < len(cuda) + 2 else now
            out.append(now)
        return tuple(out)
    if name == "sass":
        cuda, now, out = _lines("cuda", text_of("cuda")), (), []
        for line in lines:
            at = re.search(r"line (\d+)$", line)
            now = cuda[int(at[1]) - 2] if at and 2 <= int(at[1]) < len(cuda) + 2 else now
            out.append(now)
        return tuple(out)
    return tuple(_origin(line) for line in lines)


def text_of(name: str) -> str:
    return (DATA / f"gemm.{name}").read_text("utf-8")


def stage(name: str, language: str, seconds: float) -> StageRecord:
    text = text_of(name)
    return StageRecord(name, language, text, _lines(name, text), (), seconds)


def place(line: int, column: int, end: int) -> PlaceRecord:
    return PlaceRecord(FILE, line, column, line, end)


def gemm_record() -> CompileRecord:
    """A GEMM of 1000x1100x1200 for sm_80, whole."""
    half = "float16"
    return CompileRecord(
        kernel="matmul",
        target="cuda:sm_80",
        parameters=CONFIG,
        arguments=(
            ParamRecord("A", (1000, 1200), half), ParamRecord("B", (1200, 1100), half),
            ParamRecord("C", (1000, 1100), half, written=True, read=False),
        ),
        stages=tuple(stage(*each) for each in STAGES),
        grid=(9, 8),
        resources=Resources(
            threads=128, registers=220, shared_bytes=49152, local_bytes=0, spill_store_bytes=0,
            spill_load_bytes=0,
            barriers=1, blocks_per_sm=2, occupancy=0.125, limited_by="registers",
            limits={"registers": 2, "shared": 3, "threads": 16, "blocks": 32},
        ),
        choices=(
            Choice("", "threads", "128", "kernel", "threads=128 in the kernel, line 6"),
            Choice("", "order", "panels(8)", "rule", "gemm.toml rule 2: M > 512"),
            Choice("ko", "num_stages", "3", "call", "num_stages=3 in this call"),
            Choice("A_s", "swizzle", "(2, 4, 3)", "default", "the widest that divides 64-byte rows"),
            Choice("B_s", "swizzle", "(3, 4, 3)", "default", "the widest that divides 256-byte rows"),
            Choice("C_l", "instruction", "mma.m16n8k16.f32.f16", "default", "cheapest legal row"),
            Choice("C_l", "policy", "square", "default", "4 warps as 2 x 2: least shared-memory reading"),
        ),
        remarks=(
            Remark("bound", "applied", "the copy of B is masked: 1100 is no multiple of block_N = 128",
                   place(13, 16, 58), {"rows": 1200, "columns": 1100}),
            Remark("layout", "applied", "no bank conflicts in ldmatrix of A_s", place(14, 16, 37),
                   {"ways": 1, "without_swizzle": 4}),
            Remark("vectorise", "missed", "the store of C_l writes 2 elements at a time: rows of C are 2200 "
                   "bytes, which 16 does not divide", place(15, 12, 54), {"bytes": 4, "possible": 16}),
            Remark("pipeline", "note", "3 versions of A_s and B_s take 48 KB", place(11, 12, 80),
                   {"bytes": 49152}),
        ),
        diagnostics=(
            Diagnostic("warning", "K = 1200 leaves half a tile: 1.3 % of the multiplications are with zeros",
                       place(11, 22, 79),
                       "for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):"),
        ),
        source_file=FILE,
        source_first_line=FIRST,
        seconds=0.052,
        flops=2.0 * 1000 * 1100 * 1200,
        bytes=2.0 * (1000 * 1200 + 1200 * 1100 + 1000 * 1100),
        versions={"tilebench": "0.1.0", "nvrtc": "13.5.37"},
    )  # fmt: skip


def samples(median: float, spread: float = 0.02, count: int = 101) -> tuple[float, ...]:
    """Times around a median, skewed to the slow side as times are; the same in every run."""
    steps = [(at * 37 % count) / (count - 1) - 0.5 for at in range(count)]
    return tuple(median * (1 + spread * (2 * s if s < 0 else 4 * s * s + s)) for s in steps)


METHOD = (
    "median of 101 launches in 5 interleaved rounds, cold L2 (100 MB flushed), CUDA graph, "
    "SM clock 1755-1770 MHz"
)
ENVIRONMENT = {"device": "NVIDIA H200", "driver": "580.95"}


def gemm_run(median: float, failure: str = "", **config: int) -> RunRecord:
    flops = 2.0 * 8192**3
    return RunRecord(
        kernel="matmul", target="cuda:sm_90a", config={**CONFIG, "M": 8192, "N": 8192, "K": 8192, **config},
        samples=() if failure else samples(median), method=METHOD, environment=ENVIRONMENT, flops=flops,
        bytes=3 * 2.0 * 8192**2, error=0.0156, bound=0.031, failure=failure, when="2026-11-29T14:02:11",
    )  # fmt: skip


def gemm_runs() -> list[RunRecord]:
    """A history of seven slider moves; the fourth fails, the last is too fast to be true."""
    return [
        gemm_run(2.61e-3, block_M=64, block_N=64, num_stages=2),
        gemm_run(2.22e-3, block_M=128, block_N=64, num_stages=2),
        gemm_run(1.84e-3, block_M=128, block_N=128, num_stages=2),
        gemm_run(0, "block_M = 256 with num_stages = 4 takes 262144 bytes of shared memory; 232448 are there",
                 block_M=256, block_N=256, num_stages=4),
        gemm_run(1.62e-3, block_M=128, block_N=128, num_stages=3),
        gemm_run(1.66e-3, block_M=128, block_N=256, num_stages=3),
        gemm_run(1.19e-3, block_M=128, block_N=256, num_stages=4),
    ]  # fmt: skip
