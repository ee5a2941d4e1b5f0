"""What copies of the tensor memory accelerator do in the simulator: a box at once, by the block's engine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ....ir import Region, Stmt
from ....simulator.asynchrony import Hold
from ....simulator.clocks import Party
from ....simulator.lanes import Lanes
from ....simulator.memory import flat_index
from ....simulator.phases import Named
from ....simulator.refusal import refuse
from ....simulator.state import Mask
from ..tensor_maps import MOST_BOX, MOST_RANK, UNIT
from .tma import NAME, TmaCommit, TmaLoad, TmaStore, TmaWait

# Where a box may start in shared memory (PTX ISA, "Tensor copies: alignment").
START = 128


@dataclass(frozen=True)
class Box:
    """A box of a global array that one thread names: which of its elements are in the array, and where."""

    inside: tuple[slice, ...]
    array: tuple[slice, ...]
    shape: tuple[int, ...]

    @property
    def empty(self) -> bool:
        return any(part.start >= part.stop for part in self.inside)


def box_at(start: list[int], extent: tuple[int, ...], shape: tuple[int, ...]) -> Box:
    """The part of a box that lies in an array, seen from the box and from the array."""
    low = [max(0, -first) for first in start]
    high = [
        max(least, min(size, limit - first))
        for least, size, first, limit in zip(low, extent, start, shape, strict=True)
    ]
    return Box(
        tuple(slice(a, b) for a, b in zip(low, high, strict=True)),
        tuple(slice(first + a, first + b) for first, a, b in zip(start, low, high, strict=True)),
        extent,
    )


def numbers_in(box: Box, shape: tuple[int, ...]) -> Any:
    """(1, elements) row-major numbers of the array's elements in a box."""
    ranges: list[Any] = [np.arange(part.start, part.stop) for part in box.array]
    grids: Any = np.meshgrid(*ranges, indexing="ij")
    return flat_index([grid.reshape(-1) for grid in grids], shape, 1, grids[0].size).reshape(1, -1)


