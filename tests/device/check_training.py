"""Attention's backward on a card: each gradient beside float64, and how fast beside torch's own.

`python tests/device/check_training.py [check|time] [--compile] [NAME ...]`. `check` compares the library's
calls and every variant below on small and odd problems; `time` gives a row a variant at batch 4, 32 heads,
4096 keys: our three kernels together and the middle one alone, and what torch takes (cuDNN and flash).
`--compile` only compiles. Exits non-zero when something is wrong.
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
from tilebench.library.kernels import attention_training as kernels
from tilebench.library.training import attention_backward, attention_lse
from tilebench.schedule import Schedule

GROUPS = {"gemm": {name: {"instruction": "wgmma"} for name in ("s", "dp", "dk_l", "dv_l", "dq_l")}}
BOXES = {"copy": {name: {"instruction": "tma"} for name in ("q_s", "g_s", "k_s", "v_s")}}
ALL = ("q_s", "g_s", "k_s", "v_s", "lse_s", "delta_s")
ROLES = {"copy": {name: {"instruction": "tma"} for name in ALL}, "warp_specialize": True}
WAYS: dict[str, dict[str, Any]] = {
    "mma": {}, "wgmma": GROUPS, "tma": {**GROUPS, **BOXES}, "roles": {**GROUPS, **ROLES},
}  # fmt: skip
# block_M, block_N, stages, threads.
TILES = {
    64: [(64, 128, 2, 256), (64, 128, 3, 256), (96, 128, 2, 256)],
    128: [(64, 128, 2, 256), (64, 64, 2, 128)],
    96: [(64, 128, 2, 256)],
}


def variant(sizes: tuple[int, ...], causal: bool, dtype: str, tile: tuple[int, ...], way: str) -> Any:
    """A kernel, or why there is none. `sizes` are H, KV, SQ, SK, D."""
    function = kernels.attention_backward_kernel.using(target="cuda", schedule=Schedule.of(**WAYS[way]))
    try:
        kernel = function(None, *sizes, dtype, causal, 0, 0, 0, 0, *tile)
        _ = kernel.resources
    except TileError as error:
        return error.message
    return kernel


def right(torch: Any, q: Any, k: Any, v: Any, g: Any, causal: bool) -> tuple[Any, ...]:
    """Result, logarithms and gradients in float64."""
    wide = [x.double().detach().requires_grad_() for x in (q, k, v)]
    group = q.shape[1] // k.shape[1]
    keys, values = (x.repeat_interleave(group, 1) for x in wide[1:])
    scores = wide[0] @ keys.transpose(2, 3) * q.shape[3] ** -0.5
    if causal:
        past = k.shape[2] - q.shape[2]
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril(past)
        scores = scores.masked_fill(~seen, float("-inf"))
    lse = scores.logsumexp(-1)
    weights = (scores - lse[..., None]).exp().nan_to_num(0.0)
    o = weights @ values
    o.backward(g.double())
    return o.detach(), lse.detach(), *(x.grad for x in wide)


def draw(torch: Any, shape: tuple[int, ...], dtype: str, turned: bool = False) -> Any:
    made = torch.randn(shape, device="cuda").to(getattr(torch, dtype))
    return made.transpose(1, 2).contiguous().transpose(1, 2) if turned else made


def off(found: Any, exact: Any) -> float:
    """The error by the norm, as a part of the exact value; rows that see no key have no logarithm."""
    exact, found = exact.clone(), found.double()
    same = exact.isinf() & (found.abs() == exact.abs())
    return float((found - exact).masked_fill(same, 0).norm() / exact.masked_fill(same, 0).norm())


def launched(torch: Any, kernel: Any, arrays: tuple[Any, ...], causal: bool) -> tuple[Any, Any, Any]:
    """Gradients by a variant's kernel, and a function that runs it alone."""
    q, k, v, g, o, lse = arrays
    rows = q.shape[:3]
    more = (0, kernels.padded(rows[2]) - rows[2])
    numbers = (lse * kernels.LOG2E, (o.float() * g.float()).sum(-1))
    lse2, delta = (torch.nn.functional.pad(x, more).contiguous() for x in numbers)
    sums = torch.zeros(q.shape, device="cuda")
    dk, dv = torch.full_like(k, float("nan")), torch.full_like(v, float("nan"))

    def run() -> None:
        kernel(q, k, v, g, lse2, delta, sums, dk, dv)

    run()
    return (sums * q.shape[3] ** -0.5, dk, dv), run, sums


CASES = [
    (1, 2, 2, 256, 256, 64, False, "float16"), (2, 4, 2, 200, 333, 64, True, "float16"),
    (1, 2, 1, 300, 170, 128, True, "bfloat16"), (1, 2, 2, 257, 257, 96, True, "float16"),
    (1, 2, 2, 130, 250, 128, False, "float16"), (1, 2, 1, 70, 90, 64, True, "float32"),
]  # fmt: skip
LIMIT = {"float16": 3e-3, "bfloat16": 2e-2, "float32": 3e-6}


