"""Attention by warp groups and copies in boxes on a card of 9.0, over tiles and schedules, beside cuDNN.

`python tests/device/check_attention.py [--compile N] [WORD ...]`. A row a variant: whether the result is that
of float64 in one head and cuDNN's in all, registers and spills by the compiler, our time and cuDNN's (CUDA
events, cold L2, medians of rounds in turn). `--compile` only compiles, in N processes, so that a later run
finds the code; words choose the variants whose names have them all (of `a,b` one). Exits non-zero when a row
is wrong.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.device.check_card import seconds
from tilebench.errors import TileError
from tilebench.library.kernels.attention import attention_kernel
from tilebench.schedule import Schedule

# Elements of q, and heads of a batch; the length says how many batches there are.
ROWS, H = 4 * 32 * 4096, 32
TILES = ("q_s", "k_s", "v_s")
GROUPS = {"gemm": {name: {"instruction": "wgmma"} for name in ("s", "acc")}}
BOXES = {"copy": {name: {"instruction": "tma"} for name in TILES}}
SCHEDULES: dict[str, dict[str, Any]] = {
    "mma": {},
    "wgmma": GROUPS,
    "boxes": {**GROUPS, **BOXES},
    "roles": {**GROUPS, **BOXES, "warp_specialize": True},
    "persistent": {**GROUPS, **BOXES, "warp_specialize": True, "persistent": True},
}
AHEAD = {"loop": {"kb": {"overlap": True}}}
SCHEDULES |= {
    f"heads{n}-{name}": {**SCHEDULES[name], **AHEAD, "order": n}
    for n in (8, 16, 32)
    for name in ("roles", "persistent")
}
SCHEDULES["pairs"] = {**SCHEDULES["roles"], **AHEAD, "min_blocks": 2}
SCHEDULES["pairs16"] = {**SCHEDULES["pairs"], "order": 16}
SCHEDULES |= {f"overlap-{name}": {**SCHEDULES[name], **AHEAD} for name in ("roles", "persistent")}
# Blocks beside each other have the same keys and values, where they see as many.
SCHEDULES |= {f"cluster{n}": {**SCHEDULES["overlap-roles"], "cluster": [n, 1]} for n in (2, 4)}
# The dimension, then block_M, block_N, stages and threads, and whether queries are held in registers.
WIDE = [
    (128, 128, 128, 2, 256), (128, 128, 128, 2, 256, True), (128, 128, 144, 2, 256), (128, 128, 160, 2, 256),
    (128, 128, 112, 3, 256, True), (128, 128, 144, 2, 256, True), (128, 192, 80, 3, 384),
]  # fmt: skip
NARROW = [
    (64, 128, 64, 2, 256), (64, 128, 64, 3, 256), (64, 128, 64, 4, 256), (64, 128, 48, 4, 256),
    (64, 192, 128, 2, 384), (64, 192, 128, 3, 384), (64, 192, 128, 4, 384), (64, 128, 128, 3, 256, True),
    (64, 192, 112, 3, 384), (64, 192, 112, 3, 384, True), (64, 128, 192, 3, 256), (64, 128, 256, 2, 256),
    (64, 256, 64, 4, 512), (64, 256, 64, 6, 512),
]  # fmt: skip


Variant = tuple[str, int, tuple[int, ...], str, bool]


def variants(words: list[str], length: int = 4096) -> list[Variant]:
    """(name, length, tile, schedule, causal)."""
    found: list[Variant] = []
    for tile in (*WIDE, *NARROW):
        for causal in (False, True):
            for schedule in SCHEDULES:
                shape = "x".join(map(str, tile[1:3]))
                kind = "causal" if causal else "plain"
                more = " held" if tile[5:] else ""
                name = f"d{tile[0]} {kind} {shape} ring{tile[3]} threads{tile[4]}{more} {schedule}"
                if all(set(word.split(",")) & set(name.split()) for word in words):
                    found.append((name, length, tile, schedule, causal))
    return found


def kernel_of(length: int, tile: tuple[int, ...], schedule: str, causal: bool) -> Any:
    using = attention_kernel.using(target="cuda:sm_90a", schedule=Schedule.of(**SCHEDULES[schedule]))
    sizes = (ROWS // H // length, H, H, length, length, tile[0])
    return using(*sizes, "float16", causal, 0, 0, 0, 0, *tile[1:])


def code(kernel: Any) -> str:
    there = kernel.resources
    return f"{there.registers} registers, {there.spill_store_bytes} B spilled"


def compiled(variant: Variant) -> str:
    name, *rest = variant
    try:
        return f"{name:60s} {code(kernel_of(*rest))}"
    except TileError as error:
        return f"{name:60s} refused: {error.message}"


class Rows:
    """The rows of one dimension, and what they are compared with."""

    def __init__(self, torch: Any, length: int, depth: int, flush: Any) -> None:
        self.torch, self.depth, self.flush = torch, depth, flush
        shape = (ROWS // H // length, H, length, depth)
        self.q, self.k, self.v = (torch.randn(shape, device="cuda").half() for _ in range(3))
        self.theirs: dict[bool, tuple[Any, float]] = {}

    def cudnn(self, causal: bool) -> Any:
        from torch.nn.attention import SDPBackend, sdpa_kernel

        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            attend = self.torch.nn.functional.scaled_dot_product_attention
            return attend(self.q, self.k, self.v, is_causal=causal)

    def error(self, out: Any, causal: bool) -> float:
        """The largest error of a head against float64, and of the others against cuDNN."""
        torch = self.torch
        q, k, v = (x[-1, 3].double() for x in (self.q, self.k, self.v))
        scores = q @ k.T * self.depth**-0.5
        if causal:
            scores = scores.masked_fill(~torch.ones_like(scores, dtype=torch.bool).tril(), -float("inf"))
        exact = torch.softmax(scores, 1) @ v
        own = (out[-1, 3].double() - exact).abs().max()
        other = (out.float() - self.theirs[causal][0].float()).abs().max() / 2
        return float(torch.maximum(own, other.double()).nan_to_num(float("inf")))

    def row(self, name: str, length: int, tile: tuple[int, ...], schedule: str, causal: bool) -> bool:
        if causal not in self.theirs:
            out = self.cudnn(causal)
            self.theirs[causal] = out, seconds(self.torch, lambda: self.cudnn(causal), self.flush)
        out = self.torch.full_like(self.q, float("nan"))
        try:
            kernel = kernel_of(length, tile, schedule, causal)
            kernel(self.q, self.k, self.v, out)
            self.torch.cuda.synchronize()
        except TileError as error:
            print(f"{name:60s} refused: {error.message}", flush=True)
            return True
        error = self.error(out, causal)
        ours = seconds(self.torch, lambda: kernel(self.q, self.k, self.v, out), self.flush)
        theirs = min(
            self.theirs[causal][1], seconds(self.torch, lambda: self.cudnn(causal), self.flush, count=5)
        )
        work = 4 * ROWS * length * self.depth / (2 if causal else 1)
        verdict = "ok" if error < 2e-3 else "WRONG"
        rates = f"{work / ours * 1e-12:6.1f} TFLOP/s, cuDNN {work / theirs * 1e-12:6.1f}, {theirs / ours:.3f}"
        print(
            f"{name:60s} {verdict:5s} {error:.1e}, {code(kernel)}, {ours * 1e6:7.1f} us {rates}", flush=True
        )
        return error < 2e-3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compile", type=int, default=0, metavar="N", help="only compile, in N processes")
    parser.add_argument("--length", type=int, default=4096, help="of queries and keys")
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    found = variants(options.words, options.length)
    if options.compile:
        with ProcessPoolExecutor(options.compile) as pool:
            for line in pool.map(compiled, found):
                print(line, flush=True)
        return 0
    import torch

    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    by_depth = {d: Rows(torch, options.length, d, flush) for d in {variant[2][0] for variant in found}}
    right = [by_depth[variant[2][0]].row(*variant) for variant in found]
    print(f"{sum(right)} of {len(right)} right or refused")
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
