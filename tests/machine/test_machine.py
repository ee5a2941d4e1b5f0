"""What passes ask of a machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tilebench.errors import TargetError
from tilebench.layout import Fragment
from tilebench.machine import Instruction, MemoryLevel, Occupancy, OperandForm
from tilebench.targets import resolve
from tilebench.targets.cuda.machines import machine_of


def test_rows_of_the_instruction_table_by_operation() -> None:
    machine = machine_of("sm_80")
    assert {row.name for row in machine.instructions_for("gemm")} == {"fma", "mma"}
    assert [row.name for row in machine.instructions_for("reduce")] == ["thread", "shfl", "shared"]
    assert machine.instructions_for("nothing") == ()


def test_a_row_counts_only_on_a_machine_with_what_it_needs() -> None:
    machine = machine_of("sm_80")
    rows = (Instruction("gemm", "new", needs=("tma",)), Instruction("gemm", "old", needs=("mma",)))
    assert [row.name for row in replace(machine, instructions=rows).instructions_for("gemm")] == ["old"]


TWICE = Fragment((4,), ((4, 0, 1), (8, 0, 1)))
LANES = Fragment((8, 8), ((4, 1, 2), (8, 0, 1)), ((2, 1, 1),))


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"name": ""}, "it needs an operation and a name"),
        ({"shape": (16, 0, 8)}, "its shape (16, 0, 8) holds nothing"),
        ({"operands": (OperandForm("a"), OperandForm("a"))}, "an operand is described twice in ['a', 'a']"),
        ({"group": -1}, "-1 threads cannot act as one"),
        ({"cost": 0.0}, "its cost 0.0 is no number of cycles"),
        ({"asynchronous": True}, "what completes it is said of asynchronous ones alone"),
        ({"completes": "group"}, "what completes it is said of asynchronous ones alone"),
        (
            {"operands": (OperandForm("c", ("fragment",), LANES),), "group": 64},
            "a fragment is spread over another number of threads than 64",
        ),
        (
            {"operands": (OperandForm("c", ("fragment",), TWICE),), "group": 32},
            "a fragment holds an element twice or not at all",
        ),
        (
            {"operands": (OperandForm("c", (), LANES),), "group": 32},
            "an operand with a fragment must say that it lies in one",
        ),
    ],
)  # fmt: skip
def test_a_row_that_contradicts_itself_is_refused(fields: dict[str, Any], what: str) -> None:
    with pytest.raises(TargetError) as refused:
        Instruction(**{"operation": "gemm", "name": "mma", **fields})
    assert what in str(refused.value)


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
