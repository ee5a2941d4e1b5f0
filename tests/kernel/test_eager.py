"""Kernel functions whose own body is the kernel: constants from shapes, arrays in, outputs back."""

from __future__ import annotations

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.passes.test_thread_groups import outputs
from tilebench.errors import ArgumentError, LanguageError, LaunchError, TileError
from tilebench.ir.dtypes import dtype_of
from tilebench.ir.packing import unpack

SCALE = 3


@tilebench.jit
def product(A, B, block_M: int, block_N: int, block_K: int = 16):
    M, N, K = T.const("M, N, K")
    dtype = "float16"
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((K, N), dtype)
    C = T.empty((M, N), "float32")

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=64) as (bx, by):
        A_s = T.alloc_shared((block_M, block_K), dtype)
        B_s = T.alloc_shared((block_K, block_N), dtype)
        C_l = T.alloc_fragment((block_M, block_N), "float32")
        T.clear(C_l)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
            T.copy(A[by * block_M, k * block_K], A_s)
            T.copy(B[k * block_K, bx * block_N], B_s)
            T.gemm(A_s, B_s, C_l)
        T.copy(C_l, C[by * block_M, bx * block_N])
    return C


@tilebench.jit
def halves(A, scale, block=32):
    """Two outputs in an order of their own, a scalar of the call, and sizes made of constants."""
    N = T.const("N")
    A: T.Tensor[[2 * N], T.float32]
    scale: T.float32
    first = T.empty((N,), "float32")
    second = T.empty([N], "float32")
    assert block % 2 == 0
    with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
        for i in T.Parallel(block):
            if bx * block + i < N:
                first[bx * block + i] = A[bx * block + i] * scale
                second[bx * block + i] = A[N + bx * block + i]
    return second, first


@tilebench.jit
def in_place(A, C, block=32):
    n = T.dynamic("n")
    A: T.Tensor((n,), "float32")
    C: T.Tensor((n * SCALE,), "float32")
    with T.Kernel(T.ceildiv(n * SCALE, block), threads=32) as bx:
        for i in T.Parallel(block):
            if bx * block + i < n * SCALE:
                C[bx * block + i] = A[(bx * block + i) // SCALE]


def matrices(m: int = 50, n: int = 40, k: int = 33) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(m)
    return rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((k, n)).astype(np.float16)


def test_a_call_reads_its_constants_from_shapes_and_gives_the_outputs_back() -> None:
    for shape in ((50, 40, 33), (16, 16, 16), (1, 3, 2)):
        a, b = matrices(*shape)
        c = product.using(target="cpu")(a, b, 32, 16)
        assert c.dtype == np.float32
        np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-5, atol=1e-5)


def test_a_kernel_of_named_sizes_runs_on_every_target() -> None:
    a, b = matrices()
    for target in ("cpu", "cuda:sm_80"):
        kernel = product.using(target=target).compile(M=50, N=40, K=33, block_M=32, block_N=32)
        c = np.full((50, 40), np.nan, np.float32)
        outputs(kernel if target != "cpu" else lambda_of(kernel, c), a, b, c)
        np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-5, atol=1e-5)


def lambda_of(kernel, c):  # type: ignore[no-untyped-def]
    """A kernel on the CPU whose output is copied to where the other target writes it."""

    class Copied:
        target = kernel.target

        def __call__(self, a, b, _):  # type: ignore[no-untyped-def]
            c[...] = kernel(a, b)

    return Copied()


def test_outputs_come_in_the_order_of_return_and_scalars_travel() -> None:
    a = np.arange(20, dtype=np.float32)
    second, first = halves.using(target="cpu")(a, 2.0)
    np.testing.assert_array_equal(first, 2 * a[:10])
    np.testing.assert_array_equal(second, a[10:])
    # By keyword too, with another block.
    second, first = halves.using(target="cpu")(scale=0.5, A=a, block=8)
    np.testing.assert_array_equal(first, 0.5 * a[:10])


def test_dynamic_sizes_compile_once() -> None:
    function = in_place.using(target="cpu")
    for n in (5, 77):
        a, c = np.arange(n, dtype=np.float32), np.zeros(n * SCALE, np.float32)
        assert function(a, c) is None
        np.testing.assert_array_equal(c, np.repeat(a, SCALE))
    assert function.compile() is function.compile()


