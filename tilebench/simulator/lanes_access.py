"""What the lanes hold (registers, shared memory, arrays), and the checks of every access."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..ir import AllocStmt, Buffer, Expr, Load, Region, Store, walk
from ..ir.dtypes import boolean
from ..language.memory import AllocLocal, AllocShared, AllocVar
from ..language.structure import KernelLaunch
from .lanes_expr import data_names
from .lanes_memory import SharedMemory, check_index, refuse

Mask = Any
Value = Any


def _cell_bytes(launch: KernelLaunch) -> int:
    sizes = [each.buffer.dtype.bytes for each in walk(launch) if isinstance(each, AllocShared)]
    return min(sizes, default=4)


class LaneMemory:
    """Some blocks of one launch. A mask is an array of bools a lane, or None: all lanes are active."""

    def __init__(
        self, launch: KernelLaunch, arrays: Mapping[str, Any], blocks: list[tuple[int, ...]], warp: int
    ) -> None:
        self.launch, self.arrays, self.warp = launch, arrays, warp
        self.threads, self.blocks = launch.threads, len(blocks)
        self.lanes = self.threads * self.blocks
        self.tid = np.tile(np.arange(self.threads, dtype=np.int64), self.blocks)
        self.block = np.repeat(np.arange(self.blocks, dtype=np.int64), self.threads)
        self.values: dict[str, Value] = {}
        self.data = data_names(launch.body)
        for k, var in enumerate(launch.vars):
            place = np.array([(*each, 0, 0)[k] for each in blocks], np.int64)
            self.values[var.name] = int(place[0]) if self.blocks == 1 else np.repeat(place, self.threads)
        self.local: dict[str, Any] = {}
        self.offsets: dict[str, int] = {}
        self.shared = SharedMemory(self.blocks, launch.shared_bytes, _cell_bytes(launch))

    def value(self, expr: Expr, mask: Mask) -> Value:
        """What an expression gives a lane."""
        raise NotImplementedError

    def active(self, mask: Mask) -> Any:
        return np.arange(self.lanes) if mask is None else np.flatnonzero(mask)

    def wide(self, value: Value, dtype: Any) -> Any:
        """A value a lane, in a NumPy type."""
        array = np.asarray(value)
        array = array if array.dtype == dtype else array.astype(dtype)
        return array if array.shape == (self.lanes,) else np.broadcast_to(array, (self.lanes,))

    def allocate(self, stmt: AllocStmt, mask: Mask) -> None:
        buffer = stmt.buffer
        if isinstance(stmt, AllocShared):
            self.offsets[buffer.name] = stmt.offset or 0
        elif isinstance(stmt, AllocVar):
            first = self.value(stmt.init, mask) if stmt.init is not None else 0
            self.local[buffer.name] = np.array(self.wide(first, buffer.dtype.numpy))[None]
        elif isinstance(stmt, AllocLocal):
            poison = np.nan if buffer.dtype.is_float else 0x55 if buffer.dtype != boolean else False
            self.local[buffer.name] = np.full((buffer.size, self.lanes), poison, buffer.dtype.numpy)

    def index(self, index: tuple[Expr, ...], mask: Mask, lanes: Any) -> list[Any]:
        """The index a dimension of the active lanes."""
        return [self.wide(self.value(each, mask), np.int64)[lanes] for each in index]

    def fetch(
        self, at: Load | Region, buffer: Buffer, index: tuple[Expr, ...], count: int, mask: Mask
    ) -> Any:
        """(count, lanes) elements of global or shared memory from `index` on; zeros in idle lanes."""
        lanes = self.active(mask)
        out = np.zeros((count, self.lanes), buffer.dtype.numpy)
        if not lanes.size:
            return out
        place = self.index(index, mask, lanes)
        self.check(at, buffer, place, count)
        if buffer.scope == "shared":
            first = self.offsets[buffer.name] + place[0] * buffer.dtype.bytes
            got = self.shared.load(
                self.block[lanes], self.tid[lanes], first, buffer.dtype.numpy, count, at, buffer.name
            )
            out[:, lanes] = got.T
            return out
        array = self.arrays[buffer.name]
        for k in range(count):
            out[k, lanes] = array[(*place[:-1], place[-1] + k)] if place else array[()]
        return out

    def keep(
        self, at: Store | Region, buffer: Buffer, index: tuple[Expr, ...], values: Any, mask: Mask
    ) -> None:
        """Store (count, lanes) elements to global or shared memory."""
        lanes = self.active(mask)
        if not lanes.size:
            return
        place = self.index(index, mask, lanes)
        self.check(at, buffer, place, len(values))
        if buffer.scope == "shared":
            first = self.offsets[buffer.name] + place[0] * buffer.dtype.bytes
            self.shared.store(self.block[lanes], self.tid[lanes], first, values[:, lanes].T, at, buffer.name)
            return
        array = self.arrays[buffer.name]
        flat = np.ravel_multi_index(tuple(place), buffer.shape) if place else np.zeros(len(lanes), np.int64)
        if np.unique(flat).size != flat.size:
            refuse("two threads write one element of {name} in the same statement", at, name=buffer.name)
        for k in range(len(values)):
            array[(*place[:-1], place[-1] + k)] = values[k, lanes]

    def check(self, at: Load | Store | Region, buffer: Buffer, place: list[Any], count: int) -> None:
        """Inside the buffer, and a vector on a multiple of its width."""
        check_index(list(zip(place, buffer.shape, strict=True)), at, buffer.name)
        if count == 1:
            return
        check_index([(place[-1] + count - 1, buffer.shape[-1])], at, buffer.name)
        first = sum(p * s for p, s in zip(place, buffer.element_strides, strict=True)) * buffer.dtype.bytes
        first = first + self.offsets.get(buffer.name, 0)
        if (np.asarray(first) % (count * buffer.dtype.bytes)).any():
            refuse(
                "an access of {n} bytes to {name} is not aligned",
                at,
                n=count * buffer.dtype.bytes,
                name=buffer.name,
            )

    def register(self, buffer: Buffer, index: tuple[Expr, ...], mask: Mask, at: Any, count: int = 1) -> Any:
        """The number of a register: an int, or one a lane. Idle lanes get 0."""
        if not index:
            return 0
        found = self.value(index[0], mask)
        if isinstance(found, int):
            check_index(
                [(np.asarray(found), buffer.size), (np.asarray(found + count - 1), buffer.size)],
                at,
                buffer.name,
            )
            return found
        found = self.wide(found, np.int64)
        found = found if mask is None else np.where(mask, found, 0)
        check_index([(found, buffer.size)], at, buffer.name)
        return found

    def put(self, buffer: Buffer, register: Any, value: Any, mask: Mask) -> None:
        held = self.local[buffer.name]
        if isinstance(register, int):
            if mask is None:
                held[register] = value
            else:
                np.copyto(held[register], value, where=mask)
            return
        lanes = self.active(mask)
        held[register[lanes], lanes] = value[lanes]
