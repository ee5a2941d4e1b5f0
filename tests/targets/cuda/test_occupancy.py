"""Occupancy against values of CUDA's own calculator, and the refusals."""

from __future__ import annotations

import pytest

from tilebench.errors import ResourceError
from tilebench.targets.cuda.compiler.log import FunctionResources
from tilebench.targets.cuda.machines import machine_of
from tilebench.targets.cuda.occupancy import kernel_resources, occupancy

# arch, threads, registers a thread, shared bytes a block; blocks, warps, what limits
GOLDEN = [
    ("sm_75", 256, 32, 0, 4, 32, "warps"),
    ("sm_75", 128, 64, 16 * 1024, 4, 16, "shared"),
    ("sm_80", 1024, 32, 0, 2, 64, "registers"),
    ("sm_80", 256, 32, 0, 8, 64, "registers"),
    ("sm_80", 256, 33, 0, 6, 48, "registers"),
    ("sm_80", 32, 16, 0, 32, 32, "blocks"),
    ("sm_80", 128, 40, 48 * 1024, 3, 12, "shared"),
    ("sm_80", 256, 128, 160 * 1024, 1, 8, "shared"),
    ("sm_86", 256, 40, 0, 6, 48, "registers"),
    ("sm_86", 128, 16, 0, 12, 48, "warps"),
    ("sm_89", 256, 80, 0, 3, 24, "registers"),
    ("sm_89", 256, 64, 0, 4, 32, "registers"),
    ("sm_89", 256, 32, 24576, 4, 32, "shared"),
    ("sm_89", 256, 32, 24577, 3, 24, "shared"),
    ("sm_90a", 384, 168, 0, 1, 12, "registers"),
    ("sm_90a", 128, 168, 0, 3, 12, "registers"),
    ("sm_90a", 96, 255, 0, 2, 6, "registers"),
    ("sm_90a", 128, 32, 112 * 1024, 2, 8, "shared"),
    ("sm_100a", 1024, 64, 0, 1, 32, "registers"),
    ("sm_110a", 512, 32, 0, 3, 48, "warps"),
    ("sm_120a", 48, 24, 0, 24, 48, "warps"),
]


@pytest.mark.parametrize(("arch", "threads", "registers", "shared", "blocks", "warps", "limit"), GOLDEN)
def test_golden(
    arch: str, threads: int, registers: int, shared: int, blocks: int, warps: int, limit: str
) -> None:
    held = occupancy(machine_of(arch), threads, registers, shared)
    assert (held.blocks, held.warps, held.limited_by) == (blocks, warps, limit)
    assert held.fraction == warps / held.max_warps
    assert min(held.limits.values()) == blocks


def test_reserved_kilobyte_counts_for_each_block() -> None:
    # 41 KB and 1 KB reserved four times is more than 164 KB; 40 KB is exactly 164 KB.
    machine = machine_of("sm_80")
    assert occupancy(machine, 128, 32, 40 * 1024).limits["shared"] == 4
    assert occupancy(machine, 128, 32, 40 * 1024 + 1).limits["shared"] == 3


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "words"),
    [
        (1025, 32, 0, "1 to 1024 threads"),
        (0, 32, 0, "1 to 1024 threads"),
        (128, 256, 0, "at most 255"),
        (128, 32, 163 * 1024 + 1, "166912 bytes (167936 less 1024"),
        (1024, 65, 0, "73728 registers a block"),
    ],
)
def test_blocks_that_cannot_run(threads: int, registers: int, shared: int, words: str) -> None:
    with pytest.raises(ResourceError) as caught:
        occupancy(machine_of("sm_80"), threads, registers, shared)
    assert words in str(caught.value)


def test_record_of_a_kernel() -> None:
    report = FunctionResources("k", 80, 16, 4, 8, 1024, 2)
    held = kernel_resources(machine_of("sm_89"), 256, report, dynamic_shared=2048)
    assert (held.registers, held.shared_bytes, held.local_bytes, held.barriers) == (80, 3072, 16, 2)
    assert (held.blocks_per_sm, held.limited_by, held.occupancy) == (3, "registers", 0.5)
    assert held.limits["warps"] == 6
