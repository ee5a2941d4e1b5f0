"""One rule of numbers on every road: literals beside narrow floats, integers of two kinds, NaN, wrapping."""

from __future__ import annotations

import operator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.elements import everywhere, of_one, of_two, wide
from tilebench.ir.dtypes import ALL
from tilebench.language.meanings.rounding import number_in, round_to

NARROW = ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]


def numbers(name: str) -> Any:
    """Values of every kind that a float has, without a NaN."""
    return round_to(np.array([0.0, -0.0, 1, -1.5, 0.1, 333, 448, -2.5, 7, 1e-3, 30, -96]), ALL[name])


# -- a Python float beside a float narrower than float32


FLOAT_RULE = {
    "times": lambda x: x * 0.1, "from": lambda x: 0.1 - x, "sum": lambda x: x + 2049.0,
    "quotient": lambda x: x / 3.0, "greater": lambda x: T.max(x, 0.1), "less": lambda x: T.min(0.1, x),
    "chosen": lambda x: T.if_then_else(x > 1, x, 0.1), "clamp": lambda x: T.clamp(x, 0.1, 300.1),
}  # fmt: skip
IN_SINGLE = {
    "times": lambda x: x * np.float32(0.1), "from": lambda x: np.float32(0.1) - x,
    "sum": lambda x: x + np.float32(2049), "quotient": lambda x: x / np.float32(3),
    "greater": lambda x: np.maximum(x, np.float32(0.1)), "less": lambda x: np.minimum(x, np.float32(0.1)),
    "chosen": lambda x: np.where(x > 1, x, np.float32(0.1)),
    "clamp": lambda x: np.clip(x, np.float32(0.1), np.float32(300.1)),
}  # fmt: skip


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("word", FLOAT_RULE)
def test_a_python_float_beside_a_narrow_one_makes_float32(name: str, word: str) -> None:
    x = numbers(name)
    got = of_one(FLOAT_RULE[word], x, "float32")
    np.testing.assert_array_equal(got, IN_SINGLE[word](x.astype(np.float32)))


def test_a_tenth_of_a_float16() -> None:
    got = of_one(lambda x: x * 0.1, np.full(4, 333, np.float16), "float16")
    assert got.tolist() == [33.3125] * 4


@pytest.mark.parametrize("name", NARROW)
def test_comparisons_with_a_python_float_are_in_float32(name: str) -> None:
    x = numbers(name)
    assert of_one(lambda x: x < 0.1, x, "bool").tolist() == (x.astype(np.float32) < np.float32(0.1)).tolist()
    assert not of_one(lambda x: x == 0.1, x, "bool").any()


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("number", [3, 100000, 300])
def test_an_int_takes_the_narrow_dtype_and_is_rounded_to_it(name: str, number: int) -> None:
    x, dtype = numbers(name), ALL[name]
    with np.errstate(all="ignore"):
        rounded = np.float32(number_in(number, dtype))
        want = round_to((x.astype(np.float32) + rounded).astype(np.float64), dtype)
    np.testing.assert_array_equal(wide(of_one(lambda x: x + number, x, name)), wide(want))


@pytest.mark.parametrize("name", NARROW)
def test_a_constant_of_a_narrow_dtype_is_rounded_to_it(name: str) -> None:
    """Also where the CPU computes in float32: `T.float16(0.1)`, NumPy's scalar, a store and a fill."""
    x, tenth = numbers(name), np.float32(number_in(0.1, ALL[name]))
    typed = [lambda x: x * getattr(T, name)(0.1), lambda x: x * ALL[name].numpy.type(0.1)]
    for f in typed:
        want = round_to((x.astype(np.float32) * tenth).astype(np.float64), ALL[name])
        np.testing.assert_array_equal(wide(of_one(f, x, name)), wide(want))
    assert wide(everywhere(constants, (name,), np.zeros(3, np.float32))).tolist() == [tenth] * 3


@tilebench.jit
def constants(dtype):
    @T.prim_func
    def main(C: T.Tensor((3,), "float32")):
        with T.Kernel(1, threads=32) as b0:
            s = T.alloc_shared((3,), dtype)
            v = T.alloc_var(dtype, init=0.1)
            w = T.alloc_var(dtype)
            w = 0.1
            T.fill(s, 0.1)
            C[0] = s[0]
            C[1] = v
            C[2] = w

    return main


