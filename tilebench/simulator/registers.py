"""The registers of each lane: buffers of a thread's own, of which no other thread sees anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir import AllocStmt, Buffer, Node
from ..ir.dtypes import boolean
from .access import LaneAccess
from .asynchrony import InFlight
from .launch import Launch
from .memory import check_index
from .refusal import refuse
from .state import Mask, Value

IDLE_INTEGER = 0x55


@dataclass
class Registers:
    """The buffers of one thread: (elements, lanes), and what asynchronous operations hold of them.

    `unsettled` are the lanes that have written since their last fence of registers; None: no lane had one.
    """

    values: Any
    flight: InFlight
    unsettled: Any = None


def _key(buffer: Buffer) -> tuple[str, tuple[Any, ...], str]:
    """Two branches may each have a buffer of one name; what they are apart from it tells them apart."""
    return buffer.name, buffer.shape, buffer.dtype.name


class LaneRegisters(LaneAccess):
    """The registers of all lanes, by their buffer."""

    def __init__(self, launch: Launch, blocks: list[tuple[int, int, int]]) -> None:
        super().__init__(launch, blocks)
        self.registers: dict[tuple[str, tuple[Any, ...], str], Registers] = {}

    def add_registers(self, stmt: AllocStmt, mask: Mask, first: Any = None) -> None:
        """Registers of the active lanes, filled with `first` or with what no program should use."""
        buffer = stmt.buffer
        if first is None:
            first = np.nan if buffer.dtype.is_float else False if buffer.dtype == boolean else IDLE_INTEGER
        known = self.registers.get(_key(buffer))
        if known is None or mask is None:
            values = np.empty((buffer.size, self.lanes), buffer.dtype.numpy)
            values[...] = first
            self.registers[_key(buffer)] = Registers(values, InFlight(values.size))
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
        found = self.registers.get(_key(buffer))
        if found is None:
            refuse("{name} is used before it is allocated", node, name=buffer.name)
        return found

    def get(self, buffer: Buffer, number: Any, count: int, mask: Mask, node: Node) -> Any:
        """(count, lanes) elements of each lane's registers from `number` on."""
        own = self.own(buffer, node)
        if own.flight.operations:
            cells = self.register_cells(number, count)[self.active(mask)]
            own.flight.check_read(cells, node, buffer.name)
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
        if own.unsettled is not None:
            own.unsettled[lanes] = True
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
