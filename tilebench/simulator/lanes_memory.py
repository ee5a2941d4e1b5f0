"""Memory of the lanes: arrays in global memory, and shared memory that notices races."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from ..errors import LaunchError
from ..ir import Node

NOBODY_LEAST, NOBODY_MOST = np.int32(2**30), np.int32(-1)


class SimulationError(LaunchError):
    """The simulated code did what a GPU must not: a race, an access outside, a barrier that not all reach."""

    title = "simulation error"


def refuse(what: str, at: Node | None, **values: Any) -> NoReturn:
    raise SimulationError(what, at=None if at is None else at.place, **values)


@dataclass
class SharedMemory:
    """The shared memory of several blocks, in cells of `cell` bytes.

    For each cell it remembers the least and greatest thread that read it and that wrote it since
    the last barrier: two threads on one cell, one of them writing, are a race.
    """

    blocks: int
    size: int
    cell: int
    data: Any = field(init=False)
    written: Any = field(init=False)
    seen: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        cells = max(1, -(-self.size // self.cell))
        self.cells = cells
        self.data = np.full(self.blocks * cells * self.cell, 0xA5, np.uint8)
        self.written = np.zeros(self.blocks * cells, np.bool_)
        self.seen = {
            name: np.full(
                self.blocks * cells, NOBODY_LEAST if name.endswith("least") else NOBODY_MOST, np.int32
            )
            for name in ("read_least", "read_most", "write_least", "write_most")
        }

    def barrier(self, blocks: Any) -> None:
        """All threads of these blocks have met: what was done before is done for everyone."""
        for name, held in self.seen.items():
            rows = held.reshape(self.blocks, self.cells)
            rows[blocks] = NOBODY_LEAST if name.endswith("least") else NOBODY_MOST

    def _cells(self, block: Any, first_byte: Any, width: int) -> Any:
        """(lanes, cells) numbers of the cells of one access a lane."""
        start = block * self.cells + first_byte // self.cell
        return start[:, None] + np.arange(width // self.cell, dtype=np.int64)

    def _race(self, cells: Any, thread: Any, names: tuple[str, str], at: Node, name: str, kind: str) -> None:
        me = thread[:, None]
        least, most = self.seen[names[0]][cells], self.seen[names[1]][cells]
        wrong = ((least != NOBODY_LEAST) & (least != me)) | ((most != NOBODY_MOST) & (most != me))
        if wrong.any():
            lane = int(np.argmax(wrong.any(axis=1)))
            column = int(np.argmax(wrong[lane]))
            other = least[lane, column] if least[lane, column] != thread[lane] else most[lane, column]
            refuse(
                "a race in shared memory: {kind} of {name} by thread {a}, touched by thread {b} before",
                at, kind=kind, name=name, a=int(thread[lane]), b=int(other),
            )  # fmt: skip

    def _note(self, cells: Any, thread: Any, names: tuple[str, str]) -> None:
        who = np.broadcast_to(thread[:, None].astype(np.int32), cells.shape)
        np.minimum.at(self.seen[names[0]], cells, who)
        np.maximum.at(self.seen[names[1]], cells, who)

    def load(
        self, block: Any, thread: Any, first_byte: Any, dtype: Any, count: int, at: Node, name: str
    ) -> Any:
        """(lanes, count) elements; every lane given is active."""
        width = dtype.itemsize * count
        cells = self._cells(block, first_byte, width)
        self._race(cells, thread, ("write_least", "write_most"), at, name, "a read")
        if not self.written[cells].all():
            refuse("{name} is read before anything was written there", at, name=name)
        self._note(cells, thread, ("read_least", "read_most"))
        return self.data.reshape(-1, self.cell)[cells].reshape(len(thread), width).view(dtype)

    def store(self, block: Any, thread: Any, first_byte: Any, values: Any, at: Node, name: str) -> None:
        """Store (lanes, count) elements; every lane given is active."""
        width = values.dtype.itemsize * values.shape[1]
        cells = self._cells(block, first_byte, width)
        self._race(cells, thread, ("write_least", "write_most"), at, name, "a write")
        self._race(cells, thread, ("read_least", "read_most"), at, name, "a write")
        self._note(cells, thread, ("write_least", "write_most"))
        self._race(cells, thread, ("write_least", "write_most"), at, name, "a write")
        raw = np.ascontiguousarray(values).view(np.uint8).reshape(*cells.shape, self.cell)
        self.data.reshape(-1, self.cell)[cells] = raw
        self.written[cells] = True


def check_index(flat: list[tuple[Any, int]], at: Node, name: str) -> None:
    """Every index of (array, extent) inside its dimension."""
    for dim, (index, extent) in enumerate(flat):
        if (np.min(index) < 0) or (np.max(index) >= extent):
            found = int(np.min(index)) if np.min(index) < 0 else int(np.max(index))
            refuse(
                "{name} is accessed outside: index {index} in dimension {dim} of extent {extent}",
                at, name=name, index=found, dim=dim, extent=extent,
            )  # fmt: skip
