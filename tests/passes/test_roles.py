"""Warps with roles: a producer's group brings tiles, the others compute; the same results as by everyone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.passes.drawn_schedules import attention
from tests.simulated import run_threaded
from tilebench.errors import ScheduleError
from tilebench.ir import ZERO, Buffer
from tilebench.ir.dtypes import float16
from tilebench.kernel.calls.variants import Variant
from tilebench.passes.analysis.accesses import Access, GroupOrder
from tilebench.passes.analysis.hand_barriers import least_arrived
from tilebench.schedule import Schedule

CARD = "cuda:sm_90a"


@tilebench.jit
def product(M, N, K, bM, bN, bK, stages, threads, turned=False, outer=1, last=None):
    """C = A B, or A B^T; `outer` tiles of rows in turn, of which the k-loop of each ends at `last` tiles."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((N, K) if turned else (K, N), "float16"),
        C: T.Tensor((M, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, bN), T.ceildiv(T.ceildiv(M, bM), outer), threads=threads) as (bx, by):
            A_s = T.alloc_shared((bM, bK), "float16")
            B_s = T.alloc_shared((bN, bK) if turned else (bK, bN), "float16")
            C_l = T.alloc_fragment((bM, bN), "float32")
            for turn in T.serial(outer):
                row = by * outer + turn
                T.clear(C_l)
                for ko in T.Pipelined(T.ceildiv(K, bK) if last is None else row % last, num_stages=stages):
                    T.copy(A[row * bM, ko * bK], A_s)
                    if turned:
                        T.copy(B[bx * bN, ko * bK], B_s)
                    else:
                        T.copy(B[ko * bK, bx * bN], B_s)
                    T.gemm(A_s, B_s, C_l, transpose_B=turned)
                T.copy(C_l, C[row * bM, bx * bN])

    return main


def schedule_of(tiles: tuple[str, ...] = ("A_s", "B_s"), **more: Any) -> Schedule:
    by_boxes = {name: {"instruction": "tma"} for name in tiles}
    return Schedule.of(warp_specialize=True, copy=by_boxes, **more)


WGMMA = {"gemm": {"C_l": {"instruction": "wgmma"}}}
MMA = {"gemm": {"C_l": {"instruction": "mma"}}}
BY_THREADS = {name: {"instruction": "cp.async"} for name in ("A_s", "B_s")}


def arrays_of(m: int, n: int, k: int, turned: bool) -> tuple[dict[str, Any], Any]:
    rng = np.random.default_rng(m + n * 7 + k)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    return {
        "A": a,
        "B": np.ascontiguousarray(b.T) if turned else b,
        "C": np.full((m, n), 7, np.float32),
    }, wanted


def simulated(kernel: Any, arrays: dict[str, Any]) -> dict[str, Any]:
    after = {name: array.copy() for name, array in arrays.items()}
    kernel.stage("cuda")
    run_threaded(kernel.compilation.functions["threaded"], after, warp=32)
    return after


# M, N, K, then the tile, stages and threads.
SHAPES = [
    (128, 64, 192, 64, 64, 64, 2, 128), (100, 72, 200, 64, 64, 32, 3, 128),
    (130, 136, 64, 128, 64, 64, 4, 256),
    (64, 64, 64, 64, 64, 64, 3, 128), (64, 32, 520, 32, 32, 64, 5, 64),
]  # fmt: skip


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("by", ["mma", "wgmma"])
def test_a_product_of_two_groups(by: str, shape: tuple[int, ...], turned: bool) -> None:
    if by == "wgmma" and shape[-1] % 128:
        pytest.skip("less than a warp group")
    arrays, wanted = arrays_of(*shape[:3], turned)
    for more in ({}, {"persistent": 2, "order": 2}):
        schedule = schedule_of(**more, **(WGMMA if by == "wgmma" else MMA))
        kernel = product.using(target=CARD, schedule=schedule)(*shape, turned)
        np.testing.assert_array_equal(simulated(kernel, arrays)["C"], wanted)
        # A loop of one iteration has nothing to bring ahead.
        assert ("T.mbarrier_wait(ko_empty" in kernel.stage("pipelined")) == (shape[2] > shape[5])


@pytest.mark.parametrize("by", ["mma", "wgmma"])
def test_the_ring_goes_on_through_all_runs_of_its_loop(by: str) -> None:
    arrays, wanted = arrays_of(320, 64, 192, False)
    more: dict[str, Any] = WGMMA if by == "wgmma" else MMA
    kernel = product.using(target=CARD, schedule=schedule_of(**more))(
        320, 64, 192, 64, 64, 64, 2, 128, outer=3
    )
    np.testing.assert_array_equal(simulated(kernel, arrays)["C"], wanted)


