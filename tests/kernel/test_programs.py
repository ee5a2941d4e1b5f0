"""Functions of several launches, and the memory that a call works in: one meaning on every road."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.roads import on_cpu, on_reference, on_simulator
from tests.simulated import run_threaded
from tilebench.errors import LanguageError, TargetError
from tilebench.ir import parse_function, print_function
from tilebench.ir.sizes import for_sizes
from tilebench.language.words import registry
from tilebench.passes.analysis.launches import launches_of, parts_of
from tilebench.reference import run_reference
from tilebench.targets.cpu.run import workspace
from tilebench.targets.workspaces import Workspaces


@tilebench.jit
def row_sums(M: Any, N: int, S: int) -> Any:
    """Sums of rows in two launches: S parts of each row, then the parts."""

    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M,), "float32")):  # type: ignore[valid-type]
        W = T.alloc_global((S, M), "float32")
        with T.Kernel(S, T.ceildiv(M, 32), threads=64) as (s, bm):
            X = T.alloc_fragment((32, N // S), "float32")
            r = T.alloc_fragment((32,), "float32")
            T.copy(A[bm * 32, s * (N // S)], X)
            T.reduce_sum(X, r, dim=1)
            T.copy(r, W[s, bm * 32])
        with T.Kernel(T.ceildiv(M, 64), threads=128) as bm:
            acc = T.alloc_fragment((64,), "float32")
            T.clear(acc)
            for s in T.serial(S):
                for i in T.Parallel(64):
                    acc[i] += W[s, bm * 64 + i]
            T.copy(acc, B[bm * 64])

    return main


@tilebench.jit
def doubled_and_shifted(A: Any, block: int = 32) -> Any:
    """B = 2 A and C = B reversed in pieces: a later launch reads an output of an earlier one."""
    N = T.const("N")
    A: T.Tensor((N,), "float32")  # type: ignore[valid-type]
    W = T.alloc_global((N,), "float16")
    B = T.empty((N,), "float32")
    C = T.empty((N,), "float32")
    for part in [W, B]:
        with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
            for i in T.Parallel(block):
                part[bx * block + i] = A[bx * block + i] * 2.0
    with T.Kernel(1, threads=64):
        for i in T.Parallel(N):
            C[i] = B[N - 1 - i] + W[i]
    return B, C


def numbers(*shape: int) -> Any:
    return np.random.default_rng(0).integers(-8, 9, shape).astype(np.float32)


@pytest.mark.parametrize("road", [on_reference, on_cpu, on_simulator])
@pytest.mark.parametrize("shape", [(100, 64), (1, 8), (33, 24)])
def test_launches_see_what_earlier_ones_wrote(road: Any, shape: tuple[int, int]) -> None:
    a = numbers(*shape)
    made = lambda target: row_sums.using(target=target)(*shape, 4)  # noqa: E731

    class Function:
        using = staticmethod(lambda target: lambda: made(target))

    found = road(Function, {"A": a, "B": np.zeros(shape[0], np.float32)})
    np.testing.assert_array_equal(found["B"], a.sum(1))


def test_symbolic_grids_and_workspaces() -> None:
    kernel = row_sums.using(target="cpu")(T.dynamic("m"), 64, 4)
    for rows in (1, 100, 257, 0, 64):
        a, b = numbers(rows, 64), np.zeros(rows, np.float32)
        kernel(a, b)
        np.testing.assert_array_equal(b, a.sum(1))
    card = row_sums.using(target="cuda:sm_80")(T.dynamic("m"), 64, 4)
    card.stage("cuda")
    arrays = {"A": numbers(37, 64), "B": np.zeros(37, np.float32)}
    run_threaded(for_sizes(card.compilation.functions["threaded"], {"m": 37}), arrays, warp=32)
    np.testing.assert_array_equal(arrays["B"], arrays["A"].sum(1))
    assert kernel.check(sizes={"m": 50}).ok


def test_the_eager_form_has_several_launches() -> None:
    a = numbers(96)
    b, c = doubled_and_shifted.using(target="cpu")(a)
    np.testing.assert_array_equal(b, 2 * a)
    np.testing.assert_array_equal(c, 2 * a[::-1] + 2 * a)
    card = doubled_and_shifted.using(target="cuda:sm_80").compile(N=96)
    arrays = {"A": a, "B": np.zeros(96, np.float32), "C": np.zeros(96, np.float32)}
    card.stage("cuda")
    run_threaded(card.compilation.functions["threaded"], arrays, warp=32)
    np.testing.assert_array_equal(arrays["C"], c)
    expected = run_reference(card.compilation.reference, arrays)
    np.testing.assert_array_equal(expected["C"], c)


def test_every_stage_prints_all_launches_and_parses_back() -> None:
    kernel = row_sums.using(target="cuda:sm_90a")(100, 64, 4)
    kernel.stage("cuda")
    for function in kernel.compilation.functions.values():
        text = print_function(function).text
        assert text.count("with T.Kernel(") == 2
        assert text.count("T.alloc_global((4, 100), T.float32)") == 1
        words = kernel.compilation.manifest.registry
        assert parse_function(text, words) == function
    assert kernel.stage("cuda").count("__global__") == 2


def test_a_stage_that_was_edited_runs() -> None:
    kernel = row_sums.using(target="cpu")(100, 64, 4)
    text = kernel.stage("bounded").replace(
        "T.copy(acc, B", "T.fill(acc, T.float32(7))\n        T.copy(acc, B"
    )
    edited = tilebench.compile_from("bounded", text, like=kernel)
    b = np.zeros(100, np.float32)
    edited(numbers(100, 64), b)
    assert (b == 7).all()


def test_the_record_has_every_launch() -> None:
    record = row_sums.using(target="cuda:sm_90a")(100, 64, 4).record()
    assert record.grids == ((4, 4), (2,))
    assert record.grid == (4, 4)
    used = record.resources
    assert used is not None
    assert [each.threads for each in used.launches] == [64, 128]
    assert used.threads == 128
    assert used.registers == max(each.registers or 0 for each in used.launches)
    # One addition an element in the parts, and one a part: 100 * 64 + 100 * 4.
    assert record.flops == 100 * 64 + 100 * 4
    # What the call allocates is no traffic of the problem.
    assert record.bytes == 100 * 64 * 4 + 100 * 4


def test_check_and_bench_run_all_launches() -> None:
    kernel = row_sums.using(target="cpu")(100, 64, 4)
    kernel.check().raise_if_wrong()
    found = kernel.bench(seconds=0.02, rounds=5)
    assert found.failure == ""
    assert found.samples
    assert found.error is not None


def test_a_program_runs_on_one_of_its_own_threads_at_a_time() -> None:
    """Calls of several threads have memory of their own."""
    kernel = row_sums.using(target="cpu")(257, 64, 4)
    wrong: list[int] = []

    def many(seed: int) -> None:
        a = np.random.default_rng(seed).integers(-8, 9, (257, 64)).astype(np.float32)
        b = np.zeros(257, np.float32)
        for _ in range(50):
            kernel(a, b)
            if not np.array_equal(b, a.sum(1)):
                wrong.append(seed)

    threads = [threading.Thread(target=many, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_memory_of_calls_is_kept_and_bounded() -> None:
    pool = workspace.WorkspacePool()
    with pool.take(1 << 20) as first, pool.take(1 << 12) as second:
        assert first != second
    with pool.take(1 << 10) as again:
        assert again == second
    with pool.take(1 << 20) as again:
        assert again == first
    with pool.take(1 << 10) as one, pool.take(1 << 10) as other:
        assert one != other
    for count in range(20):
        with pool.take((count + 2) << 20):
            pass
    assert len(pool._free) <= workspace.MOST_PIECES
    assert sum(piece.size for piece in pool._free) <= workspace.MOST_BYTES


def test_arrays_of_a_call_lie_apart() -> None:
    @tilebench.jit(target="cpu")
    def two() -> Any:
        @T.prim_func
        def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):  # type: ignore[valid-type]
            V = T.alloc_global((64,), "float32")
            W = T.alloc_global((64,), "int32")
            with T.Kernel(1):
                for i in T.Parallel(64):
                    V[i] = A[i] * 2.0
                    W[i] = i
            with T.Kernel(1):
                for i in T.Parallel(64):
                    B[i] = V[i] + W[i]

        return main

    a, b = numbers(64), np.zeros(64, np.float32)
    two()(a, b)
    np.testing.assert_array_equal(b, 2 * a + np.arange(64))


def test_where_workspaces_begin() -> None:
    function = row_sums.using(target="cpu")(T.dynamic("m"), 64, 4).compilation.functions["tile"]
    found = Workspaces(function)
    assert found([3, None, None]).size == 256
    assert found([100, None, None]).size == 7 * 256
    assert found([0, None, None]).size == 0


def test_a_schedule_addresses_all_launches() -> None:
    schedule = tilebench.Schedule.of(threads=32)
    kernel = row_sums.using(target="cuda:sm_80", schedule=schedule)(100, 64, 4)
    kernel.stage("scheduled")
    assert [launch.threads for launch in launches_of(kernel.compilation.functions["scheduled"])] == [32, 32]
    chosen = [each for each in kernel.record(("scheduled",)).choices if each.name == "threads"]
    assert [each.address for each in chosen] == ["kernel 1", "kernel 2"]


def test_products_are_staged_in_their_own_launch() -> None:
    @tilebench.jit(target="cuda:sm_80")
    def chain() -> Any:
        half = "float16"

        @T.prim_func
        def main(
            A: T.Tensor((64, 64), half),
            B: T.Tensor((64, 64), half),
            C: T.Tensor((64, 64), "float32"),  # type: ignore[valid-type]
        ):
            W = T.alloc_global((64, 64), half)
            with T.Kernel(1, threads=128):
                acc = T.alloc_fragment((64, 64), "float32")
                T.clear(acc)
                T.gemm(A, B, acc)
                T.copy(acc, W)
            with T.Kernel(1, threads=64):
                acc = T.alloc_fragment((64, 64), "float32")
                T.clear(acc)
                T.gemm(W, B, acc)
                T.copy(acc, C)

        return main

    kernel = chain()
    kernel.stage("cuda")
    a, b = (np.random.default_rng(k).integers(-2, 3, (64, 64)).astype(np.float16) for k in range(2))
    arrays = {"A": a, "B": b, "C": np.zeros((64, 64), np.float32)}
    run_threaded(kernel.compilation.functions["threaded"], arrays, warp=32)
    want = (a.astype(np.float32) @ b).astype(np.float16).astype(np.float32) @ b
    np.testing.assert_array_equal(arrays["C"], want)
    one, two = (part.body[0] for part in parts_of(kernel.compilation.functions["threaded"]))
    assert one.shared_bytes == two.shared_bytes == 2 * 64 * 64 * 2
    c = np.zeros((64, 64), np.float32)
    chain.using(target="cpu")()(a, b, c)
    np.testing.assert_array_equal(c, want)


def test_an_extent_of_a_workspace_is_a_size_of_an_array() -> None:
    @tilebench.jit(target="cpu")
    def wrong() -> Any:
        @T.prim_func
        def main(A: T.Tensor((64,), "float32"), n: T.int32):  # type: ignore[valid-type]
            W = T.alloc_global((n,), "float32")
            with T.Kernel(1):
                W[0] = A[0]

        return main

    with pytest.raises(LanguageError) as caught:
        wrong()
    assert caught.value.message == "the extent n of W is no size of an array"
    assert caught.value.place is not None
    assert caught.value.place.text.strip().startswith("W = T.alloc_global")


def test_a_target_of_single_launches_refuses() -> None:
    compilation = row_sums.using(target="null")(64, 64, 4).compilation
    alone = replace(compilation, manifest=replace(compilation.manifest, programs=False))
    with pytest.raises(TargetError) as caught:
        alone.reach("listing")
    assert caught.value.message == "null runs one `with T.Kernel(...)` of a function, and no T.alloc_global"
    assert caught.value.place is not None
    assert "T.ceildiv(M, 64)" in caught.value.place.text


def test_the_words_are_in_the_registry() -> None:
    assert registry().statement("alloc_global") is not None