def test_functions_follow_their_argument() -> None:
    h = np.array([0.5, 2.25], np.float16)
    got = of_one(lambda x: T.sqrt(x * 0.1), h, "float32")
    np.testing.assert_array_equal(got, np.sqrt(h.astype(np.float32) * np.float32(0.1)))
    got = of_one(lambda x: T.sqrt(x * 2), h, "float32")
    np.testing.assert_array_equal(got, np.sqrt(h * np.float16(2)).astype(np.float32))


# -- integers


INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def integers(name: str) -> list[int]:
    low, high = int(ALL[name].least), int(ALL[name].most)
    return [low, low + 1, 0, 1, 3, 7, high // 2 + 1, high - 1, high] + ([-1, -7] if low else [])


def common(a: str, b: str) -> str:
    """NumPy's common dtype, and int64 where no integer has the values of both."""
    found = np.promote_types(a, b).name
    return "int64" if found == "float64" else found


def wrapped(value: int, name: str) -> int:
    bits = ALL[name].bits
    value &= (1 << bits) - 1
    return value - (1 << bits) if ALL[name].kind == "int" and value >> (bits - 1) else value


MIXED = [
    ("int8", "int8"), ("uint8", "uint8"), ("int8", "uint8"), ("uint8", "int16"), ("int16", "uint16"),
    ("uint16", "int8"), ("int32", "int32"), ("int32", "uint32"), ("uint32", "int8"), ("uint32", "uint32"),
    ("uint64", "int32"), ("int64", "uint64"), ("uint64", "uint8"), ("int64", "uint32"),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), MIXED)
def test_two_integers_meet_in_a_dtype_with_the_values_of_both_and_wrap_there(a: str, b: str) -> None:
    name = common(a, b)
    pairs = [(x, y) for x in integers(a) for y in integers(b)]
    left, right = np.array([x for x, _ in pairs], a), np.array([y for _, y in pairs], b)
    here = [(wrapped(x, name), wrapped(y, name)) for x, y in pairs]
    for op in (operator.add, operator.sub, operator.mul):
        want = [wrapped(op(x, y), name) for x, y in here]
        assert of_two(op, left, right, name).tolist() == want
    assert of_two(operator.lt, left, right, "bool").tolist() == [x < y for x, y in here]
    divisors = [k for k, (_, y) in enumerate(here) if y]
    for op in (operator.floordiv, operator.mod):
        want = [wrapped(op(*here[k]), name) for k in divisors]
        assert of_two(op, left[divisors], right[divisors], name).tolist() == want


def test_narrow_integers_wrap_before_they_are_stored_wider() -> None:
    a = np.array([200, 100, 5], np.uint8)
    assert of_one(lambda x: x + x, a, "int32").tolist() == [144, 200, 10]
    assert of_one(lambda x: x - 8, a, "int32").tolist() == [192, 92, 253]
    assert of_one(lambda x: x + 300, a, "int32").tolist() == [500, 400, 305]  # 300 is no uint8: int64


@pytest.mark.parametrize("name", INTEGERS)
def test_bits_of_integers_stay_in_their_dtype(name: str) -> None:
    a = np.array(integers(name), name)
    assert of_one(lambda x: ~x, a, "float64").tolist() == (~a).astype(np.float64).tolist()
    assert of_one(lambda x: T.max(~x, 1), a, name).tolist() == np.maximum(~a, np.array(1, name)).tolist()
    minus = [wrapped(-int(x), name) for x in a]
    assert of_one(lambda x: -x, a, name).tolist() == minus
    assert of_one(abs, a, name).tolist() == np.abs(a).tolist()


