"""Groups of threads: what some threads of a block do, from the kernel's text to the simulator and NVRTC."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.simulated import run_threaded
from tilebench.errors import LanguageError, LayoutError, ResourceError
from tilebench.ir import parse_function
from tilebench.kernel.edited import compile_from
from tilebench.language.words import registry
from tilebench.passes.analysis.thread_groups import barrier_numbers
from tilebench.passes.context import Context
from tilebench.passes.threaded.insert_barriers import insert_barriers
from tilebench.targets.cuda.machines import machine_of


@tilebench.jit
def sum_and_max(N, threads=128):
    @T.prim_func
    def main(A: T.Tensor((64, N), "float32"), S: T.Tensor((64,), "float32"), M: T.Tensor((64,), "float32")):
        with T.Kernel(2, threads=threads) as bx:
            tx = T.get_thread_binding()
            s = T.alloc_shared((32, N), "float32")
            T.copy(A[bx * 32, 0], s)
            if tx < 64:
                x = T.alloc_fragment((32, N), "float32")
                r = T.alloc_fragment((32,), "float32")
                T.copy(s, x)
                T.reduce_sum(x, r, dim=1)
                T.copy(r, S[bx * 32])
            else:
                y = T.alloc_fragment((32, N), "float32")
                q = T.alloc_fragment((32,), "float32")
                T.copy(s, y)
                T.reduce_max(y, q, dim=1)
                T.copy(q, M[bx * 32])

    return main


@tilebench.jit
def handed_on(N, block):
    """Two warps scale a row, the other two add to it, then all store it; one thread counts."""

    @T.prim_func
    def main(A: T.Tensor((8, N), "float32"), B: T.Tensor((8, N), "float32"), C: T.Tensor((8,), "int32")):
        with T.Kernel(8, threads=128) as bx:
            s = T.alloc_shared((N,), "float32")
            for k in T.serial(T.ceildiv(N, block)):
                with T.threads(64, 64):
                    for i in T.Parallel(block):
                        if k * block + i < N:
                            s[k * block + i] = A[bx, k * block + i] * 2.0
                with T.threads(0, 64):
                    for i in T.Parallel(block):
                        if k * block + i < N:
                            s[k * block + i] = s[k * block + i] + 1.0
            for i in T.Parallel(N):
                B[bx, i] = s[N - 1 - i]
            tx = T.get_thread_binding()
            if tx == 77:
                C[bx] = bx + 1

    return main


@tilebench.jit
def across_warps(N):
    """A group of three warps reduces along its threads, so its parts meet at a barrier of its own."""

    @T.prim_func
    def main(A: T.Tensor((4, N), "float32"), S: T.Tensor((4,), "float32")):
        with T.Kernel(4, threads=128) as bx, T.threads(32, 96):
            x = T.alloc_fragment((1, N), "float32")
            r = T.alloc_fragment((1,), "float32")
            T.copy(A[bx, 0], x)
            T.reduce_sum(x, r, dim=1)
            T.copy(r, S[bx])

    return main


def numbers(*shape: int) -> Any:
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


def outputs(kernel: Any, *arrays: Any) -> None:
    """Run on the target of the kernel: in the simulator where it is a card."""
    if kernel.target.startswith("cpu"):
        kernel(*arrays)
        return
    kernel.stage("threaded")
    function = kernel.compilation.functions["threaded"]
    run_threaded(function, dict(zip((p.name for p in function.params), arrays, strict=True)), warp=32)
    kernel.stage("ptx")


TARGETS = ["cpu", "cuda:sm_80"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("n", [100, 33])
def test_two_groups_reduce_side_by_side(target: str, n: int) -> None:
    a, s, m = numbers(64, n), np.full(64, np.nan, np.float32), np.full(64, np.nan, np.float32)
    outputs(sum_and_max.using(target=target)(n), a, s, m)
    np.testing.assert_allclose(s, a.sum(1), rtol=1e-4, atol=1e-5)
    assert np.array_equal(m, a.max(1))


@pytest.mark.parametrize("target", TARGETS)
def test_what_one_group_writes_another_reads(target: str) -> None:
    a, b, c = numbers(8, 75), np.full((8, 75), np.nan, np.float32), np.zeros(8, np.int32)
    outputs(handed_on.using(target=target)(75, 32), a, b, c)
    assert np.array_equal(b, (a * np.float32(2) + np.float32(1))[:, ::-1])
    assert c.tolist() == list(range(1, 9))


ACROSS = """\
@T.prim_func
def main(A: T.Tensor((4, 700), T.float32), S: T.Tensor((4,), T.float32)):
    along = T.Fragment((700,), thread=((96, 0, 1),), value=((8, 0, 96),))
    with T.Kernel(4, threads=128) as bx:
        with T.threads(32, 96):
            x = T.alloc_fragment((1, 700), T.float32, layout=T.Fragment((1, 700), thread=((96, 1, 1),), value=((8, 1, 96),)))
            r = T.alloc_fragment((1,), T.float32, layout=T.Fragment((1,), thread=((96, -1, 0),)))
            T.copy(A[bx : bx + 1, 0 : 700], x, by=T.Instr("ld.st", bytes=4), map=along)
            T.reduce_sum(x, r, by=T.Instr("shared", lanes=96))
            T.copy(r, S[bx : bx + 1], by=T.Instr("ld.st", bytes=4), map=T.Fragment((1,), thread=((96, -1, 0),)))
