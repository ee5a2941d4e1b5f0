"""Blocks in clusters: what is sent to all of them, how it is waited for, and what the simulator refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.everywhere import kernel_of
from tests.kernels import gemm_nt_kernel
from tests.simulated import card_words, run_threaded
from tilebench.errors import TileError
from tilebench.ir import parse_function
from tilebench.library.kernels.attention import attention_kernel
from tilebench.schedule import Schedule
from tilebench.simulator import SimulationError

BASE: dict[str, Any] = {
    "copy": {"A_s": {"instruction": "tma"}, "B_s": {"instruction": "tma"}},
    "gemm": {"C_l": {"instruction": "wgmma"}},
    "warp_specialize": True,
}
SHAPE, TILE = (256, 128, 192), (64, 64, 64, 2, 128)


def product(
    *, shape: tuple[int, ...] = SHAPE, target: str = "cuda:sm_90a", turned: bool = True, **chosen: Any
) -> Any:
    schedule = Schedule.of(**{**BASE, **chosen})
    kernel = gemm_nt_kernel.using(target=target, schedule=schedule)(*shape, *TILE, panel=0, turned=turned)
    kernel.stage("threaded")
    return kernel


def run(function: Any, shape: tuple[int, ...] = SHAPE, turned: bool = True) -> None:
    """Whole numbers, so that every order of sums is the same."""
    m, n, k = shape
    random = np.random.default_rng(7)
    a = random.integers(-3, 4, (m, k)).astype(np.float16)
    b = random.integers(-3, 4, (n, k) if turned else (k, n)).astype(np.float16)
    c = np.full((m, n), np.nan, np.float16)
    run_threaded(function, {"A": a, "B": b, "C": c}, warp=32)
    want = a.astype(np.float32) @ (b.T if turned else b).astype(np.float32)
    np.testing.assert_array_equal(c, want.astype(np.float16))


def remarks(kernel: Any) -> list[str]:
    return [remark.message for remark in kernel.record().remarks]


CASES: list[tuple[dict[str, Any], tuple[int, ...], bool]] = [
    ({"cluster": [1, 2]}, SHAPE, True),
    ({"cluster": [2, 1], "order": 2}, SHAPE, True),
    ({"cluster": [1, 4], "persistent": 4, "order": 1}, (512, 128, 128), True),
    ({"cluster": [1, 2], "persistent": 2}, SHAPE, False),
]


@pytest.mark.parametrize(("chosen", "shape", "turned"), CASES)
def test_a_product_in_clusters_is_right(chosen: dict[str, Any], shape: tuple[int, ...], turned: bool) -> None:
    kernel = product(shape=shape, turned=turned, **chosen)
    size = max(chosen["cluster"])
    shared = "B_s" if chosen["cluster"][0] == 1 else "A_s"
    assert f"each of {size} blocks brings a part of {shared} for all" in remarks(kernel)
    assert f"blocks={(1 << size) - 1}" in kernel.stage("threaded")
    run(kernel.compilation.functions["threaded"], shape, turned)


def test_blocks_that_share_nothing_form_clusters_all_the_same() -> None:
    kernel = product(cluster=[2, 2])
    assert "clusters of 2 x 2 blocks" in remarks(kernel)
    assert "T.sync_cluster" not in kernel.stage("threaded")
    run(kernel.compilation.functions["threaded"])


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        ({"cluster": [1, 3]}, "its blocks form no clusters: the grid has 4 blocks along y, no multiple of 3"),
        (
            {"cluster": [4, 4]},
            "its blocks form no clusters: 16 blocks are more than the 8 that every card takes",
        ),
        ({"cluster": [1, 1, 2]}, "its blocks form no clusters: they have 3 axes, and the grid 2"),
        (
            {"cluster": [1, 2], "warp_specialize": False},
            "each block brings B_s for itself: no warps of their own bring it (warp_specialize)",
        ),
    ],
)
def test_what_forbids_it_is_told(chosen: dict[str, Any], told: str) -> None:
    kernel = product(**chosen)
    assert told in remarks(kernel)
    assert "sync_cluster" not in kernel.stage("threaded")
    run(kernel.compilation.functions["threaded"])


def test_a_card_without_clusters_has_none() -> None:
    kernel = gemm_nt_kernel.using(target="cuda:sm_80", schedule=Schedule.of(cluster=[1, 2]))(*SHAPE, *TILE)
    assert "its blocks form no clusters: cuda:sm_80 has none" in remarks(kernel)
    assert "cluster" not in kernel.stage("cuda")


def test_the_code_sends_to_several_blocks() -> None:
    kernel = product(cluster=[1, 2])
    text, code = kernel.stage("cuda"), kernel.stage("sass")
    assert "__cluster_dims__(2, 1, 1) __launch_bounds__(256, 1)" in text
    assert "tb_mbarrier_arrive_at_relaxed(ko_empty" in text
    assert "UTMALDG.2D.MULTICAST" in code
    # Where a tile is given back nothing of all memory is waited for: at the end alone, for what was sent.
    assert code.count("MEMBAR.ALL.GPU") == 1
    assert kernel.record().resources.spill_store_bytes == 0


WRONG = [
    (
        "tiles are given back to the own block alone",
        "block=tid % 32, relaxed=True)", "block=block % 2, relaxed=True)",
        "a write of B_s by thread 128, and T.tma_load",
    ),
    (
        "nobody waits at the end",
        'T.sync_cluster(why="others may still send to this block, or to its barriers")', "T.sync_warp()",
        "this may come to a block of the cluster that has ended: no T.sync_cluster() follows it",
    ),
    (
        "nobody waits for what was sent",
        'T.sync_cluster(why="others may still send to this block, or to its barriers")',
        "T.sync_cluster(relaxed=True)",
        "this may come to a block of the cluster that has ended: no T.sync_cluster() follows it",
    ),
    (
        "blocks begin without each other",
        'T.sync_cluster(why="barriers of copies are made", relaxed=True)', "T.sync_threads()",
        "a race in shared memory: a read of ko_",
    ),
    (
        "the tile is sent without waiting for its readers",
        "ko_empty[ko % 2 : ko % 2 + 1], (ko + 2) // 2 % 2)", "ko_empty[ko % 2 : ko % 2 + 1], 1)",
        "",
    ),
    (
        "a block of no cluster is named",
        "block=tid % 32, relaxed=True)", "block=tid % 32 + 1, relaxed=True)",
        "this names block 2 of a cluster of 2",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "told"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_what_a_card_must_not_do_is_refused(old: str, new: str, told: str) -> None:
    text = product(cluster=[1, 2]).stage("threaded")
    assert old in text
    with pytest.raises(SimulationError) as caught:
        run(parse_function(text.replace(old, new), card_words()))
    assert told in caught.value.message


def test_queries_beside_each_other_share_keys_and_values() -> None:
    tiles = {name: {"instruction": "tma"} for name in ("q_s", "k_s", "v_s")}
    products = {name: {"instruction": "wgmma"} for name in ("s", "acc")}
    loop = {"kb": {"overlap": True}}
    schedule = Schedule.of(copy=tiles, gemm=products, loop=loop, warp_specialize=True, cluster=[2, 1])
    kernel = attention_kernel.using(target="cuda:sm_90a", schedule=schedule)(
        1, 1, 1, 128, 192, 64, "float16", False, 0, 0, 0, 0, 64, 64, 2, 128
    )
    kernel.stage("threaded")
    assert {f"each of 2 blocks brings a part of {name} for all" for name in ("k_s", "v_s")} <= set(
        remarks(kernel)
    )
    lines = kernel.stage("pipelined").splitlines()
    released = [line for line in lines if "T.release_tiles(" in line and "q_s" not in line]
    assert released
    assert all("blocks=2, relaxed=True" in line for line in released)
    random = np.random.default_rng(3)
    q, k, v = (random.standard_normal((1, 1, n, 64)).astype(np.float16) for n in (128, 192, 192))
    o = np.full_like(q, np.nan)
    run_threaded(kernel.compilation.functions["threaded"], {"q": q, "k": k, "v": v, "o": o}, warp=32)
    weights = np.exp(q[0, 0].astype(float) @ k[0, 0].astype(float).T / 8)
    want = weights / weights.sum(axis=1, keepdims=True) @ v[0, 0].astype(float)
    np.testing.assert_allclose(o[0, 0], want, atol=2e-3)


@tilebench.jit
def ranks(dims):
    @T.prim_func
    def main(A: T.Tensor((8, 4), "int32"), B: T.Tensor((8, 4), "int32")):
        with T.ClusterKernel(4, 8, cluster_dims=dims, threads=32) as (bx, by):
            for i in T.Parallel(1):
                B[by + i, bx] = A[by + i, bx] * 100 + T.block_rank_in_cluster()

    return main


@pytest.mark.parametrize("dims", [(2, 1, 1), (1, 4), (2, 2), 2])
def test_a_kernel_says_its_clusters_and_knows_its_rank(dims: Any) -> None:
    x, y = (*dims, 1)[:2] if isinstance(dims, tuple) else (dims, 1)
    a = np.arange(32, dtype=np.int32).reshape(8, 4)
    want = a * 100 + (np.arange(4) % x)[None, :] + (np.arange(8) % y)[:, None] * x
    card = ranks.using(target="cuda:sm_90a")(dims)
    assert f"cluster=({x * y},)" in card.stage("scheduled")
    card.stage("threaded")
    out = np.zeros_like(a)
    run_threaded(card.compilation.functions["threaded"], {"A": a, "B": out}, warp=32)
    np.testing.assert_array_equal(out, want)
    host = np.zeros_like(a)
    ranks.using(target="cpu")(dims)(a, host)
    np.testing.assert_array_equal(host, want)


def test_a_block_of_no_cluster_is_the_first() -> None:
    assert "O[0] = 0" in kernel_of("O[0] = T.block_rank_in_cluster()", 'O: T.Tensor((1,), "int32")')().stage(
        "tile"
    )


@pytest.mark.parametrize("dims", [0, (1, 1, 1, 1), (2, "x")])
def test_what_is_no_cluster_is_refused_at_its_line(dims: Any) -> None:
    with pytest.raises(TileError) as caught:
        ranks.using(target="cuda:sm_90a")(dims).stage("tile")
    assert caught.value.place is not None