def test_a_run_that_turns_the_ring_once() -> None:
    """Every run ends where it began, in the other phase; who brings tiles and who uses them both know it."""
    arrays, wanted = arrays_of(256, 64, 192, False)
    kernel = product.using(target=CARD, schedule=schedule_of(**WGMMA))(
        256, 64, 192, 64, 64, 64, 3, 128, outer=4
    )
    np.testing.assert_array_equal(simulated(kernel, arrays)["C"], wanted)
    assert "ko_full.version(ko % 3), (turn * 3 + ko) % 6 // 3" in kernel.stage("pipelined")


@tilebench.jit
def chosen_rows(M, N, K, kind):
    """A B for some tiles of rows: those before the fifth, all but those, or every second."""

    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(1, threads=128) as _:
            A_s = T.alloc_shared((64, 64), "float16")
            B_s = T.alloc_shared((64, 64), "float16")
            C_l = T.alloc_fragment((64, 64), "float32")
            for turn in T.serial(T.ceildiv(M, 64)):
                if (
                    (turn * 2 + 1 < 9)
                    if kind == "first"
                    else (4 - turn < 1)
                    if kind == "last"
                    else (turn % 2 < 1)
                ):
                    T.clear(C_l)
                    for ko in T.Pipelined(T.ceildiv(K, 64), num_stages=2):
                        T.copy(A[turn * 64, ko * 64], A_s)
                        T.copy(B[ko * 64, 0], B_s)
                        T.gemm(A_s, B_s, C_l)
                    T.copy(C_l, C[turn * 64, 0])

    return main


@pytest.mark.parametrize("kind", ["first", "last", "second"])
def test_turns_that_a_condition_leaves_out_are_not_counted(kind: str) -> None:
    """Only a condition that stays false says how often the ring was filled: others are counted."""
    arrays, wanted = arrays_of(448, 64, 192, False)
    kernel = chosen_rows.using(target=CARD, schedule=schedule_of(**WGMMA))(448, 64, 192, kind)
    taken = {"first": range(4), "last": range(4, 7), "second": range(0, 7, 2)}[kind]
    wanted = np.concatenate([
        wanted[r * 64 : r * 64 + 64] if r in taken else np.full((64, 64), 7) for r in range(7)
    ])  # fmt: skip
    np.testing.assert_array_equal(simulated(kernel, arrays)["C"], wanted)
    assert ("ko_filled" in kernel.stage("pipelined")) == (kind != "first")


@pytest.mark.parametrize("persistent", [False, 2])
def test_runs_of_different_lengths_some_of_no_iteration(persistent: Any) -> None:
    arrays, _ = arrays_of(320, 64, 256, False)
    schedule = schedule_of(**WGMMA, persistent=persistent)
    kernel = product.using(target=CARD, schedule=schedule)(320, 64, 256, 64, 64, 64, 2, 128, outer=2, last=4)
    a, b = arrays["A"].astype(np.float64), arrays["B"].astype(np.float64)
    wanted = np.concatenate([
        a[r * 64 : r * 64 + 64, : r % 4 * 64] @ b[: r % 4 * 64] for r in range(5)
    ])  # fmt: skip
    np.testing.assert_array_equal(simulated(kernel, arrays)["C"], wanted)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("by", ["mma", "wgmma"])
def test_attention_with_tiles_that_a_producer_brings(by: str, causal: bool) -> None:
    s, d = 150, 64
    rng = np.random.default_rng(3)
    q, k, v = (rng.integers(-2, 3, (s, d)).astype(np.float16) for _ in range(3))
    more = {"gemm": {"scores": {"instruction": "wgmma"}}} if by == "wgmma" else {}
    schedule = schedule_of(("Q_s", "K_s", "V_s"), **more)
    kernel = attention.using(target=CARD, schedule=schedule)(s, d, 64, 64, 2, 128, causal)
    scores = q.astype(np.float64) @ k.astype(np.float64).T / np.sqrt(d)
    scores = np.where(np.tril(np.ones((s, s), bool)), scores, -np.inf) if causal else scores
    weights = np.exp(scores - scores.max(1, keepdims=True))
    wanted = weights / weights.sum(1, keepdims=True) @ v.astype(np.float64)
    after = simulated(kernel, {"Q": q, "K": k, "V": v, "Out": np.full((s, d), 7, np.float16)})
    assert np.abs(after["Out"] - wanted).max() < 0.02


