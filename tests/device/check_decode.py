"""Decoding on a card: right beside float64, and how much of the rate of a copy its keys and values are read
at.

`python tests/device/check_decode.py [check|time|library] [--compile]`. `check` compares the library's calls
(plain, of given lengths with NaN behind them, in pages); `time` tries the kernel's parameters at several
batches and contexts. Exits non-zero when something is wrong.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.device.check_card import seconds
from tilebench.errors import TileError
from tilebench.library.decoding import DECODE, decode, exact_decode, parts_of
from tilebench.library.kernels.decode import decode_join_kernel, decode_kernel
from tilebench.library.near import allowed
from tilebench.schedule import Schedule

H, KV, D = 32, 8, 128
BOXES = {"copy": {name: {"instruction": "tma"} for name in ("k_s", "v_s")}}
WAYS = {"cp.async": {}, "tma": BOXES, "roles": {**BOXES, "warp_specialize": True}}
# Keys of a block, stages, threads.
TILES = [
    (32, 3, 128), (32, 4, 128), (64, 2, 128), (64, 3, 128), (64, 4, 128), (128, 2, 128), (128, 3, 128),
    (64, 3, 64), (128, 2, 256), (64, 5, 128),
]  # fmt: skip
SHAPES = [(1, 8192), (1, 131072), (16, 8192), (64, 8192), (8, 131072)]


def check(torch: Any) -> bool:
    good = True
    rows = [
        (2, 8, 2, 200, 64, "float16", False, 0), (3, 8, 2, 1000, 128, "float16", True, 0),
        (2, 4, 4, 500, 64, "float32", True, 0), (3, 32, 8, 3000, 128, "bfloat16", True, 16),
        (2, 32, 8, 3000, 128, "float16", True, 64), (2, 16, 1, 5000, 128, "float16", True, 256),
        (1, 32, 8, 8192, 128, "float16", False, 0), (2, 40, 1, 300, 96, "float16", True, 16),
    ]  # fmt: skip
    for row in rows:
        b, h, kv, s, d, dtype, some, page = row
        kind = getattr(torch, dtype)
        q = torch.randn(b, h, d, device="cuda").to(kind)
        k, v = (torch.randn(b, kv, s, d, device="cuda").to(kind) for _ in range(2))
        lengths = torch.randint(0, s + 1, (b,), device="cuda", dtype=torch.int32)
        if not some:
            lengths[:] = s
        arrays = {name: x.double() for name, x in (("q", q), ("k", k), ("v", v))} | {"lengths": lengths}
        with torch.device("cuda"):
            exact = exact_decode(torch, arrays, DECODE.problem(dtype, B=b, H=h, KV=kv, S=s, D=d))
        for n in range(b):
            k[n, :, lengths[n] :] = float("nan")
            v[n, :, lengths[n] :] = float("nan")
        if page:
            most = -(-s // page)
            table = torch.randperm(b * most + 5, device="cuda")[: b * most].reshape(b, most).int()
            pages = [
                torch.full((b * most + 5, page, kv, d), float("nan"), device="cuda", dtype=kind) for _ in "kv"
            ]
            for to, x in zip(pages, (k, v), strict=True):
                whole = torch.full((b, most * page, kv, d), float("nan"), device="cuda", dtype=kind)
                whole[:, :s] = x.transpose(1, 2)
                to[table.long().reshape(-1)] = whole.reshape(b * most, page, kv, d)
            got = decode(q, *pages, lengths, table)
        else:
            got = decode(q, k, v, lengths if some else None)
        part = float(
            ((got.double() - exact.value).abs() / allowed(exact, dtype)).nan_to_num(float("inf")).max()
        )
        good &= part <= 1
        print(row, f"{part:.3f} of the bound", "ok" if part <= 1 else "WRONG", flush=True)
    return good


def variant(what: tuple[tuple[int, ...], str, int]) -> Any:
    (block_N, stages, threads), way, page = what
    function = decode_kernel.using(target="cuda", schedule=Schedule.of(**WAYS[way]))
    try:
        made = function(
            None, H, KV, None, D, "float16", 0, 0, page, True, False, 16, block_N, stages, threads
        )
        _ = made.resources
    except TileError as error:
        return error.message
    return made


def build(pool: ThreadPoolExecutor) -> dict[Any, Any]:
    todo = [(tile, way, 0) for tile in TILES for way in WAYS]
    todo += [((64, 3, 128), "cp.async", 16), ((64, 3, 128), "tma", 64), ((64, 3, 128), "cp.async", 64)]
    joins = {
        most: decode_join_kernel.using(target="cuda")(None, H, D, "float16", most, 128)
        for most in (4, 16, 64)
    }
    return {**dict(zip(todo, pool.map(variant, todo), strict=True)), **joins}


def time(torch: Any, pool: ThreadPoolExecutor) -> bool:
    kernels, flush = build(pool), torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    big = torch.empty(1 << 30, dtype=torch.int8, device="cuda")
    to = torch.empty_like(big)
    copy = 2 * big.numel() / seconds(torch, lambda: to.copy_(big), flush)
    print(f"copy {copy * 1e-9:.0f} GB/s", flush=True)
    for b, s in SHAPES:
        q, (k, v) = (
            torch.randn(b, H, D, device="cuda").half(),
            (torch.randn(1, KV, s, D, device="cuda").half().repeat(b, 1, 1, 1) for _ in "kv"),
        )
        lengths = torch.full((b,), s, device="cuda", dtype=torch.int32)
        moved = 2 * k.numel() * 2
        for (tile, way, page), kernel in [x for x in kernels.items() if isinstance(x[0], tuple)]:
            if isinstance(kernel, str):
                print(tile, way, page, "none:", kernel[:100])
                continue
            units = 132 * kernel.resources.blocks_per_sm
            best = parts_of(b * KV, -(-s // tile[0]), units)
            given = (k, v)
            table = torch.empty(b, 1, device="cuda", dtype=torch.int32)
            if page:
                given = tuple(x.transpose(1, 2).reshape(-1, page, KV, D).contiguous() for x in (k, v))
                table = torch.randperm(b * s // page, device="cuda").int().reshape(b, -1)
            for parts in (
                sorted({best, max(1, best // 2), min(64, best * 2)})
                if (tile, page) == ((64, 3, 128), 0)
                else [best]
            ):
                part = torch.empty(parts, b, H, D, device="cuda")
                lse = torch.empty(parts, b, H, device="cuda")
                o = torch.empty_like(q)
                join = kernels[next(m for m in (4, 16, 64) if m >= parts)]

                def run(kernel=kernel, given=given, table=table, part=part, lse=lse, join=join, o=o) -> None:
                    kernel(q, *given, lengths, table, part, lse)
                    join(part, lse, o)

                took = seconds(torch, run, flush, 7)
                alone = seconds(torch, lambda: kernel(q, *given, lengths, table, part, lse), flush, 5)
                print(f"b{b} s{s} {tile} {way} page {page} parts {parts}: {took * 1e6:.1f} us, "
                      f"{moved / took / copy:.3f} of a copy, alone {moved / alone / copy:.3f}, "
                      f"{kernel.resources.registers} registers, "
                      f"{kernel.resources.blocks_per_sm} blocks", flush=True)  # fmt: skip
        library = seconds(torch, lambda: decode(q, k, v), flush, 7)
        nn = torch.nn.functional
        theirs = seconds(
            torch, lambda: nn.scaled_dot_product_attention(q[:, :, None], k, v, enable_gqa=True), flush, 3
        )
        print(
            f"b{b} s{s} library {library * 1e6:.1f} us {moved / library / copy:.3f}, torch "
            f"{theirs * 1e6:.1f} us",
            flush=True,
        )
    return True


def library(torch: Any) -> bool:
    """The library's own call, in a graph and called: host's work is not in the first."""
    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    nn = torch.nn.functional
    for b, s in (*SHAPES, (2, 8192), (4, 8192), (64, 1024), (64, 131072 // 8)):
        q = torch.randn(b, H, D, device="cuda").half()
        k, v = (torch.randn(1, KV, s, D, device="cuda").half().repeat(b, 1, 1, 1) for _ in "kv")
        near = (k[0].numel() * b,)
        one, other = (torch.empty(near, device="cuda", dtype=torch.float16) for _ in "ab")
        copied = seconds(torch, lambda one=one, other=other: one.copy_(other), flush, 7)
        decode(q, k, v)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            decode(q, k, v)
        moved = 4 * k.numel()
        replayed = seconds(torch, graph.replay, flush, 9)
        called = seconds(torch, lambda q=q, k=k, v=v: decode(q, k, v), flush, 9)
        theirs = seconds(
            torch,
            lambda q=q, k=k, v=v: nn.scaled_dot_product_attention(q[:, :, None], k, v, enable_gqa=True),
            flush, 5,
        )  # fmt: skip
        print(
            f"b{b} s{s} in us: graph {replayed * 1e6:.1f}, called {called * 1e6:.1f}, torch "
            f"{theirs * 1e6:.1f}; {moved / replayed * 1e-9:.0f} GB/s, of a copy {copied / replayed:.3f}",
            flush=True,
        )
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("check", "time", "library"))
    parser.add_argument("--compile", action="store_true")
    given = parser.parse_args()
    with ThreadPoolExecutor(16) as pool:
        if given.compile:
            build(pool)
            return 0
        import torch

        done = {"check": check, "library": library, "time": lambda torch: time(torch, pool)}
        return 0 if done[given.what](torch) else 1


if __name__ == "__main__":
    sys.exit(main())
