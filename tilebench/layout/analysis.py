"""Costs that are computed, not guessed: each function enumerates addresses or coordinates in NumPy.

Bank conflicts and sectors follow the counting of NVIDIA's profilers ("wavefronts" of shared
memory, "sectors per request" of global memory); every number of the machine is an argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import LayoutError

IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class BankConflicts:
    """Shared-memory cost of instructions: passes over the banks (wavefronts), and the least possible."""

    wavefronts: IntArray
    ideal: IntArray

    @property
    def total(self) -> int:
        return int(self.wavefronts.sum())

    @property
    def excess(self) -> int:
        """Wavefronts beyond the ideal, over all instructions."""
        return int((self.wavefronts - self.ideal).sum())

    @property
    def degree(self) -> float:
        """Wavefronts over ideal ones: 1 without conflicts, 32 for a 32-way conflict."""
        ideal = int(self.ideal.sum())
        return self.total / ideal if ideal else 1.0


@dataclass(frozen=True, eq=False)
class Coalescing:
    """Global-memory cost of requests: sectors moved by each, and the fewest that hold its bytes."""

    sectors: IntArray
    ideal: IntArray

    @property
    def efficiency(self) -> float:
        """Ideal sectors over moved ones; 1 is best."""
        moved = int(self.sectors.sum())
        return int(self.ideal.sum()) / moved if moved else 1.0


def _rows(addresses: object, active: object) -> tuple[IntArray, BoolArray | None]:
    """Addresses as (instructions, lanes), and which lanes take part; None where all do."""
    rows = np.atleast_2d(np.asarray(addresses, np.int64))
    if rows.ndim != 2:
        raise LayoutError(
            "addresses of {rank} dimensions cannot be analysed", rank=rows.ndim,
            expected="(lanes,) or (instructions, lanes)",
        )  # fmt: skip
    if active is None:
        return rows, None
    return rows, np.broadcast_to(np.asarray(active, np.bool_), rows.shape)


def _distinct(keys: IntArray) -> BoolArray:
    """(rows, n) sorted `keys`: where a key occurs first in its row."""
    first = np.empty(keys.shape, np.bool_)
    first[:, 0] = True
    np.not_equal(keys[:, 1:], keys[:, :-1], out=first[:, 1:])
    return first


def bank_conflicts(
    byte_addresses: object, access_bytes: int, banks: int, bank_bytes: int, active: object = None
) -> BankConflicts:
    """Wavefronts of shared-memory instructions.

    `byte_addresses` is (lanes,) or (instructions, lanes); `active` masks lanes. A wavefront serves
    each bank one word; lanes that read the same word share it. Accesses wider than a word go in
    phases of `banks * bank_bytes / access_bytes` neighbouring lanes: halves of a warp for 8
    bytes, quarters for 16. The ideal is one wavefront for each phase that has an active lane.
    """
    rows, mask = _rows(byte_addresses, active)
    words = max(1, access_bytes // bank_bytes)
    phase = max(1, banks // words)
    instructions, lanes = rows.shape
    phases = -(-lanes // phase)
    pad = phases * phase - lanes
    if pad:
        mask = np.ones(rows.shape, np.bool_) if mask is None else mask
        rows, mask = (np.pad(lanes_of, ((0, 0), (0, pad))) for lanes_of in (rows, mask))
    count = instructions * phases
    touched: IntArray = rows.reshape(count, phase, 1) // bank_bytes
    if words > 1:
        touched = touched + np.arange(words)
    if mask is not None:
        touched = np.where(mask.reshape(count, phase, 1), touched, -1)
    touched = touched.reshape(count, phase * words)
    touched.sort(axis=1)
    fresh = _distinct(touched)
    if mask is not None:
        fresh &= touched >= 0
    first: IntArray = np.arange(0, count * banks, banks, dtype=np.int64)[:, None]
    place = touched % banks + first
    loads = np.bincount(place[fresh], minlength=count * banks)
    passes = loads.reshape(instructions, phases, banks).max(axis=2)
    return BankConflicts(passes.sum(axis=1), (passes > 0).sum(axis=1))


def coalescing(
    byte_addresses: object, access_bytes: int | IntArray, transaction_bytes: int, active: object = None
) -> Coalescing:
    """Sectors of `transaction_bytes` that each request touches, against the fewest that could do.

    `byte_addresses` is (lanes,) or (requests, lanes), each access aligned to its size; `access_bytes` is one
    for all, or one each, which may be none. Requests without an active lane cost nothing.
    """
    rows, mask = _rows(byte_addresses, active)
    if not isinstance(access_bytes, int):
        rows, inside = _single_bytes(rows, access_bytes, mask)
        return coalescing(rows, 1, transaction_bytes, inside)
    reach = 1 + (access_bytes - 1) // transaction_bytes
    sector = rows[:, :, None] // transaction_bytes + np.arange(reach)
    # An access that is not aligned to its size can end in one sector more.
    last = (rows + access_bytes - 1) // transaction_bytes
    sector = np.concatenate([sector, last[:, :, None]], axis=2)
    start = np.array(rows)
    if mask is not None:
        sector, start = np.where(mask[:, :, None], sector, -1), np.where(mask, rows, -1)
    sector = sector.reshape(rows.shape[0], -1)
    sector.sort(axis=1)
    sectors = (_distinct(sector) & (sector >= 0)).sum(axis=1).astype(np.int64)
    start.sort(axis=1)
    useful = (_distinct(start) & (start >= 0)).sum(axis=1).astype(np.int64) * access_bytes
    return Coalescing(sectors, -(-useful // transaction_bytes))


def _single_bytes(rows: IntArray, sizes: IntArray, mask: BoolArray | None) -> tuple[IntArray, BoolArray]:
    """Accesses of different sizes as accesses of a byte each, of which a request has the more."""
    offset = np.arange(max(1, int(sizes.max(initial=0))))
    addresses = (rows[:, :, None] + offset).reshape(len(rows), -1)
    inside = offset < np.broadcast_to(sizes, rows.shape)[:, :, None]
    if mask is not None:
        inside &= mask[:, :, None]
    return addresses, inside.reshape(len(rows), -1)


def vector_width(
    strides: Sequence[int | None],
    extents: Sequence[int],
    element_bits: int,
    alignment_bytes: int,
    allowed: Sequence[int],
    offset_multiple: int = 0,
) -> int:
    """The most elements one access may take along the last dimension of a region.

    `strides` in elements, None where unknown (then no vector can be aligned, as for a last stride
    other than 1). `alignment_bytes` is that of the buffer's start; `offset_multiple` a number of
    elements that every start in the region is a multiple of (0: the start itself). `allowed` are
    sizes in bytes. 1 when nothing wider is legal.
    """
    if not extents or strides[-1] != 1:
        return 1
    unit = gcd(extents[-1], offset_multiple)
    for extent, stride in zip(extents[:-1], strides[:-1], strict=True):
        if extent > 1:
            unit = gcd(unit, 1 if stride is None else stride)
    fitting = [
        size * 8 // element_bits
        for size in allowed
        if size * 8 % element_bits == 0
        and alignment_bytes % size == 0
        and unit % (size * 8 // element_bits) == 0
    ]
    return max(fitting, default=1)
