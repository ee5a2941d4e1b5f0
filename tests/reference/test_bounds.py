"""No evaluation in the declared dtype leaves the bounds, and the bounds are close enough to catch errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilebench.errors import LanguageError
from tilebench.ir import dtype_of, parse_function
from tilebench.ir.dtypes import ALL
from tilebench.ir.stmt import Function
from tilebench.language.meanings.conversion import round_to
from tilebench.language.meanings.elements import SCALARS, scalar_bound
from tilebench.language.meanings.inexact import Inexact
from tilebench.language.words import registry
from tilebench.reference import Bounded, compare, make_inputs, random_array, run_bounded, run_reference

FLOATS = ("float16", "bfloat16", "float32", "float64")


def kernel(params: str, body: str, grid: str = "1", blocks: str = "bx") -> Function:
    inside = "\n".join("        " + line for line in body.strip("\n").splitlines())
    head = f"@T.prim_func\ndef main({params}):\n    with T.Kernel({grid}, threads=64) as ({blocks},):\n"
    return parse_function(head + inside + "\n", registry(), "stage")


def gemm(m: int, n: int, k: int, step: int, dtype: str, acc: str) -> Function:
    return kernel(
        f"A: T.Tensor(({m}, {k}), T.{dtype}), B: T.Tensor(({k}, {n}), T.{dtype}), "
        f"C: T.Tensor(({m}, {n}), T.{acc})",
        f"""
