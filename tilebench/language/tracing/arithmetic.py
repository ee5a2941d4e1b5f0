"""The operators of kernel values as IR: promotion, folding of integers, and what has no meaning."""

from __future__ import annotations

from collections.abc import Callable

from ...errors import DTypeError, LanguageError
from ...ir import Arith, Call, Const, DType, Expr, boolean, int32
from ...ir import expr as fold
from .builder import here
from .promote import computable, convert, operands


def _fold_integers(op: str) -> Callable[[Expr, Expr], Expr] | None:
    return {"+": fold.add, "-": fold.sub, "*": fold.mul, "//": fold.floordiv, "%": fold.mod}.get(op)


def stamped(expr: Expr) -> Expr:
    """The expression with the current place where it has none; shared leaves stay as they are."""
    if expr.place is None and isinstance(expr, (Arith, Call)):
        # The node has just been made here and nobody else holds it; `replace` would cost 2 us each.
        object.__setattr__(expr, "place", here())
    return expr


def arithmetic(op: str, a: object, b: object) -> Expr:
    """`a op b` for one of Python's binary operators, with promotion. Raises `DTypeError`."""
    left, right = operands(a, b)
    dtype = left.dtype
    if dtype == boolean:
        if op in ("&", "|"):
            return logical("and" if op == "&" else "or", [left, right])
        if op != "^":
            left, right = convert(left, int32), convert(right, int32)
            dtype = left.dtype
    if dtype.is_float:
        return _float_arithmetic(op, left, right)
    if op == "/":
        raise DTypeError(
            "/ divides floats, found {dtype}",
            dtype=dtype,
            hint="use // for integers, or convert first: T.cast(x, T.float32) / y",
        )
    if op == "**":
        return integer_power(left, right)
    if op in ("<<", ">>") and isinstance(right, Const) and not 0 <= right.value < dtype.bits:
        raise DTypeError(
            "{op} {count} moves every bit of {dtype} out", op=op, count=right.value, dtype=dtype,
            expected="a count from 0 to {most}", most=dtype.bits - 1,
        )  # fmt: skip
    if op in ("//", "%") and isinstance(right, Const) and right.value == 0:
        raise LanguageError("division by zero: {op} 0", op=op)
    folder = _fold_integers(op)
    result = Arith(op, (left, right), place=here()) if folder is None else folder(left, right)
    return stamped(result)


def integer_power(base: Expr, exponent: Expr) -> Expr:
    """An integer to a power known at compile time, as products by squaring. Raises `DTypeError`."""
    if not isinstance(exponent, Const) or not 0 <= exponent.value <= 64:
        raise DTypeError(
            "an integer is raised to powers from 0 to 64 known at compile time",
            hint="convert first: T.pow(T.cast(x, T.float32), y)",
        )
    left, factor, power = int(exponent.value), base, None
    while left:
        if left & 1:
            power = factor if power is None else stamped(fold.mul(power, factor))
        left >>= 1
        factor = stamped(fold.mul(factor, factor)) if left else factor
    return Const(1, type=base.dtype) if power is None else power


def _float_arithmetic(op: str, left: Expr, right: Expr) -> Expr:
    dtype: DType = left.dtype
    if op in ("+", "*"):
        return stamped(fold.add(left, right) if op == "+" else fold.mul(left, right))
    if op in ("-", "/"):
        return Arith(op, (left, right), place=here())
    if op == "//":
        return Call("floor", (Arith("/", (left, right), place=here()),), type=dtype, place=here())
    if op == "**":
        return Call("pow", (left, right), type=dtype, place=here())
    raise DTypeError(
        "{op} takes integers, found {dtype}", op=op, dtype=dtype, bits=dtype.bits,
        hint='T.reinterpret(x, "uint{bits}") gives the bits of a float, T.cast(x, T.int32) its whole part',
    )  # fmt: skip


def negative(expr: Expr) -> Expr:
    """`-value`."""
    if expr.dtype == boolean:
        raise DTypeError("- does not take a bool", hint="use `not`")
    expr = computable(expr)
    if isinstance(expr, Const):
        number = -expr.value
        return Const(fold.wrapped(number, expr.type) if expr.type.is_integer else number, type=expr.type)
    return Arith("-", (expr,), place=here())


def comparison(op: str, a: object, b: object) -> Expr:
    """`a op b` as a bool; comparisons of integer constants are decided now."""
    left, right = operands(a, b)
    return stamped(fold.compare(op, left, right))


def truth(expr: Expr) -> Expr:
    """The value as a bool expression: a bool as it is, a number as `value != 0`."""
    return expr if expr.dtype == boolean else comparison("!=", expr, 0)


def logical(op: str, parts: list[Expr]) -> Expr:
    """`and` or `or` over bool expressions; constants drop out or decide."""
    decides = op == "or"
    kept: list[Expr] = []
    for part in parts:
        if isinstance(part, Const):
            if bool(part.value) is decides:
                return part
        else:
            kept.append(part)
    if not kept:
        return parts[-1]
    return kept[0] if len(kept) == 1 else Arith(op, tuple(kept), place=here())


def logical_not(value: Expr) -> Expr:
    """`not value`."""
    expr = truth(value)
    if isinstance(expr, Const):
        return fold.FALSE if expr.value else fold.TRUE
    return Arith("not", (expr,), place=here())
