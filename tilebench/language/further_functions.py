"""Functions that few kernels need: `T.asinh`, `T.atan2`, `T.hypot`, `T.ldexp`, `T.popcount`, `T.clz`, ..."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import DTypeError
from ..ir import Call, DType, Expr
from ..ir.dtypes import ALL, float32, float64, int32
from .elementwise import abs as magnitude
from .elementwise import float_function, of_numbers, sqrt
from .tracing.builder import here
from .tracing.expressions import Value, cast_value
from .tracing.promote import computable, convert, expr_of, number_of, operands

if TYPE_CHECKING:
    from .tracing.taken import Number, Whole


def asinh(x: Number) -> Any:
    """The inverse hyperbolic sine."""
    return float_function("asinh", x)


def acosh(x: Number) -> Any:
    """The inverse hyperbolic cosine, not negative; NaN below 1."""
    return float_function("acosh", x)


def atanh(x: Number) -> Any:
    """The inverse hyperbolic tangent; infinite at -1 and 1, NaN outside of them."""
    return float_function("atanh", x)


def fabs(x: Number) -> Any:
    """The absolute value of a float; an integer becomes a float32."""
    number = number_of(x)
    return float(magnitude(number)) if number is not None else float_function("abs", x)


def _of_two(name: str, x: Number, y: Number) -> Any:
    """A function of two floats, in their common dtype; of integers in float32."""
    a, b = number_of(x), number_of(y)
    if a is not None and b is not None:
        return of_numbers(name, a, b)
    left, right = (computable(part) for part in operands(x, y))
    if not left.dtype.is_float:
        left, right = convert(left, float32), convert(right, float32)
    return Value(Call(name, (left, right), type=left.dtype, place=here()))


def atan2(x1: Number, x2: Number) -> Any:
    """The angle of the point (x2, x1) in radians, from -pi to pi; the signs of zeros count."""
    return _of_two("atan2", x1, x2)


def hypot(x1: Number, x2: Number) -> Any:
    """sqrt(x1 * x1 + x2 * x2), also where the squares are out of range; infinity wins against NaN."""
    return _of_two("hypot", x1, x2)


def copysign(x1: Number, x2: Number) -> Any:
    """The size of x1 with the sign of x2, that of a zero too."""
    return _of_two("copysign", x1, x2)


def ldexp(x1: Number, x2: Whole) -> Any:
    """x1 * 2**x2, rounded once; x2 is an integer. Raises `DTypeError` for another x2."""
    number = number_of(x2)
    if isinstance(number, float) or (number is None and not expr_of(x2).dtype.is_integer):
        raise DTypeError(
            "T.ldexp takes an integer for x2", found="{dtype}",
            dtype=expr_of(x2).dtype if number is None else number, hint="x1 * T.exp2(x2)",
        )  # fmt: skip
    size = number_of(x1)
    if size is not None and number is not None:
        return of_numbers("ldexp", size, number)
    value = computable(expr_of(x1))
    wide = value.dtype if value.dtype in (float32, float64) else float32
    args = convert(value, wide), convert(expr_of(x2), wide)
    found = Value(Call("ldexp", args, type=wide, place=here()))
    return found.astype(value.dtype) if value.dtype.is_float else found


def likely(cond: Any) -> Any:
    """The condition itself: nothing is made of what is likely."""
    return cond


# -- bits of integers
def _bits(word: str, x: Whole) -> tuple[Expr, DType]:
    """An integer without its sign in 32 or 64 bits, and its dtype. Raises `DTypeError` for another value."""
    expr = expr_of(x)
    if not expr.dtype.is_integer or expr.dtype.per_byte > 1:
        raise DTypeError("{word} takes integers", word=word, found="{dtype}", dtype=expr.dtype)
    plain = cast_value(Value(expr), ALL[f"uint{expr.dtype.bits}"])
    return cast_value(plain, ALL[f"uint{max(32, expr.dtype.bits)}"]).expr, expr.dtype


def popcount(x: Whole) -> Any:
    """How many bits of an integer are set, in its dtype; of a negative one those of two's complement.

    A Python number is an int32. Raises `DTypeError` for what is no integer.
    """
    wide, dtype = _bits("T.popcount", x)
    return cast_value(Value(Call("popcount", (wide,), type=wide.dtype, place=here())), dtype)


def clz(x: Whole) -> Any:
    """How many bits above the highest one of an integer are zero, an int32; all of its width where it is 0.

    A Python number is an int32. Raises `DTypeError` for what is no integer.
    """
    wide, dtype = _bits("T.clz", x)
    length = cast_value(Value(Call("bit_length", (wide,), type=wide.dtype, place=here())), int32)
    return dtype.bits - length


# -- functions that are rounded once
def ieee_fmaf(x: Number, y: Number, z: Number, rounding_mode: str = "rn") -> Any:
    """x * y + z of float32, rounded once, to nearest even. Raises `DTypeError` for other dtypes."""
    from .float_functions import nearest_alone

    nearest_alone("T.ieee_fmaf", rounding_mode)
    args = [
        convert(expr_of(part), float32) if number_of(part) is not None else expr_of(part)
        for part in (x, y, z)
    ]
    for arg in args:
        if arg.dtype != float32:
            raise DTypeError(
                "T.ieee_fmaf takes float32", found="{dtype}", dtype=arg.dtype, hint="T.cast(x, 'float32')"
            )
    return Value(Call("fma", tuple(args), type=float32, place=here()))


def ieee_frsqrt(x: Number) -> Any:
    """1 / sqrt(x), rounded once, to nearest even. Raises `DTypeError` for float64 and integers.

    In float64, whose own two roundings are too small to change the one to fewer bits.
    """
    expr = expr_of(x)
    if number_of(x) is not None:
        expr = convert(expr, float32)
    if not expr.dtype.is_float or expr.dtype == float64:
        raise DTypeError(
            "T.ieee_frsqrt takes floats of at most 32 bits", found="{dtype}", dtype=expr.dtype,
            hint="T.rsqrt(x) takes every float",
        )  # fmt: skip
    return cast_value(1 / sqrt(cast_value(Value(expr), float64)), expr.dtype)


def fast_rcp(x: Number) -> Any:
    """1 / x; no wider error here than a division has."""
    return 1 / x


__all__ = [
    "acosh", "asinh", "atan2", "atanh", "clz", "copysign", "fabs", "fast_rcp", "hypot", "ieee_fmaf",
    "ieee_frsqrt", "ldexp", "likely", "popcount",
]  # fmt: skip
