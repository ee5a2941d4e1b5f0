"""What the lanes hold: one lane is one thread of one block, and every value is an array of one a lane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir import AllocStmt, Buffer, Node, Stmt, effects_in, walk
from ..ir.dtypes import boolean
from ..language.lowered.threads import SyncThreads
from ..language.memory import AllocShared
from ..language.structure import KernelLaunch
from .address import buffer_bits, stored_bits
from .arithmetic import data_names
from .asynchrony import InFlight, Tokens
from .clocks import Clocks, Party
from .memory import Shared, Sites, Tracked, Watch, check_index, tracked_arrays
from .refusal import refuse

Mask = Any  # bools, one a lane, or None: all lanes
Value = Any  # an array of one value a lane, or a number that all lanes share
IDLE_INTEGER = 0x55


@dataclass(frozen=True)
class Launch:
    """A launch and what outlives its batches of blocks: the arrays, and who touched those it writes."""

    kernel: KernelLaunch
    arrays: Mapping[str, Any]
    warp: int
    group: int
    tracked: Mapping[str, Tracked]
    sites: Sites

    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks, x first."""
        x, y, z = (*self.kernel.grid, 1, 1, 1)[:3]
        return x, y, z


def ordered_by_blocks(kernel: KernelLaunch, simple: frozenset[type]) -> bool:
    """Whether only barriers of whole blocks order anything: then one clock a block is exact."""
    for node in walk(kernel):
        if isinstance(node, SyncThreads):
            if node.threads not in (0, kernel.threads):
                return False
        elif isinstance(node, Stmt) and type(node) not in simple:
            return False
    return True


