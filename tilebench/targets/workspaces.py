"""Memory that a call of several launches works in: how much, and where each of its arrays begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..ir import Function, Var
from ..ir.sizes import size_value

# No vector, line or transaction is wider; each array begins at a multiple.
ALIGN = 256
_MOST_SHAPES = 256


@dataclass(frozen=True)
class WorkMemory:
    """An array of a call's own memory, as launches take arguments: by its address."""

    pointer: int


@dataclass(frozen=True)
class WorkLayout:
    """The bytes of all arrays together, and the first byte of each."""

    size: int
    offsets: tuple[int, ...]

    def placed(self, pointer: int) -> tuple[WorkMemory, ...]:
        """The arrays in memory at an address, in the order of the function."""
        return tuple(WorkMemory(pointer + offset) for offset in self.offsets)


class Workspaces:
    """The arrays that a function allocates, for the arguments of a call in parameter order."""

    def __init__(self, function: Function) -> None:
        self.buffers = function.workspaces
        sizes = {var.name for var in function.dimensions}
        self._named = [
            (k, p.name) for k, p in enumerate(function.params) if isinstance(p, Var) and p.name in sizes
        ]
        self._known: dict[tuple[int, ...], WorkLayout] = {}

    def __call__(self, arguments: Sequence[Any]) -> WorkLayout:
        """Where they lie. Raises `ShapeError` for a size below zero."""
        key = tuple([int(arguments[k]) for k, _ in self._named])
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST_SHAPES:
                self._known.clear()
            values = {name: number for (_, name), number in zip(self._named, key, strict=True)}
            found = self._known[key] = self._laid_out(values)
        return found

    def _laid_out(self, values: dict[str, int]) -> WorkLayout:
        offsets: list[int] = []
        size = 0
        for buffer in self.buffers:
            shape = tuple(max(0, size_value(extent, values)) for extent in buffer.shape)
            offsets.append(size)
            size += -(-replace(buffer, shape=shape).bytes // ALIGN) * ALIGN
        return WorkLayout(size, tuple(offsets))
