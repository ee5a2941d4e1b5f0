"""A lock per key within this process, so that two threads never make the same thing twice."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager


class KeyedLocks:
    """Locks made on demand and dropped with their last holder."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held: dict[str, tuple[threading.Lock, int]] = {}

    @contextmanager
    def hold(self, key: str) -> Generator[None]:
        """Hold the lock of `key`; another thread that wants the same key waits, other keys do not."""
        with self._guard:
            lock, users = self._held.get(key, (threading.Lock(), 0))
            self._held[key] = (lock, users + 1)
        try:
            with lock:
                yield
        finally:
            with self._guard:
                lock, users = self._held[key]
                if users == 1:
                    del self._held[key]
                else:
                    self._held[key] = (lock, users - 1)

    def __len__(self) -> int:
        return len(self._held)
