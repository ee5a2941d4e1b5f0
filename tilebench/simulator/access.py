"""Reading and writing memory: the checks, the history of the cells, and the bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import InternalError
from ..ir import Buffer, Node, Store
from ..language.meanings.atomics import combination, turns
from .address import first_bit, stored_bits
from .clocks import Party
from .memory import check_index, check_vector, gather, scatter, tracked_cells
from .refusal import refuse
from .state import LaneState, Mask, Value


@dataclass(frozen=True)
class Touch:
    """One access of the active lanes: `cells` are None where nothing has to be remembered."""

    index: list[Any]
    lanes: Any
    party: Party
    memory: Any
    cells: Any
    bits: Any = None


class LaneAccess(LaneState):
    """Accesses to shared and global memory by lanes whose index is known."""

    def touch(
        self, node: Node, buffer: Buffer, index: list[Value], count: int, mask: Mask, *, counts: bool = True
    ) -> Touch:
        """The cells of `count` elements a lane from `index` on, inside the buffer and aligned.

        Without `counts` no counter sees it.
        """
        lanes = self.active(mask)
        party = self.party(mask, lanes)
        numbers = [self.wide(number, np.int64) for number in index]
        numbers = numbers if mask is None else [number[lanes] for number in numbers]
        if buffer.scope not in ("shared", "global"):
            raise InternalError(
                "the simulator has no memory {scope} for {name}", at=node.place,
                scope=buffer.scope, name=buffer.name,
            )  # fmt: skip
        base = self.shared_base.get(buffer.name, 0)
        check_index(numbers, buffer.extents, node, buffer.name)
        if count > 1:
            check_vector(buffer, numbers, count, base, node)
        if buffer.scope == "shared":
            bits = first_bit(buffer, numbers, base)
            if counts and self.launch.counters is not None:
                width = count * stored_bits(buffer.dtype) // 8
                self.launch.counters.count(buffer.name, bits // 8, width, lanes, self.threads, self.warp)
            cells = self.shared.cells_of(bits, count * stored_bits(buffer.dtype), party)
            return Touch(numbers, lanes, party, self.shared, cells, bits)
        if counts and self.launch.counters is not None:
            width = count * stored_bits(buffer.dtype) // 8
            start = first_bit(buffer, numbers) // 8
            self.launch.counters.count_global(start, width, lanes, self.threads, self.warp)
        memory = self.launch.tracked.get(buffer.name)
        cells = None if memory is None else tracked_cells(buffer, numbers, count, len(lanes))
        return Touch(numbers, lanes, party, memory, cells)

    def elsewhere(self, touch: Touch, ranks: Any, node: Node) -> Touch:
        """The same place in the shared memory of other blocks of the cluster, a rank an active lane."""
        cluster = self.launch.cluster
        if len(ranks) and (int(ranks.min()) < 0 or int(ranks.max()) >= cluster):
            refuse(
                "this names block {rank} of a cluster of {count}", node, count=cluster,
                rank=int(ranks.min()) if int(ranks.min()) < 0 else int(ranks.max()),
            )  # fmt: skip
        party = touch.party
        home = party.block // cluster * cluster + ranks
        cells = touch.cells + ((home - party.block) * self.shared.cells)[:, None]
        return replace(touch, party=replace(party, home=home), cells=cells)

    def fetch(
        self, node: Node, buffer: Buffer, index: list[Value], count: int, mask: Mask, *, counts: bool = True
    ) -> Any:
        """(count, lanes) elements of shared or global memory; zeros in idle lanes.

        Without `counts` no counter sees it.
        """
        if mask is not None and not mask.any():
            return np.zeros((count, self.lanes), buffer.dtype.numpy)
        touch = self.touch(node, buffer, index, count, mask, counts=counts)
        if touch.cells is not None:
            self.watch.read(touch.memory, touch.cells, touch.party, node, buffer.name)
        if buffer.scope == "shared":
            if self.shared.history.unwritten(touch.cells):
                refuse("{name} is read before anything was written there", node, name=buffer.name)
            found = self.shared.load(touch.cells, touch.bits, count, buffer.dtype).T
        else:
            found = gather(self.arrays[buffer.name], touch.index, count)
        if mask is None and np.shape(found) == (count, self.lanes):
            return found
        out = np.zeros((count, self.lanes), buffer.dtype.numpy)
        out[:, touch.lanes] = found
        return out

    def combine(
        self, store: Store, index: list[Value], values: Any, mask: Mask, *, counts: bool = True
    ) -> Any:
        """An atomic of shared or global memory: the lanes one after the other at each place.

        What each found, (lanes,), with zeros in idle ones. Without `counts` no counter sees it.
        """
        buffer = store.buffer
        found = np.zeros(self.lanes, buffer.dtype.numpy)
        if mask is not None and not mask.any():
            return found
        touch = self.touch(store, buffer, index, 1, mask, counts=counts)
        cells: Any = touch.cells
        bits: Any = touch.bits
        if cells is not None:
            self.watch.combine(touch.memory, cells, touch.party, store, buffer.name)
        values = values if mask is None else values[touch.lanes]
        shared = buffer.scope == "shared"
        if shared and not store.overwrites and self.shared.history.unwritten(cells):
            refuse("{name} is added to before anything was written there", store, name=buffer.name)
        blocks = (touch.party.block,) if shared else ()
        apply = combination(store.atomic, buffer.dtype)
        for turn in turns([*blocks, *touch.index], ((self.blocks,) if shared else ()) + buffer.extents):
            if shared:
                assert cells is not None  # of shared memory all are remembered
                old = self.shared.load(cells[turn], bits[turn], 1, buffer.dtype)[:, 0]
                new = np.asarray(apply(old, values[turn]), buffer.dtype.numpy)
                self.shared.store(cells[turn], bits[turn], new[:, None], buffer.dtype)
            else:
                array, spot = self.arrays[buffer.name], tuple(number[turn] for number in touch.index)
                old = array[spot]
                array[spot] = apply(old, values[turn])
            found[touch.lanes[turn]] = old
        return found

    def keep(self, node: Node, buffer: Buffer, index: list[Value], values: Any, mask: Mask) -> None:
        """Store (count, lanes) elements to shared or global memory."""
        if mask is not None and not mask.any():
            return
        touch = self.touch(node, buffer, index, len(values), mask)
        if touch.cells is not None:
            self.watch.write(touch.memory, touch.cells, touch.party, node, buffer.name)
        values = values if mask is None else values[:, touch.lanes]
        if buffer.scope == "shared":
            self.shared.store(touch.cells, touch.bits, values.T, buffer.dtype)
        else:
            scatter(self.arrays[buffer.name], touch.index, values)
