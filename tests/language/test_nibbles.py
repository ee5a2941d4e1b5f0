"""Integers of 4 bits are int32 where something is computed with them, on every road; their products."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilebench.language as T
from tests.everywhere import everywhere, kernel_of
from tilebench.errors import TileError

RANGES = {"int4": (-8, 7), "uint4": (0, 15), "int8": (-100, 100), "uint8": (0, 200)}


def drawn(dtype: str, *shape: int) -> Any:
    low, high = RANGES[dtype]
    kind = getattr(ml_dtypes, dtype, None) or dtype
    return np.random.default_rng(sum(shape)).integers(low, high + 1, shape).astype(kind)


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
def test_operators(dtype: str) -> None:
    rows = {
        "A[i] + B[i]": lambda a, b: a + b, "A[i] - B[i]": lambda a, b: a - b,
        "A[i] * B[i]": lambda a, b: a * b, "A[i] * 100": lambda a, b: a * 100, "7 - A[i]": lambda a, b: 7 - a,
        "A[i] // (B[i] | 1)": lambda a, b: a // (b | 1), "A[i] % (B[i] | 1)": lambda a, b: a % (b | 1),
        "-A[i]": lambda a, b: -a, "~A[i]": lambda a, b: ~a, "A[i] << 3": lambda a, b: a << 3,
        "(A[i] & 5) ^ (B[i] >> 1)": lambda a, b: (a & 5) ^ (b >> 1),
        "T.max(A[i], B[i])": lambda a, b: np.maximum(a, b), "T.min(A[i], 3)": lambda a, b: np.minimum(a, 3),
        "T.abs(A[i])": lambda a, b: abs(a), "T.clamp(A[i], 1, 4)": lambda a, b: np.clip(a, 1, 4),
        "T.if_then_else(A[i] > B[i], A[i], B[i])": lambda a, b: np.maximum(a, b),
        "A[i] * I[i]": lambda a, b: a * 100,
    }  # fmt: skip
    lines = [f"    O[{k}, i] = {text}" for k, text in enumerate(rows)]
    lines += ["    W[i] = A[i] * B[i]", "    F[i] = A[i] * H[i]"]
    body = "\n".join(["for i in T.Parallel(64):", *lines])
    head = (
        f'A: T.Tensor((64,), "{dtype}"), B: T.Tensor((64,), "{dtype}"), I: T.Tensor((64,), "int8"), '
        f'H: T.Tensor((64,), "float16"), W: T.Tensor((64,), "{dtype}"), F: T.Tensor((64,), "float16"), '
        f'O: T.Tensor(({len(rows)}, 64), "int32")'
    )
    a, b = drawn(dtype, 64), drawn(dtype, 64)[::-1].copy()
    halves = np.full(64, 0.5, np.float16)
    found = everywhere(body, head, A=a, B=b, I=np.full(64, 100, np.int8), H=halves)
    x, y = a.astype(np.int32), b.astype(np.int32)
    for k, (text, meaning) in enumerate(rows.items()):
        np.testing.assert_array_equal(found["O"][k], meaning(x, y), err_msg=text)
    # What is stored in 4 bits keeps the low ones.
    np.testing.assert_array_equal(found["W"].astype(int) & 15, (x * y) & 15)
    np.testing.assert_array_equal(found["F"], a.astype(np.float16) * halves)


def test_operators_give_int32() -> None:
    head = 'A: T.Tensor((64,), "uint4"), O: T.Tensor((64,), "int32")'
    text = (
        kernel_of("for i in T.Parallel(64):\n    O[i] = A[i] - A[63 - i]", head)
        .using(target="cpu")()
        .stage("tile")
    )
    assert "O[i] = T.cast(A[i], T.int32) - T.cast(A[63 - i], T.int32)" in text
    assert T.int4(7) is not None


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
def test_reductions(dtype: str) -> None:
    kind = dtype.removesuffix("4")
    body = f"""
    X = T.alloc_fragment((16, 64), "{dtype}")
    s = T.alloc_fragment((16,), "{kind}32")
    m = T.alloc_fragment((16,), "{kind}8")
    c = T.alloc_fragment((16, 64), "{kind}16")
    T.copy(A, X)
    T.reduce_sum(X, s, dim=1)
    T.reduce_max(X, m, dim=1)
    T.cumsum(X, c, dim=1)
    T.copy(s, S)
    T.copy(m, M)
    T.copy(c, C)
    """
    head = (
        f'A: T.Tensor((16, 64), "{dtype}"), S: T.Tensor((16,), "{kind}32"), M: T.Tensor((16,), "{kind}8"), '
        f'C: T.Tensor((16, 64), "{kind}16")'
    )
    found = everywhere(body, head, A=drawn(dtype, 16, 64))
    wide = found["A"].astype(int)
    np.testing.assert_array_equal(found["S"], wide.sum(axis=1))
    np.testing.assert_array_equal(found["M"], wide.max(axis=1))
    np.testing.assert_array_equal(found["C"], wide.cumsum(axis=1))


@pytest.mark.parametrize(
    ("a", "b", "transposed", "c"),
    [
        ("int4", "int4", (False, True), "int32"), ("int4", "uint4", (False, False), "int32"),
        ("uint4", "uint4", (True, False), "int32"), ("int8", "int4", (False, True), "int32"),
        ("uint4", "uint8", (True, True), "int32"), ("int4", "int4", (False, True), "float32"),
    ],
)  # fmt: skip
def test_products(a: str, b: str, transposed: tuple[bool, bool], c: str) -> None:
    m, n, k = 32, 48, 32

    def tile(side: int, turned: bool) -> tuple[tuple[int, int], str]:
        return ((k, side), "ko * 32, 0") if turned else ((side, k), "0, ko * 32")

    (box_a, at_a), (box_b, at_b) = tile(m, transposed[0]), tile(n, not transposed[1])
    body = f"""
    A_s = T.alloc_shared({box_a}, "{a}")
    B_s = T.alloc_shared({box_b}, "{b}")
    C_l = T.alloc_fragment(({m}, {n}), "{c}")
    T.clear(C_l)
    for ko in T.Pipelined(2, num_stages=2):
        T.copy(A[{at_a}], A_s)
        T.copy(B[{at_b}], B_s)
        T.gemm(A_s, B_s, C_l, transpose_A={transposed[0]}, transpose_B={transposed[1]})
    T.copy(C_l, C)
    """
    whole_a = (2 * k, m) if transposed[0] else (m, 2 * k)
    whole_b = (n, 2 * k) if transposed[1] else (2 * k, n)
    head = f'A: T.Tensor({whole_a}, "{a}"), B: T.Tensor({whole_b}, "{b}"), C: T.Tensor(({m}, {n}), "{c}")'
    found = everywhere(body, head, A=drawn(a, *whole_a), B=drawn(b, *whole_b))
    x, y = found["A"].astype(np.int64), found["B"].astype(np.int64)
    np.testing.assert_array_equal(found["C"], (x.T if transposed[0] else x) @ (y.T if transposed[1] else y))


def test_products_of_fragments_and_of_parts_of_arrays() -> None:
    body = """
    X = T.alloc_fragment((32, 64), "int4")
    C_l = T.alloc_fragment((32, 48), "int32")
    T.copy(A, X)
    T.gemm(X, B[0:64, 0:48], C_l, clear_accum=True)
    T.copy(C_l, C)
    """
    head = 'A: T.Tensor((32, 64), "int4"), B: T.Tensor((64, 48), "int4"), C: T.Tensor((32, 48), "int32")'
    found = everywhere(body, head, A=drawn("int4", 32, 64), B=drawn("int4", 64, 48))
    np.testing.assert_array_equal(found["C"], found["A"].astype(int) @ found["B"].astype(int))


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("X = T.alloc_shared((32, 8), 'int4')\ns = T.alloc_fragment((32,), 'int4')\nT.reduce_max(X, s)",
         "T.reduce_max of int4 into int4: a dtype of 4 bits is one of storage"),
        ("X = T.alloc_shared((32, 32), 'int4')\nc = T.alloc_fragment((32, 32), 'int16')\nT.gemm(X, X, c)",
         "T.gemm of int4 cannot be summed in int16"),
        ("X = T.alloc_shared((32, 32), 'int4')\nc = T.alloc_fragment((64, 32), 'int32')\nT.gemm(A, X, c)",
         "the operands of this gemm disagree on k"),
    ],
)  # fmt: skip
def test_what_is_refused(body: str, what: str) -> None:
    with pytest.raises(TileError) as error:
        kernel_of(body).using(target="cuda:sm_80")()
    assert str(error.value).splitlines()[0].split("error: ")[1] == what