"""  # noqa: E501 -- a stage is one statement a line


@pytest.mark.parametrize("target", TARGETS)
def test_a_reduction_across_the_warps_of_a_group(target: str) -> None:
    a, s = numbers(4, 700), np.full(4, np.nan, np.float32)
    kernel = across_warps.using(target=target)(700)
    if target != "cpu":
        # Left to itself the compiler sums within a warp: the layout across them is said here.
        kernel = compile_from("laid_out", ACROSS, like=kernel)
    outputs(kernel, a, s)
    np.testing.assert_allclose(s, a.sum(1), rtol=1e-3, atol=1e-4)
    if target != "cpu":
        assert "T.sync_threads(" in kernel.stage("threaded")
        assert "barrier=1, threads=96)" in kernel.stage("threaded")
        assert 'asm volatile("bar.sync 1, 96;" ::: "memory");' in kernel.stage("cuda")


def test_layouts_are_made_for_the_threads_of_the_group() -> None:
    text = sum_and_max.using(target="cuda:sm_80")(100).stage("laid_out")
    assert "with T.threads(0, 64):" in text
    assert "with T.threads(64, None):" in text
    # 64 threads: two along a row of 100, 32 rows.
    assert "T.Fragment((32, 100), thread=((2, 1, 4), (32, 0, 1)), value=((4, 1, 1), (13, 1, 8)))" in text


BARRIERS = """\
@T.prim_func
def f(A: T.Tensor((64,), T.float32), B: T.Tensor((64,), T.float32)):
    with T.Kernel(1, threads=128) as bx:
        s = T.alloc_shared((64,), T.float32, offset=0)
        with T.threads(0, 64):
            T.copy(A, s)
            for i in T.Parallel(64):
                B[i] = s[63 - i]
        with T.threads(96, 32):
            T.fill(s, T.float32(0))
            T.copy(s, B)
        with T.threads(5, 1):
            T.fill(s, T.float32(1))
            T.copy(s, B)
"""


def test_each_group_meets_at_its_own_barrier_and_the_block_between_them() -> None:
    context = Context(machine_of("sm_80"))
    function = insert_barriers(parse_function(BARRIERS, registry()), context)
    launch = function.body[0]
    told = [
        [(each.word, getattr(each, "barrier", 0) or 0, getattr(each, "threads", 0)) for each in body]
        for body in (launch.body, *(g.body for g in launch.body if g.word == "threads"))  # type: ignore[attr-defined]
    ]  # fmt: skip
    meeting = ("sync_threads", 0, 0)
    assert [word for word, _, _ in told[0]] == [
        "alloc_shared", "threads", "sync_threads", "threads", "sync_threads", "threads",
    ]  # fmt: skip
    assert told[0].count(meeting) == 2
    assert told[1] == [("copy", 0, 0), ("sync_threads", 1, 64), ("Parallel", 0, 0)]
    assert told[2] == [("fill", 0, 0), ("sync_warp", 0, 0), ("copy", 0, 0)]
    assert told[3] == [("fill", 0, 0), ("copy", 0, 0)]  # one thread does everything in order


def test_more_groups_than_barriers_are_refused() -> None:
    groups = "".join(
        f"        with T.threads({32 * k}, {64 + 32 * (k % 2)}):\n            T.fill(s, T.float32(0))\n"
        for k in range(20)
    )
    head = BARRIERS[: BARRIERS.index("        with T.threads")].replace("threads=128", "threads=1024")
    text = head + groups
    with pytest.raises(ResourceError, match="has 20 groups of threads, and a block has barriers for 15"):
        barrier_numbers(parse_function(text, registry()), machine_of("sm_80"))


# -- refusals, at the user's line


def traced(body: Any) -> Any:
    return tilebench.jit(body).using(target="cuda:sm_80")()


def test_a_condition_that_is_no_range_is_refused() -> None:
    def kernel():
        @T.prim_func
        def main(A: T.Tensor((128,), "float32")):
            with T.Kernel(1, threads=128) as bx:
                tx = T.get_thread_binding()
                if tx % 2 == 0:
                    T.fill(A, 1.0)

        return main

    with pytest.raises(LanguageError, match="this is no range of threads") as caught:
        traced(kernel)
    assert "if tx % 2 == 0:" in str(caught.value)


def test_a_group_that_is_no_whole_warp_is_refused_at_its_line() -> None:
    def kernel():
        @T.prim_func
        def main(A: T.Tensor((128,), "float32")):
            with T.Kernel(1, threads=128) as bx, T.threads(16, 32):
                T.fill(A, 1.0)

        return main

    with pytest.raises(LayoutError, match="threads 16 to 47 cannot work on tiles together") as caught:
        traced(kernel).stage("laid_out")
    assert "T.threads(16, 32):" in str(caught.value)


def test_a_fragment_of_other_threads_is_refused_at_its_use() -> None:
    def kernel():
        @T.prim_func
        def main(A: T.Tensor((128,), "float32")):
            with T.Kernel(1, threads=128) as bx:
                f = T.alloc_fragment((128,), "float32")
                T.clear(f)
                with T.ws(0):
                    T.copy(f, A)
                with T.threads(0, 64):
                    T.copy(f, A)

        return main

    with pytest.raises(LayoutError) as caught:
        traced(kernel).stage("laid_out")
    told = str(caught.value)
    assert "lies in the registers of threads 0 to 127, and threads 0 to 63 use it here" in told
    assert "T.copy(f, A)" in told
