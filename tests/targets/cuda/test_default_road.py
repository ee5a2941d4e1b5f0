"""What a product and its copies become on a card that has more than `mma` where nobody names anything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.everywhere import kernel_of
from tests.kernels import gemm_nt_kernel
from tests.simulated import run_threaded
from tilebench.ir import print_function
from tilebench.ir.sizes import for_sizes
from tilebench.kernel.calls.variants import Variant
from tilebench.schedule import Schedule


def instructions(stage: str) -> set[str]:
    return {name for name in ("wgmma", "mma", "tma", "cp.async") if f'T.Instr("{name}"' in stage}


@tilebench.jit
def product_of_a_call(block_M=64, block_N=64, block_K=64, threads=128):
    m, n, k = T.dynamic("m, n, k")

    @T.prim_func
    def main(A: T.Tensor((m, k), "float16"), B: T.Tensor((k, n), "float16"), C: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(n, block_N), T.ceildiv(m, block_M), threads=threads) as (bx, by):
            A_s = T.alloc_shared((block_M, block_K), "float16")
            B_s = T.alloc_shared((block_K, block_N), "float16")
            C_l = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_l)
            for ko in T.Pipelined(T.ceildiv(k, block_K), num_stages=3):
                T.copy(A[by * block_M, ko * block_K], A_s)
                T.copy(B[ko * block_K, bx * block_N], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C[by * block_M, bx * block_N])

    return main


def right(function: Any, m: int, n: int, k: int) -> None:
    random = np.random.default_rng(m + n + k)
    a = random.integers(-3, 4, (m, k)).astype(np.float16)
    b = random.integers(-3, 4, (k, n)).astype(np.float16)
    c = np.full((m, n), np.nan, np.float32)
    run_threaded(for_sizes(function, {"m": m, "n": n, "k": k}), {"A": a, "B": b, "C": c}, warp=32)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def test_a_call_whose_arrays_no_map_describes_has_its_copies_by_threads() -> None:
    kernel = product_of_a_call.using(target="cuda:sm_90a")()
    assert instructions(kernel.stage("laid_out")) == {"wgmma", "tma"}
    kernel.stage("threaded")
    right(kernel.compilation.functions["threaded"], 70, 72, 40)
    general = kernel.calls.compiled(Variant(aligned=False))
    general.reach("threaded")
    assert "T.tma_load(" not in print_function(general.functions["threaded"]).text
    right(general.functions["threaded"], 70, 71, 37)
    # Coordinates of a box have 32 bits.
    assert instructions(stage_of(kernel, Variant(wide=True))) == {"wgmma", "cp.async"}


def stage_of(kernel: Any, variant: Variant) -> str:
    made = kernel.calls.compiled(variant)
    made.reach("laid_out")
    return print_function(made.functions["laid_out"]).text


@pytest.mark.parametrize(
    ("tile", "threads", "schedule", "found"),
    [
        ((128, 128, 64), 256, {}, {"wgmma", "tma"}),
        ((128, 128, 64), 256, {"gemm": {"C_l": {"instruction": "mma"}}}, {"mma", "cp.async"}),
        ((128, 128, 64), 256, {"copy": {"A_s": {"instruction": "cp.async"}}}, {"wgmma", "tma", "cp.async"}),
        ((16, 64, 64), 128, {}, {"mma", "cp.async"}),
        ((64, 64, 64), 64, {}, {"mma", "cp.async"}),
        ((64, 64, 24), 128, {}, {"mma", "cp.async"}),
    ],
)  # fmt: skip
def test_what_is_named_stays_and_small_tiles_are_as_they_were(
    tile: tuple[int, int, int], threads: int, schedule: dict[str, Any], found: set[str]
) -> None:
    made = gemm_nt_kernel.using(target="cuda:sm_90a", schedule=Schedule.of(**schedule))
    assert instructions(made(256, 256, 256, *tile, 3, threads).stage("laid_out")) == found


BYTES = """
S = T.alloc_shared((64, 64), "float8_e4m3fn")
U = T.alloc_shared((64, 64), "float8_e4m3fn")
C = T.alloc_fragment((64, 64), "float32")
T.copy(A, S)
T.copy(B, U)
T.clear(C)
T.gemm(S, U, C, transpose_B=True, fast_accum={fast})
T.copy(C, O)
"""


def test_sums_in_fewer_bits_are_taken_where_they_are_asked_for() -> None:
    tiles = ", ".join(f'{name}: T.Tensor((64, 64), "float8_e4m3fn")' for name in "AB")
    head = f'{tiles}, O: T.Tensor((64, 64), "float32")'
    fast, plain = [
        kernel_of(BYTES.format(fast=fast), head, 128).using(target="cuda:sm_90a")() for fast in (True, False)
    ]
    assert instructions(fast.stage("laid_out")) == {"wgmma"}
    assert instructions(plain.stage("laid_out")) == {"mma"}
    why = "it forms sums of 128 terms in fewer bits, and is taken where it is named"
    told = [remark.message for remark in plain.compilation.context.remarks]
    assert f"wgmma does not take this product: {why}" in told


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
def test_other_cards_are_as_they_were(arch: str) -> None:
    text = gemm_nt_kernel.using(target=f"cuda:{arch}")(256, 256, 256).stage("laid_out")
    assert instructions(text) == {"mma", "cp.async"}


PARTS = """
S = T.alloc_shared({tile}, "float16")
U = T.alloc_shared((64, 64), "float16")
C = T.alloc_fragment((64, 64), "float32")
T.copy(A, S)
T.copy(B, U)
T.clear(C)
for t in T.serial(2):
    T.gemm(S[{part}], U, C)
T.copy(C, O)
"""


@pytest.mark.parametrize(
    ("tile", "part", "found"),
    [
        ((2, 64, 64), "t, :, :", "wgmma"),
        ((128, 64), "64 : 128, :", "wgmma"),
        ((80, 64), "t * 4 : t * 4 + 64, :", "mma"),
        ((80, 64), "4 : 68, :", "mma"),
    ],
)
def test_parts_of_tiles_start_at_whole_blocks(tile: tuple[int, ...], part: str, found: str) -> None:
    body = PARTS.format(tile=tile, part=part)
    head = (
        f'A: T.Tensor({tile}, "float16"), B: T.Tensor((64, 64), "float16"), O: T.Tensor((64, 64), "float32")'
    )
    made = kernel_of(body, head, 128).using(target="cuda:sm_90a")()
    assert instructions(made.stage("laid_out")) == {found}
    made.stage("threaded")
