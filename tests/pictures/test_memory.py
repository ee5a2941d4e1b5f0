"""Shared memory by address and time, the stages that fit, and what a card holds of a kernel."""

from __future__ import annotations

from math import ceil
from typing import Any

import pytest

from tests.everywhere import kernel_of
from tests.kernels import add_kernel, gemm_kernel
from tests.pictures.test_accesses import kernel_at
from tilebench.errors import OptionError, ResourceError
from tilebench.pictures.residency import residency
from tilebench.targets import manifest, resolve

GEMM: dict[str, Any] = {
    "M": 512,
    "N": 512,
    "K": 512,
    "block_M": 128,
    "block_N": 128,
    "block_K": 32,
    "threads": 256,
}


def test_the_map_of_a_ring() -> None:
    (found,) = kernel_at(gemm_kernel, num_stages=3, **GEMM).shared_maps()
    spans = {span.name: span for span in found.spans}
    assert {n: (s.offset, s.bytes, s.stage_bytes, s.versions) for n, s in spans.items()} == {
        "A_s": (0, 24576, 8192, 3), "B_s": (24576, 24576, 8192, 3)
    }  # fmt: skip
    assert (found.total, found.limit, found.per_unit, found.reserved) == (49152, 232448, 233472, 1024)
    assert found.fits
    assert spans["A_s"].line == 29
    assert found.lines[spans["A_s"].first] == spans["A_s"].first_line


def test_offsets_are_those_of_the_code() -> None:
    kernel = kernel_at(gemm_kernel, num_stages=3, **GEMM)
    (found,) = kernel.shared_maps()
    text = kernel.stage("threaded")
    assert f"shared_bytes={found.total}" in text
    for span in found.spans:
        assert f"{span.name} = T.alloc_shared(({span.bytes // 2},), T.float16, offset={span.offset})" in text


@pytest.mark.parametrize("target", ["cuda:sm_90a", "cuda:sm_80", "cuda:sm_86"])
def test_as_many_stages_as_are_said_to_fit_do(target: str) -> None:
    """The compiler takes that many, and refuses one more."""
    (found,) = kernel_at(gemm_kernel, target, num_stages=2, **GEMM).shared_maps()
    assert found.stages == found.limit // 16384
    stages = int(found.stages or 0)
    kernel_at(gemm_kernel, target, num_stages=stages, **GEMM).stage("threaded")
    with pytest.raises(ResourceError, match="larger than"):
        kernel_at(gemm_kernel, target, num_stages=stages + 1, **GEMM).stage("threaded")


def test_a_kernel_that_takes_too_much_has_a_map_too() -> None:
    (found,) = kernel_at(gemm_kernel, "cuda:sm_86", num_stages=8, **GEMM).shared_maps()
    assert not found.fits
    assert (found.total, found.limit, found.stages) == (8 * 16384, 99 * 1024, 6)


REUSE = """
S = T.alloc_shared((64, 64), "float32")
R = T.alloc_shared((64, 64), "float32")
T.copy(A, S)
for i, j in T.Parallel(64, 64):
    O[i, j] = S[j, i]
T.copy(A, R)
for i, j in T.Parallel(64, 64):
    O[i, j] = O[i, j] + R[j, i]
"""


def test_what_takes_the_place_of_another_is_told() -> None:
    (found,) = kernel_of(REUSE).using(target="cuda:sm_90a")().shared_maps()
    first, second = sorted(found.spans, key=lambda span: span.first)
    assert first.last < second.first
    assert (found.shares(first), found.shares(second)) == (("R",), ("S",))
    assert (found.total, found.without_reuse) == (16384, 2 * 16384)
    assert found.stages is None


def nvidias_rule(card: Any, threads: int, registers: int, shared: int) -> int:
    """Blocks a multiprocessor by `cuda_occupancy.h`, written down once more from its own steps."""
    warps = ceil(threads / 32)
    by_warps = card.sm.max_threads // 32 // warps
    # Registers of a warp in units of 256, from one of four subpartitions of 16384.
    a_warp = ceil(registers * 32 / 256) * 256
    by_registers = 16384 // a_warp * 4 // warps
    granule = 256 if card.name == "cuda:sm_75" else 128
    taken = ceil((shared + card.shared.reserved) / granule) * granule
    by_shared = card.shared.per_unit // taken if taken else card.sm.max_blocks
    return min(by_warps, by_registers, by_shared, card.sm.max_blocks)


CARDS = ["cuda:sm_75", "cuda:sm_80", "cuda:sm_86", "cuda:sm_89", "cuda:sm_90a", "cuda:sm_120a"]


@pytest.mark.parametrize("card", CARDS)
def test_residency_follows_nvidias_rules_on_any_card(card: str) -> None:
    machine = resolve(card)[1]
    rule: Any = manifest("cuda").occupancy
    for threads in (32, 96, 128, 256, 384, 1024):
        for registers in (24, 32, 40, 63, 64):
            for shared in (0, 1000, 24576, 49152):
                found = residency(rule, machine, threads, registers, shared, 1000)
                assert found.blocks == nvidias_rule(machine, threads, registers, shared), (threads, registers)


@pytest.mark.parametrize(
    ("grid", "waves", "last", "idle"),
    [(660, 1.0, 660, 0.0), (661, 661 / 660, 1, 1 - 661 / 1320), (330, 0.5, 330, 0.5), (1320, 2.0, 660, 0.0)],
)
def test_waves_and_tail(grid: int, waves: float, last: int, idle: float) -> None:
    """132 multiprocessors with five blocks each are 660 places."""
    rule: Any = manifest("cuda").occupancy
    found = residency(rule, resolve("cuda:sm_90a")[1], 128, 96, 24576, grid)
    assert (found.blocks, found.places) == (5, 660)
    assert (found.waves, found.last) == (pytest.approx(waves), last)
    assert found.idle == pytest.approx(idle)


def test_a_card_on_which_not_one_block_runs_says_why() -> None:
    kernel = kernel_at(gemm_kernel, num_stages=8, **GEMM)
    found = kernel.occupancy("cuda:sm_86")
    assert found.refused == "a block that takes 131072 bytes of shared memory cannot run on cuda:sm_86"
    assert (found.blocks, found.waves) == (0, None)
    own = kernel.occupancy()
    assert (own.card, own.blocks, own.grid) == ("cuda:sm_90", 1, 16)


def test_a_grid_of_a_launch_has_no_waves() -> None:
    rule: Any = manifest("cuda").occupancy
    found = residency(rule, resolve("cuda:sm_90a")[1], 128, None, 0, None)
    assert (found.waves, found.idle, found.last) == (None, None, None)
    assert "registers" not in found.limits


def test_blocks_of_the_processor_share_nothing() -> None:
    with pytest.raises(OptionError, match="blocks do not share a multiprocessor on cpu"):
        kernel_at(add_kernel, "cpu", M=64, N=1024).occupancy()
