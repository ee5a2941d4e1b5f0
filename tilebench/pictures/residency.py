"""Blocks that a card holds at a time, and how a launch fills its multiprocessors: waves and tail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import ceil, prod
from typing import TypeAlias

from ..errors import ResourceError
from ..machine import Machine, Occupancy

Rule: TypeAlias = Callable[[Machine, int, int, int], Occupancy]


@dataclass(frozen=True)
class CardResidency:
    """What a multiprocessor of one card holds of a kernel, and what a launch of `grid` blocks makes of it.

    `limits` has the blocks that each resource alone allows (`registers`, `shared`, `warps`, `blocks`; without
    registers before they are known); `blocks` of them are resident, `warps` of `max_warps` warps. `units` are
    the card's multiprocessors. `waves` is how often all places of the card are filled, counted as a
    fraction; the last wave has `last` of `places` blocks. `idle` is the part (0 to 1) of places times waves,
    the last one taken whole, in which nothing runs: what the tail costs where all blocks take the same time.
    `refused` says why not one block can run there.
    """

    card: str
    units: int
    threads: int
    registers: int | None
    shared_bytes: int
    grid: int | None
    limits: Mapping[str, int] = field(default_factory=dict[str, int])
    limited_by: str = ""
    blocks: int = 0
    warps: int = 0
    max_warps: int = 0
    refused: str = ""

    @property
    def occupancy(self) -> float:
        return self.warps / self.max_warps if self.max_warps else 0.0

    @property
    def places(self) -> int:
        """Blocks that the card holds at a time."""
        return self.blocks * self.units

    @property
    def waves(self) -> float | None:
        """Blocks of the launch for each place; None where the grid is known only at a launch."""
        return self.grid / self.places if self.grid is not None and self.places else None

    @property
    def last(self) -> int | None:
        """Blocks of the last wave."""
        if self.grid is None or not self.places:
            return None
        return self.grid - (ceil(self.grid / self.places) - 1) * self.places if self.grid else 0

    @property
    def idle(self) -> float | None:
        waves = self.waves
        return None if not waves else 1 - waves / ceil(waves)


def residency(
    rule: Rule, machine: Machine, threads: int, registers: int | None, shared_bytes: int, grid: int | None
) -> CardResidency:
    """The residency on one card, by the rule of its target's manifest (`Manifest.occupancy`).

    That of CUDA's targets follows NVIDIA's `cuda_occupancy.h`: registers are given to a warp in granules out
    of the quarter of its partition, shared memory to a block in granules with what the system reserves on
    top. Waves take as many blocks as have a place, as a card does where all blocks take the same time.
    `registers` None leaves them out of the limits.
    """
    out = CardResidency(machine.name, machine.units, threads, registers, shared_bytes, grid)
    try:
        found = rule(machine, threads, registers or 0, shared_bytes)
    except ResourceError as error:
        return CardResidency(
            out.card, out.units, threads, registers, shared_bytes, grid, refused=error.message
        )
    limits = {name: n for name, n in found.limits.items() if registers is not None or name != "registers"}
    limited = found.limited_by if found.limited_by in limits else min(limits, key=lambda name: limits[name])
    return CardResidency(
        out.card, out.units, threads, registers, shared_bytes, grid, limits, limited, found.blocks,
        found.warps, found.max_warps,
    )  # fmt: skip


def blocks_of(grid: tuple[int | str, ...]) -> int | None:
    """The blocks of a launch, None where a count is known only then."""
    counts = [count for count in grid if isinstance(count, int)]
    return prod(counts) if len(counts) == len(grid) else None
