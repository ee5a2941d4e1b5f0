"""How many blocks of a kernel a multiprocessor holds, by the rules of CUDA's occupancy calculator."""

from __future__ import annotations

from ...errors import ResourceError
from ...machine import Machine, Occupancy
from ...record import Resources
from .compiler.log import FunctionResources

# A multiprocessor has four partitions; a warp's registers come from one of them.
_PARTITIONS = 4


def _round_up(value: int, granule: int) -> int:
    return -(-value // granule) * granule


def occupancy(machine: Machine, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """Blocks of `threads` that are resident together on one multiprocessor.

    `registers` is a thread's, `shared_bytes` a block's (static and dynamic, without what the
    system reserves). Registers are allocated to a warp in granules of 256 out of its partition's
    quarter; shared memory in granules, with the reserved part on top for each block. `limits`
    holds the blocks that each resource alone would allow; the smallest names `limited_by`, and
    where several are smallest the order is registers, shared, warps, blocks (the first is the one a person
    can act on).
    Raises `ResourceError` when not one block can run.
    """
    warps = -(-threads // machine.warp)
    _check(machine, threads, registers, shared_bytes, warps)
    sm = machine.sm
    max_warps = sm.max_threads // machine.warp
    limits = {
        "registers": _by_registers(machine, registers, warps),
        "shared": _by_shared(machine, shared_bytes),
        "warps": max_warps // warps,
        "blocks": sm.max_blocks,
    }
    blocks = min(limits.values())
    limited_by = next(name for name, value in limits.items() if value == blocks)
    return Occupancy(blocks, blocks * warps, max_warps, limits, limited_by)


def kernel_resources(
    machine: Machine, threads: int, report: FunctionResources, dynamic_shared: int = 0
) -> Resources:
    """ptxas's report of one kernel and its occupancy, as the record keeps them."""
    shared = report.shared_bytes + dynamic_shared
    occupied = occupancy(machine, threads, report.registers, shared)
    return Resources(
        threads=threads,
        registers=report.registers,
        shared_bytes=shared,
        local_bytes=report.stack_bytes,
        spill_store_bytes=report.spill_store_bytes,
        spill_load_bytes=report.spill_load_bytes,
        barriers=report.barriers,
        blocks_per_sm=occupied.blocks,
        occupancy=occupied.fraction,
        limited_by=occupied.limited_by,
        limits=occupied.limits,
    )


def _by_registers(machine: Machine, registers: int, warps: int) -> int:
    sm = machine.sm
    if registers == 0:
        return sm.max_blocks
    a_warp = _round_up(registers * machine.warp, sm.register_granule)
    return (sm.registers // _PARTITIONS // a_warp) * _PARTITIONS // warps


def _by_shared(machine: Machine, shared_bytes: int) -> int:
    shared = machine.shared
    taken = _round_up(shared_bytes + shared.reserved, shared.granule)
    return shared.per_unit // taken if taken else machine.sm.max_blocks


def _check(machine: Machine, threads: int, registers: int, shared_bytes: int, warps: int) -> None:
    """Refuse a block that cannot run at all, with the arithmetic."""
    sm, shared = machine.sm, machine.shared
    if not 1 <= threads <= machine.max_threads:
        raise ResourceError(
            "a block of {threads} threads cannot run on {name}",
            threads=threads, name=machine.name, most=machine.max_threads, expected="1 to {most} threads",
        )  # fmt: skip
    if registers > sm.max_registers_per_thread:
        raise ResourceError(
            "{registers} registers a thread cannot be had on {name}",
            registers=registers, name=machine.name, most=sm.max_registers_per_thread,
            expected="at most {most}",
        )  # fmt: skip
    if shared_bytes > shared.per_block:
        raise ResourceError(
            "a block that takes {taken} bytes of shared memory cannot run on {name}",
            taken=shared_bytes, name=machine.name, most=shared.per_block, unit=shared.per_unit,
            reserved=shared.reserved,
            expected="at most {most} bytes ({unit} less {reserved} that the system reserves)",
        )  # fmt: skip
    # The hardware allocates to whole rows of partitions, so 3 warps take the room of 4 here.
    a_warp = _round_up(registers * machine.warp, sm.register_granule)
    block = a_warp * _round_up(warps, _PARTITIONS)
    if block > sm.registers:
        raise ResourceError(
            "{threads} threads of {registers} registers take {block} registers a block on {name}",
            threads=threads, registers=registers, block=block, name=machine.name, most=sm.registers,
            expected="at most {most}", hint="fewer threads, smaller tiles, or a launch bound",
        )  # fmt: skip
