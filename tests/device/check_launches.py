"""Launches on a card: streams, graphs, threads, and every check of a call that repeats another.

`python tests/device/check_launches.py`. Exits non-zero when a row is wrong. With two cards, both in turn.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch

from tests.kernels import add_kernel
from tilebench.errors import ArgumentError
from tilebench.schedule import Schedule

N, CHAIN = 256, 100
KERNEL = add_kernel.using(target="cuda")(N, N, dtype="float32")


def tensors(device: int = 0) -> tuple[Any, Any, Any]:
    a, b = (torch.randn(N, N, device=f"cuda:{device}") for _ in range(2))
    return a, b, torch.full((N, N), float("nan"), device=f"cuda:{device}")


def streams() -> bool:
    """Behind a long kernel of the same stream, and beside one of another."""
    right = True
    for _ in range(4):
        stream = torch.cuda.Stream()
        a, b, c = tensors()
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(20_000_000)
            a.add_(1)
            KERNEL(a, b, c)
        stream.synchronize()
        right &= torch.equal(c, a + b)
    return right


def graph() -> bool:
    a, b, c = tensors()
    held = torch.cuda.CUDAGraph()
    with torch.cuda.graph(held):
        KERNEL(a, b, c)
    a.copy_(torch.randn_like(a))
    c.fill_(float("nan"))
    held.replay()
    torch.cuda.synchronize()
    return torch.equal(c, a + b)


def threads() -> bool:
    """Threads that have made no CUDA call before, each with tensors and a stream of its own."""
    out: list[bool] = []

    def run(a: Any, b: Any, c: Any, want: Any) -> None:
        for _ in range(200):
            KERNEL(a, b, c)
        torch.cuda.synchronize()
        out.append(torch.equal(c, want))

    given = [(*each, each[0] + each[1]) for each in (tensors() for _ in range(8))]
    torch.cuda.synchronize()
    running = [threading.Thread(target=run, args=each) for each in given]
    for each in running:
        each.start()
    for each in running:
        each.join()
    return out == [True] * 8


def devices() -> bool:
    """The current device does not matter: the launch goes where the tensors are."""
    right = True
    for turn in range(4):
        for device in range(torch.cuda.device_count()):
            with torch.cuda.device(turn % torch.cuda.device_count()):
                a, b, c = tensors(device)
                KERNEL(a, b, c)
                right &= torch.equal(c, a + b)
    return right


def chains() -> bool:
    """Launches that begin early, each of which needs what the one before wrote; also in a graph."""
    right = True
    for early in (False, True):
        kernel = add_kernel.using(target="cuda:sm_90a", schedule=Schedule.of(dependent_launch=early))(
            N, N, dtype="float32"
        )
        a, b, c = tensors()
        a, b = torch.round(a * 8), torch.round(b * 8)
        want = a + b * CHAIN

        def chain(kernel: Any = kernel, a: Any = a, b: Any = b, c: Any = c) -> None:
            for _ in range(CHAIN // 2):
                kernel(a, b, c)
                kernel(c, b, a)

        first = a.clone()
        for _ in range(20):
            a.copy_(first)
            chain()
            right &= torch.equal(a, want)
        a.copy_(first)
        held = torch.cuda.CUDAGraph()
        with torch.cuda.graph(held):
            chain()
        a.copy_(first)
        held.replay()
        right &= torch.equal(a, want)
        times: list[float] = []
        for _ in range(20):
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            held.replay()
            stop.record()
            torch.cuda.synchronize()
            times.append(start.elapsed_time(stop) / CHAIN * 1e3)
        print(
            f"  {'early' if early else 'plain'} launches in a graph: {min(times):.2f} us each, {right}",
            flush=True,
        )
    return right


def refusals() -> bool:
    """What does not fit is refused in the words of a first call, also behind calls that fit."""
    a, b, c = tensors()
    KERNEL(a, b, c)
    cases: dict[str, Callable[[], None]] = {
        "A has the wrong dtype": lambda: KERNEL(a.half(), b, c),
        "A is not contiguous in rows": lambda: KERNEL(a.T, b, c),
        "A has the wrong shape": lambda: KERNEL(a[:8], b, c),
        "C is written by the kernel and shares memory with A": lambda: KERNEL(a, b, a),
        "C is written by the kernel but cannot be": lambda: KERNEL(a, b, c.clone().requires_grad_()),
        "A is the negative of what its memory holds": lambda: KERNEL(torch._neg_view(a), b, c),
        "B is on the wrong device": lambda: KERNEL(a, b.cpu(), c),
        "C is a Tensor without memory": lambda: (c.untyped_storage().resize_(0), KERNEL(a, b, c))[1],
    }
    right = True
    for words, call in cases.items():
        try:
            call()
            said = "nothing"
        except ArgumentError as error:
            said = str(error.message)
        right &= words in said
        if words not in said:
            print(f"  expected {words!r}, said {said!r}")
    return right


def unaligned() -> bool:
    """At an address that is no multiple of a vector the general variant runs, and afterwards the other."""
    right = True
    for shift in (1, 0, 3, 0):
        a, b, c = (torch.randn(N * N + 4, device="cuda")[shift : shift + N * N].view(N, N) for _ in range(3))
        KERNEL(a, b, c)
        right &= torch.equal(c, a + b)
    return right


def main() -> int:
    rows = [
        (check.__name__, check()) for check in (refusals, chains, streams, graph, threads, devices, unaligned)
    ]
    for name, right in rows:
        print(f"{name:12s} {'ok' if right else 'WRONG'}")
    return 0 if all(right for _, right in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