def swizzled(bytes: Any, swizzle: int) -> Any:
    """Byte addresses in shared memory with units of 16 bytes changed in lines of 128."""
    if not swizzle:
        return bytes
    return bytes ^ (bytes >> 7 & (swizzle // UNIT - 1)) << 4


def check_box(statement: Stmt, region: Region, swizzle: int) -> None:
    """Refuse a box that no map can describe."""
    extent, width = region.extent or (), region.buffer.dtype.bits // 8
    row = extent[-1] * width if extent else 0
    wrong = (
        "it has no whole bytes" if not width
        else f"it has {len(extent)} dimensions" if not 1 <= len(extent) <= MOST_RANK
        else f"it has {max(extent)} elements in a dimension" if max(extent) > MOST_BOX
        else f"its rows have {row} bytes, no multiple of 16" if row % UNIT
        else f"its rows have {row} bytes, and a swizzle of {swizzle} needs as many"
        if swizzle and row != swizzle
        else ""
    )  # fmt: skip
    if wrong:
        refuse("no tensor map has this box: {wrong}", statement, wrong=wrong)


def box_start(lanes: Lanes, region: Region, statement: Stmt, lane: int, mask: Mask) -> list[int]:
    """Where a thread's box starts in its array. Rows start at whole units, and a box that is stored not in
    front of its array: a card ends the launch else."""
    start = [int(lanes.wide(lanes.value(part, mask), np.int64)[lane]) for part in region.start]
    width = region.buffer.dtype.bits // 8
    if start and start[-1] * width % UNIT:
        refuse(
            "rows of a box start at a multiple of {unit} bytes along the last dimension of {name}, and these"
            " at element {first}, byte {byte}", statement, unit=UNIT, name=region.buffer.name,
            first=start[-1], byte=start[-1] * width,
        )  # fmt: skip
    before = next((dim for dim, first in enumerate(start) if first < 0), None)
    if isinstance(statement, TmaStore) and before is not None:
        refuse(
            "a box that is stored starts in {name}, and this one at {first} in dimension {dim}", statement,
            name=region.buffer.name, first=start[before], dim=before,
        )  # fmt: skip
    return start


def shared_cells(lanes: Lanes, region: Region, statement: Any, lane: int, mask: Mask, party: Party) -> Any:
    """(1, cells) of the box in shared memory, in the order of its elements."""
    buffer, count = region.buffer, (region.extent or (0,))[-1]
    first = int(lanes.wide(lanes.value(region.start[-1], mask), np.int64)[lane])
    if first < 0 or first + count > buffer.size:
        refuse(
            "{name} is accessed outside: elements {first} to {last} of {size}", statement, name=buffer.name,
            first=first, last=first + count - 1, size=buffer.size,
        )  # fmt: skip
    width = buffer.dtype.bits // 8
    start = lanes.shared_base[buffer.name] // 8 + first * width
    if start % START:
        refuse(
            "a box starts at a multiple of {unit} bytes in shared memory, and {name} at {start} here",
            statement, unit=START, name=buffer.name, start=start,
        )  # fmt: skip
    units = lanes.shared.cell_bits // 8
    places = swizzled(start + np.arange(0, count * width, units), statement.swizzle)
    return (places // units + party.block[0] * lanes.shared.cells)[None, :]


def tma_load(lanes: Lanes, statement: TmaLoad, mask: Mask) -> None:
    """Each thread that comes here starts a copy, whose bytes are counted on its barrier at once.

    What it writes is the engine's, and nobody's before the phase of the barrier has been waited for.
    """
    check_box(statement, statement.src, statement.swizzle)
    active = lanes.active(mask)
    if statement.blocks:
        lanes.clusters.reach(lanes, statement, lanes.party(mask, active).block)
    ranks = [rank for rank in range(statement.blocks.bit_length()) if statement.blocks >> rank & 1]
    for rank in ranks or [None]:
        given = None if rank is None else np.full(len(active), rank)
        touch = lanes.phases.touch(lanes, statement.barrier, mask, given)
        for named in lanes.phases.used(lanes, statement, statement.barrier, touch):
            for row in named.rows.tolist():
                _bring(lanes, statement, int(touch.lanes[row]), rank, mask, named)
            named.barrier.settle(lanes, named.block)


def _bring(
    lanes: Lanes, statement: TmaLoad, lane: int, rank: int | None, mask: Mask, named: Named
) -> None:  # fmt: skip
    """The copy of one thread, to the block of a rank in its cluster; None: to its own."""
    if not named.barrier.fenced:
        refuse(
            "{name} is used by a copy that goes on by itself, and T.fence_mbarrier_init() has not told it"
            " of the barrier", statement, name=named.name, also=[("made here", named.barrier.made.place)],
        )  # fmt: skip
    party = lanes.party(lanes.full(mask), np.array([lane]))
    there = party if rank is None else lanes.home_of(party, rank)
    engine = lanes.engine_of(there)
    source, values = _read(lanes, statement, lane, mask, party)
    cells = shared_cells(lanes, statement.dst, statement, lane, mask, there)
    name = statement.dst.buffer.name
    writer = party if rank is None else replace(party, home=there.block)
    lanes.watch.check_fenced(lanes.shared, cells, writer, statement, name, "overwritten")
    lanes.watch.write(lanes.shared, cells, writer, statement, name)
    raw = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    if raw.size != cells.size * lanes.shared.cell_bits // 8:
        refuse(
            "this box has {box} bytes, and its place in shared memory {place}", statement,
            box=raw.size, place=cells.size * lanes.shared.cell_bits // 8,
        )  # fmt: skip
    lanes.shared.bytes[cells] = raw.reshape(*cells.shape, -1)
    holds = [Hold(lanes.shared, cells, writes=True), *source]
    for hold in holds:
        hold.memory.flight.start(hold.cells, statement, writes=hold.writes)
        named.barrier.copies.append((statement, hold, engine))
    named.barrier.came += raw.size


def tma_store(lanes: Lanes, statement: TmaStore, mask: Mask) -> None:
    """Each thread that comes here starts a copy to the array, which reads shared memory until its wait."""
    check_box(statement, statement.dst, statement.swizzle)
    for lane in lanes.active(mask).tolist():
        alone = np.zeros(lanes.lanes, np.bool_)
        alone[lane] = True
        party = lanes.party(alone, np.array([lane]))
        name = statement.src.buffer.name
        cells = shared_cells(lanes, statement.src, statement, lane, mask, party)
        lanes.watch.check_fenced(lanes.shared, cells, party, statement, name, "read")
        lanes.watch.read(lanes.shared, cells, party, statement, name)
        if lanes.shared.history.unwritten(cells):
            refuse("{name} is read before anything was written there", statement, name=name)
        _store(lanes, statement, lane, mask, party, lanes.shared.bytes[cells].reshape(-1))
        lanes.hold(NAME, statement, alone, [Hold(lanes.shared, cells, writes=False)])


def _store(lanes: Lanes, statement: TmaStore, lane: int, mask: Mask, party: Party, raw: Any) -> None:
    """The bytes of a box into the array, where it is one."""
    dst = statement.dst
    buffer, extent = dst.buffer, tuple(dst.extent or ())
    start = box_start(lanes, dst, statement, lane, mask)
    values, size = raw.view(buffer.dtype.numpy), int(np.prod(extent))
    if values.size != size:
        refuse(
            "this box has {box} bytes, and its place in shared memory {place}", statement,
            box=size * buffer.dtype.bits // 8, place=raw.size,
        )  # fmt: skip
    box = box_at(start, extent, buffer.extents)
    if box.empty:
        return
    numbers = numbers_in(box, buffer.extents)
    if lanes.launch.counters is not None:
        lanes.launch.counters.count_box(numbers[0] * (buffer.dtype.bits // 8), buffer.dtype.bits // 8)
    lanes.watch.write(lanes.launch.tracked[buffer.name], numbers, party, statement, buffer.name)
    lanes.arrays[buffer.name][box.array] = values.reshape(extent)[box.inside]


def tma_commit(lanes: Lanes, statement: TmaCommit, mask: Mask) -> None:
    """The threads' groups are closed."""
    lanes.commit(NAME, mask)


def tma_wait(lanes: Lanes, statement: TmaWait, mask: Mask) -> None:
    """The threads wait until their own groups have read."""
    lanes.wait(NAME, statement.pending, statement, mask)


def _read(lanes: Lanes, statement: TmaLoad, lane: int, mask: Mask, party: Party) -> tuple[list[Hold], Any]:
    """The box of the array, zeros outside; what is remembered of the array is held until the copy is done."""
    src = statement.src
    buffer, extent = src.buffer, tuple(src.extent or ())
    start = box_start(lanes, src, statement, lane, mask)
    box = box_at(start, extent, buffer.extents)
    values = np.zeros(extent, buffer.dtype.numpy)
    if box.empty:
        return [], values
    values[box.inside] = lanes.arrays[buffer.name][box.array]
    if lanes.launch.counters is not None:
        numbers = numbers_in(box, buffer.extents)[0] * (buffer.dtype.bits // 8)
        lanes.launch.counters.count_box(numbers, buffer.dtype.bits // 8)
    memory = lanes.launch.tracked.get(buffer.name)
    if memory is None:
        return [], values
    cells = numbers_in(box, buffer.extents)
    lanes.watch.read(memory, cells, party, statement, buffer.name)
    return [Hold(memory, cells, writes=False)], values
