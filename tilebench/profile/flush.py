"""Emptying the processor's caches between launches, so that each finds its data in memory."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from .environment import allowed_cores, last_level_cache_bytes

LINE_BYTES = 64


_CGROUP = Path("/sys/fs/cgroup")


def available_bytes() -> int:
    """Memory this process could get now: the system's, or a container's limit if that is less.

    4 GiB where neither can be read. A container sees the whole host in /proc/meminfo, and is ended
    when it takes more than its own limit.
    """
    found: list[int] = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found.append(int(line.split()[1]) << 10)
    except OSError:
        pass
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        # "max" instead of a number means no limit
        with suppress(OSError, ValueError):
            found.append(int((_CGROUP / limit).read_text()) - int((_CGROUP / used).read_text()))
    return max(0, min(found)) if found else 4 << 30


class CpuFlush:
    """Reads a buffer twice as large as the last-level cache, one word a line, on every allowed core.

    Reading evicts without leaving dirty lines, whose write-back would fall into the timed launch.
    Every core reads its own part, so its private caches are emptied too. Where memory is short the
    buffer is a quarter of what is available, and `text` says so. Close it to end its threads.
    """

    def __init__(self, size: int | None = None, threads: int | None = None) -> None:
        wanted = 2 * last_level_cache_bytes() if size is None else size
        size = max(LINE_BYTES, min(wanted, available_bytes() // 4))
        self.bytes = size
        self.threads = threads or allowed_cores()
        self.text = f"{size / 2**20:.0f} MiB read before each launch"
        if size < wanted:
            self.text += f", short of the {wanted / 2**20:.0f} MiB that are twice the last-level cache"
        words = np.empty(size // 8, np.int64)
        step = -(-len(words) // self.threads)
        self._parts = [words[i : i + step][:: LINE_BYTES // 8] for i in range(0, len(words), step)]
        self._pool = ThreadPoolExecutor(len(self._parts), "tilebench-flush") if len(self._parts) > 1 else None
        # Written once: pages that were never touched would all be one page of zeros.
        self._each(_touch)

    def __call__(self) -> None:
        self._each(np.add.reduce)

    def _each(self, work: Any) -> list[Any]:
        """`work` on every part, at the same time."""
        if self._pool is None:
            return [work(each) for each in self._parts]
        return list(self._pool.map(work, self._parts))

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
        self._parts = [np.ones(1, np.int64)]
        self._pool = None


def _touch(part: np.ndarray[Any, Any]) -> None:
    part.fill(1)


@lru_cache(maxsize=1)
def child_flush() -> CpuFlush:
    """The flush buffer of a measuring child, made once: making it costs as much as several launches.

    Only the child keeps one. It goes with the child; a notebook's process should not hold 600 MB.
    """
    return CpuFlush()
