"""The reference by several processes is that of one, bit by bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tilebench.kernel.measuring import shared_out
from tilebench.kernel.measuring.measure import random_inputs, tile_of
from tilebench.kernel.measuring.package import Package, package_of
from tilebench.reference import run_bounded
from tilebench.reference.bounds import apart


@tilebench.jit
def product(M, N, K, block=16):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=32) as (bx, by):
            C_l = T.alloc_fragment((block, block), "float32")
            T.clear(C_l)
            for ko in T.Pipelined(T.ceildiv(K, block), num_stages=2):
                A_s = T.alloc_shared((block, block), "float16")
                B_s = T.alloc_shared((block, block), "float16")
                T.copy(A[by * block, ko * block], A_s)
                T.copy(B[ko * block, bx * block], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C[by * block, bx * block])

    return main


@tilebench.jit
def every_other(N, block=64):
    """Every other block stores nothing."""

    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
            for i in T.Parallel(block):
                if bx % 2 == 0:
                    B[bx * block + i] = A[bx * block + i]

    return main


@tilebench.jit
def in_place(N, block=64):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
            for i in T.Parallel(block):
                A[bx * block + i] = A[bx * block + i] + T.float32(1)

    return main


def of(kernel: Any) -> tuple[Package, Any, dict[str, Any]]:
    package = package_of(kernel, {})
    inputs = random_inputs(package, 3)
    return package, tile_of(package), {p.name: a for p, a in zip(package.arguments, inputs, strict=True)}


def here(package: Package, files: Any, blocks: range) -> Any:
    return shared_out.run_blocks(package.target, package.tile_text, files, blocks)


def is_same(one: Any, other: Any) -> bool:
    parts = ("value", "error", "stored", "blocks")
    return all(getattr(one, part).tobytes() == getattr(other, part).tobytes() for part in parts) and (
        other.known is None and other.either is None
    )


@pytest.mark.parametrize(
    "kernel", [product.using(target="cpu")(100, 70, 40), every_other.using(target="cpu")(1000)]
)
def test_parts_make_the_whole(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    package, function, before = of(kernel)
    asked: list[range] = []

    def elsewhere(package: Package, files: Any, blocks: range) -> Any:
        asked.append(blocks)
        return here(package, files, blocks)

    monkeypatch.setattr(shared_out, "_elsewhere", elsewhere)
    monkeypatch.setattr(shared_out, "allowed_cores", lambda: 3)
    monkeypatch.setattr(shared_out, "WORTH_S", 0.0)
    found, whole = shared_out.run_shared_out(package, function, before), run_bounded(function, before)
    # The first block is looked at here, to see how long one takes; the others are elsewhere, each once.
    assert sorted(block for blocks in asked for block in blocks) == list(range(1, apart(function)))
    assert found.keys() == whole.keys()
    assert all(is_same(whole[name], found[name]) for name in whole)


@pytest.mark.slow
def test_processes_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    package, function, before = of(product.using(target="cpu")(64, 64, 32))
    monkeypatch.setattr(shared_out, "allowed_cores", lambda: 2)
    monkeypatch.setattr(shared_out, "WORTH_S", 0.0)
    found, whole = shared_out.run_shared_out(package, function, before), run_bounded(function, before)
    assert is_same(whole["C"], found["C"])


def test_the_last_block_that_stored_an_element_stands() -> None:
    _, function, before = of(product.using(target="cpu")(32, 32, 16))
    whole = run_bounded(function, before)
    part = shared_out.BlocksResult(
        5, np.array([7.0, 8.0]), np.array([0.5, 0.25]), np.array([True, False]), np.array([9, 9], np.int32)
    )
    joined = shared_out._joined(whole, [{"C": part}])["C"]  # pyright: ignore[reportPrivateUsage]
    assert joined.blocks is not None
    flat = [array.reshape(-1) for array in (joined.value, joined.error, joined.blocks)]
    assert [array[5] for array in flat] == [7.0, 0.5, 9]
    assert flat[0][6] == whole["C"].value.reshape(-1)[6]


def test_what_is_small_or_hangs_together_stays_in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_out, "_elsewhere", None)
    monkeypatch.setattr(shared_out, "allowed_cores", lambda: 16)
    small = of(product.using(target="cpu")(100, 70, 40))
    assert is_same(run_bounded(*small[1:])["C"], shared_out.run_shared_out(*small)["C"])
    monkeypatch.setattr(shared_out, "WORTH_S", 0.0)
    package, function, before = of(in_place.using(target="cpu")(1000))
    assert apart(function) == 0
    found = shared_out.run_shared_out(package, function, before)["A"]
    assert found.value == pytest.approx(before["A"] + 1.0)


@pytest.mark.parametrize(
    "kernel", [product.using(target="cpu")(100, 70, 40), every_other.using(target="cpu")(1000)]
)
def test_an_input_that_is_widened_where_it_is_read_gives_the_same(
    kernel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, function, before = of(kernel)
    whole = run_bounded(function, before)
    monkeypatch.setattr("tilebench.reference.numbers.WIDENED_BYTES", 0)
    found = run_bounded(function, before)
    assert all(is_same(whole[name], found[name]) for name in whole)
