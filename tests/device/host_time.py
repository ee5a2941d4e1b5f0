"""Host's time of calls of the library on a card: `python tests/device/host_time.py`. No result is read."""

from __future__ import annotations

import cProfile
import pstats
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch

from tilebench import library


def microseconds(call: Any, count: int = 300) -> float:
    for _ in range(20):
        call()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        call()
    spent = time.perf_counter() - start
    torch.cuda.synchronize()
    return spent / count * 1e6


def main() -> None:
    q = torch.randn(1, 32, 128, device="cuda").half()
    k, v = (torch.randn(1, 8, 1024, 128, device="cuda").half() for _ in "kv")
    x = torch.randn(1, 4, 128, 64, device="cuda").half()
    o, lse = library.attention_lse(x, x, x)
    y = x.clone().requires_grad_()
    calls = {
        "decode": lambda: library.decode(q, k, v), "attention": lambda: library.attention(x, x, x),
        "attention_lse": lambda: library.attention_lse(x, x, x),
        "attention_backward": lambda: library.attention_backward(x, x, x, x, o, lse),
        "attention with gradient": lambda: library.attention(y, y, y),
        "softmax": lambda: library.softmax(x), "torch.softmax": lambda: torch.softmax(x, -1),
    }  # fmt: skip
    for name, call in calls.items():
        print(f"{name}: {microseconds(call):.1f} us", flush=True)
    profile = cProfile.Profile()
    profile.enable()
    for _ in range(200):
        calls["decode"]()
    profile.disable()
    pstats.Stats(profile).sort_stats("cumulative").print_stats(28)


if __name__ == "__main__":
    main()
