"""Memory for the length of a call, kept and used again: calls of several threads never share a piece."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

from .pool import Scratch

# What is kept when no call runs: pieces, and bytes of all together.
MOST_PIECES = 8
MOST_BYTES = 1 << 30


class WorkspacePool:
    """Pieces of memory that no call has. What an earlier call left is still in them."""

    def __init__(self) -> None:
        self._free: list[Scratch] = []
        self._lock = threading.Lock()

    @contextmanager
    def take(self, size: int) -> Generator[int]:
        """The address of `size` bytes for the length of the block. `ResourceError` where there are none."""
        piece = self._smallest(size)
        try:
            yield piece.address(size)
        finally:
            self._give_back(piece)

    def _smallest(self, size: int) -> Scratch:
        """The smallest free piece that is large enough, or a new one."""
        with self._lock:
            fitting = [piece for piece in self._free if piece.size >= size]
            if fitting:
                piece = min(fitting, key=lambda each: each.size)
                self._free.remove(piece)
                return piece
        return Scratch("the arrays of T.alloc_global")

    def _give_back(self, piece: Scratch) -> None:
        with self._lock:
            self._free.append(piece)
            # The smallest goes first: it is the quickest to make again.
            self._free.sort(key=lambda each: each.size, reverse=True)
            while len(self._free) > MOST_PIECES or sum(each.size for each in self._free) > MOST_BYTES:
                # A piece that alone is more than that is not kept, though it is the first.
                self._free.pop(0 if self._free[0].size > MOST_BYTES else -1)


POOL = WorkspacePool()
