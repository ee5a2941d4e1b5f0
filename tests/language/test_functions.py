"""Functions of floats and bits of values, on every road, with the oracle's bounds and the exact errors."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tilebench.language as T
from tests.everywhere import everywhere, kernel_of
from tests.fuzz.program import HEAD, Program
from tests.fuzz.roads import run
from tilebench.errors import TileError
from tilebench.targets.cuda.compiler.nvrtc import compile_cuda
from tilebench.targets.cuda.machines import machine_of

EVERY = ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "exp10", "log10", "log1p", "trunc",
         "round", "nearbyint", "asinh", "acosh", "atanh")  # fmt: skip
OF_TWO = ("hypot", "copysign", "fmod", "atan2")
HALVES = [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999997, 8388609.0]


@pytest.mark.parametrize("inputs", ["uniform", "special"])
@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "bfloat16", "float64", "float8_e4m3fn", "float8_e5m2"]
)
def test_functions_on_every_road(dtype: str, inputs: str) -> None:
    calls = [f"T.{word}(A1[i])" for word in EVERY]
    calls += [f"T.{word}(A1[i], A1[63 - i])" for word in OF_TWO]
    calls += ["T.ldexp(A1[i], i - 32)", "T.fmod(A1[i], 0.75)"]
    if dtype != "float64":
        calls += ["T.ieee_frsqrt(A1[i])"]
    if dtype == "float32":
        calls += ["T.ieee_fmaf(A1[i], A1[63 - i], A1[i])", "T.ieee_fmaf(A1[i], A1[i], -1.0)"]
    flags = [f"T.if_then_else(T.{word}(A1[i]), 1, 0)" for word in ("isnan", "isinf", "isfinite")]
    lines = [f"                O2[{number}, i] = {call}" for number, call in enumerate(calls)]
    lines += [f"                O3[{number}, i] = {call}" for number, call in enumerate(flags)]
    text = f"""{HEAD}@tilebench.jit
def kernel():
    @T.prim_func
    def main(A1: T.Tensor((64,), "{dtype}"), O2: T.Tensor(({len(calls)}, 64), "{dtype}"), \
O3: T.Tensor((3, 64), "int32")):
        with T.Kernel(1, threads=64) as bx:
            for i in T.Parallel(64):
