"""A launch of which all but the addresses is known: for arrays of shapes that a call has had, on one card."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .arrays import stream_function

if TYPE_CHECKING:
    from .load import CudaExecutable

_MOST_KNOWN = 256


class Prepared:
    """`prepared(pointers)` launches on the caller's current stream of that card, with these addresses.

    Sizes, the grid and the words of sizes are those of the arguments that it was made of. Tensor maps are
    kept by the addresses. Safe from several threads.
    """

    def __init__(
        self, executable: CudaExecutable, ordinal: int, arguments: Sequence[Any], owner: Any
    ) -> None:
        self.alignment = executable.alignment
        grid = executable.grid
        self._run = executable.launch_on(ordinal).ready(None if grid.constant else grid(arguments))
        self._stream: Callable[[int], int] = stream_function(owner)
        self._ordinal = ordinal
        self._packed = executable.packed
        self._arguments = tuple(arguments)
        self._pointers_only = executable.passes_pointers_only
        self._known: dict[tuple[int, ...], Sequence[Any]] = {}

    def __call__(self, pointers: Sequence[int]) -> None:
        words = pointers if self._pointers_only else self._words(tuple(pointers))
        self._run(self._stream(self._ordinal), words)

    def _words(self, pointers: tuple[int, ...]) -> Sequence[Any]:
        found = self._known.get(pointers)
        if found is None:
            found = self._packed(self._arguments, pointers, self._ordinal)
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[pointers] = found
        return found


__all__ = ["Prepared"]
