"""What passes ask of a machine."""

from __future__ import annotations

import pytest

from tilebench.machine import InstructionEntry, MemoryLevel, Occupancy
from tilebench.targets import resolve
from tilebench.targets.cuda.machines import machine_of


def test_rows_of_the_instruction_table_by_kind() -> None:
    machine = machine_of("sm_80")
    assert {each.kind for each in machine.for_kind("gemm")} == {"gemm"}
    assert machine.for_kind("nothing") == ()
    assert InstructionEntry("gemm", "fma") in [
        InstructionEntry(each.kind, each.name) for each in machine.for_kind("gemm")
    ]


def test_shared_memory_is_the_level_of_that_name() -> None:
    machine = machine_of("sm_80")
    assert machine.shared is machine.memory["shared"]
    assert machine.shared.per_block == 166912 == 163 * 1024
    assert machine.shared.banks * machine.shared.bank_bytes == 128


@pytest.mark.parametrize("name", ["null", "cuda:sm_75", "cuda:sm_80", "cuda:sm_90a", "cuda:sm_120a"])
def test_machines_with_warps_have_what_passes_rely_on(name: str) -> None:
    _, machine = resolve(name)
    assert machine.name == name
    assert machine.warp == 32
    assert machine.max_threads % machine.warp == 0
    assert sorted(machine.vector_bytes, reverse=True) == list(machine.vector_bytes)
    assert all(each & (each - 1) == 0 for each in machine.vector_bytes)
    assert resolve(machine.name)[1] == machine


def test_a_host_is_found_again_by_its_name() -> None:
    _, machine = resolve("cpu")
    assert machine.warp == 1
    assert resolve(machine.name)[1] == machine


def test_occupancy_as_a_share() -> None:
    assert Occupancy(2, 16, 64, {}, "registers").fraction == 0.25
    assert Occupancy(0, 0, 0, {}, "").fraction == 0.0


def test_a_level_without_a_limit() -> None:
    assert MemoryLevel("global", 0).per_unit == 0
