"""Timing what runs on torch's current card and stream: events around each launch, and a flush of caches."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ..targets.devices import CARD

# More than twice the largest second-level cache, and 80 us of an H200's memory: in that time the host puts
# the timed launch into the queue, so that the events do not see how long it takes to say it.
FLUSH_BYTES = 256 << 20


class TorchClock:
    """Time on the card between two events around one launch; resolution 0.5 us."""

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


class TorchFlush:
    """Writes as much memory of the card as TileLang and Triton do before each launch."""

    def __init__(self, torch: Any) -> None:
        self.memory: Any = torch.empty(FLUSH_BYTES, dtype=torch.int8, device=CARD)
        self.text = f"{FLUSH_BYTES >> 20} MiB written on the card before each launch"

    def __call__(self) -> None:
        self.memory.zero_()

    def close(self) -> None:
        self.memory = None


def torch_card() -> tuple[TorchClock, TorchFlush] | None:
    """Clock and flush of the card that torch has; None in a program without torch or card."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return None
    return TorchClock(torch), TorchFlush(torch)