def test_the_same_shapes_give_the_kept_kernel_and_others_another() -> None:
    function = product.using(target="cpu")
    a, b = matrices()
    function(a, b, 32, 32)
    kept = function.compile(M=50, N=40, K=33, block_M=32, block_N=32)
    assert kept is function.compile(M=50, N=40, K=33, block_M=32, block_N=32, block_K=16)
    assert kept is not function.compile(M=50, N=40, K=34, block_M=32, block_N=32)


def test_a_value_outside_that_changes_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    function = in_place.using(target="cpu")
    a = np.arange(4, dtype=np.float32)
    function(a, np.zeros(12, np.float32))
    monkeypatch.setattr(f"{__name__}.SCALE", 2)
    c = np.zeros(8, np.float32)
    function(a, c)
    np.testing.assert_array_equal(c, np.repeat(a, 2))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda f, a, b: f(a, b), "product needs block_M, block_N"),
        (lambda f, a, b: f(a, block_M=16, block_N=16), "the call passes no B"),
        (lambda f, a, b: f(a, b[:20], 16, 16), "K is 33 by extent 1 of A and 20 by extent 0 of B"),
        (lambda f, a, b: f(a[0], b, 16, 16), "A has the shape (33,), which is of another rank"),
        (lambda f, a, b: f(a[0], b, 16, 16), "expected: 2 dimensions"),
        (lambda f, a, b: f(a.tolist(), b, 16, 16), "A is no array: it has no shape"),
        (lambda f, a, b: f(5, b, 16, 16), "expected: an array, whose shape tells M"),
        (lambda f, a, b: f(a, b, 16, 16, nothing=1), "unexpected keyword argument 'nothing'"),
        (lambda f, a, b: f.compile(M=50, block_M=16, block_N=16), "product needs N, K"),
        (lambda f, a, b: f(a.astype(np.float32), b, 16, 16), "dtype"),
    ],
)
def test_wrong_calls_say_what_is_wrong(call, said: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ArgumentError) as error:
        call(product.using(target="cpu"), *matrices())
    assert said in str(error.value)
    assert "test_eager.py" in str(error.value)


@tilebench.jit
def not_returned(A):
    N = T.const("N")
    A: T.Tensor((N,), "float32")
    B = T.empty((N,), "float32")
    with T.Kernel(1, threads=32):
        for i in T.Parallel(32):
            B[i] = A[i]


@tilebench.jit
def returns_a_parameter(A):
    N = T.const("N")
    A: T.Tensor((N,), "float32")
    with T.Kernel(1, threads=32):
        T.clear(A[0:32])
    return A


@tilebench.jit
def annotates_nothing(A):
    A: T.Tensor((32,), "float32")
    B: T.Tensor((32,), "float32")  # noqa: F842 -- what is refused
    with T.Kernel(1, threads=32):
        T.clear(A)


@tilebench.jit
def unknown_constant(A):
    N, M = T.const("N, M")
    A: T.Tensor((N,), "float32")
    with T.Kernel(M, threads=32):
        T.clear(A[0:32])


