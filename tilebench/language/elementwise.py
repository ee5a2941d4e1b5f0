"""Functions of elements as a kernel writes them: `T.exp`, `T.max`, `T.if_then_else`, `T.ceildiv`, ...

Each takes traced values and Python numbers; of numbers alone the result is a Python number, so the
same words serve for shapes before the kernel starts.
"""

from __future__ import annotations

import builtins
import importlib
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import DTypeError, LanguageError
from ..ir import Call, Const, Expr, boolean
from .tracing.arithmetic import integer_power, logical, truth
from .tracing.builder import here
from .tracing.dtype_words import plain
from .tracing.expressions import Value, cast_value
from .tracing.promote import convert, expr_of, number_of, operands, pair

if TYPE_CHECKING:
    from .tracing.taken import Condition, DTypeLike, Number


def _of_numbers(name: str, *numbers: float) -> float:
    """What a function gives of Python numbers: the same as in a kernel, of float64.

    Python's own would raise where these give infinity or NaN: `T.log(0.0)`, `T.exp(1000.0)`.
    """
    import numpy as np

    from .meanings.elements import SCALARS  # only kernels that ask of numbers need the meanings

    with np.errstate(all="ignore"):
        return float(SCALARS[name].plain(*[np.float64(number) for number in numbers]))


def _float_function(name: str, x: Number) -> Any:
    number = number_of(x)
    if number is not None:
        return _of_numbers(name, number)
    expr = expr_of(x)
    if not expr.dtype.is_float:
        raise DTypeError(
            "T.{name} takes a float, found {dtype}",
            name=name,
            dtype=expr.dtype,
            hint="T.{name}(T.cast(x, T.float32))",
        )
    return Value(Call(name, (expr,), type=expr.dtype, place=here()))


def exp(x: Number) -> Any:
    """e to the power x; x is a float of any width, the result has its dtype."""
    return _float_function("exp", x)


def exp2(x: Number) -> Any:
    """2 to the power x."""
    return _float_function("exp2", x)


def log(x: Number) -> Any:
    """The natural logarithm; minus infinity at 0, NaN below."""
    return _float_function("log", x)


def log2(x: Number) -> Any:
    """The logarithm to base 2."""
    return _float_function("log2", x)


def sqrt(x: Number) -> Any:
    """The square root."""
    return _float_function("sqrt", x)


def rsqrt(x: Number) -> Any:
    """1 / sqrt(x)."""
    return _float_function("rsqrt", x)


def tanh(x: Number) -> Any:
    """The hyperbolic tangent."""
    return _float_function("tanh", x)


def sigmoid(x: Number) -> Any:
    """1 / (1 + exp(-x))."""
    return _float_function("sigmoid", x)


def sin(x: Number) -> Any:
    """The sine of x in radians."""
    return _float_function("sin", x)


def cos(x: Number) -> Any:
    """The cosine of x in radians."""
    return _float_function("cos", x)


def erf(x: Number) -> Any:
    """The error function."""
    return _float_function("erf", x)


def floor(x: Number) -> Any:
    """The greatest whole number not above x, in x's dtype."""
    return _rounding("floor", math.floor, x)


def ceil(x: Number) -> Any:
    """The least whole number not below x, in x's dtype."""
    return _rounding("ceil", math.ceil, x)


def _rounding(name: str, python: Callable[[float], int], x: Number) -> Any:
    number = number_of(x)
    if number is not None:
        return python(number) if isinstance(number, int) or math.isfinite(number) else number
    expr = expr_of(x)
    return Value(Call(name, (expr,), type=expr.dtype, place=here()) if expr.dtype.is_float else expr)


def abs(x: Number) -> Any:
    """The absolute value."""
    number = number_of(x)
    return builtins.abs(number) if number is not None else builtins.abs(Value(expr_of(x)))


def _extreme(name: str, python: Callable[..., Any], a: Number, b: Number, more: tuple[Number, ...]) -> Any:
    x, y = number_of(a), number_of(b)
    if x is not None and y is not None:
        # A NaN loses against a number, here as in a kernel.
        extreme: Any = y if x != x else x if y != y else python(x, y)
    else:
        extreme = Value(_of_two(name, *operands(a, b)))
    return _extreme(name, python, extreme, more[0], more[1:]) if more else extreme


def _of_two(name: str, left: Expr, right: Expr) -> Expr:
    if left.dtype == boolean:
        return logical("or" if name == "max" else "and", [left, right])
    return Call(name, (left, right), type=left.dtype, place=here())


def max(a: Number, b: Number, *more: Number) -> Any:
    """The greater of two values (or more), in their common dtype; a NaN loses against a number."""
    return _extreme("max", builtins.max, a, b, more)


