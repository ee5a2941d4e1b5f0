"""Products of warp groups in a ring: what goes on into the next step, and what is waited for in its own."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.kernels import gemm_nt_kernel
from tests.simulated import card_words, run_threaded
from tests.targets.cuda.test_wgmma import NT, arrays_of, by_the_card, check_bits, compiled, made
from tilebench.ir import parse_function
from tilebench.ir.sizes import for_sizes
from tilebench.library import kernel_for
from tilebench.library.kernels.attention import attention_kernel
from tilebench.library.scores import ATTENTION
from tilebench.schedule import Schedule
from tilebench.simulator import SimulationError

# By copies of threads, whose tiles pass a fence.
BY_THREADS = Schedule.of(
    gemm={"C_l": {"instruction": "wgmma"}},
    copy={name: {"instruction": "cp.async"} for name in ("A_s", "B_s")},
)
AHEAD: dict[str, Any] = {"tile": (128, 64, 32), "threads": 256, "turned": NT, "schedule": BY_THREADS}


@pytest.mark.parametrize("stages", [3, 4])
def test_a_product_goes_on_into_the_next_step_of_a_ring(stages: int) -> None:
    kernel = check_bits((128, 72, 160), stages=stages, **AHEAD)
    loop = kernel.stage("pipelined").split("for ko in ")[1]
    words = re.findall(r"T\.(\w+)\(", re.sub(r"T\.Instr\(", "(", loop))
    ahead = ["copy", "copy", "commit"]
    assert words[:12] == ["serial", "wait", "gemm", "commit", "wait", *ahead, "wait", "wait", "copy"]
    waits = re.findall(r'T\.wait\("(\w+)"(?:, pending=(\d))?', loop)
    assert waits == [
        ("ko_ahead", str(stages - 2)),
        ("ko_products", "1"),
        ("ko_products", ""),
        ("ko_ahead", ""),
    ]
    told = [
        remark.message for remark in kernel.compilation.context.remarks if remark.pass_name == "make_ring"
    ]
    goes_on = "the product into C_l goes on into the next step: what it reads is filled again behind"
    assert f"{goes_on} the wait for it" in told
    # Threads meet twice a step: where a tile has come, and where one may be filled again.
    step = kernel.stage("threaded").split("for ko in ")[1].split("T.wgmma_wait(c=C_l)")[0]
    assert re.findall(r'sync_threads\(why="(.*?)"', step) == [
        "A_s: read after write",
        "A_s: write after read",
    ]
    assert step.count("T.fence_async_shared()") == 1


def test_in_a_ring_of_two_copies_are_issued_beside_a_product_that_stays() -> None:
    kernel = check_bits((128, 72, 160), stages=2, tile=(128, 64, 64), threads=256, turned=NT)
    words = re.findall(r"T\.(\w+)\(", kernel.stage("pipelined").split("for ko in ")[1])
    order = [word for word in words if word in ("expect_copies", "mbarrier_wait", "gemm", "wait")]
    assert order == ["expect_copies", "mbarrier_wait", "gemm", "wait"]
    told = [remark.message for remark in kernel.compilation.context.remarks]
    why = "of 2 versions the next one would be filled behind the product, and not beside it"
    assert f"products are waited for in their own step: {why}" in told


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        (("T.wgmma_wait(pending=1)", "T.wgmma_wait(pending=2)"), "A_s is written while T.wgmma of line"),
        (
            ('            T.sync_threads(why="A_s: write after read")\n', ""),
            "a race in shared memory: a write of A_s",
        ),
        (("        T.wgmma_wait(c=C_l)\n", ""), "C_l is read while T.wgmma of line"),
        (("            T.fence_async_shared()\n", ""), "A_s is read past the view of threads"),
    ],
)
def test_a_ring_that_fills_too_early_is_refused(change: tuple[str, str], refusal: str) -> None:
    kernel = made(128, 64, 160, stages=3, **AHEAD)
    text = kernel.stage("threaded")
    assert change[0] in text
    function = parse_function(text.replace(*change), card_words())
    with pytest.raises(SimulationError, match=refusal):
        run_threaded(function, arrays_of((128, 64, 160), AHEAD), warp=32)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"fragments": "a"}, "A_l is written in each step, and has one version"),
        ({"acc": "float16"}, "its sum is rounded to float16 in each step"),
        (
            {"ab": ("float8_e4m3fn", "float8_e4m3fn")},
            "what 128 terms give is added to its sum in ordinary registers",
        ),
    ],
)
def test_what_has_work_behind_it_is_waited_for_in_its_step(options: dict[str, Any], why: str) -> None:
    kernel = made(128, 64, 160, stages=3, **AHEAD, **options)
    text = kernel.stage("pipelined")
    assert "ko_products" not in text
    assert 'T.wait("gemm_C_l", by=T.Instr("wgmma"))' in text
    told = [remark.message for remark in kernel.compilation.context.remarks if remark.kind == "missed"]
    assert f"products are waited for in their own step: {why}" in told


@tilebench.jit
def sums_of_steps(scaled, depth, turns):
    @T.prim_func
    def main(
        A: T.Tensor((64, depth), "float16"), B: T.Tensor((64, depth), "float16"), n: T.int32,
        C: T.Tensor((64, 64), "float32"), D: T.Tensor((64, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            A_s = T.alloc_shared((64, 32), "float16")
            B_s = T.alloc_shared((64, 32), "float16")
            C_l = T.alloc_fragment((64, 64), "float32")
            D_l = T.alloc_fragment((64, 64), "float32")
            T.clear(C_l)
            T.clear(D_l)
            for ko in T.Pipelined(n if turns is None else turns, num_stages=3):
                T.copy(A[0, ko * 32], A_s)
                T.copy(B[0, ko * 32], B_s)
                T.gemm(A_s, B_s, C_l, transpose_B=True)
                T.gemm(B_s, A_s, D_l, transpose_B=True)
                if scaled:
                    for i, j in T.Parallel(64, 64):
                        C_l[i, j] *= 0.5
            T.copy(C_l, C)
            T.copy(D_l, D)

    return main


TWO = Schedule.of(gemm={"C_l": {"instruction": "wgmma"}, "D_l": {"instruction": "wgmma"}})


@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_a_loop_of_any_number_of_steps_and_two_sums(steps: int) -> None:
    kernel = sums_of_steps.using(target="cuda:sm_90a", schedule=TWO)(False, 160, None)
    assert 'if 0 < n:\n            T.wait("ko_products"' in kernel.stage("pipelined")
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal((64, 160)).astype(np.float16) for _ in range(2))
    c, d = (np.full((64, 64), 7, np.float32) for _ in range(2))
    kernel.stage("threaded")
    sized = for_sizes(kernel.compilation.functions["threaded"], {"n": steps})
    run_threaded(sized, {"A": a, "B": b, "C": c, "D": d}, warp=32)
    x, y = a[:, : steps * 32], b[:, : steps * 32]
    np.testing.assert_array_equal(c, by_the_card({"A": x, "B": y, "C": c}, {"turned": NT}))
    np.testing.assert_array_equal(d, by_the_card({"A": y, "B": x, "C": c}, {"turned": NT}))


def test_a_sum_that_the_loop_uses_is_waited_for_there() -> None:
    kernel = sums_of_steps.using(target="cuda:sm_90a", schedule=TWO)(True, 160, 5)
    text = kernel.stage("pipelined")
    assert "ko_products" not in text
    told = [remark.message for remark in kernel.compilation.context.remarks if remark.kind == "missed"]
    assert "products are waited for in their own step: the loop uses C_l" in told
    assert text.count('T.wait("gemm_C_l"') == text.count('T.wait("gemm_D_l"') == 1


def test_a_ring_of_128x256_has_no_spill_no_advisory_and_one_wait() -> None:
    kernel = made(4096, 4096, 4096, tile=(128, 256, 64), turned=NT, stages=4, threads=256)
    code = compiled(kernel)
    (report,) = code.resources.values()
    assert (report.spill_store_bytes, report.spill_load_bytes, code.advisories) == (0, 0, ())
    sass = kernel.stage("sass")
    kinds = re.findall(r"(HGMMA|WARPGROUP\.ARRIVE|WARPGROUP\.DEPBAR\.LE gsb0, 0x\d)", sass)
    wait = "WARPGROUP.DEPBAR.LE gsb0, 0x"
    assert kinds == ["WARPGROUP.ARRIVE", *["HGMMA"] * 4, wait + "1", wait + "0"]


@tilebench.jit
def by_groups(depth):
    """Two of three warp groups multiply, each with sums of its own."""

    @T.prim_func
    def main(
        A: T.Tensor((128, depth), "float16"), B: T.Tensor((64, depth), "float16"),
        C: T.Tensor((128, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=384):
            A_s = T.alloc_shared((128, 64), "float16")
            B_s = T.alloc_shared((64, 64), "float16")
            upper = T.alloc_fragment((64, 64), "float32")
            lower = T.alloc_fragment((64, 64), "float32")
            with T.threads(128, 128):
                T.clear(upper)
            with T.threads(256, 128):
                T.clear(lower)
            for ko in T.serial(depth // 64):
                T.copy(A[0, ko * 64], A_s)
                T.copy(B[0, ko * 64], B_s)
                with T.threads(128, 128):
                    T.gemm(A_s[0:64, :], B_s, upper, transpose_B=True)
                with T.threads(256, 128):
                    T.gemm(A_s[64:128, :], B_s, lower, transpose_B=True)
            with T.threads(128, 128):
                T.copy(upper, C[0:64, :])
            with T.threads(256, 128):
                T.copy(lower, C[64:128, :])

    return main


def test_groups_of_threads_multiply_each_its_own() -> None:
    both = Schedule.of(gemm={"upper": {"instruction": "wgmma"}, "lower": {"instruction": "wgmma"}})
    kernel = by_groups.using(target="cuda:sm_90a", schedule=both)(192)
    arrays = arrays_of((128, 64, 192), {"turned": NT})
    kernel.stage("threaded")
    run_threaded(kernel.compilation.functions["threaded"], arrays, warp=32)
    np.testing.assert_array_equal(arrays["C"], by_the_card(arrays, {"turned": NT}))
    assert compiled(kernel).advisories == ()


@tilebench.jit
def parts_of_tiles(depth, turned, step):
    """Versions by hand, and operands that are parts of a tile which start where a loop says."""

    @T.prim_func
    def main(
        A: T.Tensor((64, depth), "float16"),
        B: T.Tensor((64, depth) if turned else (depth, 64), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128):
            A_s = T.alloc_shared((2, 64, 64), "float16")
            B_s = T.alloc_shared((2, 64, 64), "float16")
            C_l = T.alloc_fragment((64, 64), "float32")
            T.clear(C_l)
            for k in T.serial(depth // 64):
                T.copy(A[0:64, k * 64 : k * 64 + 64], A_s[k % 2, :, :])
                if turned:
                    T.copy(B[0:64, k * 64 : k * 64 + 64], B_s[k % 2, :, :])
                else:
                    T.copy(B[k * 64 : k * 64 + 64, 0:64], B_s[k % 2, :, :])
                for kk in T.serial(64 // step):
                    at = kk * step
                    if turned:
                        T.gemm(
                            A_s[k % 2, :, at : at + step],
                            B_s[k % 2, :, at : at + step],
                            C_l,
                            transpose_B=True,
                        )
                    else:
                        T.gemm(A_s[k % 2, :, at : at + step], B_s[k % 2, at : at + step, :], C_l)
            T.copy(C_l, C)

    return main


@pytest.mark.parametrize("turned", [True, False])
@pytest.mark.parametrize("step", [16, 32])
def test_parts_of_tiles(turned: bool, step: int) -> None:
    asked = Schedule.of(gemm={"C_l": {"instruction": "wgmma"}})
    kernel = parts_of_tiles.using(target="cuda:sm_90a", schedule=asked)(192, turned, step)
    arrays = arrays_of((64, 64, 192), {"turned": (False, turned)})
    kernel.stage("threaded")
    run_threaded(kernel.compilation.functions["threaded"], arrays, warp=32)
    np.testing.assert_array_equal(arrays["C"], by_the_card(arrays, {"turned": (False, turned)}))


@pytest.mark.parametrize("dim", [64, 192, 256])
@pytest.mark.parametrize("seen", [{}, {"causal": True}, {"left": 500, "right": 500}], ids=str)
def test_attention_by_its_schedules_has_no_spill_and_no_advisory(dim: int, seen: dict[str, Any]) -> None:
    problem = ATTENTION.problem(B=1, H=2, KV=2, SQ=4096, SK=4096, D=dim, **seen)
    code = compiled(kernel_for(ATTENTION, problem, "cuda:sm_90a"))
    (report,) = code.resources.values()
    assert (report.spill_store_bytes, report.spill_load_bytes, code.advisories) == (0, 0, ())


def test_attention_has_no_spill_and_no_advisory() -> None:
    both = Schedule.of(gemm={"s": {"instruction": "wgmma"}, "acc": {"instruction": "wgmma"}})
    sizes = (1, 2, 2, 1024, 1024, 128, "float16", False, False, False, False, False)
    kernel = attention_kernel.using(target="cuda:sm_90a", schedule=both)(*sizes, 128, 128, 2, 256)
    code = compiled(kernel)
    (report,) = code.resources.values()
    assert (report.spill_store_bytes, report.spill_load_bytes, code.advisories) == (0, 0, ())
    products = re.findall(r"HGMMA\.64x128x16\.F32 R\d+, (gdesc|R\d+)", kernel.stage("sass"))
    # Scores start in their first product, with both operands in shared memory; weights come from registers.
    assert [name == "gdesc" for name in products] == [True] * 8 + [False] * 8
    assert len(re.findall(r"HGMMA\.64x128x16\.F32 R\d+, gdesc\[UR\d+\], RZ, !UPT", kernel.stage("sass"))) == 1


IN_BOXES = Schedule.of(
    gemm={"C_l": {"instruction": "wgmma"}}, copy={name: {"instruction": "tma"} for name in ("A_s", "B_s")}
)


@pytest.mark.parametrize("turned", [True, False])
@pytest.mark.parametrize("stages", [2, 3])
def test_products_of_tiles_that_come_in_boxes(turned: bool, stages: int) -> None:
    options = {"turned": (False, turned)}
    kernel = gemm_nt_kernel.using(target="cuda:sm_90a", schedule=IN_BOXES)(
        200, 136, 160, 128, 64, 32, stages, 256, turned=turned
    )
    text = kernel.stage("threaded")
    assert "T.tma_load(" in text
    # Nobody but the unit itself wrote what it reads.
    assert "T.fence_async_shared" not in text
    arrays = {**arrays_of((200, 136, 160), options), "C": np.zeros((200, 136), np.float16)}
    run_threaded(kernel.compilation.functions["threaded"], arrays, warp=32)
    sums = by_the_card({**arrays, "C": np.zeros((200, 136), np.float32)}, options)
    np.testing.assert_array_equal(arrays["C"], sums.astype(np.float16))


def test_a_ring_of_boxes_needs_few_registers() -> None:
    kernel = gemm_nt_kernel.using(target="cuda:sm_90a", schedule=IN_BOXES)(
        4096, 4096, 4096, 128, 256, 64, 4, 256
    )
    code = compiled(kernel)
    (report,) = code.resources.values()
    assert (report.spill_store_bytes, report.spill_load_bytes, code.advisories) == (0, 0, ())
    # 128 of sums, and addresses of which there are few.
    assert report.registers <= 168
    kinds = re.findall(r"(HGMMA|UTMALDG|WARPGROUP\.DEPBAR\.LE gsb0, 0x\d)", kernel.stage("sass"))
    assert kinds.count("HGMMA") == 4
    assert kinds.count("WARPGROUP.DEPBAR.LE gsb0, 0x1") == 1


@tilebench.jit
def handed_over(depth):
    """One warp group fills, the other multiplies, and a barrier that the kernel names lies between."""

    @T.prim_func
    def main(
        A: T.Tensor((64, depth), "float16"),
        B: T.Tensor((64, depth), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=256):
            A_s = T.alloc_shared((64, depth), "float16")
            B_s = T.alloc_shared((64, depth), "float16")
            C_l = T.alloc_fragment((64, 64), "float32")
            full = T.alloc_barrier(128)
            with T.threads(0, 128):
                T.copy(A, A_s)
                T.copy(B, B_s)
                T.barrier_arrive(full)
            with T.threads(128, 128):
                T.barrier_wait(full, 0)
                T.clear(C_l)
                T.gemm(A_s, B_s, C_l, transpose_B=True)
                T.copy(C_l, C)

    return main


def test_what_a_group_hands_over_passes_a_fence() -> None:
    asked = Schedule.of(gemm={"C_l": {"instruction": "wgmma"}})
    kernel = handed_over.using(target="cuda:sm_90a", schedule=asked)(64)
    text = kernel.stage("threaded")
    assert re.search(r"T\.fence_async_shared\(\)\n +T\.mbarrier_arrive\(full\)", text)
    arrays = arrays_of((64, 64, 64), {"turned": NT})
    run_threaded(kernel.compilation.functions["threaded"], arrays, warp=32)
    np.testing.assert_array_equal(arrays["C"], by_the_card(arrays, {"turned": NT}))
    without = parse_function(text.replace("T.fence_async_shared()\n", "T.sync_warp()\n"), card_words())
    with pytest.raises(SimulationError, match="A_s is read past the view of threads, and thread 0 wrote it"):
        run_threaded(without, arrays, warp=32)


def test_rows_in_registers_are_written_out() -> None:
    # 9 steps of k would be a loop of 3: registers of another turn would be moved into those that are read.
    options = {**AHEAD, "fragments": "a", "tile": (128, 64, 144)}
    text = check_bits((128, 64, 144), stages=1, **options).stage("threaded")
    assert "for k0 in" not in text
    assert "for k1 in T.unroll(9)" in text