@pytest.mark.parametrize("name", INTEGERS)
def test_a_shift_by_all_bits_or_more_leaves_none(name: str) -> None:
    bits = ALL[name].bits
    counts = np.array([0, 1, bits - 1, bits, bits + 1, 100], name)
    a = np.full(len(counts), ALL[name].most if ALL[name].kind == "uint" else -3, name)
    left = [wrapped(int(x) << min(int(n), bits), name) for x, n in zip(a, counts, strict=True)]
    right = [int(x) >> int(n) for x, n in zip(a, counts, strict=True)]
    assert of_two(operator.lshift, a, counts, name).tolist() == left
    assert of_two(operator.rshift, a, counts, name).tolist() == right


@tilebench.jit
def choices(dtype, n):
    @T.prim_func
    def main(A: T.Tensor((n,), dtype), C: T.Tensor((n,), dtype)):
        with T.Kernel(1, threads=32) as b0:
            for i in T.Parallel(n):
                C[i] = A[i] if A[i] > 5 else 7
                if A[i] == 3:
                    C[i] = 9
                C[i] = C[i] + A[i + n - 1]

    return main


@pytest.mark.parametrize("name", ["uint64", "int64", "uint8"])
def test_choices_of_large_integers_are_exact(name: str) -> None:
    """`A[i + n - 1]` lies outside but for i = 0: zeros, chosen beside elements of the array."""
    most = int(ALL[name].most)
    a = np.array([most, most - 1, 3, 5, 6], name)
    assert everywhere(choices, (name, 5), a, np.zeros(5, name)).tolist() == [
        wrapped(most + 6, name), most - 1, 9, 7, 6,
    ]  # fmt: skip


def test_extremes_and_size_of_bools() -> None:
    a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
    assert of_two(T.max, a, b, "bool").tolist() == [True, True, True, False]
    assert of_two(T.min, a, b, "int32").tolist() == [1, 0, 0, 0]
    assert of_one(abs, a, "bool").tolist() == a.tolist()
    assert of_one(lambda x: x + x, a, "int32").tolist() == [2, 2, 0, 0]


# -- from floats to integers


@pytest.mark.parametrize("out", [*INTEGERS, "bool"])
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", "float8_e5m2"])
def test_a_float_outside_an_integer_gives_its_end_and_nan_zero(name: str, out: str) -> None:
    values = [0.0, -0.9, 2.5, -2.5, 300, -300, 4e4, 1e10, -1e30, np.inf, -np.inf, np.nan]
    with np.errstate(over="ignore"):
        a = round_to(np.array(values), ALL[name])
    low, high = int(ALL[out].least), int(ALL[out].most)
    want = []
    for x in a.astype(np.float64).tolist():
        cut = 0 if x != x else high if x == np.inf else low if x == -np.inf else int(x)
        want.append(x != 0 if out == "bool" else min(max(cut, low), high))
    assert of_one(lambda x: T.cast(x, out), a, out).tolist() == want


# -- NaN


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", *NARROW[2:]])
def test_clamp_hands_nan_on_and_extremes_lose_it(name: str) -> None:
    a = np.array([np.nan, -3, 2, 8], np.float32).astype(ALL[name].numpy)
    assert np.array_equal(
        wide(of_one(lambda x: T.clamp(x, 0, 6), a, name)), [np.nan, 0, 2, 6], equal_nan=True
    )
    assert wide(of_one(lambda x: T.max(x, 1), a, name)).tolist() == [1, 1, 2, 8]
    assert wide(of_one(lambda x: T.min(1, x), a, name)).tolist() == [1, -3, 1, 1]


def test_clamp_of_integers_and_of_numbers() -> None:
    assert of_one(lambda x: T.clamp(x, 0, 6), np.array([-3, 4, 9], np.int32), "int32").tolist() == [0, 4, 6]
    assert T.clamp(12, 0, 9) == 9
    assert np.isnan(T.clamp(np.nan, 0, 9))


@tilebench.jit
def reduction(kind, dtype, out, m, n, dim, clear):
    @T.prim_func
    def main(
        A: T.Tensor((m, n), dtype),
        B: T.Tensor((m + n - (m, n)[dim],), out),
        C: T.Tensor((m + n - (m, n)[dim],), out),
    ):
        with T.Kernel(1, threads=64) as b0:
            tile = T.alloc_fragment((m, n), dtype)
            result = T.alloc_fragment((m + n - (m, n)[dim],), out)
            T.copy(A, tile)
            T.copy(B, result)
            getattr(T, f"reduce_{kind}")(tile, result, dim=dim, clear=clear)
            T.copy(result, C)

    return main