A_s = T.alloc_shared(({m}, {step}), T.{dtype})
B_s = T.alloc_shared(({step}, {n}), T.{dtype})
C_l = T.alloc_fragment(({m}, {n}), T.{acc})
T.fill(C_l, T.{acc}(0))
for ko in T.Pipelined({-(-k // step)}, num_stages=2):
    T.copy(A[0, ko * {step}], A_s)
    T.copy(B[ko * {step}, 0], B_s)
    T.gemm(A_s, B_s, C_l)
T.copy(C_l, C[0, 0])
""",
    )


def accumulate(products: np.ndarray[Any, Any], kind: Any, fused: bool) -> np.ndarray[Any, Any]:
    """Add along the first axis one after the other in `kind`; `products` are exact doubles."""
    total = np.zeros(products.shape[1:], kind)
    for each in products:
        part = each if fused else each.astype(kind).astype(np.float64)
        total = (total.astype(np.float64) + part).astype(kind)
    return total


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    k=st.integers(1, 70),
    step=st.sampled_from([8, 32, 128]),
    fused=st.booleans(),
    types=st.sampled_from([(a, "float32") for a in FLOATS[:3]] + [("float16", "float16")]),
)
def test_gemm_in_any_order_stays_within_its_bound(
    seed: int, k: int, step: int, fused: bool, types: tuple[str, str]
) -> None:
    dtype, acc = types
    m, n = 5, 6
    a, b = (random_array(s, dtype_of(dtype), (seed, s[0])) for s in ((m, k), (k, n)))
    arrays = {"A": a, "B": b, "C": np.zeros((m, n), dtype_of(acc).numpy)}
    bounded = run_bounded(gemm(m, n, k, step, dtype, acc), arrays)
    random = np.random.default_rng(seed)
    products = a.astype(np.float64).T[:, :, None] * b.astype(np.float64)[:, None, :]
    # Within a tile in any order; tiles one after the other, as the loop says.
    order = np.concatenate([random.permutation(np.arange(s, min(s + step, k))) for s in range(0, k, step)])
    got = accumulate(products[order], dtype_of(acc).numpy, fused)
    assert np.allclose(bounded["C"].value, a.astype(np.float64) @ b.astype(np.float64), rtol=0, atol=1e-13)
    assert compare(got, bounded["C"], dtype_of(acc)).ok


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 300), dtype=st.sampled_from(FLOATS[:3]))
def test_sums_in_any_order_stay_within_their_bound(seed: int, n: int, dtype: str) -> None:
    function = kernel(
        f"A: T.Tensor((4, {n}), T.{dtype}), B: T.Tensor((4,), T.{dtype})",
        f"""
a = T.alloc_fragment((4, {n}), T.{dtype})
b = T.alloc_fragment((4,), T.{dtype})
T.copy(A[0, 0], a)
T.reduce_sum(a, b, dim=1)
T.copy(b, B[0])
""",
    )
    a = random_array((4, n), dtype_of(dtype), seed)
    bounded = run_bounded(function, {"A": a, "B": np.zeros(4, a.dtype)})["B"]
    order = np.random.default_rng(seed).permutation(n)
    total = np.zeros(4, a.dtype)
    for each in order:
        total = total + a[:, each]
    assert compare(total, bounded, dtype_of(dtype)).ok


CHAIN = """
m = T.alloc_fragment((4,), T.{d})
x = T.alloc_fragment((4, 40), T.{d})
T.copy(A[0, 0], x)
for i, j in T.Parallel(4, 40):
    t: T.{d} = x[i, j] * x[i, j] - T.{d}(0.7) / (x[i, j] + T.{d}(1.3))
    x[i, j] = T.if_then_else(t > x[i, j], t * T.{d}(0.5), T.max(x[i, j], -t))
T.reduce_max(x, m, dim=1)
for i, j in T.Parallel(4, 40):
    x[i, j] = T.exp(x[i, j] - m[i]) * T.tanh(x[i, j]) + T.rsqrt(T.abs(x[i, j]) + T.{d}(0.1))
    if x[i, j] < T.{d}(0.5):
        x[i, j] = T.sigmoid(x[i, j]) + T.log(T.abs(x[i, j]) + T.{d}(0.5)) + T.floor(x[i, j] * T.{d}(3))
T.copy(x, B[0, 0])
for i, j in T.Parallel(4, 40):
    Q[i, j] = T.cast(x[i, j] * T.{d}(20), T.int8)
"""


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", ["uniform", "normal", "wide"])
def test_the_reference_in_the_declared_dtype_is_within_the_bounds(dtype: str, kind: Any) -> None:
    function = kernel(
        f"A: T.Tensor((4, 40), T.{dtype}), B: T.Tensor((4, 40), T.{dtype}), Q: T.Tensor((4, 40), T.int8)",
        CHAIN.format(d=dtype),
    )
    for seed in range(6):
        arrays = make_inputs(function, seed, kind)
        got, bounded = run_reference(function, arrays), run_bounded(function, arrays)
        for name, kinds in (("B", dtype), ("Q", "int8")):
            report = compare(got[name], bounded[name], dtype_of(kinds), name)
            assert report.ok, str(report)
            # In 16 bits a choice that rounding decides may leave the root of a number down to zero.
            if kind == "uniform" and dtype in ("float32", "float64"):
                assert report.outputs[0].unbounded == 0
        if kind == "uniform" and dtype == "float32":
            assert np.median(bounded["B"].error) < 5e-6


# What functions of more than one argument are given beside the first; those of bits have no inexact ones.
BESIDE = {"hypot": (0.75,), "atan2": (0.75,), "copysign": (-0.75,), "ldexp": (3.0,), "fma": (1.5, 0.25)}
WITHOUT = ("min", "max", "pow", "clamp", "fmod", "popcount", "bit_length", "philox")


@pytest.mark.parametrize("word", [word for word in SCALARS if word not in WITHOUT])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_functions_of_inexact_arguments(word: str, dtype: str) -> None:
    """An argument that was rounded, off by its whole bound, still leads into the bound of the result."""
    if word == "fma" and dtype != "float32":
        pytest.skip("of float32 alone")
    more = BESIDE.get(word, ())
    beside = "".join(f", T.{dtype}({number})" for number in more)
    function = kernel(
        f"A: T.Tensor((200,), T.float64), B: T.Tensor((200,), T.{dtype})",
        f"for i in T.Parallel(200):\n    B[i] = T.{word}(T.cast(A[i], T.{dtype}){beside})",
    )
    a = random_array((200,), dtype_of("float64"), 3) * 5
    a = np.abs(a) + 0.01 if word in ("log", "log2", "log10", "log1p", "sqrt", "rsqrt") else a
    a = np.abs(a) + 1.01 if word == "acosh" else a
    a = np.sin(a) * 0.99 if word in ("asin", "acos", "atanh") else a / 3 if word == "exp10" else a
    bounded = run_bounded(function, {"A": a, "B": np.zeros(200, dtype_of(dtype).numpy)})["B"]
    u = dtype_of(dtype).unit_roundoff
    for sign in (-1, 1):
        moved = a * (1 + sign * 0.999 * u)
        exact = np.asarray(SCALARS[word].plain(moved, *more), np.float64)
        got = exact if SCALARS[word].ulps is None else round_to(exact, dtype_of(dtype)).astype(np.float64)
        assert np.all(np.abs(got - bounded.value) <= bounded.error)


def test_the_sign_of_a_nan_is_not_known() -> None:
    """What an operation gives as a NaN has either sign: one processor sets it, another clears it."""
    function = kernel(
        "A: T.Tensor((3,), T.float32), B: T.Tensor((3,), T.float32)",
        "for i in T.Parallel(3):\n    B[i] = T.copysign(T.float32(2.0), T.log(A[i]))",
    )
    arrays = {"A": np.array([0.5, -1.0, 3.0], np.float32), "B": np.zeros(3, np.float32)}
    bounded = run_bounded(function, arrays)["B"]
    np.testing.assert_array_equal(np.abs(bounded.value), 2.0)
    np.testing.assert_array_equal(bounded.error >= 4.0, [False, True, False])


def test_the_bound_of_a_long_gemm_is_within_fifty_times_its_error() -> None:
    m, n, k = 64, 64, 1024
    function = gemm(m, n, k, 32, "float32", "float32")
    arrays = make_inputs(function, 5)
    bounded = run_bounded(function, arrays)["C"]
    products = arrays["A"].astype(np.float64).T[:, :, None] * arrays["B"].astype(np.float64)[:, None, :]
    got = accumulate(products, np.float32, False)
    error = np.abs(got - bounded.value)
    assert np.all(error <= bounded.error)
    ratio = bounded.error.max() / error.max()
    assert ratio < 50, ratio


def test_a_planted_error_of_twice_the_bound_is_found() -> None:
    function = gemm(32, 48, 200, 32, "float16", "float32")
    arrays = make_inputs(function, 1)
    bounded = run_bounded(function, arrays)["C"]
    got = run_reference(function, arrays)["C"]
    assert compare(got, bounded, dtype_of("float32")).ok
    got[7, 9] = np.float32(bounded.value[7, 9] + 2 * bounded.error[7, 9])
    report = compare(got, bounded, dtype_of("float32"), "C")
    assert not report.ok
    assert report.outputs[0].outside == 1
    assert report.outputs[0].worst[0].index == (7, 9)
    assert report.outputs[0].ratio == pytest.approx(2, rel=0.05)
    # One part in a thousand of a typical element is far outside too.
    got = run_reference(function, arrays)["C"]
    got[3, 3] *= np.float32(1.001)
    assert not compare(got, bounded, dtype_of("float32")).ok


def test_integers_are_exact() -> None:
    function = gemm(8, 8, 40, 8, "int8", "int32")
    arrays = make_inputs(function, 2, "wide")
    bounded = run_bounded(function, arrays)["C"]
    assert not bounded.error.any()
    assert np.array_equal(bounded.value, arrays["A"].astype(np.int64) @ arrays["B"].astype(np.int64))


def test_a_choice_that_rounding_decides_is_bounded_by_both_results() -> None:
    function = kernel(
        "A: T.Tensor((3,), T.float32), B: T.Tensor((3,), T.float32), C: T.Tensor((3,), T.int32)",
        """
for i in T.Parallel(3):
    x: T.float32 = A[i] * A[i] - T.float32(0.01)
    B[i] = T.if_then_else(x > T.float32(0), T.float32(5), T.float32(2))
    C[i] = 4
    if x > T.float32(0):
        C[i] = 7
    else:
        C[i] = 1
""",
    )
    a = np.array([0.5, 0.1, 0.0], np.float32)
    made = run_bounded(function, {"A": a, "B": np.zeros(3, np.float32), "C": np.zeros(3, np.int32)})
    assert made["B"].error.tolist() == [0, 3, 0]
    assert made["B"].value[[0, 2]].tolist() == [5, 2]
    assert made["C"].error.tolist() == [0, 6, 0]
    assert made["C"].value[[0, 2]].tolist() == [7, 1]


def test_overflow_that_may_happen_has_no_bound_and_a_sure_one_is_infinity() -> None:
    function = kernel(
        "A: T.Tensor((3,), T.float16), B: T.Tensor((3,), T.float16)",
        "for i in T.Parallel(3):\n    B[i] = A[i] * A[i] * T.float16(0.999)",
    )
    a = np.array([255.5, 256.0, 300.0], np.float16)
    made = run_bounded(function, {"A": a, "B": np.zeros(3, np.float16)})["B"]
    assert np.isfinite(made.error[0])
    assert np.isinf(made.value[2])
    assert made.error[2] == 0
    got = run_reference(function, {"A": a, "B": np.zeros(3, np.float16)})["B"]
    assert compare(got, made, dtype_of("float16")).ok


def test_minus_infinity_of_a_mask_keeps_bounds_finite() -> None:
    function = kernel(
        "A: T.Tensor((2, 8), T.float32), B: T.Tensor((2, 8), T.float32)",
        """
x = T.alloc_fragment((2, 8), T.float32)
m = T.alloc_fragment((2,), T.float32)
for i, j in T.Parallel(2, 8):
    x[i, j] = T.if_then_else(j < 5, A[i, j] * T.float32(1.3), T.float32("-inf"))
T.reduce_max(x, m, dim=1)
for i, j in T.Parallel(2, 8):
    B[i, j] = T.exp2((x[i, j] - m[i]) * T.float32(1.44))
""",
    )
    arrays = make_inputs(function, 0)
    made = run_bounded(function, arrays)["B"]
    assert np.all(made.error < 2e-6)
    assert np.all(made.value[:, 5:] == 0)


def test_division_by_what_may_be_zero_has_no_bound() -> None:
    function = kernel(
        "A: T.Tensor((2,), T.float32), B: T.Tensor((2,), T.float32)",
        "for i in T.Parallel(2):\n    B[i] = T.float32(1) / (A[i] * A[i] - T.float32(0.01))",
    )
    made = run_bounded(function, {"A": np.array([0.1, 2], np.float32), "B": np.zeros(2, np.float32)})["B"]
    assert np.isinf(made.error[0])
    assert made.error[1] < 1e-6


def test_an_index_that_depends_on_rounding_is_refused() -> None:
    function = kernel(
        "A: T.Tensor((4,), T.float32), B: T.Tensor((4,), T.float32)",
        "for i in T.Parallel(4):\n    B[i] = A[T.cast(A[i] * A[i] * T.float32(3.3), T.int32)]",
    )
    a = np.array([0.1, 0.2, 0.3, np.sqrt(1 / 3.3)], np.float32)
    with pytest.raises(LanguageError, match="depends on the rounding"):
        run_bounded(function, {"A": a, "B": np.zeros(4, np.float32)})


def test_a_bool_of_either_value_passes_as_both() -> None:
    either = Bounded(np.array([True, False]), np.array([1.0, 0.0]))
    assert compare(np.array([False, False]), either, dtype_of("bool")).ok
    assert not compare(np.array([False, True]), either, dtype_of("bool")).ok


@pytest.mark.parametrize("kind", ["max", "min", "sum"])
@pytest.mark.parametrize(
    ("source", "target"),
    [("float32", "float8_e4m3fn"), ("float16", "float8_e5m2"), ("float8_e5m2", "float8_e4m3fn"),
     ("float8_e4m3fn", "float8_e4m3fn"), ("float32", "float16"), ("float64", "float32")],
)  # fmt: skip
def test_a_reduction_into_a_narrower_dtype_is_rounded(source: str, target: str, kind: str) -> None:
    function = kernel(
        f"A: T.Tensor((16, 7), T.{source}), C: T.Tensor((16,), T.{target})",
        f"""
x = T.alloc_fragment((16, 7), T.{source})
y = T.alloc_fragment((16,), T.{target})
T.copy(A[0, 0], x)
T.reduce_{kind}(x, y)
T.copy(y, C[0])
""",
    )
    inputs = make_inputs(function, 3)
    bounds = run_bounded(function, inputs)["C"]
    assert compare(run_reference(function, inputs)["C"], bounds, dtype_of(target)).ok
    assert np.isfinite(bounds.error).all()


def test_a_product_with_what_may_be_infinite_has_no_bound() -> None:
    """0 by an overflow that may happen is NaN, also where the sum is infinite already."""
    function = kernel(
        "A: T.Tensor((4, 4), T.float16), C: T.Tensor((4, 4), T.float32)",
        """
a = T.alloc_shared((4, 4), T.float16)
b = T.alloc_shared((4, 4), T.float16)
c = T.alloc_fragment((4, 4), T.float32)
T.fill(a, T.float16(0))
T.copy(A[0, 0], b)
for i, j in T.Parallel(4, 4):
    b[i, j] = b[i, j] * T.float16(1.0917)
T.fill(c, T.float32("inf"))
T.gemm(a, b, c)
T.copy(c, C[0, 0])
""",
    )
    inputs = {"A": np.zeros((4, 4), np.float16), "C": np.zeros((4, 4), np.float32)}
    inputs["A"][:, 1] = 6e4
    error = run_bounded(function, inputs)["C"].error
    assert np.isposinf(error[:, 1]).all()
    assert (error[:, [0, 2, 3]] == 0).all()


@pytest.mark.parametrize("source", ["bfloat16", "float32"])
@pytest.mark.parametrize("word", ["T.reduce_sum(x, y)", "T.reduce_max(x, y)", "T.cumsum(x, y, dim=1)"])
def test_a_sum_out_of_the_range_of_its_result(word: str, source: str) -> None:
    """float16 has more digits than bfloat16 and a smaller range: 1e-20 becomes 0 and 1e30 infinity."""
    shape = "(4, 1)" if "cumsum" in word else "(4,)"
    function = kernel(
        f"A: T.Tensor((4, 1), T.{source}), C: T.Tensor({shape}, T.float16)",
        f"""
x = T.alloc_fragment((4, 1), T.{source})
y = T.alloc_fragment({shape}, T.float16)
T.copy(A[0, 0], x)
{word}
T.copy(y, C[0{", 0" if "cumsum" in word else ""}])
""",
    )
    a = np.array([[1e-20], [1e30], [0.5], [3e-6]]).astype(dtype_of(source).numpy)
    inputs = {"A": a, "C": np.zeros((4, 1) if "cumsum" in word else 4, np.float16)}
    bounds, found = run_bounded(function, inputs)["C"], run_reference(function, inputs)["C"]
    assert found.reshape(4).tolist() == [0, np.inf, 0.5, float(np.float16(a[3, 0]))]
    assert compare(found, bounds, dtype_of("float16")).ok


def test_a_number_near_the_edge_of_a_domain_may_lie_on_either_side() -> None:
    """sqrt of -0.01 +- 0.1 may be a number; of -0.5 +- 0.1 it is none, whatever the rounding was."""
    root = scalar_bound("sqrt", ALL["float32"])
    assert root is not None
    with np.errstate(invalid="ignore"):
        found = root(Inexact(np.array([-0.01, -0.5, 0.01, 4.0]), np.array([0.1, 0.1, 0.1, 0.0])))
    assert np.isnan(found.value[:2]).all()
    assert found.error[0] == np.inf
    assert found.error[1] == 0
    assert found.error[2] == np.inf
    assert found.error[3] < 1e-6


def test_the_bits_of_nan_have_no_bound() -> None:
    """What a NaN carries is each processor's own: 0 * inf is 0x7e00 on one and 0xfe00 on another."""
    function = kernel(
        "A: T.Tensor((4,), T.float16), C: T.Tensor((4,), T.uint16)",
        """
for i in T.Parallel(4):
    C[i] = T.reinterpret(A[i] * T.float16(0), T.uint16)
""",
    )
    inputs = {"A": np.array([1, np.inf, 2, np.nan], np.float16), "C": np.zeros(4, np.uint16)}
    assert np.isposinf(run_bounded(function, inputs)["C"].error).tolist() == [False, True, False, True]