@tilebench.jit
def made_inside(A):
    A: T.Tensor((32,), "float32")
    with T.Kernel(1, threads=32):
        B = T.empty((32,), "float32")
        T.copy(A, B)
    return B


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (not_returned, "B of T.empty is not returned"),
        (returns_a_parameter, "only arrays of T.empty are returned"),
        (annotates_nothing, "a bare annotation says what a parameter of the function is"),
        (unknown_constant, "no shape tells the constant M"),
        (made_inside, "T.empty makes an array that the call returns, before `with T.Kernel`"),
    ],
)
def test_wrong_functions_are_refused_at_their_line(function, said: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(TileError) as error:
        function.using(target="cpu")(np.zeros(32, np.float32))
    assert said in str(error.value)
    assert "test_eager.py" in str(error.value)


def test_the_words_belong_to_this_form() -> None:
    @tilebench.jit
    def outer(N=32):
        @T.prim_func
        def main(A: T.Tensor((N,), "float32")):
            with T.Kernel(T.const("M"), threads=32):
                T.clear(A)

        return main

    with pytest.raises(LanguageError, match=r"T\.const belongs to a kernel function whose own body"):
        outer.using(target="cpu")()
    with pytest.raises(LanguageError, match="means nothing in plain Python"):
        T.empty((3,), "float32")


@tilebench.jit
def rows_of(A, block=16):
    k, rows = T.dynamic("k, rows")
    A: T.Tensor((rows, k), "float32")
    B = T.empty((rows,), "float32")
    with T.Kernel(rows, threads=32) as bx:
        tile = T.alloc_fragment((1, block), "float32")
        total = T.alloc_fragment((1,), "float32")
        T.clear(total)
        for k in T.serial(T.ceildiv(A.shape[1], block)):
            T.copy(A[bx, k * block], tile)
            T.reduce_sum(tile, total, clear=False)
        T.copy(total, B[bx])
    return B


def test_a_loop_may_have_the_name_of_a_size() -> None:
    a = np.arange(60, dtype=np.float32).reshape(3, 20)
    np.testing.assert_array_equal(rows_of(a), a.sum(1))


@tilebench.jit
def size_as_parameter(A):
    A: T.Tensor((T.dynamic("A"),), "float32")
    B = T.empty((4,), "float32")
    with T.Kernel(1, threads=32) as bx:
        T.copy(A[0:4], B)
    return B


def test_a_size_with_the_name_of_a_parameter_is_refused() -> None:
    with pytest.raises(LanguageError, match="A is a parameter of size_as_parameter and a size"):
        size_as_parameter(np.ones(4, np.float32))


@tilebench.jit
def two_names_for_three(A):
    M, N = T.const("M, N, K")  # the wrong line
    A: T.Tensor((M, N), "float32")
    with T.Kernel(1, threads=32):
        T.clear(A[0:1, 0:1])


def test_names_that_do_not_fit_their_constants_are_refused_at_their_line() -> None:
    with pytest.raises(LanguageError, match="2 names for 3 values") as error:
        two_names_for_three.using(target="cpu")(np.ones((2, 3), np.float32))
    assert "# the wrong line" in str(error.value)


def test_misspelt_names_of_a_call_are_told_the_nearest() -> None:
    a = np.ones(20, np.float32)
    with pytest.raises(ArgumentError, match=r"did you mean block\?"):
        halves.using(target="cpu")(a, 2.0, blok=8)
    with pytest.raises(ArgumentError, match=r"did you mean target\?"):
        halves.using(tagret="cpu")
    with pytest.raises(AttributeError, match=r"\.compile\(\.\.\.\)\.check"):
        halves.check(a, 2.0)
    assert not hasattr(halves, "nothing")


@tilebench.jit
def in_signature(A: T.Tensor((40,), "float32"), B: T.Tensor[[40], T.float32], block: int = 16):
    with T.Kernel(T.ceildiv(40, block), threads=32) as bx:
        for i in T.Parallel(block):
            if bx * block + i < 40:
                B[bx * block + i] = A[bx * block + i] + 1.0


@tilebench.jit
def no_kernel(A):
    N = T.const("N")
    A: T.Tensor((N,), "float32")
    for i in T.Parallel(32):
        A[i] = 1.0


@tilebench.jit
def says_nothing(A, B):
    N = T.const("N")
    A: T.Tensor((N,), "float32")
    with T.Kernel(1, threads=32):
        for i in T.Parallel(32):
            B[i] = A[i]


def test_arrays_may_stand_in_the_signature() -> None:
    a, b = np.arange(40, dtype=np.float32), np.zeros(40, np.float32)
    assert in_signature.using(target="cpu")(a, b, block=8) is None
    np.testing.assert_array_equal(b, a + 1)
    outputs(in_signature.using(target="cuda:sm_80").compile(), a, b)


def test_a_body_without_a_kernel_is_said_so_at_its_line() -> None:
    with pytest.raises(TileError) as error:
        no_kernel.using(target="cpu")(np.zeros(32, np.float32))
    assert "must stand inside `with T.Kernel(...)`" in str(error.value)
    assert "for i in T.Parallel(32)" in str(error.value)


def test_an_array_that_nothing_speaks_of_is_refused_by_name() -> None:
    with pytest.raises(ArgumentError, match="B is an array, and nothing says that the kernel takes one"):
        says_nothing.using(target="cpu")(np.zeros(32, np.float32), np.zeros(32, np.float32))


@tilebench.jit(target="cpu")
def strided(A, B):
    N, M, row, column = T.const("N, M, row, column")
    A: T.StridedTensor[[N, M], [row, column], T.float32]
    B: T.StridedTensor[[N, M], [row, column], T.float32]
    with T.Kernel(N) as bx:
        for j in T.Parallel(M):
            B[bx, j] = A[bx, j] + row * 100 + column


def test_strides_tell_constants() -> None:
    whole = np.random.default_rng(0).random((6, 2, 5, 3), np.float32)
    out = np.zeros_like(whole)
    strided(whole[:, 0, :, 1], out[:, 1, :, 2])
    np.testing.assert_array_equal(out[:, 1, :, 2], whole[:, 0, :, 1] + np.float32(3003))
    assert not out[:, 0].any()
    # Another call of the same shapes with strides of its own.
    plain = np.zeros((6, 5), np.float32)
    strided(np.ones((6, 5), np.float32), plain)
    assert (plain == 502).all()
    with pytest.raises(ArgumentError, match="row is 5 by stride 0 of A and 30 by stride 0 of B"):
        strided(plain, out[:, 1, :, 2])
    # Any stride fits an extent of 1, so it says nothing where another array does.
    lone = np.zeros((1, 5), np.float32)
    strided(np.lib.stride_tricks.as_strided(np.ones(5, np.float32), (1, 5), (4000, 4)), lone)
    assert (lone == 1 + 100 * 1000 + 1).all()


def test_a_kernel_of_shapes_needs_no_arrays() -> None:
    like = T.StridedTensor((6, 5), (30, 3), "float32")
    kernel = strided.compile(like, like)
    assert kernel.parameters == {"N": 6, "M": 5, "row": 30, "column": 3}
    assert strided.get_tir(like, like).name == "strided"


@tilebench.jit(target="cpu")
def asserted(A, B):
    n, m = T.dynamic("n, m")
    A: T.Tensor((n,), "float32")
    B: T.Tensor((m,), "float32")
    assert n == n
    assert n == m, "as long"
    with T.Kernel(T.ceildiv(n, 32)) as bx:
        for i in T.Parallel(32):
            B[bx * 32 + i] = A[bx * 32 + i]


def test_sizes_are_asserted_in_front_of_the_kernel() -> None:
    a, b = np.ones(40, np.float32), np.zeros(40, np.float32)
    asserted(a, b)
    assert (b == 1).all()
    with pytest.raises(LaunchError, match="the assertion failed: as long") as caught:
        asserted(a, np.zeros(50, np.float32))
    assert caught.value.place is not None
    assert 'assert n == m, "as long"' in caught.value.place.text


@T.macro
def copied(A, B):
    with T.Kernel(1):
        T.copy(A, B)


@tilebench.jit(target="cpu")
def in_a_macro(A: T.Tensor[[8, 8], T.float32], B: T.Tensor[[8, 8], T.float32]):
    copied(A, B)


def test_arrays_of_the_signature_make_the_body_the_kernel() -> None:
    a, b = np.arange(64, dtype=np.float32).reshape(8, 8), np.zeros((8, 8), np.float32)
    in_a_macro(a, b)
    np.testing.assert_array_equal(a, b)


@tilebench.jit(target="cpu")
def of_bytes(A, B):
    M, K, S = T.const("M, K, S")
    A: T.StridedTensor[[M, K], [S, 1], T.float4_e2m1fn]
    B: T.Tensor[[M, K]]
    with T.Kernel(1):
        T.copy(A, B)


def test_bytes_tell_how_many_elements_they_hold() -> None:
    codes = np.random.default_rng(0).integers(0, 256, (6, 5), np.uint8)
    like = of_bytes.compile(codes, T.Tensor((6, 10)))
    assert like.parameters == {"M": 6, "K": 10, "S": 10}
    out = np.zeros((6, 10), np.float32)
    of_bytes(codes, out)
    values = unpack(codes, (6, 10), dtype_of("float4_e2m1fn"))
    np.testing.assert_array_equal(out, values.astype(np.float32))
    # The same array with an element a byte.
    again = np.zeros((6, 10), np.float32)
    of_bytes(values, again)
    np.testing.assert_array_equal(again, out)


def test_a_tensor_without_a_dtype_is_of_float32() -> None:
    n = T.dynamic("n")
    assert T.Tensor[[4, 6]] == T.Tensor[4, 6] == T.Tensor((4, 6), "float32")
    assert T.Tensor[(n,)] == T.Tensor((n,), "float32")
    with pytest.raises(LanguageError, match="takes a shape and a dtype"):
        T.Tensor[[4], "float32", 1]
