"""Memory that many lanes touch: the blocks' shared memory and the launch's arrays, each access checked.

A race is refused at the later of its two accesses, an element outside and an access off its alignment
at the access, a read of shared memory that nobody wrote at the read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..ir import Buffer, Node
from .address import cells_of, first_bit, stored_bits
from .asynchrony import InFlight
from .clocks import Clocks, Party
from .history import NOBODY, SAME_STATEMENT, Clash, History
from .refusal import refuse


class Shared:
    """The shared memory of some blocks, in cells of `cell_bits`: as wide as its narrowest element."""

    name = "shared"

    def __init__(self, blocks: int, size: int, cell_bits: int, groups: int) -> None:
        self.cell_bits = cell_bits
        self.cells = max(1, -(-size * 8 // cell_bits))
        self.bytes = np.full((blocks * self.cells, cell_bits // 8), 0xA5, np.uint8)
        self.history = History(blocks * self.cells, groups, across_blocks=False)
        self.flight = InFlight(blocks * self.cells)

    def cells_of(self, bits: Any, width: int, party: Party) -> Any:
        """(lanes, cells) numbers of the cells of accesses of `width` bits."""
        return cells_of(bits, width, self.cell_bits) + (party.block * self.cells)[:, None]

    def load(self, cells: Any, dtype: Any) -> Any:
        """(lanes, elements) of a NumPy dtype."""
        return self.bytes[cells].reshape(len(cells), -1).view(dtype)

    def store(self, cells: Any, values: Any) -> None:
        """Store (lanes, elements)."""
        raw = np.ascontiguousarray(values).view(np.uint8)
        self.bytes[cells] = raw.reshape(*cells.shape, self.cell_bits // 8)


class Tracked:
    """What is known of an array in global memory that the kernel writes: a cell an element."""

    name = "global"

    def __init__(self, buffer: Buffer, groups: int) -> None:
        self.history = History(buffer.size, groups, across_blocks=True)
        self.flight = InFlight(buffer.size)


class Watch:
    """Tells a race of an access, with the names of its two threads."""

    def __init__(self, clocks: Clocks, grid: tuple[int, int, int]) -> None:
        self.clocks, self.grid = clocks, grid

    def thread(self, agent: int) -> int:
        """The number of an agent in its block."""
        return (agent - 1) % self.clocks.threads

    def block(self, agent: int) -> tuple[int, int, int]:
        """The block of an agent, (x, y, z)."""
        number = (agent - 1) // self.clocks.threads
        x, y, _ = self.grid
        return number % x, number // x % y, number // (x * y)

    def read(self, memory: Shared | Tracked, cells: Any, party: Party, at: Node, name: str) -> None:
        """Note a read, or refuse it."""
        memory.flight.check_read(cells, at, name)
        clash = memory.history.read(cells, party, self.clocks)
        if clash is not None:
            self._refuse(clash, party, at, name, "a read", memory.name)

    def write(self, memory: Shared | Tracked, cells: Any, party: Party, at: Node, name: str) -> None:
        """Note a write, or refuse it."""
        memory.flight.check_write(cells, at, name)
        clash = memory.history.write(cells, party, self.clocks)
        if clash is not None:
            self._refuse(clash, party, at, name, "a write", memory.name)

    def _refuse(self, clash: Clash, party: Party, at: Node, name: str, kind: str, where: str) -> None:
        mine, other = int(party.agent[clash.lane]), clash.other
        if other == NOBODY or self.block(mine) != self.block(other):
            a, b = self.block(mine), "another" if other == NOBODY else self.block(other)
            what = "{kind} of {name} by block {a}, and block {b} {did} it: blocks have no order"
        elif clash.did == SAME_STATEMENT:
            a, b = sorted((self.thread(mine), self.thread(other)))
            what = "threads {a} and {b} write one element of {name} in the same statement"
        else:
            a, b = self.thread(mine), self.thread(other)
            what = "{kind} of {name} by thread {a}, and thread {b} {did} it with no barrier between"
        what = "a race in {where} memory: " + what
        refuse(what, at, kind=kind, name=name, a=a, b=b, did=clash.did, where=where)


def check_index(index: list[Any], shape: tuple[int, ...], at: Node, name: str) -> None:
    """Every index inside its dimension."""
    for dim, (number, extent) in enumerate(zip(index, shape, strict=True)):
        least, most = int(np.min(number)), int(np.max(number))
        if least < 0 or most >= extent:
            refuse(
                "{name} is accessed outside: index {index} in dimension {dim} of extent {extent}",
                at, name=name, index=least if least < 0 else most, dim=dim, extent=extent,
            )  # fmt: skip


def check_vector(buffer: Buffer, index: list[Any], count: int, base: int, at: Node) -> None:
    """`count` elements from `index` on: inside the last dimension, and on a multiple of their width."""
    check_index([index[-1] + count - 1], buffer.shape[-1:], at, buffer.name)
    width = count * stored_bits(buffer.dtype)
    if (np.asarray(first_bit(buffer, index, base)) % width).any():
        refuse("an access of {n} bytes to {name} is not aligned", at, n=width // 8, name=buffer.name)


def flat_index(index: list[Any], shape: tuple[int, ...], count: int, lanes: int) -> Any:
    """(lanes, count) row-major numbers of the elements of an array."""
    if not index:
        return np.zeros((lanes, 1), np.int64)
    first: Any = np.ravel_multi_index(tuple(index), shape)
    return first[:, None] if count == 1 else first[:, None] + np.arange(count)


def gather(array: Any, index: list[Any], count: int) -> Any:
    """(count, lanes) elements of an array with its own strides."""
    if not index:
        return array[()]
    return np.stack([array[(*index[:-1], index[-1] + k)] for k in range(count)])


def scatter(array: Any, index: list[Any], values: Any) -> None:
    """Store (count, lanes) elements."""
    for k in range(len(values)):
        if index:
            array[(*index[:-1], index[-1] + k)] = values[k]
        else:
            array[()] = values[k][-1]


def tracked_arrays(buffers: Mapping[str, Buffer], written: set[str], groups: int) -> dict[str, Tracked]:
    """A history for each array that the kernel writes; what is only read cannot race."""
    return {name: Tracked(buffer, groups) for name, buffer in buffers.items() if name in written}
