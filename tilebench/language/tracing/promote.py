"""Conversions that the language makes by itself: literals, mixed dtypes, `T.cast`.

Rules, one for every operator and function of two values, on every target:

- A Python int takes the dtype of the other side; one that an integer dtype has no value for makes both
  int64. A Python float makes an integer, and a float narrower than 32 bits, float32: in `h * 0.1` the
  number is not rounded to 16 bits. A constant that has a dtype itself (`T.float16(0.1)`,
  `np.float16(0.1)`, what is stored or filled) is rounded to it, once.
- Float beats integer, of two floats the wider wins, and float16 with bfloat16 gives float32.
- Of two integers the narrowest dtype that holds the values of both: int8 with uint8 gives int16, int32
  with uint32 int64. No integer holds those of uint64 and a signed one, which give int64.
- The result has that dtype and wraps in it: int8 * int8 is an int8, whatever it is stored to.
- An integer of 4 bits is an int32 wherever something is computed with it, and a float of 4 bits a float32,
  unless the other side is a float that is wider: a dtype of 4 bits is how values are stored.
"""

from __future__ import annotations

import math
from typing import Any

from ...errors import DTypeError, LanguageError
from ...ir import FALSE, TRUE, Cast, Const, DType, Expr, boolean, int32
from ...ir.dtypes import ALL, float32
from .builder import here, shown
from .dtype_words import plain
from .kinds import Scalar, Tile


def _wide(value: int) -> DType:
    """The integer dtype of 64 bits for a number that a narrower one has no value for."""
    return ALL["uint64" if value >= 2**63 else "int64"]


def fits(value: int, dtype: DType) -> bool:
    """Whether an integer is one of the values of an integer dtype."""
    return dtype.least <= value <= dtype.most


def number_of(value: object) -> int | float | bool | None:
    """A Python or NumPy scalar as a Python number, None for anything else."""
    if isinstance(value, (bool, int, float)):
        return value
    item = getattr(value, "item", None)
    if item is not None and getattr(value, "shape", None) == ():
        number = item()
        return number if isinstance(number, (bool, int, float)) else float(number)
    return None


def own_dtype(value: object) -> DType | None:
    """The dtype that a number brings along: that of a NumPy or torch scalar narrower than 32 bits."""
    given: Any = getattr(value, "dtype", None)
    found = ALL.get(str(given).removeprefix("torch.")) if given is not None else None
    return found if found is not None and found.is_float and found.bits < 32 else None


def literal(value: int | float | bool, dtype: DType) -> Const:
    """A number as a constant of a dtype. Raises `DTypeError` when an integer dtype has no such value."""
    if dtype.is_float:
        if isinstance(value, int) and abs(value) >= 2**1024:
            digits = f"an integer of {value.bit_length()} bits"
            raise DTypeError("{value} is outside the range of {dtype}", value=digits, dtype=dtype)
        return Const(_stopped(float(value), dtype), type=dtype)
    if dtype == boolean:
        return TRUE if value else FALSE
    if isinstance(value, float) and not value.is_integer():
        raise DTypeError(
            "{value} is no {dtype}",
            value=value,
            dtype=dtype,
            hint="write T.cast(...) to cut off the fraction",
        )
    if not math.isfinite(value) or not fits(int(value), dtype):
        high = 2 ** (dtype.bits - (dtype.kind == "int")) - 1
        low = -high - 1 if dtype.kind == "int" else 0
        raise DTypeError(
            "{value} is outside the range of {dtype}", value=value, dtype=dtype, low=low, high=high,
            expected="a number from {low} to {high}",
        )  # fmt: skip
    return Const(int(value), type=dtype)


def _stopped(value: float, dtype: DType) -> float:
    """A float as the conversion to a dtype has it that stops at its largest values."""
    if not dtype.saturates or (math.isnan(value) and dtype.has_nan):
        return value
    return dtype.largest if math.isnan(value) else min(max(value, -dtype.largest), dtype.largest)


