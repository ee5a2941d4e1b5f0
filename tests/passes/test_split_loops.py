"""Loops over the terms of sums shared out to several blocks: same sums, or a reason at the loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.simulated import run_threaded
from tilebench.errors import ScheduleError
from tilebench.schedule import Schedule


@tilebench.jit
def product(M, N, K, stages, dtype="float16", accum="float32", first=0):
    """C = relu(A B + bias), the inner dimension from `first` tiles on."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), bias: T.Tensor((N,), "float32"),
        C: T.Tensor((M, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=64) as (bx, by):
            A_s = T.alloc_shared((32, 16), dtype)
            B_s = T.alloc_shared((16, 32), dtype)
            bias_s = T.alloc_shared((32,), "float32")
            C_l = T.alloc_fragment((32, 32), accum)
            T.copy(bias[bx * 32], bias_s)
            T.clear(C_l)
            for ko in T.Pipelined(first, T.ceildiv(K, 16), num_stages=stages):
                T.copy(A[by * 32, ko * 16], A_s)
                T.copy(B[ko * 16, bx * 32], B_s)
                T.gemm(A_s, B_s, C_l)
            for i, j in T.Parallel(32, 32):
                C[by * 32 + i, bx * 32 + j] = T.max(T.cast(C_l[i, j], "float32") + bias_s[j], 0.0)

    return main


@tilebench.jit
def row_sums(M, N, how):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), S: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, 8), threads=64) as bx:
            tile = T.alloc_fragment((8, 32), "float32")
            part = T.alloc_fragment((8,), "float32")
            total = T.alloc_fragment((8,), "float32")
            T.fill(total, 0)
            for k in T.serial(T.ceildiv(N, 32)):
                T.copy(A[bx * 8, k * 32], tile)
                if how == "reduce":
                    T.reduce_sum(tile, total, dim=1, clear=False)
                else:
                    T.reduce_sum(tile, part, dim=1)
                    for i in T.Parallel(8):
                        total[i] += part[i]
            T.copy(total, S[bx * 8])

    return main


def arrays_of(m: int, n: int, k: int, first: int, dtype: Any = np.float16) -> tuple[dict[str, Any], Any]:
    rng = np.random.default_rng(m * n + k)
    a, b = rng.integers(-3, 4, (m, k)).astype(dtype), rng.integers(-3, 4, (k, n)).astype(dtype)
    bias = rng.integers(-9, 9, n).astype(np.float32)
    wide = a[:, first * 16 :].astype(np.float64) @ b[first * 16 :].astype(np.float64)
    return {"A": a, "B": b, "bias": bias, "C": np.full((m, n), np.nan, np.float32)}, np.maximum(
        wide + bias, 0
    )


def simulated(kernel: Any, arrays: dict[str, Any]) -> dict[str, Any]:
    after = {name: array.copy() for name, array in arrays.items()}
    kernel.stage("cuda")
    run_threaded(kernel.compilation.functions["threaded"], after, warp=32)
    return after


SHAPES = [
    (40, 70, 200, 2, 0),
    (32, 32, 16, 3, 0),
    (5, 33, 120, 1, 2),
    (64, 32, 129, 3, 1),
]