"""
    program = Program(text + "\n".join(lines) + "\n    return main\n", inputs=inputs, seed=2)
    assert str(run(program, nvrtc=True)) == "all agree"


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_functions_compile_for_cards(arch: str) -> None:
    calls = [f"T.{word}(A[i, j])" for word in EVERY]
    body = "\n".join(
        ["for i, j in T.Parallel(64, 64):", *(f"    O[i, j] = O[i, j] + {call}" for call in calls)]
    )
    body += '\n    O[i, j] = T.fmod(O[i, j], T.reinterpret(T.reinterpret(A[i, j], "uint32") | 1, "float32"))'
    compile_cuda(kernel_of(body).using(target=f"cuda:{arch}")().stage("cuda"), machine_of(f"cuda:{arch}"))


def test_rounding_of_halves() -> None:
    given = np.array(HALVES, np.float32)
    found = everywhere(
        "for i in T.Parallel(8):\n"
        "    R[i] = T.round(A[i])\n    E[i] = T.nearbyint(A[i])\n    C[i] = T.trunc(A[i])",
        head=", ".join(f'{name}: T.Tensor((8,), "float32")' for name in "AREC"), A=given,
    )  # fmt: skip
    assert found["R"].tolist() == [-3, -2, -1, 1, 2, 3, 0, 8388609]
    assert found["E"].tolist() == [-2, -2, 0, 0, 2, 2, 0, 8388609]
    assert found["C"].tolist() == [-2, -1, 0, 0, 1, 2, 0, 8388609]
    assert [T.round(x) for x in HALVES] == [-3, -2, -1, 1, 2, 3, 0, 8388609]
    assert (T.fmod(-7.5, 2.0), T.isnan(math.nan), T.isinf(-math.inf), T.isfinite(1)) == (
        -1.5,
        True,
        True,
        True,
    )


def test_functions_of_integers_give_float32() -> None:
    head = 'I: T.Tensor((64,), "int8"), O: T.Tensor((64,), "float32"), S: T.Tensor((64,), "float32")'
    found = everywhere(
        "for i in T.Parallel(64):\n    O[i] = T.exp(I[i])\n    S[i] = T.__sin(I[i])", head, exact=False
    )
    np.testing.assert_allclose(found["O"], np.exp(found["I"].astype(np.float32)), rtol=1e-6)
    np.testing.assert_allclose(found["S"], np.sin(found["I"].astype(np.float32)), rtol=1e-5)


PAIRS = [
    ("float32", "uint32"), ("float32", "int32"), ("float64", "int64"), ("float16", "uint16"),
    ("bfloat16", "int16"), ("float16", "bfloat16"), ("float8_e4m3fn", "uint8"), ("float8_e5m2", "int8"),
    ("float8_e4m3fn", "float8_e5m2"), ("int32", "uint32"), ("int8", "uint8"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_bits_in_another_dtype_and_back(source: str, target: str) -> None:
    head = f'A: T.Tensor((64,), "{source}"), O: T.Tensor((64,), "{target}"), B: T.Tensor((64,), "{source}")'
    body = f"""
    for i in T.Parallel(64):
        O[i] = T.reinterpret(A[i], "{target}")
        B[i] = T.reinterpret("{source}", T.reinterpret(A[i], T.{target}))
    """
    found = everywhere(body, head)
    assert found["O"].tobytes() == found["A"].tobytes() == found["B"].tobytes()


def test_the_half_of_a_float() -> None:
    """What quantised kernels do: a float is made of bits that shifts put in place."""
    head = 'P: T.Tensor((64,), "uint8"), O: T.Tensor((64,), "float16"), Q: T.Tensor((64,), "float32")'
    body = """
    for i in T.Parallel(64):
        s = T.shift_left(T.cast(P[i], "uint16"), T.uint16(7))
        O[i] = T.reinterpret(s | T.uint16(0x3C00), "float16")
        Q[i] = T.reinterpret(T.shift_right(T.reinterpret(T.float32(1.5), "uint32"), 1), T.float32)
    """
    found = everywhere(body, head, P=np.arange(64, dtype=np.uint8))
    bits = (np.arange(64, dtype=np.uint16) << 7) | 0x3C00
    np.testing.assert_array_equal(found["O"], bits.view(np.float16))
    assert found["Q"][0] == np.array(np.float32(1.5).view(np.uint32) >> 1).view(np.float32)


def _towards_zero(x: int, y: int) -> int:
    return abs(x) // abs(y) * (-1 if (x < 0) != (y < 0) else 1)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint32"])
def test_division_towards_zero(dtype: str) -> None:
    head = ", ".join(f'{name}: T.Tensor((256,), "{dtype}")' for name in "ABQR")
    body = """
    for i in T.Parallel(256):
        Q[i] = T.truncdiv(A[i], B[i])
        R[i] = T.truncmod(A[i], B[i])
    """
    info = np.iinfo(dtype)
    rng = np.random.default_rng(1)
    a = rng.integers(info.min, info.max, 256, dtype=dtype, endpoint=True)
    b = rng.choice(np.array([1, 2, 3, 7, 100] + ([-2, -3, -7] if info.min else [9]), dtype), 256)
    found = everywhere(body, head, A=a, B=b)
    wanted = [T.truncdiv(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    assert wanted == [_towards_zero(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    assert found["Q"].tolist() == wanted
    assert found["R"].tolist() == [int(x) - q * int(y) for x, y, q in zip(a, b, wanted, strict=True)]
    assert (T.truncdiv(-7, 2), T.truncmod(-7, 2), T.truncdiv(7, -2), T.truncmod(7, -2)) == (-3, -1, -3, 1)


def _fails(
    body: str, head: str = 'A: T.Tensor((64, 64), "float32"), O: T.Tensor((64, 64), "float32")'
) -> str:
    with pytest.raises(TileError) as error:
        kernel_of(f"for i, j in T.Parallel(64, 64):\n    {body}", head).using(target="cuda:sm_80")()
    return str(error.value).splitlines()[0].split("error: ")[1]


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ('O[i, j] = T.reinterpret(A[i, j], "int16")', "T.reinterpret of float32 as int16"),
        ('O[i, j] = T.cast(A[i, j], "float16", round="rz")',
         "T.cast(round='rz', rbits=None) is TileLang's, not here yet"),
        ('O[i, j] = T.cast(A[i, j], "float8_e4m3fn", sat=False)',
         "a conversion to float8_e4m3fn stops at its largest value, which sat=False asks not to do"),
        ('O[i, j] = T.ieee_add(A[i, j], 1.0, "rz")', "T.ieee_add rounds to nearest even here, not 'rz'"),
        ('O[i, j] = T.ieee_fmaf(A[i, j], 1.0, 1.0, "ru")',
         "T.ieee_fmaf rounds to nearest even here, not 'ru'"),
        ('O[i, j] = T.ieee_fmaf(T.cast(A[i, j], "float64"), 1.0, 1.0)', "T.ieee_fmaf takes float32"),
        ('O[i, j] = T.ieee_frsqrt(T.cast(A[i, j], "float64"))',
         "T.ieee_frsqrt takes floats of at most 32 bits"),
        ("O[i, j] = T.ldexp(A[i, j], 0.5)", "T.ldexp takes an integer for x2"),
        ("O[i, j] = T.popcount(A[i, j])", "T.popcount takes integers"),
        ("O[i, j] = T.clz(A[i, j])", "T.clz takes integers"),
        ("O[i, j] = T.truncdiv(A[i, j], 2.0)", "T.truncdiv takes integers, found 2.0"),
    ],
)  # fmt: skip
def test_what_is_refused(body: str, what: str) -> None:
    assert _fails(body) == what


INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bits_are_counted(dtype: str) -> None:
    bits = np.dtype(dtype).itemsize * 8
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2**bits, 64, dtype=f"uint{bits}") >> rng.integers(0, bits, 64).astype(f"uint{bits}")
    a[:3] = 0, 2**bits - 1, 2 ** (bits - 1)
    head = f'A: T.Tensor((64,), "{dtype}"), P: T.Tensor((64,), "{dtype}"), Z: T.Tensor((64,), "int32")'
    found = everywhere(
        "for i in T.Parallel(64):\n    P[i] = T.popcount(A[i])\n    Z[i] = T.clz(A[i])", head,
        A=a.view(dtype),
    )  # fmt: skip
    assert found["P"].tolist() == [int(x).bit_count() for x in a]
    assert found["Z"].tolist() == [bits - int(x).bit_length() for x in a]


def test_a_product_and_sum_is_rounded_once() -> None:
    """Where two roundings give another number: the sum lies beside the middle of two float32."""
    rng = np.random.default_rng(0)
    x, y = (rng.integers(2**23, 2**24, 4096).astype(np.float32) for _ in range(2))
    exact = [int(a) * int(b) for a, b in zip(x, y, strict=True)]
    middle = [(p >> 20 << 20) + 2**19 - p for p in exact]
    z = np.array(middle, np.float32)
    for k in range(0, 4096, 3):
        z[k] = np.nextafter(z[k], np.float32(math.inf if k % 2 else -math.inf))
    wanted = [Fraction(p) + Fraction(float(c)) for p, c in zip(exact, z, strict=True)]
    head = ", ".join(f'{name}: T.Tensor((4096,), "float32")' for name in "XYZO")
    found = everywhere(
        "for i in T.Parallel(4096):\n    O[i] = T.ieee_fmaf(X[i], Y[i], Z[i])", head, X=x, Y=y, Z=z
    )
    for value, want in zip(found["O"], wanted, strict=True):
        below, above = (
            Fraction(float(np.nextafter(value, np.float32(end)))) for end in (-math.inf, math.inf)
        )
        assert (below + Fraction(float(value))) / 2 <= want <= (Fraction(float(value)) + above) / 2


def test_edges_of_two_floats() -> None:
    """Signed zeros, infinities and NaN as C has them."""
    edges = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-45]
    y, x = (part.ravel() for part in np.meshgrid(edges, edges))
    head = ", ".join(f'{name}: T.Tensor((64,), "float32")' for name in ("Y", "X", "A", "H", "C"))
    body = """
    for i in T.Parallel(64):
        A[i] = T.atan2(Y[i], X[i])
        H[i] = T.hypot(Y[i], X[i])
        C[i] = T.copysign(Y[i], X[i])
    """
    y, x = y.astype(np.float32), x.astype(np.float32)
    found = everywhere(body, head, Y=y, X=x, exact=False)
    np.testing.assert_allclose(found["A"], np.arctan2(y, x), rtol=1e-6)
    np.testing.assert_array_equal(np.signbit(found["A"]), np.signbit(np.arctan2(y, x)))
    np.testing.assert_allclose(found["H"], np.hypot(y, x), rtol=1e-6, atol=2e-45)
    np.testing.assert_array_equal(found["C"], np.copysign(y, x))


def test_functions_of_python_numbers() -> None:
    assert (T.hypot(3, 4), T.copysign(2.0, -0.0), T.ldexp(0.75, 3), T.atan2(1.0, 0.0)) == (
        5.0, -2.0, 6.0, math.pi / 2,
    )  # fmt: skip
    assert (T.fabs(-2), T.asinh(0.0), T.acosh(1.0), T.likely(True), T.fast_rcp(4.0)) == (
        2.0,
        0.0,
        0.0,
        True,
        0.25,
    )


def test_names_of_arguments_of_other_files() -> None:
    body = """
    for i, j in T.Parallel(64, 64):
        x = T.clamp(dst=A[i, j], min_val=-1.0, max_val=T.max(a=0.5, b=0.25))
        O[i, j] = T.if_then_else(cond=x > 0, t=T.floor(x=x), f=T.exp(x=x)) + T.ceildiv(lhs=i, rhs=3)
    """
    found: Any = everywhere(body, exact=False)
    clamped = np.clip(found["A"], -1.0, 0.5)
    wanted = np.where(clamped > 0, np.floor(clamped), np.exp(clamped)) + -(-np.arange(64) // 3)[:, None]
    np.testing.assert_allclose(found["O"], wanted, rtol=1e-6)
