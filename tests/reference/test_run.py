"""Kernels run in NumPy give what NumPy gives, whole or in tails, in every dtype."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilebench.errors import ArgumentError, LanguageError
from tilebench.ir import dtype_of, parse_function
from tilebench.ir.stmt import Function
from tilebench.language.meanings.conversion import round_to
from tilebench.language.words import registry
from tilebench.reference import random_array, run_reference


def kernel(params: str, body: str, grid: str = "1", blocks: str = "bx") -> Function:
    """A function whose body is one launch."""
    inside = "\n".join("        " + line for line in body.strip("\n").splitlines())
    head = f"@T.prim_func\ndef main({params}):\n    with T.Kernel({grid}, threads=64) as ({blocks},):\n"
    return parse_function(head + inside + "\n", registry(), "stage")


def rand(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray[Any, Any]:
    return random_array(shape, dtype_of(dtype), seed)


def gemm_kernel(m: int, n: int, k: int, dtype: str, acc: str, ta: bool = False, tb: bool = False) -> Function:
    a, b = ((k, m) if ta else (m, k)), ((n, k) if tb else (k, n))
    at, bt = ((8, 16) if ta else (16, 8)), ((24, 8) if tb else (8, 24))
    a_at = "A[ko * 8, by * 16]" if ta else "A[by * 16, ko * 8]"
    b_at = "B[bx * 24, ko * 8]" if tb else "B[ko * 8, bx * 24]"
    return kernel(
        f"A: T.Tensor({a}, T.{dtype}), B: T.Tensor({b}, T.{dtype}), C: T.Tensor({(m, n)}, T.{acc})",
        f"""
