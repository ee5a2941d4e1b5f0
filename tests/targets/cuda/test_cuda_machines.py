"""Machines: names, limits, features against the real compiler, the ring that fits."""

from __future__ import annotations

import pytest

from tilebench.errors import TargetError
from tilebench.targets.cuda.machines import (
    DEFAULT_ARCH,
    KNOWN_ARCHS,
    arch_of,
    capability_of,
    machine_for_capability,
    machine_of,
)

KB = 1024


def test_golden_shared_memory_of_sm_80() -> None:
    machine = machine_of("sm_80")
    assert machine.shared.per_unit == 164 * KB
    assert machine.shared.per_block == 163 * KB
    assert machine.shared.reserved == KB


@pytest.mark.parametrize(
    ("arch", "per_block_kb", "unit_kb", "threads", "blocks"),
    [
        ("sm_75", 64, 64, 1024, 16),
        ("sm_80", 163, 164, 2048, 32),
        ("sm_86", 99, 100, 1536, 16),
        ("sm_87", 163, 164, 1536, 16),
        ("sm_89", 99, 100, 1536, 24),
        ("sm_90a", 227, 228, 2048, 32),
        ("sm_100a", 227, 228, 2048, 32),
        ("sm_110a", 227, 228, 1536, 24),
        ("sm_120a", 99, 100, 1536, 24),
    ],
)
def test_limits_of_the_programming_guide(
    arch: str, per_block_kb: int, unit_kb: int, threads: int, blocks: int
) -> None:
    machine = machine_of(arch)
    assert (machine.shared.per_block, machine.shared.per_unit) == (per_block_kb * KB, unit_kb * KB)
    assert (machine.sm.max_threads, machine.sm.max_blocks) == (threads, blocks)
    assert (machine.sm.registers, machine.sm.max_registers_per_thread) == (65536, 255)
    assert (machine.shared.banks, machine.shared.bank_bytes, machine.warp) == (32, 4, 32)


def test_names_with_and_without_prefix_are_one_machine() -> None:
    assert machine_of("cuda:sm_90a") is machine_of("sm_90a")
    assert machine_of("sm_90a").name == "cuda:sm_90a"
    assert arch_of(machine_of("sm_90a")) == "sm_90a"
    assert arch_of(machine_of("cuda")) == DEFAULT_ARCH
    assert [capability_of(each) for each in ("sm_75", "sm_90a", "sm_103a", "sm_120")] == [
        (7, 5), (9, 0), (10, 3), (12, 0),
    ]  # fmt: skip


def test_unknown_machine_lists_the_known_and_the_nearest() -> None:
    with pytest.raises(TargetError) as caught:
        machine_of("cuda:sm_91")
    text = str(caught.value)
    assert "there is no CUDA target 'cuda:sm_91'" in text
    assert "did you mean cuda:sm_90" in text
    assert all("cuda:" + each in text for each in KNOWN_ARCHS)


@pytest.mark.parametrize(
    ("capability", "arch"),
    [((9, 0), "sm_90a"), ((8, 0), "sm_80"), ((8, 8), "sm_86"), ((10, 0), "sm_100a"), ((12, 1), "sm_121a")],
)
def test_machine_of_a_device(capability: tuple[int, int], arch: str) -> None:
    assert arch_of(machine_for_capability(*capability)) == arch


def test_a_device_that_is_too_old() -> None:
    with pytest.raises(TargetError, match=r"capability 7\.0"):
        machine_for_capability(7, 0)


def test_features_and_instruction_rows() -> None:
    assert "wgmma" in machine_of("sm_90a").features
    assert "wgmma" not in machine_of("sm_90").features
    assert "cp.async" not in machine_of("sm_75").features
    assert "tma" in machine_of("sm_120").features
    for arch in KNOWN_ARCHS:
        machine = machine_of(arch)
        rows = {row.dtypes for row in machine.instructions_for("gemm")}
        assert {("float32",) * 3, ("float16", "float16", "float32"), ("int8", "int8", "int32")} <= rows
        copies = [(row.name, *row.shape) for row in machine.instructions_for("copy")]
        ahead = [("cp.async", 16), ("cp.async", 8), ("cp.async", 4)] if arch != "sm_75" else []
        boxes = [("tma",)] if "tma" in machine.features else []
        assert copies == [*ahead, *boxes, *(("ld.st", width) for width in (16, 8, 4, 2, 1))]
        assert [row.name for row in machine.instructions_for("reduce")] == ["thread", "shfl", "shared"]
        assert all(set(row.needs) <= machine.features for row in machine.instructions)


def test_fma_cost_follows_the_throughput_table() -> None:
    cost = {arch: machine_of(arch).instructions_for("gemm")[0].cost for arch in ("sm_80", "sm_86", "sm_90a")}
    assert cost == {"sm_80": 2.0, "sm_86": 1.0, "sm_90a": 1.0}
