"""Arrays given to a kernel: what fits, and where a message about one that does not points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests import kernels
from tilebench.errors import ArgumentError, ResourceError


@tilebench.jit(target="cpu")
def strided_add(M=6, N=8):
    @T.prim_func
    def main(
        A: T.StridedTensor((M, N), (1, M), "float32"), B: T.Tensor((M, N), "float32"),
        C: T.StridedTensor((M, N), (2 * N, 1), "float32"),
    ):  # fmt: skip
        with T.Kernel(1) as bx:
            for i, j in T.Parallel(M, N):
                C[i, j] = A[i, j] + B[i, j]

    return main


def text_at(error: ArgumentError) -> str:
    assert error.place is not None
    place = error.place
    return place.text[place.column : place.end_column if place.end_line == place.line else None]


def test_places_are_those_of_the_signature() -> None:
    kernel = kernels.gemm_kernel.using(target="cpu")(64, 64, 64)
    places = kernel.places()
    texts = {name: place.text[place.column : place.end_column] for name, place in places.items()}
    assert texts == {
        "A": "A: T.Tensor((M, K), dtype)",
        "B": "B: T.Tensor((K, N), dtype)",
        "C": "C: T.Tensor((M, N), dtype)",
    }


def test_places_are_not_fooled_by_the_same_text_elsewhere() -> None:
    @tilebench.jit(target="cpu")
    def fooling(N=8):
        "A: T.Tensor((N,)) stands here, too"

        @T.prim_func
        def main(
            B: T.Tensor((N,), "float32"),
            A: T.Tensor((N,), "float32"),
        ):
            with T.Kernel(1) as bx:
                for i in T.Parallel(N):
                    A[i] = B[i]

        return main

    places = fooling().places()
    assert places["A"].text.strip() == 'A: T.Tensor((N,), "float32"),'
    assert places["A"].line == places["B"].line + 1


def test_a_strided_tensor_takes_its_strides_and_no_others() -> None:
    kernel = strided_add()
    rng = np.random.default_rng(0)
    a = np.asfortranarray(rng.random((6, 8), np.float32))
    b = rng.random((6, 8), np.float32)
    c = np.zeros((6, 16), np.float32)[:, :8]
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a + b)
    with pytest.raises(ArgumentError, match="A has other strides than its parameter") as caught:
        kernel(np.ascontiguousarray(a), b, c)
    assert text_at(caught.value) == 'A: T.StridedTensor((M, N), (1, M), "float32")'
    with pytest.raises(ArgumentError, match="C has other strides than its parameter"):
        kernel(a, b, np.zeros((6, 8), np.float32))


def test_a_strided_kernel_checks() -> None:
    report: Any = strided_add().check()
    assert report.ok


def test_the_count_of_arrays_is_told_at_the_kernel() -> None:
    kernel = kernels.add_kernel.using(target="cpu")(8, 8)
    with pytest.raises(ArgumentError, match="the kernel takes 3 arrays, 2 were given") as caught:
        kernel(np.zeros((8, 8), np.float16), np.zeros((8, 8), np.float16))
    assert caught.value.place is not None
    assert caught.value.place.text.strip().startswith("def main(A: T.Tensor")


def test_outputs_are_made_and_returned() -> None:
    kernel = kernels.add_kernel.using(target="cpu", out_idx=-1)(8, 8)
    one = np.ones((8, 8), np.float16)
    assert (kernel(one, one) == 2).all()
    with pytest.raises(ArgumentError, match="takes 2 arrays and returns 1") as caught:
        kernel(one)
    assert caught.value.place is not None
    with pytest.raises(ArgumentError, match="out_idx 5 is no parameter"):
        kernels.add_kernel.using(target="cpu", out_idx=5)(8, 8)


def test_a_check_that_takes_too_much_memory_says_so() -> None:
    @tilebench.jit(target="cpu")
    def sticking_out(N=8, block=10**6):
        @T.prim_func
        def main(A: T.Tensor((N, N), "float32"), C: T.Tensor((N, N), "float32")):
            with T.Kernel(1) as bx:
                T.copy(A[bx * block, 0], C[0:block, 0:block])

        return main

    with pytest.raises(ResourceError, match="takes more memory than there is"):
        sticking_out().check()


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "bfloat16", "bool", "uint16"])
def test_inputs_have_the_strides_of_their_parameter_in_every_dtype(dtype: str) -> None:
    @tilebench.jit(target="cpu")
    def kernel(dtype):
        @T.prim_func
        def main(A: T.StridedTensor((4, 5), (9, 1), dtype), C: T.StridedTensor((4, 5), (1, 7), dtype)):
            with T.Kernel(1) as bx:
                for i, j in T.Parallel(4, 5):
                    C[i, j] = A[i, j]

        return main

    made = kernel(dtype)
    strides = [array.strides for array in made.inputs().values()]
    size = made.inputs()["A"].dtype.itemsize
    assert strides == [(9 * size, size), (size, 7 * size)]
    assert made.check().ok
