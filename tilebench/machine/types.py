"""Dataclasses for a machine: warps, banks, memory levels, registers, vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from .instruction import Instruction

# A feature: additions of float32 to neighbours in global memory, each as one step, in one access.
VECTOR_ADDS = "vector-add"


@dataclass(frozen=True)
class MemoryLevel:
    """One level a buffer can live in. Sizes in bytes; 0 means unlimited for the compiler.

    `per_block` is the most one block may take, `per_unit` what the multiprocessor or core has,
    `reserved` what the system takes of it for each block.
    """

    name: str
    per_block: int
    per_unit: int = 0
    reserved: int = 0
    granule: int = 1
    banks: int = 0
    bank_bytes: int = 4


@dataclass(frozen=True)
class SM:
    """Limits of one multiprocessor (of one core, on a CPU).

    `local_bytes` is the most memory that one thread can have for itself (0: no limit for the compiler).
    """

    max_threads: int
    max_blocks: int
    registers: int
    register_granule: int
    max_registers_per_thread: int
    local_bytes: int = 0


@dataclass(frozen=True)
class Machine:
    """A target as the passes see it. `warp` is the width of a warp in threads (1 on a CPU),
    `max_grid` the most blocks in each dimension of a launch. `alignment` is what addresses and
    rows must be multiples of for the widest accesses, in bytes (1: any address will do), `index_bits` the
    width in which offsets are cheapest, `units` how many multiprocessors or cores run blocks at the same
    time: of the device that is here, else of a common large one. `unaligned_bytes` are the loads from any
    address of global memory (`T.load_pieces`). `unused` names the options of a schedule
    that change nothing here, each with the reason in a few words."""

    name: str
    warp: int
    max_threads: int
    vector_bytes: tuple[int, ...]
    transaction_bytes: int
    sm: SM
    memory: dict[str, MemoryLevel]
    instructions: tuple[Instruction, ...] = ()
    features: frozenset[str] = field(default_factory=frozenset[str])
    max_grid: tuple[int, int, int] = (2**31 - 1, 2**31 - 1, 2**31 - 1)
    alignment: int = 1
    index_bits: int = 64
    units: int = 1
    unaligned_bytes: tuple[int, ...] = ()
    unused: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def target(self) -> str:
        """The plain name of the target: `cuda` for `cuda:sm_90a`."""
        return self.name.partition(":")[0]

    def why_unused(self, option: str) -> str:
        """`not used by cpu: ...` for an option that changes nothing on this machine, else an empty text."""
        reason = self.unused.get(option)
        return f"not used by {self.target}: {reason}" if reason else ""

    @property
    def shared(self) -> MemoryLevel:
        return self.memory["shared"]

    @cached_property
    def _by_operation(self) -> dict[str, tuple[Instruction, ...]]:
        """The rows that it has the features for, by the word of their operation."""
        found: dict[str, tuple[Instruction, ...]] = {}
        for row in self.instructions:
            if self.features.issuperset(row.needs):
                found[row.operation] = (*found.get(row.operation, ()), row)
        return found

    def instructions_for(self, operation: str) -> tuple[Instruction, ...]:
        """The rows for an operation, by its word, that this machine has the features for."""
        return self._by_operation.get(operation, ())


@dataclass(frozen=True)
class Occupancy:
    """How many blocks fit a multiprocessor, and what keeps more from fitting."""

    blocks: int
    warps: int
    max_warps: int
    limits: dict[str, int]
    limited_by: str

    @property
    def fraction(self) -> float:
        return self.warps / self.max_warps if self.max_warps else 0.0
