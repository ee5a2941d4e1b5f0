"""Memory that many lanes touch: the blocks' shared memory and the launch's arrays, each access checked.

A race is refused at the later of its two accesses, an element outside and an access off its alignment
at the access, a read of shared memory that nobody wrote at the read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from ..errors import Place
from ..ir import Buffer, DType, Node, Stmt, Store, children, walk
from ..ir.stmt import statements
from .address import byte_numbers, cells_of, first_bit, halves, merged, stored_bits
from .asynchrony import InFlight, told
from .clocks import Clocks, Party
from .history import NOBODY, Clash, History
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
        return cells_of(bits, width, self.cell_bits) + (party.memory * self.cells)[:, None]

    def load(self, cells: Any, bits: Any, count: int, dtype: DType) -> Any:
        """(lanes, count) elements, the first of each lane at `bits`."""
        raw = self.bytes[cells].reshape(len(cells), -1)
        return halves(raw, bits, count, dtype) if dtype.per_byte > 1 else raw.view(dtype.numpy)

    def store(self, cells: Any, bits: Any, values: Any, dtype: DType) -> None:
        """Store (lanes, elements), the first of each lane at `bits`."""
        if dtype.per_byte > 1:
            raw: Any = merged(self.bytes[cells].reshape(len(cells), -1), bits, values)
        else:
            raw = np.ascontiguousarray(values).view(np.uint8)
        self.bytes[cells] = raw.reshape(*cells.shape, self.cell_bits // 8)


class Tracked:
    """What is known of an array in global memory that the kernel writes: a cell an element, or a byte."""

    name = "global"

    def __init__(self, buffer: Buffer, groups: int) -> None:
        self.history = History(tracked_size(buffer), groups, across_blocks=True)
        self.flight = InFlight(tracked_size(buffer))


class Sites:
    """The statements and expressions that touch memory, by number; `body` is the kernel's."""

    def __init__(self, body: tuple[Stmt, ...] = ()) -> None:
        self.body = body
        self.places: dict[int, Place | None] = {}
        self.numbers: dict[int, int] = {}
        self.nodes: list[Node] = []

    def number(self, node: Node) -> int:
        """The number of a node."""
        found = self.numbers.get(id(node))
        if found is None:
            found = self.numbers[id(node)] = len(self.nodes)
            self.nodes.append(node)
        return found

    def node(self, number: int) -> Node | None:
        """The node of a number; None for one that is not known."""
        return self.nodes[number] if number >= 0 else None

    def place(self, node: Node) -> Place | None:
        """The line of a node: its own, or that of the statement that it is part of."""
        if node.place is not None:
            return node.place
        if not self.places:
            for stmt in statements(self.body):
                parts = [
                    part for child in children(stmt) if not isinstance(child, Stmt) for part in walk(child)
                ]
                self.places.update({id(part): stmt.place for part in parts})
        return self.places.get(id(node))


