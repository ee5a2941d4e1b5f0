"""Timing what runs on torch's current card and stream: events around each launch, and a flush of caches."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from ..targets.devices import CARD

# More than twice the largest second-level cache, and 80 us of an H200's memory.
FLUSH_BYTES = 256 << 20
# A card counts no more than this many clocks a second, and waits no longer than this many seconds.
CLOCKS_A_SECOND, LONGEST_WAIT_S = 2e9, 1e-3


class TorchClock:
    """Time on the card between two events around a run, the host's with it; resolution 0.5 us."""

    name = "CUDA events around each launch"

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.start, self.stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def time(self, run: Callable[[], object]) -> float:
        """Seconds on the card."""
        self.start.record()
        run()
        self.stop.record()
        self.stop.synchronize()
        return round(1e6 * self.start.elapsed_time(self.stop)) / 1e9


class TorchLaunchClock(TorchClock):
    """Time on the card of one launch, without what the host takes to say it.

    Where the card comes to the first event before the host is done, all launches from there on are put behind
    a wait of the card, twice as long as the host took.
    """

    name = "CUDA events around each launch, which the host puts in line before the card is there"

    def __init__(self, torch: Any) -> None:
        super().__init__(torch)
        self.wait_s = 0.0

    def time(self, run: Callable[[], object]) -> float:
        """Seconds on the card."""

        def launch() -> None:
            before = time.perf_counter()
            run()
            host_s = time.perf_counter() - before
            if self.start.query():
                self.wait_s = max(self.wait_s, min(2 * host_s, LONGEST_WAIT_S))

        if self.wait_s:
            self.torch.cuda._sleep(int(self.wait_s * CLOCKS_A_SECOND))
        return super().time(launch)


class TorchFlush:
    """Writes as much memory of the card as TileLang and Triton do before each launch."""

    def __init__(self, torch: Any) -> None:
        self.memory: Any = torch.empty(FLUSH_BYTES, dtype=torch.int8, device=CARD)
        self.text = f"{FLUSH_BYTES >> 20} MiB written on the card before each launch"

    def __call__(self) -> None:
        self.memory.zero_()

    def close(self) -> None:
        self.memory = None


def torch_clock() -> TorchClock | None:
    """Clock of the card that torch has, for programs; None in a program without torch or card."""
    torch = _torch_with_card()
    return None if torch is None else TorchClock(torch)


def torch_card() -> tuple[TorchLaunchClock, TorchFlush] | None:
    """Clock and flush of the card that torch has, for launches; None in a program without torch or card."""
    torch = _torch_with_card()
    return None if torch is None else (TorchLaunchClock(torch), TorchFlush(torch))


def _torch_with_card() -> Any:
    torch: Any = sys.modules.get("torch")
    return torch if torch is not None and torch.cuda.is_available() else None
