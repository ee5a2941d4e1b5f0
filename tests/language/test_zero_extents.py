"""Sizes of zero are sizes: arrays without elements, grids without blocks, products of no terms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.simulated import run_threaded
from tilebench.ir.sizes import for_sizes

TARGETS = ("cpu", "cuda:sm_80", "cuda:sm_90a")


def agree(make: Any, arrays: dict[str, Any], *values: Any) -> dict[str, Any]:
    """What a kernel leaves in its arrays: on the CPU, in the simulator and by the reference."""
    found: list[dict[str, Any]] = []
    for target in TARGETS:
        kernel = tilebench.jit(target=target)(make)(*values)
        given = {name: array.copy() for name, array in arrays.items()}
        if target == "cpu":
            kernel(*given.values())
            kernel.check(*(array.copy() for array in arrays.values())).raise_if_wrong()
        else:
            kernel.stage("cuda")
            sizes = kernel.calls.binder(list(given.values())).values
            run_threaded(
                for_sizes(kernel.compilation.functions["threaded"], sizes), {**given, **sizes}, warp=32
            )
        found.append(given)
    for other in found[1:]:
        for name in arrays:
            np.testing.assert_array_equal(found[0][name], other[name])
    return found[0]


def full(*shape: int) -> Any:
    return np.full(shape, 7.0, np.float32)


def add(N: Any, block: int = 32) -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block)) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] + 1.0

    return main


def one_block(N: Any, M: int = 4) -> Any:
    @T.prim_func
    def main(A: T.Tensor((N, M), "float32"), B: T.Tensor((N, M), "float32"), R: T.Tensor((4,), "float32")):
        with T.Kernel(1):
            s = T.alloc_shared((8, 4), "float32")
            f = T.alloc_fragment((8, 4), "float32")
            r = T.alloc_fragment((8,), "float32")
            T.copy(A[0:8, 0:4], s)
            T.copy(s, f)
            T.copy(s, B[0:8, 0:4])
            T.reduce_sum(f, r, dim=1)
            for _i in T.serial(N):
                R[1] = 9.0
            T.copy(r[0:1], R[0:1])

    return main


def gemm(M: Any, N: Any, K: Any, dtype: str = "float32", stages: int = 2) -> Any:
    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=128) as (bx, by):
            a = T.alloc_shared((32, 32), dtype)
            b = T.alloc_shared((32, 32), dtype)
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 32), num_stages=stages):
                T.copy(A[by * 32, k * 32], a)
                T.copy(B[k * 32, bx * 32], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 32, bx * 32])

    return main


def whole(M: int, N: int, K: int, clear: bool = False) -> Any:
    @T.prim_func
    def main(A: T.Tensor((M, K), "float32"), B: T.Tensor((K, N), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(1):
            c = T.alloc_fragment((M, N), "float32")
            T.fill(c, 3.0)
            T.gemm(A, B, c, clear_accum=clear)
            T.copy(c, C)

    return main


def filled(N: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((N, 4), "float32"), B: T.Tensor((N, 4), "float32"), R: T.Tensor((4,), "float32")):
        with T.Kernel(1):
            T.fill(A, 1.0)
            T.clear(B[0:N, 0:4])
            T.copy(A, B)
            for i, j in T.Parallel(N, 4):
                R[i * 0 + j] = 5.0
            for i in T.vectorized(N):
                R[i] = 5.0
            for i, j in T.grid(4, N):
                R[i + j * 0] = 5.0
            R[0] = 1.0

    return main


def sized(make: Any, count: int) -> Any:
    """The same kernel for sizes that a call brings."""

    def dynamic() -> Any:
        names = ", ".join("mnk"[:count])
        sizes = T.dynamic(names)
        return make(*(sizes if count > 1 else (sizes,)))

    return dynamic


def test_arrays_without_elements_and_a_grid_without_blocks() -> None:
    assert agree(add, {"A": full(0), "B": full(0)}, 0)["B"].shape == (0,)
    assert agree(sized(add, 1), {"A": full(0), "B": full(0)})["B"].shape == (0,)


@pytest.mark.parametrize("make", [one_block, sized(one_block, 1)])
def test_tiles_of_an_array_without_rows_are_zero(make: Any) -> None:
    values = (0,) if make is one_block else ()
    found = agree(make, {"A": full(0, 4), "B": full(0, 4), "R": full(4)}, *values)
    assert found["R"].tolist() == [0.0, 7.0, 7.0, 7.0]


def test_arrays_without_columns() -> None:
    found = agree(one_block, {"A": full(5, 0), "B": full(5, 0), "R": full(4)}, 5, 0)
    assert found["R"].tolist() == [0.0, 9.0, 7.0, 7.0]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("stages", [1, 2, 3])
def test_a_product_of_no_terms_is_zero(dtype: str, stages: int) -> None:
    arrays = {"A": full(40, 0).astype(dtype), "B": full(0, 33).astype(dtype), "C": full(40, 33)}
    assert not agree(gemm, arrays, 40, 33, 0, dtype, stages)["C"].any()


def test_a_product_of_no_terms_with_sizes_of_a_call() -> None:
    # Rows of whole vectors, so that the variant for aligned rows is the one to run.
    arrays = {"A": full(40, 0), "B": full(0, 36), "C": full(40, 36)}
    assert not agree(sized(gemm, 3), arrays)["C"].any()


@pytest.mark.parametrize("shape", [(0, 33, 40), (40, 0, 33), (0, 0, 0)])
def test_a_product_without_rows_or_columns(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    arrays = {"A": full(m, k), "B": full(k, n), "C": full(m, n)}
    assert agree(gemm, arrays, m, n, k)["C"].size == 0
    assert agree(sized(gemm, 3), arrays)["C"].size == 0


def test_a_product_of_whole_arrays_without_terms() -> None:
    arrays = {"A": full(16, 0), "B": full(0, 16), "C": full(16, 16)}
    assert (agree(whole, arrays, 16, 16, 0)["C"] == 3.0).all()
    assert not agree(whole, arrays, 16, 16, 0, True)["C"].any()


def test_operations_on_nothing() -> None:
    found = agree(filled, {"A": full(0, 4), "B": full(0, 4), "R": full(4)}, 0)
    assert found["R"].tolist() == [1.0, 7.0, 7.0, 7.0]