def check(torch: Any, names: list[str], pool: ThreadPoolExecutor) -> bool:
    good = True
    for case in CASES:
        b, h, kv, sq, sk, d, causal, dtype = case
        q, g = (draw(torch, (b, h, sq, d), dtype, t) for t in (False, True))
        k, v = (draw(torch, (b, kv, sk, d), dtype, t) for t in (True, False))
        exact = right(torch, q, k, v, g, causal)
        o, lse = attention_lse(q, k, v, causal)
        got = (o, lse, *attention_backward(g, q, k, v, o, lse, causal))
        errors = [off(a, e) for a, e in zip(got, exact, strict=True)]
        good &= max(errors) < LIMIT[dtype]
        print(
            case,
            "library",
            *(f"{e:.1e}" for e in errors),
            "ok" if max(errors) < LIMIT[dtype] else "WRONG",
            flush=True,
        )
        plain = tuple(x.contiguous() for x in (q, k, v, g, o, lse))
        todo = [(tile, way) for tile in TILES[d] for way in names]
        made = pool.map(lambda what: variant((h, kv, sq, sk, d), causal, dtype, *what), todo)
        for (tile, way), kernel in zip(todo, made, strict=True):
            if isinstance(kernel, str):
                print(case, tile, way, "none:", kernel[:120], flush=True)
                continue
            found, _, _ = launched(torch, kernel, plain, causal)
            errors = [off(a, e) for a, e in zip(found, exact[2:], strict=True)]
            fits = max(errors) < LIMIT[dtype]
            good &= fits
            print(case, tile, way, *(f"{e:.1e}" for e in errors), "ok" if fits else "WRONG", flush=True)
    return good


def shapes() -> list[tuple[int, bool]]:
    return [(d, causal) for d in (128, 64) for causal in (False, True)]


def build(pool: ThreadPoolExecutor, names: list[str]) -> dict[Any, Any]:
    todo = [(d, c, tile, way) for d, c in shapes() for tile in TILES[d] for way in names]
    made = pool.map(lambda w: variant((32, 32, 4096, 4096, w[0]), w[1], "float16", *w[2:]), todo)
    return dict(zip(todo, made, strict=True))


def time(torch: Any, names: list[str], pool: ThreadPoolExecutor) -> bool:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    variants, flush = build(pool, names), torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    for d, causal in shapes():
        q, k, v, g = (draw(torch, (4, 32, 4096, d), "float16") for _ in range(4))
        flops = 10 * 4 * 32 * 4096 * 4096 * d * (0.5 if causal else 1)
        for backend in (SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION):
            given = [x.clone().requires_grad_() for x in (q, k, v)]
            with sdpa_kernel(backend):
                result = torch.nn.functional.scaled_dot_product_attention(*given, is_causal=causal)
                took = seconds(
                    torch, lambda: torch.autograd.grad(result, given, g, retain_graph=True), flush, 7
                )
            print(
                f"d{d} causal={causal} {backend.name} {took * 1e3:.3f} ms {flops / took * 1e-12:.0f} TFLOP/s",
                flush=True,
            )
        o, lse = attention_lse(q, k, v, causal)
        ours = seconds(torch, lambda: attention_lse(q, k, v, causal), flush, 5)
        whole = seconds(torch, lambda: attention_backward(g, q, k, v, o, lse, causal), flush, 5)
        print(
            f"d{d} causal={causal} library forward {ours * 1e3:.3f} ms, backward {whole * 1e3:.3f} ms",
            flush=True,
        )
        for (dim, c, tile, way), kernel in variants.items():
            if (dim, c) != (d, causal) or isinstance(kernel, str):
                continue
            _, run, _ = launched(torch, kernel, (q, k, v, g, o, lse), causal)
            took, res = seconds(torch, run, flush, 5), kernel.resources
            rate = flops / took * 1e-12
            print(f"d{d} causal={causal} {tile} {way} {took * 1e3:.3f} ms {rate:.0f} TFLOP/s, "
                  f"{res.registers} registers, {res.spill_store_bytes} B spilled", flush=True)  # fmt: skip
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("check", "time"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("--compile", action="store_true")
    given = parser.parse_args()
    names = [name for name in given.names or WAYS if name in WAYS]
    with ThreadPoolExecutor(16) as pool:
        if given.compile:
            build(pool, names)
            return 0
        import torch

        return 0 if {"check": check, "time": time}[given.what](torch, names, pool) else 1


if __name__ == "__main__":
    sys.exit(main())
