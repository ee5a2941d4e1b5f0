"""Vectors as values: loads and stores of several elements, their operators, and the bits of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilebench.language as T
from tests.everywhere import everywhere, kernel_of
from tilebench.errors import TileError

LINE = 'A: T.Tensor((256,), "{0}"), O: T.Tensor((256,), "{0}")'
RNG = np.random.default_rng(0)

WIDE = """
tx = T.get_thread_binding()
s = T.alloc_shared((256,), "float32")
x = T.ldg{bits}(A[tx * {n} : tx * {n} + {n}])
T.sts{bits}(s[tx * {n} : tx * {n} + {n}], x)
T.sync_threads()
y = T.lds{bits}(s[({last} - tx) * {n} : ({last} - tx) * {n} + {n}])
T.stg{bits}(O[tx * {n} : tx * {n} + {n}], y)
"""


@pytest.mark.parametrize("bits", [64, 128])
def test_wide_accesses_move_whole_vectors(bits: int) -> None:
    n = bits // 32
    threads = 256 // n
    body = WIDE.format(bits=bits, n=n, last=threads - 1)
    out = everywhere(body, LINE.format("float32"), threads=threads)
    np.testing.assert_array_equal(out["O"].reshape(-1, n), out["A"].reshape(-1, n)[::-1])
    kernel = kernel_of(body, LINE.format("float32"), threads).using(target="cuda:sm_80")()
    text = kernel.stage("cuda").partition('extern "C"')[2]
    for word in ("tb_ld_global", "tb_st_shared", "tb_ld_shared", "tb_st_global"):
        assert f"{word}_{bits // 8}(" in text
    kernel.reach_code()


def test_a_predicate_gives_zeros_and_keeps_what_is_there() -> None:
    body = """
    tx = T.get_thread_binding()
    x = T.ldg64(A[tx * 2], pred=tx % 3 == 0)
    T.stg64(O[tx * 2 : tx * 2 + 2], x, pred=tx % 2 == 0)
    """
    before = np.full(256, 7, np.float32)
    out = everywhere(body, LINE.format("float32"), O=before)
    pairs, a = out["O"].reshape(-1, 2), out["A"].reshape(-1, 2)
    for tx in range(128):
        right = np.full(2, 7) if tx % 2 else (a[tx] if tx % 3 == 0 else np.zeros(2))
        np.testing.assert_array_equal(pairs[tx], right)


def test_by_the_block_and_in_parallel_loops() -> None:
    body = """
    for k in T.serial(8):
        O[k * 4 : k * 4 + 4] = T.reinterpret(T.ldg128(A[k * 4 : k * 4 + 4]), T.float32x4)
    for i in T.Parallel(28):
        j = T.Ramp(32 + i * 8, 1, 8)
        v = A[j] * 2.0 + i
        O[j] = v - v[0]
    """
    out = everywhere(body, LINE.format("float32"))
    right = out["A"].copy()
    rows = right[32:].reshape(28, 8) * 2 + np.arange(28, dtype=np.float32)[:, None]
    right[32:] = (rows - rows[:, :1]).reshape(-1)
    np.testing.assert_array_equal(out["O"], right)


def test_operators_are_those_of_the_elements() -> None:
    body = """
    for i in T.Parallel(32):
        a, b = A[T.Ramp(i * 4, 1, 2)], A[T.Ramp(i * 4 + 2, 1, 2)]
        c = T.add2(T.mul2(a, b), T.sub2(a, 3)) / 2 - T.max2(a, b) + T.abs2(T.min2(a, 0.0))
        O[i * 8 : i * 8 + 2] = T.fma2(a, b, c)
        O[i * 8 + 2 : i * 8 + 4] = -a
        O[i * 8 + 4 : i * 8 + 8] = T.float32x4(a[0], b[1], T.extract_lane(c, 0), 1)
    """
    given = (RNG.integers(-8, 9, 256) / 2).astype(np.float32)
    out = everywhere(body, LINE.format("float32"), A=given)
    a, b = given[:128].reshape(32, 4)[:, :2], given[:128].reshape(32, 4)[:, 2:]
    c = (a * b + (a - 3)) / 2 - np.maximum(a, b) + np.abs(np.minimum(a, 0))
    rows = out["O"].reshape(32, 8)
    np.testing.assert_array_equal(rows[:, :2], a * b + c)
    np.testing.assert_array_equal(rows[:, 2:4], -a)
    np.testing.assert_array_equal(rows[:, 4:], np.stack([a[:, 0], b[:, 1], c[:, 0], np.ones(32)], 1))


@pytest.mark.parametrize(
    ("stored", "word", "goal"),
    [("float16", "float16x4", "uint32x2"), ("int8", "int8x8", "uint16x4"),
     ("float64", "float64x2", "int16x8"), ("uint16", "uint16x2", "float32"),
     ("bfloat16", "bfloat16x8", "float64x2")],
)  # fmt: skip
def test_bits_go_from_one_vector_to_another_and_back(stored: str, word: str, goal: str) -> None:
    vector: Any = getattr(T, word)
    body = f"""
    tx = T.get_thread_binding()
    v = A[T.Ramp(tx * {vector.lanes}, 1, {vector.lanes})]
    w = T.reinterpret(v, T.{goal})
    O[tx * {vector.lanes} : tx * {vector.lanes} + {vector.lanes}] = T.reinterpret(w, T.{word})
    """
    numpy = T.dtype(stored).numpy
    given = RNG.integers(0, 100, 256).astype(np.uint8).astype(numpy)
    out = everywhere(body, LINE.format(stored), threads=256 // vector.lanes, A=given)
    np.testing.assert_array_equal(out["O"], given)


def test_bits_lie_as_in_memory() -> None:
    body = """
    tx = T.get_thread_binding()
    w = T.reinterpret(A[T.Ramp(tx * 4, 1, 4)], T.uint32x2)
    O[tx * 2 : tx * 2 + 2] = w
    P[tx] = T.ldg32(A[tx * 4 + 2 : tx * 4 + 4])
    """
    head = """A: T.Tensor((256,), "int16"), O: T.Tensor((128,), "uint32"), P: T.Tensor((64,), "uint32")"""
    given = RNG.integers(-(2**15), 2**15, 256).astype(np.int16)
    out = everywhere(body, head, threads=64, A=given)
    np.testing.assert_array_equal(out["O"], given.view(np.uint32))
    np.testing.assert_array_equal(out["P"], given.view(np.uint32)[1::2])


def test_what_is_stored_is_converted_and_edges_are_tested() -> None:
    body = """
    for i in T.Parallel(66):
        v = A[T.Ramp(i * 4 - 4, 1, 4)]
        O[T.Ramp(i * 4 - 4, 1, 4)] = v + 0.75
    """
    head = 'A: T.Tensor((254,), "float32"), O: T.Tensor((254,), "int32")'
    given = RNG.integers(-50, 50, 254).astype(np.float32)
    out = everywhere(body, head, A=given)
    np.testing.assert_array_equal(out["O"], np.trunc(given + np.float32(0.75)).astype(np.int32))


def test_types() -> None:
    assert (T.float32x4.lanes, T.float32x4.bits, T.float32x4.element) == (4, 128, T.float32)
    assert T.float32x4 == T.float32x4 != T.float32x2
    assert repr(T.uint8x16) == "T.uint8x16"
    assert T.float8_e4m3x4 == T.float8_e4m3fnx4
    with pytest.raises(AttributeError, match=r"there is no T\.float32x5"):
        getattr(T, "float32x5")  # noqa: B009 -- no such name


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("O[0:3] = A[T.Ramp(0, 1, 4)]", "the box has 3 elements, and the vector 4"),
        ("O[0] = A[T.Ramp(0, 1, 4)]", "the box has 1 elements, and the vector 4"),
        ("O[T.Ramp(0, 2, 4)] = 1.0", "T.Ramp has the stride 2"),
        ("O[T.Ramp(0, 1, 3)] = 1.0", "T.Ramp of 3 elements"),
        ("O[A[T.Ramp(0, 1, 2)]] = 1.0", "O is indexed by a vector whose elements need not be neighbours"),
        (
            "x = T.alloc_local((4,), T.float32x2)",
            "T.float32x2 is a type of values, not of elements in memory",
        ),
        ("x = T.ldg64(A[0:4])", "T.ldg64 moves 2 elements of float32, and this box has (4,)"),
        ("x = T.lds64(A[0:2])", "T.lds64 works on shared memory, and A is in global"),
        ("T.stg64(O[0:2], A[0])", "T.stg64 stores 64 bits, found 32"),
        ("x = T.reinterpret(A[T.Ramp(0, 1, 4)], T.float32x2)", "T.reinterpret of float32x4 as float32x2"),
        ("x = A[T.Ramp(0, 1, 4)] + A[T.Ramp(0, 1, 2)]", "+ of vectors of 4 and of 2 elements"),
        ("x = A[T.Ramp(0, 1, 4)][4]", "a vector of 4 elements has no element 4"),
        ("x = T.add2(A[0], A[1])", "T.add2 takes a vector"),
        ("x = T.add2(A[T.Ramp(0, 1, 4)], 1)", "T.add2 works on two elements, found 4"),
        ("x = T.float32x2(1, 2, 3)", "T.float32x2 is made of 2 values, found 3"),
        (
            "if A[T.Ramp(0, 1, 4)] == 1:\n    O[0] = 1.0",
            "a vector is compared, and is true or not, by its elements",
        ),
        (
            "if A[T.Ramp(0, 1, 4)] > 1:\n    O[0] = 1.0",
            "a vector is compared, and is true or not, by its elements",
        ),
        (
            "v = A[T.Ramp(0, 1, 4)]\nif v:\n    O[0] = 1.0",
            "a vector is compared, and is true or not, by its elements",
        ),
        ("v = A[T.Ramp(0, 1, 4)]\nO[0] = 1.0 if not v else 2.0", "is true or not, by its elements"),
        (
            "for i in T.serial(2):\n    v = A[T.Ramp(i, 1, 4)]\nO[0:4] = v",
            "v is bound inside a loop or branch that has ended",
        ),
        ("x = T.exp(A[T.Ramp(0, 1, 4)])", "VectorValue is no value of a kernel"),
        ("f = T.alloc_fragment((8,), 'float32')\nx = f[T.Ramp(0, 1, 2)]", "and f is a fragment"),
    ],
)
def test_what_is_refused(line: str, message: str) -> None:
    with pytest.raises(TileError) as caught:
        kernel_of(line, LINE.format("float32")).using(target="cpu")()
    assert message in str(caught.value)
    assert caught.value.place is not None