@pytest.mark.parametrize("out", ["float16", "float32"])
@pytest.mark.parametrize(
    "name", ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"]
)
@pytest.mark.parametrize("dim", [0, 1])
def test_a_line_of_nan_gives_where_the_reduction_starts(name: str, out: str, dim: int) -> None:
    a = np.ones((5, 70), np.float32)
    a[2], a[:, 3], a[1, 7] = np.nan, np.nan, np.nan
    lines = 5 if dim else 70
    for kind, start in (("max", -np.inf), ("min", np.inf)):
        got = everywhere(
            reduction, (kind, name, out, 5, 70, dim, True), a.astype(ALL[name].numpy),
            np.zeros(lines, out), np.zeros(lines, out),
        )  # fmt: skip
        want = np.ones(lines)
        want[2 if dim else 3] = start
        assert got.tolist() == want.tolist()


@pytest.mark.parametrize(
    ("name", "out"), [("int8", "int32"), ("int32", "int8"), ("uint8", "uint64"), ("float16", "float32")]
)
@pytest.mark.parametrize("kind", ["max", "min", "sum"])
def test_a_reduction_is_formed_in_the_wider_dtype(kind: str, name: str, out: str) -> None:
    """An old value that the tile's dtype has not is folded in as it is; the result is converted once."""
    rng = np.random.default_rng(3)
    a = rng.integers(0, 100, (4, 33)).astype(name)
    large = 1e6 if name == "float16" else 7 if out == "int8" else 2**31 - 50
    old = np.array([large, 1, 2, 3]).astype(out)
    got = everywhere(reduction, (kind, name, out, 4, 33, 1, False), a, old, np.zeros(4, out))
    wide_type = np.promote_types(name, out)
    fold = {"max": np.maximum, "min": np.minimum, "sum": np.add}[kind]
    with np.errstate(over="ignore"):
        want = fold(fold.reduce(a.astype(wide_type), axis=1, dtype=wide_type), old.astype(wide_type))
    assert got.tolist() == want.astype(out).tolist()


@tilebench.jit
def running(dtype, n):
    @T.prim_func
    def main(A: T.Tensor((2, n), dtype), C: T.Tensor((2, n), dtype)):
        with T.Kernel(1, threads=64) as b0:
            tile = T.alloc_fragment((2, n), dtype)
            T.copy(A, tile)
            T.cumsum(tile, dim=1)
            T.copy(tile, C)

    return main


@pytest.mark.parametrize("name", ["int8", "uint16", "float16"])
def test_running_sums_of_narrow_numbers(name: str) -> None:
    a = np.arange(80, dtype=np.int64).reshape(2, 40).astype(name)
    want = np.cumsum(a.astype(np.int64), axis=1).astype(name)
    assert everywhere(running, (name, 40), a, np.zeros_like(a)).tolist() == want.tolist()


def test_an_overflow_that_may_be_is_no_wrong_number() -> None:
    """Of an infinity and a number that rounding may have made infinite the quotient may be anything."""
    a, b = np.array([-np.inf], np.float16), np.array([65535], np.uint16)
    of_two(operator.floordiv, a, b, "float64")


def test_integers_that_a_float_has_all_are_exact_in_it() -> None:
    a = np.array([-128, 3], np.int8)
    got = of_two(lambda x, y: T.if_then_else(x > y, x, y), a, np.array([0.5, 3]), "float64")
    assert got.tolist() == [0.5, 3]


def test_literals_of_64_bits() -> None:
    a = np.array([0, 5], np.uint64)
    assert of_one(lambda x: T.max(x, 2**64 - 1), a, "uint64").tolist() == [2**64 - 1] * 2
    assert of_one(lambda x: T.if_then_else(x > 1, 2**64 - 1, 0), a, "uint64").tolist() == [0, 2**64 - 1]
    assert T.int8(-128).expr.value == (-T.int8(-128)).expr.value
    assert ml_dtypes.bfloat16(0.1).dtype.name == "bfloat16"
