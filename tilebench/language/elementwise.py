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
from ..ir.dtypes import float32
from .tracing.arithmetic import integer_power, logical, truth
from .tracing.builder import here
from .tracing.dtype_words import plain
from .tracing.expressions import Value, cast_value
from .tracing.promote import computable, convert, expr_of, number_of, operands, pair

if TYPE_CHECKING:
    from .tracing.taken import Condition, DTypeLike, Number


def of_numbers(name: str, *numbers: float) -> float:
    """What a function gives of Python numbers: the same as in a kernel, of float64.

    Python's own would raise where these give infinity or NaN: `T.log(0.0)`, `T.exp(1000.0)`.
    """
    import numpy as np

    from .meanings.elements import SCALARS  # only kernels that ask of numbers need the meanings

    with np.errstate(all="ignore"):
        return float(SCALARS[name].plain(*[np.float64(number) for number in numbers]))


def float_function(name: str, x: Number) -> Any:
    """A function of floats by its name; an integer or bool becomes a float32 first."""
    number = number_of(x)
    if number is not None:
        return of_numbers(name, number)
    expr = computable(expr_of(x))
    expr = expr if expr.dtype.is_float else convert(expr, float32)
    return Value(Call(name, (expr,), type=expr.dtype, place=here()))


def exp(x: Number) -> Any:
    """e to the power x; the result has the dtype of a float x, of an integer it is float32."""
    return float_function("exp", x)


def exp2(x: Number) -> Any:
    """2 to the power x."""
    return float_function("exp2", x)


def log(x: Number) -> Any:
    """The natural logarithm; minus infinity at 0, NaN below."""
    return float_function("log", x)


def log2(x: Number) -> Any:
    """The logarithm to base 2."""
    return float_function("log2", x)


def sqrt(x: Number) -> Any:
    """The square root."""
    return float_function("sqrt", x)


def rsqrt(x: Number) -> Any:
    """1 / sqrt(x)."""
    return float_function("rsqrt", x)


def tanh(x: Number) -> Any:
    """The hyperbolic tangent."""
    return float_function("tanh", x)


def sigmoid(x: Number) -> Any:
    """1 / (1 + exp(-x))."""
    return float_function("sigmoid", x)


def sin(x: Number) -> Any:
    """The sine of x in radians."""
    return float_function("sin", x)


def cos(x: Number) -> Any:
    """The cosine of x in radians."""
    return float_function("cos", x)


def erf(x: Number) -> Any:
    """The error function."""
    return float_function("erf", x)


def floor(x: Number) -> Any:
    """The greatest whole number not above x, in x's dtype."""
    return to_whole("floor", math.floor, x)


def ceil(x: Number) -> Any:
    """The least whole number not below x, in x's dtype."""
    return to_whole("ceil", math.ceil, x)


def to_whole(name: str, python: Callable[[float], int], x: Number) -> Any:
    """A function that rounds floats to whole numbers; integers stay as they are."""
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


def clamp(dst: Number, min_val: Number, max_val: Number) -> Any:
    """dst limited to [min_val, max_val], in their common dtype; a NaN stays NaN."""
    x, low, high = dst, min_val, max_val
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
        return a**b if isinstance(a, int) and isinstance(b, int) and b >= 0 else of_numbers("pow", a, b)
    left, right = operands(x, y)
    if left.dtype.is_integer:
        return Value(integer_power(left, right))
    return Value(Call("pow", (left, right), type=left.dtype, place=here()))


def if_then_else(cond: Condition, t: Number, f: Number) -> Any:
    """`t` where the condition holds, else `f`; only the chosen one is evaluated.

    A condition that Python knows picks at once. The results take their common dtype.
    """
    number = number_of(cond)
    if number is None:
        test = truth(expr_of(cond))
        if not isinstance(test, Const):
            left, right = pair(t, f)
            return Value(Call("if_then_else", (test, left, right), type=left.dtype, place=here()))
        number = test.value
    return t if number else f


def cast(
    value: Number, dtype: DTypeLike, round: str = "", sat: builtins.bool = True, rbits: None = None
) -> Value:
    """The value in another dtype: floats round to nearest even, float to integer goes towards zero.

    8-bit floats stop at their largest value (`sat`). Raises `LanguageError` for another way to round.
    """
    if round not in ("", "rn", "rz" if plain(dtype).is_integer else "rn") or rbits is not None:
        raise LanguageError(
            "T.cast(round={mode!r}, rbits={bits!r}) is TileLang's, not here yet", mode=round, bits=rbits,
            hint="T.cast(x, dtype) rounds to nearest even",
        )  # fmt: skip
    if not sat and plain(dtype).saturates:
        raise LanguageError(
            "a conversion to {dtype} stops at its largest value, which sat=False asks not to do",
            dtype=plain(dtype), hint="T.cast(x, dtype)",
        )  # fmt: skip
    return cast_value(value, dtype)


def infinity(dtype: DTypeLike) -> Value:
    """Plus infinity of a float dtype. Raises `DTypeError` for a dtype without one."""
    resolved = plain(dtype)
    if not resolved.has_infinity:
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
    return whole_numbers("T.floordiv", a, b, lambda x, y: x // y)


def floormod(a: Number, b: Number) -> Any:
    """a - floordiv(a, b) * b; the `%` of Python."""
    return whole_numbers("T.floormod", a, b, lambda x, y: x % y)


def ceildiv(lhs: Number, rhs: Number) -> Any:
    """lhs / rhs rounded up, of integers: how many blocks of rhs cover lhs."""
    return whole_numbers("T.ceildiv", lhs, rhs, _round_up)


def _round_up(x: Any, y: Any) -> Any:
    return -(-x // y) if isinstance(x, int) and isinstance(y, int) else (x + (y - 1)) // y


def align_up(a: Number, b: Number) -> Any:
    """The least multiple of b that is not below a."""
    return ceildiv(a, b) * b


def whole_numbers(word: str, a: Number, b: Number, operation: Callable[[Any, Any], Any]) -> Any:
    """An operation on two integers, numbers of Python or values. Raises where b is 0, or one is a float."""
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