def expr_of(value: object, dtype: DType | None = None) -> Expr:
    """A traced value or number as an expression; numbers take `dtype`, else int32 or float32."""
    if isinstance(value, Scalar):
        return value.expr
    number = number_of(value)
    if number is None:
        if isinstance(value, Tile):
            raise LanguageError(
                "{name} is a tile, a single value is needed here",
                name=value.name,
                hint="index an element, `{name}[i, j]`, inside T.Parallel",
            )
        raise LanguageError(
            "{kind} is no value of a kernel", kind=type(value).__name__, found="{text}", text=shown(value)
        )
    if dtype is not None:
        return literal(number, dtype)
    if isinstance(number, bool):
        return TRUE if number else FALSE
    if isinstance(number, float):
        return literal(number, own_dtype(value) or float32)
    return literal(number, int32 if fits(number, int32) else _wide(number))


def join(a: DType, b: DType) -> DType:
    """The dtype that an operator on two dtypes works in."""
    if a == b:
        return a
    if a == boolean:
        return b
    if b == boolean:
        return a
    if a.is_float != b.is_float:
        return a if a.is_float else b
    if a.is_integer and a.kind != b.kind:
        unsigned, signed = (a, b) if a.kind == "uint" else (b, a)
        return ALL[f"int{min(64, max(2 * unsigned.bits, signed.bits))}"]
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    return float32


def convert(expr: Expr, dtype: DType) -> Expr:
    """The expression in a dtype; constants are converted now where that is exact."""
    if expr.dtype == dtype:
        return expr
    if isinstance(expr, Const):
        value: Any = expr.value
        exact = (
            not isinstance(value, float)
            or not math.isfinite(value)
            or (value.is_integer() and abs(value) <= 256)
        )
        if exact and dtype.is_float:
            return Const(_stopped(float(value), dtype), type=dtype)
        if dtype.is_integer and math.isfinite(value) and fits(int(value), dtype):
            return Const(int(value), type=dtype)
    return Cast(expr, type=dtype, place=here())


def pair(a: object, b: object) -> tuple[Expr, Expr]:
    """Both sides of an operator, in one dtype."""
    left = a.expr if isinstance(a, Scalar) else a if isinstance(a, Expr) else None
    right = b.expr if isinstance(b, Scalar) else b if isinstance(b, Expr) else None
    if left is not None and right is not None:
        if left.dtype == right.dtype:
            return left, right
        dtype = join(left.dtype, right.dtype)
        return convert(left, dtype), convert(right, dtype)
    if left is None and right is None:
        return beside(expr_of(a), b)
    if left is None:
        assert right is not None
        right, left = beside(right, a)
        return left, right
    return beside(left, b)


def operands(a: object, b: object) -> tuple[Expr, Expr]:
    """The same for an operator that computes: elements of 4 bits take part as int32 or float32."""
    return pair(_widened(a, b), _widened(b, a))


def _widened(value: object, other: object) -> object:
    """An operand of 4 bits as `computable` has it; as it is beside a wider float, whose dtype it takes."""
    expr = value.expr if isinstance(value, Scalar) else value
    if not isinstance(expr, Expr) or expr.dtype.per_byte == 1:
        return value
    beside = other.expr if isinstance(other, Scalar) else other
    wider = isinstance(beside, Expr) and beside.dtype.is_float and beside.dtype.per_byte == 1
    return value if wider else computable(expr)


def computable(expr: Expr) -> Expr:
    """The expression in a dtype that is computed in: an integer of 4 bits as int32, a float as float32."""
    return expr if expr.dtype.per_byte == 1 else convert(expr, float32 if expr.dtype.is_float else int32)


def beside(expr: Expr, other: object) -> tuple[Expr, Expr]:
    """An expression and a number beside it, in one dtype."""
    number = number_of(other)
    if number is None:
        return expr, expr_of(other)
    dtype = expr.dtype
    if isinstance(number, float) and own_dtype(other) is not None:
        return pair(expr, expr_of(other))
    if isinstance(number, float) and (not dtype.is_float or dtype.bits < 32):
        dtype = float32
    elif dtype == boolean and not isinstance(number, bool):
        dtype = int32
    if dtype.is_integer and isinstance(number, int) and not fits(number, dtype):
        dtype = join(dtype, _wide(number))
    return convert(expr, dtype), literal(number, dtype)


def cast_expr(value: object, dtype: object) -> Expr:
    """A traced value or number in another dtype; a number loses its fraction where that has none."""
    wanted = plain(dtype)
    number = number_of(value)
    if number is None:
        return convert(expr_of(value), wanted)
    whole = not wanted.is_float and wanted != boolean and isinstance(number, float) and math.isfinite(number)
    return literal(int(number) if whole else number, wanted)
