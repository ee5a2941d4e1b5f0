"""What the lanes hold: one lane is one thread of one block, and every value is an array of one a lane."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir import walk
from ..language.memory import AllocShared
from .address import buffer_bits, stored_bits
from .arithmetic import data_names
from .asynchrony import Tokens
from .clocks import Clocks, Party
from .launch import Launch
from .memory import Shared, Watch
from .refusal import refuse

Mask = Any  # bools, one a lane, or None: all lanes
Value = Any  # an array of one value a lane, or a number that all lanes share


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
        self.clocks = Clocks(
            self.blocks, self.threads, launch.group, engine=launch.engine, cluster=launch.cluster
        )
        self.watch = Watch(self.clocks, launch.grid, launch.sites)
        widths = [stored_bits(a.buffer.dtype) for a in walk(kernel) if isinstance(a, AllocShared)]
        cell = max(8, min(widths, default=32))
        self.shared = Shared(self.blocks, kernel.shared_bytes, cell, self.clocks.groups)
        self.shared_base: dict[str, int] = {}
        self.tokens = Tokens(self.lanes)
        x, y, _ = launch.grid
        linear = np.array([bx + x * (by + y * bz) for bx, by, bz in blocks], np.int64)
        first = np.repeat(linear * self.clocks.threads + 1, self.threads).astype(np.int32)
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

    def home_of(self, party: Party, rank: int) -> Party:
        """The threads' own, at the memory of the block of that rank in the cluster, as the clocks know them.

        Its threads' numbers follow those of the cluster's other blocks.
        """
        home = party.block // self.launch.cluster * self.launch.cluster + rank
        first = (party.first + (home - party.block) * self.clocks.threads).astype(party.first.dtype)
        return Party(first, home, np.zeros_like(party.group), first)

    def engine_of(self, party: Party) -> Party:
        """The engines of the threads' blocks, as the clocks know them."""
        group = np.full_like(party.group, self.clocks.engine)
        agent = party.first + self.clocks.engine * self.clocks.size
        return Party(agent.astype(party.agent.dtype), party.block, group, party.first)

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
