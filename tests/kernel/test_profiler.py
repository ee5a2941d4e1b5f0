"""`kernel.get_profiler()`, and calls that name their arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tilebench.errors import ArgumentError, OptionError
from tilebench.kernel.measuring.profiler import TensorSupplyType, do_bench


@tilebench.jit(out_idx=[-1], target="cpu")
def added(dtype="float32"):
    N = T.dynamic("N")

    @T.prim_func
    def main(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), s: T.float32, C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, 32), threads=32) as bx:
            for i in T.Parallel(32):
                if bx * 32 + i < N:
                    C[bx * 32 + i] = A[bx * 32 + i] + B[bx * 32 + i] * s

    return main


@tilebench.jit(out_idx=1, target="cpu")
def copied(dtype, N=64):
    @T.prim_func
    def main(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype)):
        with T.Kernel(1, threads=32) as bx:
            for i in T.Parallel(N):
                B[i] = A[i]

    return main


def test_arguments_by_name() -> None:
    a, b = np.ones(40, np.float32), np.full(40, 2, np.float32)
    kernel = added()
    np.testing.assert_array_equal(kernel(a, s=3.0, B=b), a + 3 * b)
    with pytest.raises(ArgumentError, match="B is given already"):
        kernel(a, b, 3.0, B=b)
    with pytest.raises(ArgumentError, match="C is no parameter that a call passes"):
        kernel(a, b, 3.0, C=a)
    with pytest.raises(ArgumentError, match="s is missing"):
        kernel(a, B=b)


def test_times_are_milliseconds_of_a_call() -> None:
    calls: list[int] = []
    profiler = copied("float32").get_profiler(TensorSupplyType.One)
    assert profiler.do_bench(lambda a: calls.append(1), n_warmup=2, n_repeat=3) >= 0
    assert len(calls) == 5
    low, high = do_bench(lambda: None, warmup=0, _n_repeat=4, quantiles=[0.0, 1.0])
    assert 0 <= low <= high
    with pytest.raises(OptionError, match="return_mode cannot be 'best'"):
        do_bench(lambda: None, return_mode="best")  # type: ignore[arg-type]


def test_results_are_compared_and_what_differs_is_told() -> None:
    kernel = copied("float32")
    profiler = kernel.get_profiler()
    profiler.assert_allclose(lambda a: a)
    profiler.assert_consistent(2)
    with pytest.raises(AssertionError, match="result 0 of copied: 64 of 64 elements differ"):
        profiler.assert_allclose(lambda a: a + 1)

    def one_wrong(a: Any) -> Any:
        other = a + 0
        other[3] += 1
        return other

    with pytest.raises(AssertionError, match="1 of 64"):
        profiler.assert_allclose(one_wrong)
    with pytest.warns(UserWarning, match=r"1 of 64 elements differ .* \(a share of 0\.1 may\)"):
        profiler.assert_allclose(one_wrong, max_mismatched_ratio=0.1)
    with pytest.raises(ArgumentError, match="copied returns 1 arrays, and what it is compared with 2"):
        profiler.assert_allclose(lambda a: (a, a))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32", "uint8", "bool", "float8_e5m2"])
def test_inputs_of_each_kind(dtype: str) -> None:
    for kind in TensorSupplyType:
        (a,) = copied(dtype).get_profiler(kind).inputs()
        assert a.shape == (64,)
        assert str(a.dtype).removeprefix("torch.") == dtype
    (zeros,) = copied(dtype).get_profiler("zero").inputs()
    assert not zeros.any()


@pytest.mark.parametrize(("kind", "mean"), [("normal", -1.0), ("randn", 0.0)])
def test_normal_inputs_have_the_means_of_tilelang(kind: str, mean: float) -> None:
    inputs = [TensorSupplyType(kind).array((4000,), dtype, 0) for dtype in ("float32", "bfloat16")]
    for array in inputs:
        assert abs(array.astype(np.float32).mean() - mean) < 0.1
        assert abs(array.astype(np.float32).std() - 1) < 0.1


def test_sizes_of_a_call_are_given() -> None:
    profiler = added().get_profiler()
    assert profiler.do_bench(dynamic_symbolic_constraints={"N": 33, "s": 2.0}, n_repeat=1, warmup=0) > 0