def launch_of(
    kernel: KernelLaunch,
    buffers: Mapping[str, Buffer],
    arrays: Mapping[str, Any],
    warp: int,
    *,
    by_blocks: bool,
) -> Launch:
    """The launch of a kernel on arrays by parameter name."""
    group = kernel.threads if by_blocks else warp
    written = {effect.buffer.name for effect in effects_in(kernel) if effect.writes}
    tracked = tracked_arrays(buffers, written, -(-kernel.threads // group))
    return Launch(kernel, arrays, warp, group, tracked, Sites())


@dataclass
class Registers:
    """The buffers of one thread: (elements, lanes), and what asynchronous operations hold of them."""

    values: Any
    flight: InFlight


class LaneState:
    """Some blocks of a launch: registers, shared memory, clocks and what is in flight."""

    def __init__(self, launch: Launch, blocks: list[tuple[int, int, int]]) -> None:
        kernel = launch.kernel
        self.launch, self.arrays, self.warp = launch, launch.arrays, launch.warp
        self.threads, self.blocks = kernel.threads, len(blocks)
        self.lanes = self.threads * self.blocks
        self.tid = np.tile(np.arange(self.threads, dtype=np.int64), self.blocks)
        self.values: dict[str, Value] = {}
        self.data = data_names(kernel.body)
        for k, var in enumerate(kernel.vars):
            numbers = np.array([block[k] for block in blocks], np.int64)
            self.values[var.name] = int(numbers[0]) if self.blocks == 1 else np.repeat(numbers, self.threads)
        self.clocks = Clocks(self.blocks, self.threads, launch.group)
        self.watch = Watch(self.clocks, launch.grid, launch.sites)
        widths = [stored_bits(a.buffer.dtype) for a in walk(kernel) if isinstance(a, AllocShared)]
        cell = max(8, min(widths, default=32))
        self.shared = Shared(self.blocks, kernel.shared_bytes, cell, self.clocks.groups)
        self.shared_base: dict[str, int] = {}
        self.registers: dict[str, Registers] = {}
        self.tokens = Tokens(self.lanes)
        x, y, _ = launch.grid
        linear = np.array([bx + x * (by + y * bz) for bx, by, bz in blocks], np.int64)
        first = np.repeat(linear * self.threads + 1, self.threads).astype(np.int32)
        block = np.repeat(np.arange(self.blocks, dtype=np.int64), self.threads)
        self._all = np.arange(self.lanes)
        self._everyone = Party(first + self.tid.astype(np.int32), block, self.tid // launch.group, first)

    # -- lanes
    def active(self, mask: Mask) -> Any:
        """The numbers of the active lanes."""
        return self._all if mask is None else np.flatnonzero(mask)

    def party(self, mask: Mask, lanes: Any) -> Party:
        """The active threads as the clocks know them."""
        whole = self._everyone
        if mask is None:
            return whole
        return Party(whole.agent[lanes], whole.block[lanes], whole.group[lanes], whole.first[lanes])

    def full(self, mask: Mask) -> Any:
        """A mask as an array."""
        return np.ones(self.lanes, np.bool_) if mask is None else mask

    def whole_warps(self, mask: Mask) -> Any:
        """(blocks, warps) bools: the warps that are active; None when part of one is."""
        warps = -(-self.threads // self.warp)
        if mask is None:
            return np.ones((self.blocks, warps), np.bool_)
        rows = np.zeros((self.blocks, warps * self.warp), np.int8)
        rows[:, : self.threads] = mask.reshape(self.blocks, self.threads)
        rows[:, self.threads :] = rows[:, self.threads - 1 : self.threads]
        active = rows.reshape(self.blocks, warps, self.warp).sum(axis=2)
        return None if ((active > 0) & (active < self.warp)).any() else active > 0

    def wide(self, value: Value, dtype: Any) -> Any:
        """A value a lane, in a NumPy type."""
        array = np.asarray(value)
        array = array if array.dtype == dtype else array.astype(dtype)
        return array if array.shape == (self.lanes,) else np.broadcast_to(array, (self.lanes,))

    # -- buffers
    def add_shared(self, stmt: AllocShared) -> None:
        """Give a buffer of shared memory its place in the map."""
        buffer, offset = stmt.buffer, stmt.offset or 0
        if offset * 8 + buffer_bits(buffer) > self.launch.kernel.shared_bytes * 8:
            refuse(
                "{name} ends behind the shared memory of the kernel", stmt, name=buffer.name,
                expected=f"shared_bytes={self.launch.kernel.shared_bytes} at least",
                found=f"its bytes end at {offset + -(-buffer_bits(buffer) // 8)}",
            )  # fmt: skip
        if offset * 8 % stored_bits(buffer.dtype):
            refuse("{name} is not aligned to its elements", stmt, name=buffer.name)
        self.shared_base[buffer.name] = offset * 8

    def add_registers(self, stmt: AllocStmt, mask: Mask, first: Any = None) -> None:
        """Registers of the active lanes, filled with `first` or with what no program should use."""
        buffer = stmt.buffer
        if first is None:
            first = np.nan if buffer.dtype.is_float else False if buffer.dtype == boolean else IDLE_INTEGER
        known = self.registers.get(buffer.name)
        if known is None or mask is None:
            values = np.empty((buffer.size, self.lanes), buffer.dtype.numpy)
            values[...] = first
            self.registers[buffer.name] = Registers(values, InFlight(values.size))
        else:
            np.copyto(known.values, first, where=mask)

    def register(self, buffer: Buffer, number: Value, mask: Mask, node: Node, count: int = 1) -> Any:
        """The number of a register, checked: an int, or one a lane with 0 in idle lanes."""
        if not isinstance(number, int):
            number = self.wide(number, np.int64)
            number = number if mask is None else np.where(mask, number, 0)
        for last in {0, count - 1}:
            check_index([number + last], (buffer.size,), node, buffer.name)
        return number

    def own(self, buffer: Buffer, node: Node) -> Registers:
        """The registers of a buffer that is the thread's own."""
        found = self.registers.get(buffer.name)
        if found is None:
            refuse("{name} is used before it is allocated", node, name=buffer.name)
        return found

    def get(self, buffer: Buffer, number: Any, count: int, node: Node) -> Any:
        """(count, lanes) elements of each lane's registers from `number` on."""
        own = self.own(buffer, node)
        if own.flight.operations:
            own.flight.check_read(self.register_cells(number, count), node, buffer.name)
        if isinstance(number, int):
            return own.values[number : number + count]
        return np.stack([own.values[number + k, self._all] for k in range(count)])

    def put(self, buffer: Buffer, number: Any, values: Any, mask: Mask, node: Node) -> None:
        """Store (count, lanes) elements into each active lane's registers from `number` on."""
        own = self.own(buffer, node)
        lanes = self.active(mask)
        if own.flight.operations:
            cells = self.register_cells(number, len(values))
            own.flight.check_write(cells[lanes], node, buffer.name)
        for k in range(len(values)):
            if not isinstance(number, int):
                own.values[number[lanes] + k, lanes] = values[k][lanes]
            elif mask is None:
                own.values[number + k] = values[k]
            else:
                np.copyto(own.values[number + k], values[k], where=mask)

    def register_cells(self, number: Any, count: int) -> Any:
        """(lanes, count) numbers of registers as cells of all lanes."""
        first = self.wide(number, np.int64) * self.lanes + self._all
        return first[:, None] + np.arange(count) * self.lanes