@tilebench.jit
def scaled(M, N, K, stages):
    """Two products in turn over the same rows, through shared memory between and behind them."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32"),
        D: T.Tensor((M, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=128) as (bx, by):
            first = T.alloc_shared((64, 64), "float32")
            last = T.alloc_shared((64, 64), "float32")
            A_s = T.alloc_shared((64, 64), "float16")
            B_s = T.alloc_shared((64, 64), "float16")
            C_l = T.alloc_fragment((64, 64), "float32")
            T.copy(C[by * 64, bx * 64], first)
            for i, j in T.Parallel(64, 64):
                D[by * 64 + i, bx * 64 + j] = first[63 - i, j]
            T.clear(C_l)
            for ko in T.Pipelined(T.ceildiv(K, 64), num_stages=stages):
                T.copy(A[by * 64, ko * 64], A_s)
                T.copy(B[ko * 64, bx * 64], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, last)
            for i, j in T.Parallel(64, 64):
                C[by * 64 + i, bx * 64 + j] = last[i, 63 - j]

    return main


@pytest.mark.parametrize("persistent", [False, 2])
def test_other_tiles_have_bytes_of_their_own(persistent: Any) -> None:
    arrays, product_of = arrays_of(192, 128, 320, False)
    c = arrays["C"] = np.arange(192 * 128, dtype=np.float32).reshape(192, 128)
    arrays["D"] = np.zeros_like(c)
    kernel = scaled.using(target=CARD, schedule=schedule_of(persistent=persistent))(192, 128, 320, 3)
    after = simulated(kernel, arrays)
    turned = product_of.reshape(192, 2, 64)[:, :, ::-1].reshape(192, 128)
    np.testing.assert_array_equal(after["C"], turned)
    np.testing.assert_array_equal(after["D"], c.reshape(3, 64, 128)[:, ::-1].reshape(192, 128))


@tilebench.jit
def stored(M, N, K, stages):
    """A product that leaves through a shared tile."""

    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=128) as (bx, by):
            A_s = T.alloc_shared((64, 64), "float16")
            B_s = T.alloc_shared((64, 64), "float16")
            C_s = T.alloc_shared((64, 64), "float32")
            C_l = T.alloc_fragment((64, 64), "float32")
            T.clear(C_l)
            for ko in T.Pipelined(T.ceildiv(K, 64), num_stages=stages):
                T.copy(A[by * 64, ko * 64], A_s)
                T.copy(B[ko * 64, bx * 64], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C_s)
            T.copy(C_s, C[by * 64, bx * 64])

    return main


@pytest.mark.parametrize("persistent", [False, 2])
def test_sums_leave_in_boxes(persistent: Any) -> None:
    arrays, wanted = arrays_of(192, 128, 320, False)
    schedule = schedule_of(("A_s", "B_s", "C"), persistent=persistent, **WGMMA)
    kernel = stored.using(target=CARD, schedule=schedule)(192, 128, 320, 3)
    assert "T.copy(C_s, C[" in kernel.stage("pipelined")
    assert "T.tma_store(" in kernel.stage("threaded")
    np.testing.assert_array_equal(simulated(kernel, arrays)["C"], wanted)


@tilebench.jit
def twice(M, N, K, stages):
    """A product and another one with the same tiles."""

    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=128) as (bx, by):
            A_s = T.alloc_shared((64, 64), "float16")
            B_s = T.alloc_shared((64, 64), "float16")
            C_l = T.alloc_fragment((64, 64), "float32")
            T.clear(C_l)
            for ko in T.Pipelined(T.ceildiv(K, 64), num_stages=stages):
                T.copy(A[by * 64, ko * 64], A_s)
                T.copy(B[ko * 64, bx * 64], B_s)
                T.gemm(A_s, B_s, C_l)
            for k in T.Pipelined(T.ceildiv(K, 64), num_stages=stages):
                T.copy(A[by * 64, k * 64], A_s)
                T.copy(B[k * 64, bx * 64], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C[by * 64, bx * 64])

    return main


def test_loops_that_share_tiles_have_no_producer() -> None:
    boxes = {name: {"instruction": "tma"} for name in ("A_s#1", "B_s#1", "A_s#2", "B_s#2")}
    schedule = Schedule.of(warp_specialize=True, copy=boxes)
    with pytest.raises(ScheduleError, match="ko: A_s, B_s is used outside of the loop too; k: A_s, B_s"):
        twice.using(target=CARD, schedule=schedule)(64, 64, 192, 2).stage("bounded")


def test_what_the_stages_say() -> None:
    kernel = product.using(target=CARD, schedule=schedule_of(**WGMMA))(
        128, 256, 512, 128, 256, 64, 4, 256, True
    )
    bounded, pipelined = kernel.stage("bounded"), kernel.stage("pipelined")
    assert "with T.Kernel(1, 1, threads=384) as (bx, by):" in bounded
    assert 'for ko in T.Pipelined(8, plan=T.Plan(4, roles="producer")):' in bounded
    assert "        with T.threads(256, 128):\n            T.set_max_nreg(24, False)\n" in bounded
    lines = [line.strip() for line in pipelined.splitlines()]
    producer = lines[lines.index("with T.threads(256, 1):") :]
    assert producer[1:5] == [
        "for turn in T.serial(1):",
        "for ko in T.serial(8):",
        "T.mbarrier_wait(ko_empty.version(ko % 4), (ko + 4) // 4 % 2)",
        "T.expect_copies(ko_full.version(ko % 4), 49152)",
    ]
    assert "T.open_barriers(ko_empty, arrivals=8)" in lines
    assert "T.set_max_nreg(240, True)" in lines
    said = {r.message for r in kernel.record().remarks}
    assert "128 more threads bring the tiles of ko" in said
    assert "A_s, B_s: 4 versions between two groups" in said


def test_the_code_of_a_card() -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    kernel = product.using(target=CARD, schedule=schedule_of(**WGMMA))(
        4096, 4096, 4096, 128, 256, 64, 4, 256, True
    )
    code = kernel.stage("sass")
    for word in ("HGMMA.64x256x16", "UTMALDG.2D", "USETMAXREG", "SYNCS.ARRIVE"):
        assert word in code
    resources = kernel.record().resources
    assert resources is not None
    assert (resources.registers, resources.spill_store_bytes, resources.local_bytes) == (168, 0, 0)
    assert [d.message for d in kernel.record().diagnostics] == []


REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"copy": BY_THREADS}, "ko: A_s, B_s is copied by an instruction that completes on no barrier"),
    ({"threads": 1024}, {}, "1024 threads and 128 more are above the 1024 of a block"),
]


@pytest.mark.parametrize(("options", "chosen", "why"), REFUSED, ids=lambda value: str(value)[:30])
def test_where_there_can_be_no_producer(options: dict[str, Any], chosen: dict[str, Any], why: str) -> None:
    given = {
        "M": 128,
        "N": 64,
        "K": 192,
        "bM": 64,
        "bN": 64,
        "bK": 64,
        "stages": 2,
        "threads": 128,
        **options,
    }
    schedule = Schedule.of(warp_specialize=True, **chosen) if "copy" in chosen else schedule_of()
    with pytest.raises(ScheduleError) as caught:
        product.using(target=CARD, schedule=schedule)(**given).stage("bounded")
    assert caught.value.message == f"no warps can be set apart to bring tiles: {why}"
    assert caught.value.place is not None


def test_roles_alone_have_their_tiles_brought_in_boxes() -> None:
    named = product.using(target=CARD, schedule=schedule_of(**WGMMA))
    alone = product.using(target=CARD, schedule=Schedule.of(warp_specialize=True))
    sizes = (128, 64, 192, 64, 64, 64, 2, 128)
    assert alone(*sizes).stage("threaded") == named(*sizes).stage("threaded")


def test_a_copy_that_fits_no_box_is_refused_at_its_line() -> None:
    # Rows of 130 elements start at no multiple of 16 bytes.
    with pytest.raises(ScheduleError) as caught:
        product.using(target=CARD, schedule=schedule_of())(128, 130, 192, 64, 64, 64, 2, 128).stage(
            "pipelined"
        )
    assert caught.value.message.startswith("no warps can be set apart to bring B_s: ")
    assert caught.value.place is not None


def test_a_call_at_any_address_has_no_producer() -> None:
    """The variant for arrays that start anywhere is one without boxes, and says why."""
    kernel = product.using(target=CARD, schedule=schedule_of(**WGMMA))(128, 64, 192, 64, 64, 64, 2, 128)
    general = kernel.calls.compiled(Variant(aligned=False))
    general.reach("threaded")
    said = {r.message for r in general.context.remarks}
    assert (
        "the tiles of ko have no producer: A may start at an address that is no multiple of 16 bytes" in said
    )
    arrays, wanted = arrays_of(128, 64, 192, False)
    run_threaded(general.functions["threaded"], arrays, warp=32)
    np.testing.assert_array_equal(arrays["C"], wanted)


def test_other_targets_say_that_it_changes_nothing() -> None:
    kernel = product.using(target="cpu", schedule=schedule_of())(64, 64, 64, 64, 64, 64, 2, 128)
    why = {c.name: c.why for c in kernel.record().choices}["warp_specialize"]
    assert why == "not used by cpu: a block runs on one core"


def test_of_accesses_that_differ_by_barriers_those_that_fewer_settle_are_kept() -> None:
    """Both branches of a condition leave an access: in a ring of eight there were 400 times as many."""
    order = GroupOrder(0, 128)
    access = Access(Buffer("S", (4,), float16, "shared"), True, (ZERO,), (4,), order=order)
    one, other = (
        access.ordered(replace(order, arrived=frozenset({(name, ZERO)}))) for name in ("full", "empty")
    )
    assert least_arrived([one, access, other]) == [access]
    assert least_arrived([one, other]) == [one, other]
    fenced = access.ordered(replace(order, fenced=True))
    assert least_arrived([access, fenced]) == [access, fenced]
