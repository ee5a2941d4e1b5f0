"""Blocks that take one tile after another: every tile once, whatever the order and the number of blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.kernels import gemm_nt_kernel
from tests.simulated import run_threaded
from tilebench.schedule import Schedule


@tilebench.jit
def counted(X, Y, Z):
    """Each block counts its visits of its element, and keeps its number in shared memory on the way."""

    @T.prim_func
    def main(Seen: T.Tensor((Z, Y, X), "int32"), Summed: T.Tensor((Z, Y, X), "int32")):
        with T.Kernel(X, Y, Z, threads=32) as (bx, by, bz):
            kept = T.alloc_shared((32,), "int32")
            total = T.alloc_var("int32", init=5)
            for i in T.Parallel(32):
                kept[i] = bx + by * 100 + bz * 10000
            total += kept[31 - bx % 32]
            T.atomic_add(Seen[bz, by, bx], 1)
            Summed[bz, by, bx] = total

    return main


GRIDS = [(1, 1, 1), (7, 5, 1), (4, 6, 3), (13, 1, 2), (1, 9, 1), (6, 6, 2)]
ORDERS: list[Any] = [None, 1, 2, {"panels": 3, "axis": "column"}, 8]


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_every_tile_is_done_once_with_state_of_its_own(grid: tuple[int, int, int], order: Any) -> None:
    x, y, z = grid
    wanted = np.arange(x) + np.arange(y)[:, None] * 100 + np.arange(z)[:, None, None] * 10000 + 5
    for blocks in (1, 2, 5, x * y * z, True):
        schedule = Schedule.of(persistent=blocks, order=order)
        kernel = counted.using(target="cuda:sm_80", schedule=schedule)(x, y, z)
        after = {"Seen": np.zeros((z, y, x), np.int32), "Summed": np.zeros((z, y, x), np.int32)}
        kernel.stage("cuda")
        run_threaded(kernel.compilation.functions["threaded"], after, warp=32)
        np.testing.assert_array_equal(after["Seen"], np.ones((z, y, x), np.int32))
        np.testing.assert_array_equal(after["Summed"], wanted)


def test_a_grid_of_no_more_blocks_than_run_at_a_time_stays() -> None:
    kernel = counted.using(target="cuda:sm_80", schedule=Schedule.of(persistent=True))(6, 6, 3)
    remark = next(r for r in kernel.record().remarks if r.pass_name == "make_persistent")
    assert remark.message == "the grid has 108 blocks, and 108 run at a time: each has one tile as it is"
    assert "T.Kernel(6, 6, 3" in kernel.stage("scheduled")
    more = counted.using(target="cuda:sm_80", schedule=Schedule.of(persistent=True))(6, 6, 4)
    assert "T.Kernel(108, threads=32) as worker:" in more.stage("scheduled")
    assert "for wave in T.serial(2, tiles=True):" in more.stage("scheduled")


def test_it_is_a_choice_with_its_origin_and_told_where_it_changes_nothing() -> None:
    schedule = Schedule.of(persistent=4)
    card = counted.using(target="cuda:sm_80", schedule=schedule)(6, 6, 3).record()
    processor = counted.using(target="cpu", schedule=schedule)(6, 6, 3)
    chosen = {c.name: (c.value, c.origin) for c in card.choices}
    assert chosen["persistent"] == ("4", "call")
    why = {c.name: c.why for c in processor.record().choices}["persistent"]
    assert why == "not used by cpu: threads take one block after another as it is"
    seen, summed = np.zeros((3, 6, 6), np.int32), np.zeros((3, 6, 6), np.int32)
    processor(seen, summed)
    assert (seen == 1).all()


def test_what_a_tile_held_in_registers_is_not_counted_while_the_next_is_stored() -> None:
    """128 registers of sums and 64 of results beside as many on their way to memory: 240 hold either pair."""
    copies = {name: {"instruction": "tma"} for name in ("A_s", "B_s")}
    product = {"C_l": {"instruction": "wgmma"}}
    schedule = Schedule.of(persistent=True, warp_specialize=True, copy=copies, gemm=product)
    made = gemm_nt_kernel.using(target="cuda:sm_90a", schedule=schedule)
    kernel = made(4096, 4096, 4096, 128, 256, 64, 4, 256)
    kernel.stage("laid_out")
    told = {r.message for r in kernel.compilation.context.remarks if r.pass_name == "count_registers"}
    assert [message for message in told if "lies in memory" in message] == []
    assert "            C_l = T.alloc_fragment((128, 256), T.float32, layout=" in kernel.stage("laid_out")