@pytest.mark.parametrize("split", [1, 2, 3, 5, 64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_sums_are_those_of_one_block(shape: tuple[int, ...], split: int) -> None:
    m, n, k, stages, first = shape
    arrays, wanted = arrays_of(m, n, k, first)
    schedule = Schedule.of(loop={"ko": {"split": split}})
    on_card = product.using(target="cuda:sm_80", schedule=schedule)(m, n, k, stages, first=first)
    np.testing.assert_array_equal(simulated(on_card, arrays)["C"], wanted)
    here = product.using(target="cpu", schedule=schedule)(m, n, k, stages, first=first)
    here(*arrays.values())
    np.testing.assert_array_equal(arrays["C"], wanted)


@pytest.mark.parametrize(
    ("dtype", "accum"), [("int8", "int32"), ("float32", "float32"), ("float16", "float16")]
)
def test_sums_of_other_dtypes(dtype: str, accum: str) -> None:
    arrays, wanted = arrays_of(40, 40, 100, 0, np.dtype(dtype))
    schedule = Schedule.of(loop={"ko": {"split": 3}}, persistent=2)
    kernel = product.using(target="cuda:sm_80", schedule=schedule)(40, 40, 100, 2, dtype, accum)
    np.testing.assert_array_equal(simulated(kernel, arrays)["C"], wanted)


@pytest.mark.parametrize("how", ["reduce", "elements"])
def test_sums_of_rows(how: str) -> None:
    rng = np.random.default_rng(1)
    arrays = {"A": rng.integers(-5, 6, (20, 300)).astype(np.float32), "S": np.zeros(20, np.float32)}
    kernel = row_sums.using(target="cuda:sm_80", schedule=Schedule.of(loop={"k": {"split": 4}}))(20, 300, how)
    assert "T.Kernel(3, 4, threads=64) as (bx, share):" in kernel.stage("scheduled")
    np.testing.assert_array_equal(simulated(kernel, arrays)["S"], arrays["A"].sum(1))


def test_sizes_of_a_call() -> None:
    @tilebench.jit
    def sums(how):
        n = T.dynamic("n")

        @T.prim_func
        def main(A: T.Tensor((8, n), "float32"), S: T.Tensor((8,), "float32")):
            with T.Kernel(1, threads=64) as bx:
                tile = T.alloc_fragment((8, 32), "float32")
                total = T.alloc_fragment((8,), "float32")
                T.fill(total, 0)
                for k in T.serial(T.ceildiv(n, 32)):
                    T.copy(A[bx * 8, k * 32], tile)
                    T.reduce_sum(tile, total, dim=1, clear=False)
                T.copy(total, S[bx * 8])

        return main

    kernel = sums.using(target="cpu", schedule=Schedule.of(loop={"k": {"split": 3}}))(0)
    for n in (1, 31, 32, 33, 64, 65, 200, 1000):
        a, s = np.random.default_rng(n).integers(-5, 6, (8, n)).astype(np.float32), np.zeros(8, np.float32)
        kernel(a, s)
        np.testing.assert_array_equal(s, a.sum(1))


BODIES = {
    "stores": (
        "it stores to B",
        ("T.clear(total)\nfor k in T.serial(4):\n    T.copy(A[k * 8, 0], tile)\n"
        "    T.copy(tile, B[k * 8, 0])\n"),
    ),
    "greatest": (
        "total goes from one iteration to the next, and is no sum that starts at zero",
        ("T.fill(total, -1e30)\nfor k in T.serial(4):\n    T.copy(A[k * 8, 0], tile)\n"
        "    for i, j in T.Parallel(8, 32):\n        total[i, j] = T.max(total[i, j], tile[i, j])\n"),
    ),
    "starts elsewhere": (
        "total is used behind it, and is no sum that starts at zero",
        ("T.copy(A[0, 0], total)\nfor k in T.serial(4):\n    T.copy(A[k * 8, 0], tile)\n"
        "    for i, j in T.Parallel(8, 32):\n        total[i, j] += tile[i, j]\nT.copy(total, B[0, 0])\n"),
    ),
    "read on the way": (
        "total is used behind it, and is no sum that starts at zero",
        ("T.clear(total)\nfor k in T.serial(4):\n    T.copy(A[k * 8, 0], tile)\n"
        "    for i, j in T.Parallel(8, 32):\n        total[i, j] += tile[i, j] * total[i, 31 - j]\n"
        "T.copy(total, B[0, 0])\n"),
    ),
    "the last tile": (
        "tile is used behind it, and is no sum that starts at zero",
        ("T.clear(total)\nfor k in T.serial(4):\n    T.copy(A[k * 8, 0], tile)\n"
        "    for i, j in T.Parallel(8, 32):\n        total[i, j] += tile[i, j]\nT.copy(tile, B[0, 0])\n"),
    ),
    "stored in front": (
        "B is stored in front of it, which two launches would do",
        ("T.copy(A[0, 0], tile)\nT.copy(tile, B[8, 0])\nT.clear(total)\nfor k in T.serial(4):\n"
        "    for i, j in T.Parallel(8, 32):\n        total[i, j] += 1.0\nT.copy(total, B[0, 0])\n"),
    ),
    "inside": (
        "it stands inside another statement",
        ("for n in T.serial(2):\n    T.clear(total)\n    for k in T.serial(4):\n"
        "        for i, j in T.Parallel(8, 32):\n            total[i, j] += 1.0\n"
        "    T.copy(total, B[0, 0])\n"),
    ),
    "by two": (
        "it does not count by one",
        ("T.clear(total)\nfor k in T.serial(0, 4, 2):\n    for i, j in T.Parallel(8, 32):\n"
        "        total[i, j] += 1.0\nT.copy(total, B[0, 0])\n"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", list(BODIES))
def test_what_cannot_be_split_says_why(what: str) -> None:
    from tests.roads import jitted

    why, text = BODIES[what]
    arrays = {name: np.zeros((32, 32), np.float32) for name in "AB"}
    head = 'tile = T.alloc_fragment((8, 32), "float32")\ntotal = T.alloc_fragment((8, 32), "float32")\n'
    function = jitted(head + text, **arrays)
    with pytest.raises(ScheduleError) as caught:
        function.using(target="cpu", schedule=Schedule.of(loop={"k": {"split": 2}}))().stage("scheduled")
    assert caught.value.message == f"the loop k cannot be split over blocks: {why}"
    assert caught.value.place is not None
    lines = (head + text).splitlines()
    assert lines[caught.value.place.line - 7].lstrip().startswith("for k in T.serial")


def test_an_option_that_a_loop_does_not_have_is_refused() -> None:
    with pytest.raises(ScheduleError) as caught:
        product.using(target="cpu", schedule=Schedule.of(loop={"ko": {"unroll": True}}))(8, 8, 32, 2).stage(
            "scheduled"
        )
    said = caught.value.explain()
    assert caught.value.message == "ko has no unroll"
    assert "found: T.Pipelined" in said
    assert "expected: unroll of T.serial" in said


def test_a_short_loop_has_no_idle_blocks() -> None:
    kernel = product.using(target="cuda:sm_80", schedule=Schedule.of(loop={"ko": {"split": 9}}))(8, 8, 40, 2)
    assert "T.Kernel(1, 1, 3, threads=64) as (bx, by, share):" in kernel.stage("scheduled")
    said = [r.message for r in kernel.record().remarks if r.pass_name == "split_loops"]
    assert said == [
        "the loop has 3 iterations, for 9 blocks",
        "3 blocks of each tile take a share of the loop; the sums in C_l are added in a second launch",
    ]


def test_a_producer_brings_the_tiles_of_the_shares_alone() -> None:
    """The launch that adds has no loop whose tiles could be brought; the first keeps its roles."""
    schedule = Schedule.of(
        loop={"ko": {"split": 2}}, warp_specialize=True,
        copy={name: {"instruction": "tma"} for name in ("A_s", "B_s")},
    )  # fmt: skip
    kernel = product.using(target="cuda:sm_90a", schedule=schedule)(64, 64, 128, 2)
    first, second = kernel.stage("pipelined").split("with T.Kernel(")[1:]
    assert "T.threads(64, 128)" in first
    assert "T.threads(" not in second