class Watch:
    """Tells a race of an access: its two threads, and the lines of both."""

    def __init__(self, clocks: Clocks, grid: tuple[int, int, int], sites: Sites) -> None:
        self.clocks, self.grid, self.sites = clocks, grid, sites

    def thread(self, agent: int) -> int:
        """The number of an agent in its block."""
        return (agent - 1) % self.clocks.threads

    def _is_engine(self, agent: int) -> bool:
        return self.thread(agent) >= self.clocks.engine * self.clocks.size

    def block(self, agent: int) -> tuple[int, int, int]:
        """The block of an agent, (x, y, z)."""
        number = (agent - 1) // self.clocks.threads
        x, y, _ = self.grid
        return number % x, number // x % y, number // (x * y)

    def read(
        self, memory: Shared | Tracked, cells: Any, party: Party, node: Node, name: str, *, notes: bool = True
    ) -> None:
        """Note a read, or refuse it; a barrier of another block is looked at without a note."""
        memory.flight.check_read(cells, node, name)
        clash = memory.history.read(cells, party, self.clocks, self.sites.number(node), notes=notes)
        if clash is not None:
            self._refuse(clash, party, node, {"name": name, "where": memory.name, "kind": "a read"})

    def write(self, memory: Shared | Tracked, cells: Any, party: Party, node: Node, name: str) -> None:
        """Note a write, or refuse it."""
        memory.flight.check_write(cells, node, name)
        clash = memory.history.write(cells, party, self.clocks, self.sites.number(node))
        if clash is not None:
            self._refuse(clash, party, node, {"name": name, "where": memory.name, "kind": "a write"})

    def combine(self, memory: Shared | Tracked, cells: Any, party: Party, node: Store, name: str) -> None:
        """Note an atomic access, or refuse it: it has no order with others of its kind alone."""
        memory.flight.check_read(cells, node, name)
        memory.flight.check_write(cells, node, name)
        site = self.sites.number(node)
        clash = memory.history.combine(cells, party, self.clocks, site, stores=node.atomic == "store")
        if clash is not None:
            self._refuse(clash, party, node, {"name": name, "where": memory.name, "kind": "an atomic"})

    def check_fenced(
        self, memory: Shared, cells: Any, party: Party, node: Node, name: str, does: str
    ) -> None:
        """Refuse an asynchronous access to what threads wrote without a fence for it."""
        history = memory.history
        writers, stamps = history.writer.agent[cells], history.write_stamp[cells]
        wrong = self.clocks.unfenced(party, writers, stamps)
        if wrong.any():
            site = self.sites.node(int(history.writer.site[cells][wrong][0]))
            refuse(
                "{name} is {does} past the view of threads, and thread {a} wrote it without"
                " T.fence_async_shared() since", node, name=name, does=does,
                a=self.thread(int(writers[wrong][0])), also=[("written here", site.place)] if site else [],
            )  # fmt: skip

    def _refuse(self, clash: Clash, party: Party, node: Node, words: dict[str, str]) -> NoReturn:
        mine, other = int(party.agent[clash.lane]), clash.other
        site = self.sites.node(clash.site)
        did = "wrote" if clash.wrote else "read"
        own = words["where"] == "shared"
        if other != NOBODY and self._is_engine(other) and (own or self.block(mine) == self.block(other)):
            refuse(
                "{kind} of {name} by thread {a}, and {by} {did} it: the thread has not waited for the barrier"
                " that this completes on",
                node, **words, a=self.thread(mine), did=did, by=told(site) if site else "a copy",
            )  # fmt: skip
        there = (
            [("the other access", self.sites.place(site))] if site is not None and site is not node else []
        )
        if other != NOBODY and own and self.block(mine) != self.block(other):
            refuse(
                "a race in {where} memory: {kind} of {name} by thread {a} of block {x}, and thread {b} of its"
                " cluster's block {y} {did} it with no barrier between", node, **words, did=did, also=there,
                a=self.thread(mine), b=self.thread(other), x=self.block(mine), y=self.block(other),
            )  # fmt: skip
        if other == NOBODY or self.block(mine) != self.block(other):
            refuse(
                "a race in {where} memory: {kind} of {name} by block {a}, and {b} {did} it:"
                " blocks have no order",
                node, **words, did=did, a=self.block(mine), also=there,
                b="another block" if other == NOBODY else f"block {self.block(other)}",
            )  # fmt: skip
        a, b = self.thread(mine), self.thread(other)
        if clash.together:
            refuse(
                "a race in {where} memory: threads {a} and {b} write one element of {name}"
                " in the same statement",
                node, **words, a=min(a, b), b=max(a, b),
            )  # fmt: skip
        refuse(
            "a race in {where} memory: {kind} of {name} by thread {a}, and thread {b} {did} it"
            " with no barrier between", node, **words, a=a, b=b, did=did, also=there,
        )  # fmt: skip


def check_index(index: list[Any], shape: tuple[int, ...], node: Node, name: str) -> None:
    """Every index inside its dimension."""
    for dim, (number, extent) in enumerate(zip(index, shape, strict=True)):
        least, most = int(np.min(number)), int(np.max(number))
        if least < 0 or most >= extent:
            refuse(
                "{name} is accessed outside: index {index} in dimension {dim} of extent {extent}",
                node, name=name, index=least if least < 0 else most, dim=dim, extent=extent,
            )  # fmt: skip


def check_vector(buffer: Buffer, index: list[Any], count: int, base: int, node: Node) -> None:
    """`count` elements from `index` on: inside the last dimension, and on a multiple of their width."""
    check_index([index[-1] + count - 1], buffer.extents[-1:], node, buffer.name)
    width = count * stored_bits(buffer.dtype)
    if (np.asarray(first_bit(buffer, index, base)) % width).any():
        refuse("an access of {n} bytes to {name} is not aligned", node, n=width // 8, name=buffer.name)


def check_around(buffer: Buffer, index: list[Any], count: int, node: Node) -> Any:
    """The pieces of `count` elements that hold the first and the last of as many from `index` on are inside.

    Where the array starts at an unknown address, wherever they lie. Gives how far each starts in its piece.
    """
    known = buffer.align % buffer.dtype.bytes_of(count) == 0
    first: Any = np.asarray(first_bit(buffer, index)) // stored_bits(buffer.dtype)
    low = first // count * count if known else first - (count - 1)
    high = (first + count - 1) // count * count + count if known else first + 2 * count - 1
    if int(np.min(low)) < 0 or int(np.max(high)) > buffer.size:
        refuse("an access around elements of {name} reaches outside of it", node, name=buffer.name)
    return first - low if known else 0 * first


def tracked_size(buffer: Buffer) -> int:
    """The cells of an array: of packed elements a byte is one, for no thread can write a half alone."""
    return buffer.bytes if buffer.dtype.per_byte > 1 else buffer.size


def tracked_cells(buffer: Buffer, index: list[Any], count: int, lanes: int) -> Any:
    """(lanes, cells) numbers of the cells of an array that `count` elements from `index` on touch."""
    if buffer.dtype.per_byte > 1 and index:
        return byte_numbers(buffer, index, count)
    return flat_index(index, buffer.extents, count, lanes)


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
