"""Bits of values: `T.reinterpret`, shifts and bit operations, and division that rounds towards zero."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import DTypeError
from ..ir import Cast, DType, Reinterpret, boolean
from .elementwise import whole_numbers
from .tracing.arithmetic import arithmetic, comparison, logical
from .tracing.builder import here
from .tracing.dtype_words import plain
from .tracing.expressions import Value
from .tracing.promote import expr_of, number_of, operands

if TYPE_CHECKING:
    from .tracing.taken import DTypeLike, Number, Whole

_python: Any = operator


def reinterpret(value: Number, dtype: DTypeLike) -> Value:
    """The bits of a value as one of another dtype of the same width: `T.reinterpret(x, "uint32")`.

    TileLang's older order, `T.reinterpret("uint32", x)`, is taken too. A Python number is a float32 or int32.
    Raises `DTypeError` for dtypes of different widths, bools and dtypes of 4 bits. Of a narrow float
    that is NaN the payload may change.
    """
    if isinstance(value, (str, DType)) and not isinstance(dtype, (str, DType)):  # pyright: ignore[reportUnnecessaryIsInstance]  # the other order
        value, dtype = dtype, value
    wanted, expr = plain(dtype), expr_of(value)
    source = expr.dtype
    if source.bits != wanted.bits or boolean in (source, wanted) or source.per_byte > 1:
        raise DTypeError(
            "T.reinterpret of {source} as {target}", source=source, target=wanted, bits=source.bits,
            expected="a dtype of {bits} bits, not bool or of 4 bits", found="{target}",
            hint="T.cast(x, dtype) converts the value",
        )  # fmt: skip
    if source == wanted:
        return Value(expr)
    kept = source.is_float or wanted.is_float
    return Value((Reinterpret if kept else Cast)(expr, type=wanted, place=here()))


def _of_two(op: str, python: Callable[[Any, Any], Any], x: Number, y: Number) -> Any:
    a, b = number_of(x), number_of(y)
    return python(a, b) if a is not None and b is not None else Value(arithmetic(op, x, y))


def shift_left(x: Whole, y: Whole) -> Any:
    """`x << y`, of integers, in their common dtype."""
    return _of_two("<<", _python.lshift, x, y)


def shift_right(x: Whole, y: Whole) -> Any:
    """`x >> y`, of integers: a negative x keeps its sign."""
    return _of_two(">>", _python.rshift, x, y)


def bitwise_and(x: Whole, y: Whole) -> Any:
    """`x & y`, of integers or bools."""
    return _of_two("&", _python.and_, x, y)


def bitwise_or(x: Whole, y: Whole) -> Any:
    """`x | y`, of integers or bools."""
    return _of_two("|", _python.or_, x, y)


def bitwise_xor(x: Whole, y: Whole) -> Any:
    """`x ^ y`, of integers or bools."""
    return _of_two("^", _python.xor, x, y)


def bitwise_not(x: Whole) -> Any:
    """`~x`, of integers or bools."""
    number = number_of(x)
    return ~int(number) if number is not None else ~Value(expr_of(x))


def truncdiv(a: Whole, b: Whole) -> Any:
    """a / b rounded towards zero, of integers, as C divides; `//` rounds down."""
    return whole_numbers("T.truncdiv", a, b, lambda x, y: x // y + _short(x, y))


def truncmod(a: Whole, b: Whole) -> Any:
    """a - truncdiv(a, b) * b, with the sign of a, as C's `%`; Python's has the sign of b."""
    return whole_numbers("T.truncmod", a, b, lambda x, y: x % y - _short(x, y) * y)


def _short(x: Any, y: Any) -> Any:
    """What floor division lacks to C's: 1 where signs differ and a rest is left."""
    if isinstance(x, int) and isinstance(y, int):
        return int(x % y != 0 and (x < 0) != (y < 0))
    left, right = operands(x, y)
    if left.dtype.kind == "uint":
        return 0
    signs = comparison("<", Value(left), 0), comparison("<", Value(right), 0)
    rest = comparison("!=", Value(arithmetic("%", x, y)), 0)
    return Value(logical("and", [rest, comparison("!=", *map(Value, signs))])).astype(left.dtype)


__all__ = [
    "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "reinterpret", "shift_left", "shift_right",
    "truncdiv", "truncmod",
]  # fmt: skip