A_s = T.alloc_shared({at}, T.{dtype})
B_s = T.alloc_shared({bt}, T.{dtype})
C_l = T.alloc_fragment((16, 24), T.{acc})
for ko in T.Pipelined({-(-k // 8)}, num_stages=2):
    T.copy({a_at}, A_s)
    T.copy({b_at}, B_s)
    T.gemm(A_s, B_s, C_l, transpose_A={ta}, transpose_B={tb}, clear_accum=ko == 0)
T.copy(C_l, C[by * 16, bx * 24])
""",
        f"{-(-n // 24)}, {-(-m // 16)}",
        "bx, by",
    )


@pytest.mark.parametrize(
    ("dtype", "acc", "tolerance"),
    [
        ("float16", "float32", 2e-6), ("bfloat16", "float32", 2e-6), ("float32", "float32", 2e-6),
        ("float64", "float64", 1e-14), ("int8", "int32", 0), ("uint8", "int32", 0), ("int32", "int32", 0),
        ("int64", "int64", 0), ("float8_e4m3fn", "float32", 2e-6),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("ta", "tb"), [(False, False), (True, False), (False, True), (True, True)])
def test_gemm_of_odd_sizes(dtype: str, acc: str, tolerance: float, ta: bool, tb: bool) -> None:
    m, n, k = 33, 50, 21
    function = gemm_kernel(m, n, k, dtype, acc, ta, tb)
    a, b = rand((k, m) if ta else (m, k), dtype, 1), rand((n, k) if tb else (k, n), dtype, 2)
    c = np.zeros((m, n), dtype_of(acc).numpy)
    got = run_reference(function, {"A": a, "B": b, "C": c})["C"]
    wide: Any = np.float64 if dtype_of(dtype).is_float else np.int64
    x, y = (a.T if ta else a).astype(wide), (b.T if tb else b).astype(wide)
    assert np.max(np.abs(got.astype(wide) - x @ y)) <= tolerance * 21
    assert not c.any(), "the caller's arrays stay as they are"


def test_integer_gemm_wraps() -> None:
    function = gemm_kernel(4, 4, 8, "int32", "int32")
    a = np.full((4, 8), 2**30, np.int32)
    b = np.full((8, 4), 3, np.int32)
    got = run_reference(function, {"A": a, "B": b, "C": np.zeros((4, 4), np.int32)})["C"]
    wrapped = (8 * 3 * 2**30 + 2**31) % 2**32 - 2**31
    assert np.all(got == wrapped)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "int8", "int32", "uint8"])
def test_elementwise_with_tails_rounds_once_an_operation(dtype: str) -> None:
    function = kernel(
        f"A: T.Tensor((37, 21), T.{dtype}), B: T.Tensor((37, 21), T.{dtype})",
        f"""
for i, j in T.Parallel(16, 16):
    x: T.{dtype} = A[by * 16 + i, bx * 16 + j]
    B[by * 16 + i, bx * 16 + j] = x * x + x
""",
        "2, 3",
        "bx, by",
    )
    a = rand((37, 21), dtype)
    got = run_reference(function, {"A": a, "B": np.zeros_like(a)})["B"]
    assert got.dtype == a.dtype
    assert np.array_equal(got, a * a + a)


def test_outside_a_global_buffer_reads_give_zero_and_writes_are_skipped() -> None:
    function = kernel(
        "A: T.Tensor((10,), T.float32), B: T.Tensor((12,), T.float32), C: T.Tensor((12,), T.float32)",
        """
s = T.alloc_shared((12,), T.float32)
T.copy(A[-2], s)
for i in T.Parallel(12):
    B[i] = s[i] + A[i + 4]
T.copy(s, C[6])
""",
    )
    a = np.arange(1, 11, dtype=np.float32)
    made = run_reference(function, {"A": a, "B": np.zeros(12, np.float32), "C": np.full(12, 7, np.float32)})
    shifted = np.concatenate([[0, 0], a])
    assert np.array_equal(made["B"], shifted + np.concatenate([a[4:], np.zeros(6)]))
    assert np.array_equal(made["C"], np.concatenate([np.full(6, 7), shifted[:6]]))


@pytest.mark.parametrize("kind", ["sum", "max", "min"])
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("clear", [True, False])
def test_reductions(kind: str, dim: int, clear: bool) -> None:
    n = 5 if dim == 0 else 3
    shape = {0: (5,), 1: (3, 1), -1: (3,)}[dim]
    function = kernel(
        f"A: T.Tensor((3, 5), T.int32), B: T.Tensor({shape}, T.int32)",
        f"""
a = T.alloc_fragment((3, 5), T.int32)
b = T.alloc_fragment({shape}, T.int32)
T.copy(A[0, 0], a)
T.fill(b, T.int32(2))
T.reduce_{kind}(a, b, dim={dim}, clear={clear})
T.copy(b, B)
""".replace("T.copy(b, B)", f"T.copy(b, B[{', '.join('0' for _ in shape)}])"),
    )
    a = np.array([[1, -9, 3, 4, 0], [7, 7, 7, -1, 2], [0, 5, -5, 6, 1]], np.int32)
    got = run_reference(function, {"A": a, "B": np.zeros(shape, np.int32)})["B"]
    fold = {"sum": np.add, "max": np.maximum, "min": np.minimum}[kind]
    want = fold.reduce(a, axis=dim)
    want = want if clear else fold(want, 2)
    assert want.size == n
    assert np.array_equal(got.reshape(-1), want)


def test_softmax_of_odd_rows() -> None:
    function = kernel(
        "X: T.Tensor((37, 50), T.float32), Y: T.Tensor((37, 50), T.float32)",
        """
x = T.alloc_fragment((16, 64), T.float32)
m = T.alloc_fragment((16,), T.float32)
s = T.alloc_fragment((16,), T.float32)
T.copy(X[bx * 16, 0], x)
for i, j in T.Parallel(16, 64):
    x[i, j] = T.if_then_else(j < 50, x[i, j], T.float32("-inf"))
T.reduce_max(x, m, dim=1)
for i, j in T.Parallel(16, 64):
    x[i, j] = T.exp(x[i, j] - m[i])
T.reduce_sum(x, s, dim=1)
for i, j in T.Parallel(16, 64):
    x[i, j] = x[i, j] / s[i]
T.copy(x, Y[bx * 16, 0])
""",
        "3",
    )
    x = rand((37, 50), "float32") * 4
    got = run_reference(function, {"X": x, "Y": np.zeros_like(x)})["Y"]
    e = np.exp(x.astype(np.float64))
    assert np.max(np.abs(got - e / e.sum(1, keepdims=True))) < 2e-7


def test_integer_operators_are_those_of_python() -> None:
    function = kernel(
        "A: T.Tensor((6,), T.int32), B: T.Tensor((6, 8), T.int32)",
        """
for i in T.Parallel(6):
    B[i, 0] = A[i] // 3
    B[i, 1] = A[i] % 3
    B[i, 2] = A[i] // -3
    B[i, 3] = A[i] % -3
    B[i, 4] = A[i] * 65536 * 65536
    B[i, 5] = A[i] << 2
    B[i, 6] = A[i] >> 1
    B[i, 7] = ~A[i] ^ 5
""",
    )
    a = np.array([-7, -1, 0, 1, 7, 2**30], np.int32)
    got = run_reference(function, {"A": a, "B": np.zeros((6, 8), np.int32)})["B"]
    for row, value in zip(got.tolist(), a.tolist(), strict=True):
        assert row[:4] == [value // 3, value % 3, value // -3, value % -3]
        assert row[4] == 0
        assert row[5] == (value << 2) - (2**32 if value == 2**30 else 0) * 1
        assert row[6:] == [value >> 1, ~value ^ 5]


def test_casts() -> None:
    function = kernel(
        "A: T.Tensor((8,), T.float32), B: T.Tensor((8,), T.int8), C: T.Tensor((8,), T.bool), "
        "D: T.Tensor((8,), T.int64)",
        """
for i in T.Parallel(8):
    B[i] = T.cast(A[i], T.int8)
    C[i] = T.cast(A[i], T.bool)
    D[i] = T.cast(A[i], T.int64)
""",
    )
    a = np.array([1.9, -1.9, 300, -300, np.nan, np.inf, 0, -0.5], np.float32)
    made = run_reference(
        function, {"A": a, "B": np.zeros(8, np.int8), "C": np.zeros(8, np.bool_), "D": np.zeros(8, np.int64)}
    )
    assert made["B"].tolist() == [1, -1, 127, -128, 0, 127, 0, 0]
    assert made["C"].tolist() == [True, True, True, True, True, True, False, True]
    assert made["D"].tolist() == [1, -1, 300, -300, 0, 2**63 - 1, 0, 0]


def test_conversion_of_doubles_to_short_floats_rounds_once() -> None:
    # Just above the middle of 1 and 1 + 2**-7: by way of float32 it becomes the middle, and then 1.
    assert float(round_to(1 + 2.0**-8 + 2.0**-40, dtype_of("bfloat16"))) == 1 + 2.0**-7
    assert float(np.float64(1 + 2.0**-8 + 2.0**-40).astype(ml_dtypes.bfloat16)) == 1.0
    assert float(round_to(1 + 2.0**-8 - 2.0**-40, dtype_of("bfloat16"))) == 1.0
    assert float(round_to(-(1 + 2.0**-8 + 2.0**-40), dtype_of("bfloat16"))) == -(1 + 2.0**-7)


def test_a_nan_loses_against_a_number_in_maxima() -> None:
    function = kernel(
        "A: T.Tensor((4,), T.float32), B: T.Tensor((4,), T.float32), C: T.Tensor((1,), T.float32)",
        """
a = T.alloc_fragment((4,), T.float32)
c = T.alloc_fragment((1,), T.float32)
T.copy(A[0], a)
T.reduce_max(a, c)
T.copy(c, C[0])
for i in T.Parallel(4):
    B[i] = T.max(A[i], T.float32(2))
""",
    )
    a = np.array([1, np.nan, 3, -1], np.float32)
    made = run_reference(function, {"A": a, "B": np.zeros(4, np.float32), "C": np.zeros(1, np.float32)})
    assert made["B"].tolist() == [2, 2, 3, 2]
    assert made["C"].tolist() == [3]


def test_branches_temporaries_and_loops_inside_parallel() -> None:
    function = kernel(
        "A: T.Tensor((7,), T.int32), B: T.Tensor((7,), T.int32)",
        """
for i in T.Parallel(7):
    x = T.alloc_var(T.int32, init=10)
    t = T.alloc_local((3,), T.int32)
    for k in T.serial(3):
        t[k] = A[i] + k
    if A[i] > 0 and i < 6:
        x = x + t[i % 3]
        for k in T.serial(A[i]):
            x = x + 100 * k
    else:
        x = -1
    B[i] = x
""",
    )
    a = np.array([3, -1, 2, 0, 5, 1, 4], np.int32)
    got = run_reference(function, {"A": a, "B": np.zeros(7, np.int32)})["B"]
    want = [10 + v + i % 3 + 100 * sum(range(v)) if v > 0 and i < 6 else -1 for i, v in enumerate(a.tolist())]
    assert got.tolist() == want


def test_gather_transposed_store_and_rank_three() -> None:
    function = kernel(
        "A: T.Tensor((2, 5, 6), T.float32), I: T.Tensor((5,), T.int32), B: T.Tensor((6, 5), T.float32)",
        """
s = T.alloc_shared((5, 6), T.float32)
T.copy(A[bx : bx + 1, 0 : 5, 0 : 6], s)
for i, j in T.Parallel(5, 6):
    B[j, i] = s[i, j] + A[1, I[i], j]
""",
    )
    a, index = rand((2, 5, 6), "float32"), np.array([4, 0, -1, 5, 2], np.int32)
    got = run_reference(function, {"A": a, "I": index, "B": np.zeros((6, 5), np.float32)})["B"]
    rows = np.stack([a[1, k] if 0 <= k < 5 else np.zeros(6, np.float32) for k in index])
    assert np.array_equal(got, (a[0] + rows).T)


def test_strided_arrays() -> None:
    function = kernel(
        "A: T.StridedTensor((4, 3), (1, 4), T.float32), B: T.Tensor((4, 3), T.float32)",
        "for i, j in T.Parallel(4, 3):\n    B[i, j] = A[i, j] * T.float32(2)",
    )
    a = random_array((4, 3), dtype_of("float32"), 0, strides=(1, 4))
    assert a.strides == (4, 16)
    got = run_reference(function, {"A": a, "B": np.zeros((4, 3), np.float32)})["B"]
    assert np.array_equal(got, a * 2)


# -- what is refused


def test_two_elements_that_store_different_values_are_a_race() -> None:
    function = kernel(
        "A: T.Tensor((8,), T.int32), B: T.Tensor((4,), T.int32)",
        "for i in T.Parallel(8):\n    B[i // 2] = A[i]",
    )
    same = np.array([1, 1, 2, 2, 3, 3, 4, 4], np.int32)
    assert run_reference(function, {"A": same, "B": np.zeros(4, np.int32)})["B"].tolist() == [1, 2, 3, 4]
    same[5] = 9
    with pytest.raises(LanguageError) as caught:
        run_reference(function, {"A": same, "B": np.zeros(4, np.int32)})
    assert "B[2]" in str(caught.value)
    assert "element (4,) stores 3, element (5,) stores 9" in str(caught.value)
    assert caught.value.place is not None
    assert caught.value.place.line == 5


def test_an_axis_missing_from_the_index_is_a_race() -> None:
    function = kernel(
        "A: T.Tensor((2, 3), T.int32), B: T.Tensor((2,), T.int32)",
        "for i, j in T.Parallel(2, 3):\n    B[i] = A[i, j]",
    )
    with pytest.raises(LanguageError, match="different values"):
        run_reference(function, {"A": np.arange(6, dtype=np.int32).reshape(2, 3), "B": np.zeros(2, np.int32)})


@pytest.mark.parametrize(
    "body",
    [
        "for i in T.Parallel(7):\n    s[i + 1] = s[i]",
        "for i in T.Parallel(8):\n    s[i] = s[7 - i]",
        "for i in T.Parallel(8):\n    s[0] = s[0] + s[i]",
        "for i in T.Parallel(7):\n    for k in T.serial(2):\n        s[i + k] = i",
    ],
)
def test_reading_what_another_element_stores_is_a_race(body: str) -> None:
    head = "s = T.alloc_shared((8,), T.int32)\nT.copy(A[0], s)\n"
    function = kernel("A: T.Tensor((8,), T.int32)", f"{head}{body}\nT.copy(s, A[0])")
    with pytest.raises(LanguageError, match=r"another one stores|different values"):
        run_reference(function, {"A": np.arange(8, dtype=np.int32)})


@pytest.mark.parametrize(
    "body",
    [
        "T.atomic_add(s[i], s[(i + 1) % 8])",
        "T.atomic_add(s[0], i)\n    s[1] = 3",
        "T.atomic_add(s[0], i)\n    T.atomic_max(s[0], i)",
    ],
)
def test_combining_with_what_another_element_reads_is_a_race(body: str) -> None:
    loop = f"s = T.alloc_shared((8,), T.int32)\nT.copy(A[0], s)\nfor i in T.Parallel(8):\n    {body}"
    function = kernel("A: T.Tensor((8,), T.int32)", f"{loop}\nT.copy(s, A[0])")
    if "= 3" in body:  # elements apart
        assert run_reference(function, {"A": np.arange(8, dtype=np.int32)})["A"].tolist()[:3] == [28, 3, 2]
        return
    with pytest.raises(LanguageError, match="another one stores in s"):
        run_reference(function, {"A": np.arange(8, dtype=np.int32)})


def test_halves_that_do_not_meet_are_no_race() -> None:
    function = kernel(
        "A: T.Tensor((8,), T.int32)",
        """
s = T.alloc_shared((8,), T.int32)
T.copy(A[0], s)
for i in T.Parallel(8):
    if i < 4:
        s[i] = s[i] + s[i + 4]
T.copy(s, A[0])
""",
    )
    got = run_reference(function, {"A": np.arange(8, dtype=np.int32)})["A"]
    assert got.tolist() == [4, 6, 8, 10, 4, 5, 6, 7]


@pytest.mark.parametrize("value", ["s[i + 1]", "T.if_then_else(i < 7, s[i + 1], 0)"])
def test_outside_a_tile_is_zero_masked_or_not(value: str) -> None:
    params, head = "A: T.Tensor((8,), T.int32)", "s = T.alloc_shared((8,), T.int32)\nT.copy(A[0], s)\n"
    function = kernel(params, head + f"for i in T.Parallel(8):\n    A[i] = {value}")
    found = run_reference(function, {"A": np.arange(8, dtype=np.int32)})["A"]
    assert found.tolist() == [1, 2, 3, 4, 5, 6, 7, 0]


def test_what_was_never_written_is_poison_or_an_error() -> None:
    function = kernel(
        "A: T.Tensor((4,), T.float32), B: T.Tensor((4,), T.int32)",
        """
a = T.alloc_fragment((4,), T.float32)
b = T.alloc_shared((4,), T.int32)
for i in T.Parallel(4):
    if i < 2:
        a[i] = T.float32(1)
        b[i] = 1
T.copy(b, B[0])
for i in T.Parallel(4):
    A[i] = a[i]
""",
    )
    arrays = {"A": np.zeros(4, np.float32), "B": np.zeros(4, np.int32)}
    made = run_reference(function, arrays)
    assert made["B"].tolist() == [1, 1, -0x5A5A5A5B, -0x5A5A5A5B]
    assert np.isnan(made["A"]).tolist() == [False, False, True, True]
    with pytest.raises(LanguageError, match="2 elements are read here that nothing has written") as caught:
        run_reference(function, arrays, uninitialised="raise")
    assert caught.value.place is not None
    assert caught.value.place.line == 10


def test_arguments_that_do_not_fit() -> None:
    function = kernel("A: T.Tensor((4,), T.int32)", "A[0] = 1")
    with pytest.raises(ArgumentError, match="missing"):
        run_reference(function, {})
    with pytest.raises(ArgumentError, match="does not fit"):
        run_reference(function, {"A": np.zeros(5, np.int32)})
    with pytest.raises(ArgumentError, match="no array X"):
        run_reference(function, {"A": np.zeros(4, np.int32), "X": np.zeros(4, np.int32)})


def test_words_of_lower_stages_are_refused_at_their_line() -> None:
    function = kernel("A: T.Tensor((4,), T.int32)", "T.vector_store(A[0:4], A[0:4])")
    with pytest.raises(LanguageError, match=r"no meaning of T.vector_store") as caught:
        run_reference(function, {"A": np.zeros(4, np.int32)})
    assert caught.value.place is not None


def test_blocks_that_store_different_values_are_a_race() -> None:
    params = "A: T.Tensor((4, 8), T.int32), B: T.Tensor((8,), T.int32)"
    function = kernel(params, "for i in T.Parallel(8):\n    B[i] = A[bx, i]", "4")
    same = np.tile(np.arange(8, dtype=np.int32), (4, 1))
    made = run_reference(function, {"A": same, "B": np.zeros(8, np.int32)})
    assert made["B"].tolist() == list(range(8))
    same[2, 5] = 9
    with pytest.raises(LanguageError, match="two blocks store different values") as caught:
        run_reference(function, {"A": same, "B": np.zeros(8, np.int32)})
    assert "block 1 stores 5, block 2 stores 9" in str(caught.value)


def test_adding_to_a_result_from_several_blocks_is_a_race() -> None:
    function = kernel("B: T.Tensor((4,), T.int32)", "for i in T.Parallel(4):\n    B[i] = B[i] + 1", "2")
    with pytest.raises(LanguageError, match="two blocks store different values"):
        run_reference(function, {"B": np.zeros(4, np.int32)})
