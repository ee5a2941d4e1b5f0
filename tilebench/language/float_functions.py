"""Further functions of floats: `T.tan`, `T.round`, `T.fmod`, `T.isnan`, TileLang's fast and rounded ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import LanguageError
from ..ir import Call, Expr
from .elementwise import abs as magnitude
from .elementwise import cos, exp, exp2, float_function, log, log2, of_numbers, sin, sqrt, to_whole
from .tracing.arithmetic import comparison, logical_not
from .tracing.builder import here
from .tracing.expressions import Value
from .tracing.promote import computable, expr_of, number_of, operands

if TYPE_CHECKING:
    from .tracing.taken import Number


def exp10(x: Number) -> Any:
    """10 to the power x."""
    return float_function("exp10", x)


def log10(x: Number) -> Any:
    """The logarithm to base 10."""
    return float_function("log10", x)


def log1p(x: Number) -> Any:
    """The natural logarithm of 1 + x, exact near 0."""
    return float_function("log1p", x)


def tan(x: Number) -> Any:
    """The tangent of x in radians."""
    return float_function("tan", x)


def asin(x: Number) -> Any:
    """The inverse sine, in radians; NaN outside of [-1, 1]."""
    return float_function("asin", x)


def acos(x: Number) -> Any:
    """The inverse cosine, in radians; NaN outside of [-1, 1]."""
    return float_function("acos", x)


def atan(x: Number) -> Any:
    """The inverse tangent, in radians."""
    return float_function("atan", x)


def sinh(x: Number) -> Any:
    """The hyperbolic sine."""
    return float_function("sinh", x)


def cosh(x: Number) -> Any:
    """The hyperbolic cosine."""
    return float_function("cosh", x)


def trunc(x: Number) -> Any:
    """x without its fraction, in x's dtype."""
    return to_whole("trunc", math.trunc, x)


def round(x: Number) -> Any:
    """The nearest whole number, in x's dtype; halves go away from zero, as C's `round` has them."""
    return to_whole("round", lambda number: int(of_numbers("round", number)), x)


def nearbyint(x: Number) -> Any:
    """The nearest whole number, in x's dtype; halves go to the even one."""
    return to_whole("nearbyint", lambda number: int(of_numbers("nearbyint", number)), x)


def fmod(x: Number, y: Number) -> Any:
    """x - trunc(x / y) * y, exactly, with the sign of x; NaN where y is 0. Integers become float32."""
    a, b = number_of(x), number_of(y)
    if a is not None and b is not None:
        return of_numbers("fmod", a, b)
    left, right = operands(x, y)
    if not left.dtype.is_float:
        left, right = (Value(part).astype("float32").expr for part in (left, right))
    return Value(Call("fmod", (left, right), type=left.dtype, place=here()))


def isnan(x: Number) -> Any:
    """Whether x is no number."""
    return _classified(x, math.isnan, lambda wide: logical_not(comparison("<=", wide, math.inf)))


def isinf(x: Number) -> Any:
    """Whether x is plus or minus infinity."""
    return _classified(x, math.isinf, lambda wide: comparison("==", magnitude(wide), math.inf))


def isfinite(x: Number) -> Any:
    """Whether x is neither infinite nor NaN."""
    return _classified(x, math.isfinite, lambda wide: comparison("<", magnitude(wide), math.inf))


def _classified(x: Number, python: Callable[[Any], bool], test: Callable[[Value], Expr]) -> Any:
    """A test of a float, in float32 at least: an 8-bit float may have no infinity to compare with."""
    number = number_of(x)
    if number is not None:
        return python(number)
    value = Value(computable(expr_of(x)))
    narrow = not value.dtype.is_float or value.dtype.bits < 32
    return Value(test(value.astype("float32") if narrow else value))


# -- TileLang's fast functions: the same meaning here, and no wider error
FAST = {
    "__exp": exp, "__exp10": exp10, "__log": log, "__log2": log2, "__log10": log10, "__tan": tan,
    "__cos": cos, "__sin": sin, "__exp2": exp2,
}  # fmt: skip


# -- functions with a rounding mode
def nearest_alone(word: str, rounding_mode: str) -> None:
    """Raise `LanguageError` for another way to round."""
    if rounding_mode != "rn":
        raise LanguageError(
            "{word} rounds to nearest even here, not {mode!r}", word=word, mode=rounding_mode,
            expected="rounding_mode='rn'", found="{mode!r}",
        )  # fmt: skip


def ieee_add(x: Number, y: Number, rounding_mode: str = "rn") -> Any:
    """x + y, rounded once, to nearest even."""
    nearest_alone("T.ieee_add", rounding_mode)
    return x + y


def ieee_sub(x: Number, y: Number, rounding_mode: str = "rn") -> Any:
    """x - y, rounded once, to nearest even."""
    nearest_alone("T.ieee_sub", rounding_mode)
    return x - y


def ieee_mul(x: Number, y: Number, rounding_mode: str = "rn") -> Any:
    """x * y, rounded once, to nearest even."""
    nearest_alone("T.ieee_mul", rounding_mode)
    return x * y


def ieee_fdiv(x: Number, y: Number, rounding_mode: str = "rn") -> Any:
    """x / y, rounded once, to nearest even."""
    nearest_alone("T.ieee_fdiv", rounding_mode)
    return x / y


def ieee_frcp(x: Number, rounding_mode: str = "rn") -> Any:
    """1 / x, rounded once, to nearest even."""
    nearest_alone("T.ieee_frcp", rounding_mode)
    return 1 / x


def ieee_fsqrt(x: Number, rounding_mode: str = "rn") -> Any:
    """The square root, rounded once, to nearest even."""
    nearest_alone("T.ieee_fsqrt", rounding_mode)
    return sqrt(x)


__all__ = [
    "acos", "asin", "atan", "cosh", "exp10", "fmod", "ieee_add", "ieee_fdiv", "ieee_frcp", "ieee_fsqrt",
    "ieee_mul", "ieee_sub", "isfinite", "isinf", "isnan", "log1p", "log10", "nearbyint", "round", "sinh",
    "tan", "trunc",
]  # fmt: skip
