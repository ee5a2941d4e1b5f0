"""The ways from one layout of a fragment to another, each with its price, counted over coordinates.

A value of a thread may only have to be another register of it (`rename`), come from another lane of its
warp (`shfl`), or go through shared memory (`shared`), in a layout that both sides' accesses go through
without conflicts as far as there is one. Cycles are those in which a warp issues: a shuffle is one pass over
the banks of shared memory, and so is a wavefront of an access.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import NamedTuple

import numpy as np

from ...ir import DType
from ...language.lowered.decisions import Instr
from ...layout import Fragment, SharedLayout
from ...layout.choose import AccessPattern, candidates, price
from ...layout.conversion import WarpConversion, convert_in_warps
from ...machine import Instruction, Machine

OPERATION = "convert_layout"
RENAME, SHUFFLE, SHARED = "rename", "shfl", "shared"
# Instructions of a side that are looked at; they stand for all that it issues.
LOOKED_AT = 4


@dataclass(frozen=True)
class Way:
    """One way, and what a warp pays: `through` is the layout in shared memory, of the last kind alone.

    `shuffles`, `selections` and `accesses` are instructions of a thread, `bytes` what the block moves
    through shared memory in both directions, `conflicts` wavefronts beyond the fewest possible.
    """

    by: Instr
    cycles: float
    shuffles: int = 0
    selections: int = 0
    accesses: int = 0
    bytes: int = 0
    barriers: int = 0
    conflicts: float = 0.0
    through: SharedLayout | None = None

    @property
    def words(self) -> str:
        """The price as a stage states it."""
        counts = (
            (self.shuffles, "shuffle"), (self.selections, "selection"), (self.accesses, "access"),
            (self.bytes, "byte"), (self.barriers, "barrier"),
        )  # fmt: skip
        plural = {"access": "accesses"}
        said = [f"{n} {word if n == 1 else plural.get(word, word + 's')}" for n, word in counts if n]
        return ", ".join(said) or "nothing"


def register_bits(dtype: DType) -> int:
    """Bits that an element takes among the registers of a thread: at least a byte of its own."""
    return max(8, dtype.bits)


def in_warps(src: Fragment, dst: Fragment, dtype: DType, machine: Machine) -> WarpConversion | None:
    """The steps inside warps, None where there are none. Packed elements and bools travel one by one."""
    alone = dtype.per_byte > 1 or dtype.name == "bool"
    return convert_in_warps(src, dst, 32 if alone else register_bits(dtype), machine.warp)


def ways(src: Fragment, dst: Fragment, dtype: DType, machine: Machine) -> tuple[Way, ...]:
    """All ways that the machine has rows for, the cheapest first."""
    rows = {row.name: row for row in machine.instructions_for(OPERATION)}
    found: list[Way] = []
    steps = in_warps(src, dst, dtype, machine)
    if steps is not None:
        name = SHUFFLE if steps.steps else RENAME
        if name in rows:
            found.append(_by_steps(steps, rows[name], dtype))
    if SHARED in rows:
        one_pass = rows[SHUFFLE].cost if SHUFFLE in rows else 1.0
        found.append(_by_memory(src, dst, register_bits(dtype), rows[SHARED], one_pass, _Banks.of(machine)))
    return tuple(sorted(found, key=lambda way: way.cycles))


def cheapest_way(src: Fragment, dst: Fragment, dtype: DType, machine: Machine) -> Way | None:
    """The cheapest way; the one through shared memory is not looked for where it cannot be it."""
    rows = {row.name: row for row in machine.instructions_for(OPERATION)}
    steps = in_warps(src, dst, dtype, machine)
    name = None if steps is None else SHUFFLE if steps.steps else RENAME
    if steps is not None and name in rows:
        way = _by_steps(steps, rows[name], dtype)
        if SHARED not in rows or way.cycles <= _least_by_memory(src, dst, dtype, rows, machine):
            return way
    return next(iter(ways(src, dst, dtype, machine)), None)


def _least_by_memory(
    src: Fragment, dst: Fragment, dtype: DType, rows: dict[str, Instruction], machine: Machine
) -> float:
    """What shared memory costs without any conflict, in the widest accesses."""
    one_pass = rows[SHUFFLE].cost if SHUFFLE in rows else 1.0
    wide = max(machine.vector_bytes) * 8 // register_bits(dtype)
    passes = machine.warp * register_bits(dtype) / 8 / (machine.shared.banks * machine.shared.bank_bytes)
    values = src.values / src.replicated_threads + dst.values
    return rows[SHARED].cost + values * passes * one_pass + values / wide


def _by_steps(steps: WarpConversion, row: Instruction, dtype: DType) -> Way:
    parts = -(-dtype.bits // 32)
    shuffles, selections = steps.shuffles * parts, steps.selections * parts
    return Way(Instr(row.name), shuffles * row.cost + selections, shuffles, selections)


class _Banks(NamedTuple):
    """What of a machine the way through shared memory depends on."""

    warp: int
    vector_bytes: int
    banks: int
    bank_bytes: int

    @staticmethod
    def of(machine: Machine) -> _Banks:
        shared = machine.shared
        return _Banks(machine.warp, max(machine.vector_bytes), shared.banks, shared.bank_bytes)


@lru_cache(maxsize=512)
def _by_memory(
    src: Fragment, dst: Fragment, bits: int, row: Instruction, one_pass: float, banks: _Banks
) -> Way:
    """The layout of the scratch tile with the fewest wavefronts of both sides, and what they cost."""
    best: Way | None = None
    free = SharedLayout.rows(src.extents)
    least = sum(side.values // access_width(side, free, bits, banks.vector_bytes) for side in (src, dst))
    for layout in _scratch_layouts(src.extents, bits, banks.vector_bytes):
        sides = [_pattern(side, layout, bits, banks, owners=side is src) for side in (src, dst)]
        priced = price(layout, bits, sides, banks.banks, banks.bank_bytes)
        accesses = sum(round(side.weight * np.shape(side.index[0])[0]) for side in sides)
        moved = (src.elements + int(dst.real.sum())) * bits // 8
        way = Way(
            Instr(row.name), priced.wavefronts * one_pass + accesses + row.cost, accesses=accesses,
            bytes=moved, barriers=1, conflicts=priced.wavefronts - priced.ideal, through=layout,
        )  # fmt: skip
        if best is None or way.cycles < best.cycles:
            best = way
        if best.conflicts == 0 and best.accesses <= least:
            break  # Candidates come in order of preference: none can be better.
    assert best is not None  # rows as they are are always a candidate
    return best


def _scratch_layouts(extents: tuple[int, ...], bits: int, vector_bytes: int) -> Iterable[SharedLayout]:
    """Candidates for vectors of each width: what is padded for a narrow one is no place for a wide one."""
    found: dict[SharedLayout, None] = {}
    width = vector_bytes
    while width >= max(4, bits // 8):
        found.update(dict.fromkeys(candidates(extents, bits, width)))
        width //= 2
    found[SharedLayout.rows(extents)] = None
    return found


def access_width(side: Fragment, layout: SharedLayout, bits: int, vector_bytes: int) -> int:
    """The elements of one access of a side: neighbours in registers and in the layout."""
    if not side.extents or layout.run(len(side.extents) - 1) == 1:
        return 1
    run = gcd(side.contiguous_values(len(side.extents) - 1), side.extents[-1])
    width = gcd(gcd(run, layout.vector), max(1, vector_bytes * 8 // bits))
    return width & -width


def _pattern(side: Fragment, layout: SharedLayout, bits: int, banks: _Banks, owners: bool) -> AccessPattern:
    """The first instructions of a warp, weighed by how many it issues; of `owners` alone that store."""
    width = access_width(side, layout, bits, banks.vector_bytes)
    lanes = np.arange(min(banks.warp, side.threads))
    firsts = np.arange(0, side.values, width)
    values = firsts[:LOOKED_AT]
    where = side.coordinates(lanes[None, :], values[:, None])
    inside = np.ones((len(values), len(lanes)), np.bool_)
    if owners:
        inside = inside & side.owners[lanes][None, :]
    for coordinate, extent in zip(where, side.extents, strict=True):
        inside = inside & (coordinate < extent)
    index = tuple(np.minimum(c, extent - 1) for c, extent in zip(where, side.extents, strict=True))
    return AccessPattern(index, width, len(firsts) / len(values), active=inside)