def min(a: Number, b: Number, *more: Number) -> Any:
    """The smaller of two values (or more), in their common dtype; a NaN loses against a number."""
    return _extreme("min", builtins.min, a, b, more)


def clamp(x: Number, low: Number, high: Number) -> Any:
    """x limited to [low, high], in their common dtype; a NaN stays NaN."""
    if all(number_of(each) is not None for each in (x, low, high)):
        return x if x != x else min(max(x, low), high)
    value, least = operands(x, low)
    value, most = operands(Value(value), high)
    if not value.dtype.is_float:
        return min(max(Value(value), Value(least)), Value(most))
    args = (value, convert(least, value.dtype), most)
    return Value(Call("clamp", args, type=value.dtype, place=here()))


def pow(x: Number, y: Number) -> Any:
    """x to the power y, in their common dtype."""
    a, b = number_of(x), number_of(y)
    if a is not None and b is not None:
        return a**b if isinstance(a, int) and isinstance(b, int) and b >= 0 else _of_numbers("pow", a, b)
    left, right = operands(x, y)
    if left.dtype.is_integer:
        return Value(integer_power(left, right))
    return Value(Call("pow", (left, right), type=left.dtype, place=here()))


def if_then_else(condition: Condition, a: Number, b: Number) -> Any:
    """`a` where the condition holds, else `b`; only the chosen one is evaluated.

    A condition that Python knows picks at once. The results take their common dtype.
    """
    number = number_of(condition)
    if number is None:
        test = truth(expr_of(condition))
        if not isinstance(test, Const):
            left, right = pair(a, b)
            return Value(Call("if_then_else", (test, left, right), type=left.dtype, place=here()))
        number = test.value
    return a if number else b


def cast(value: Number, dtype: DTypeLike) -> Value:
    """The value in another dtype: floats round to nearest even, float to integer goes towards zero."""
    return cast_value(value, dtype)


def infinity(dtype: DTypeLike) -> Value:
    """Plus infinity of a float dtype. Raises `DTypeError` for a dtype without one."""
    resolved = plain(dtype)
    if not resolved.is_float or resolved.name == "float8_e4m3fn":
        raise DTypeError("{dtype} has no infinity", dtype=resolved, hint="use T.max_value({dtype!r})")
    return Value(Const(math.inf, type=resolved))


def _limit(dtype: DTypeLike, which: str) -> Value:
    resolved = plain(dtype)
    if not resolved.is_float:
        return Value(Const(resolved.most if which == "max" else resolved.least, type=resolved))
    ml_dtypes: Any = importlib.import_module("ml_dtypes")
    return Value(Const(float(getattr(ml_dtypes.finfo(resolved.numpy), which)), type=resolved))


def max_value(dtype: DTypeLike) -> Value:
    """The greatest finite value of a dtype."""
    return _limit(dtype, "max")


def min_value(dtype: DTypeLike) -> Value:
    """The least finite value of a dtype."""
    return _limit(dtype, "min")


def floordiv(a: Number, b: Number) -> Any:
    """a / b rounded down, of integers; the `//` of Python."""
    return _whole("T.floordiv", a, b, lambda x, y: x // y)


def floormod(a: Number, b: Number) -> Any:
    """a - floordiv(a, b) * b; the `%` of Python."""
    return _whole("T.floormod", a, b, lambda x, y: x % y)


def ceildiv(a: Number, b: Number) -> Any:
    """a / b rounded up, of integers: how many blocks of b cover a."""
    return _whole("T.ceildiv", a, b, _round_up)


def _round_up(x: Any, y: Any) -> Any:
    return -(-x // y) if isinstance(x, int) and isinstance(y, int) else (x + (y - 1)) // y


def align_up(a: Number, b: Number) -> Any:
    """The least multiple of b that is not below a."""
    return ceildiv(a, b) * b


def _whole(word: str, a: Number, b: Number, operation: Callable[[Any, Any], Any]) -> Any:
    x, y = number_of(a), number_of(b)
    if y is not None and y == 0:
        raise LanguageError(
            "{word} divides by zero",
            word=word,
            a=a,
            found="{a!r} / 0",
            hint="the size of a block is at least 1",
        )
    for number in (x, y):
        if isinstance(number, float):
            raise DTypeError("{word} takes integers, found {value}", word=word, value=number)
    return operation(Value(expr_of(a)) if x is None else x, Value(expr_of(b)) if y is None else y)


__all__ = [
    "abs", "align_up", "cast", "ceil", "ceildiv", "clamp", "cos", "erf", "exp", "exp2", "floor", "floordiv",
    "floormod", "if_then_else", "infinity", "log", "log2", "max", "max_value", "min", "min_value", "pow",
    "rsqrt", "sigmoid", "sin", "sqrt", "tanh",
]  # fmt: skip
