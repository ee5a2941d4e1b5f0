"""What Python's operators on values of a kernel mean in NumPy, and their error bounds.

Integers wrap modulo 2**bits; `//` rounds to minus infinity and `%` has the sign of the divisor, and both
give 0 where that is 0;
floats round once an operation. Conditions (`and`, `or`, `not`) are bools.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...ir.dtypes import DType
from ..meanings.conversion import plain_if_sure, wrap
from ..meanings.inexact import Inexact, inexact, rounded
from ..meanings.rounding import narrowed

Binary = Callable[[Any, Any], Any]

_python: Any = operator


def _of_whole(operation: Binary) -> Binary:
    """`//` or `%`: 0 where the divisor is a whole number that is 0."""

    def apply(a: Any, b: Any) -> Any:
        if type(b) is int:
            return operation(a, b) if b else a * 0
        zero = np.equal(b, 0)
        if np.asarray(b).dtype.kind == "f" or not np.any(zero):
            return operation(a, b)
        return np.where(zero, np.zeros((), np.asarray(b).dtype), operation(a, np.where(zero, 1, b)))

    return apply


PLAIN: Mapping[str, Binary] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": np.divide,
    "//": _of_whole(_python.floordiv), "%": _of_whole(operator.mod), "&": _python.and_, "|": _python.or_,
    "^": _python.xor, "<<": _python.lshift, ">>": _python.rshift, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne, "and": _python.and_,
    "or": _python.or_,
}  # fmt: skip


def array_of(value: Any, dtype: DType) -> Any:
    """A Python integer in its dtype: beside an array NumPy would take it for an int64, and of that and
    uint64 make float64."""
    return dtype.numpy.type(value) if type(value) is int else value


def operator_meaning(op: str, dtype: DType) -> Callable[..., Any]:
    """The operator over arguments of `dtype`, which are Python numbers or arrays.

    Python integers (values that are the same for a whole block) stay Python integers.
    """

    def invert(a: Any) -> Any:
        return wrap(~a, dtype) if type(a) is int else np.invert(a)

    def negate(a: Any) -> Any:
        return not a if type(a) is bool else np.logical_not(a)

    if op in ("~", "not"):
        return invert if op == "~" else negate
    binary = _in_single(PLAIN[op], dtype) if dtype.saturates and op in _ROUNDED else PLAIN[op]

    def fold(*args: Any) -> Any:
        if len(args) == 1:
            result = -args[0]
        else:
            result = binary(args[0], args[1])
            for arg in args[2:]:
                result = binary(result, arg)
        return wrap(result, dtype) if type(result) is int else result

    return fold


_ROUNDED = frozenset({"+", "-", "*", "/", "//", "%"})


def _in_single(binary: Binary, dtype: DType) -> Binary:
    """The operator computed in float32 and rounded once, stopping at the dtype's largest values."""
    return lambda a, b: narrowed(
        binary(np.asarray(a).astype(np.float32), np.asarray(b).astype(np.float32)), dtype
    )


def operator_bound(op: str, dtype: DType) -> Callable[..., Any]:
    """The operator over arguments of which some are inexact; others are as in `operator_meaning`."""
    plain = operator_meaning(op, dtype)
    rule = _BOUNDS.get(op)

    def fold(*args: Any) -> Any:
        if not any(isinstance(arg, Inexact) for arg in args):
            return plain(*args)
        bounded = [inexact(array_of(arg, dtype)) for arg in args]
        if op == "not":
            return Inexact(~bounded[0].value, bounded[0].error)
        if len(bounded) == 1:
            return Inexact(plain(bounded[0].value), bounded[0].error)
        result = bounded[0]
        for operand in bounded[1:]:
            result = inexact(rule(result, operand, dtype) if rule else _unknown(plain, result, operand))
        return plain_if_sure(result.value, result.error) if result.value.dtype.kind in "iub" else result

    return fold


def _finish(value: Any, carried: Any, dtype: DType) -> Any:
    if dtype.is_float:
        return rounded(value, carried, dtype)
    wide = np.asarray(value).astype(np.float64)
    leaves = (wide + carried > dtype.most) | (wide - carried < dtype.least)
    return Inexact(value, np.where((np.asarray(carried) > 0) & leaves, np.inf, carried))


def _add(a: Inexact, b: Inexact, dtype: DType) -> Any:
    return _finish(a.value + b.value, a.error + b.error, dtype)


def _sub(a: Inexact, b: Inexact, dtype: DType) -> Any:
    return _finish(a.value - b.value, a.error + b.error, dtype)


def _mul(a: Inexact, b: Inexact, dtype: DType) -> Any:
    # |ab - a'b'| <= |a| eb + |b| ea + ea eb (Higham, section 3.3).
    carried = np.abs(a.value) * b.error + np.abs(b.value) * a.error + a.error * b.error
    return _finish(a.value * b.value, carried, dtype)


def _div(a: Inexact, b: Inexact, dtype: DType) -> Any:
    # |a/b - a'/b'| <= (ea + |a/b| eb) / (|b| - eb) while b cannot reach zero.
    value = a.value / b.value
    least = np.abs(b.value) - b.error
    reach = a.error + np.where(b.error > 0, np.abs(value) * b.error, 0.0)
    carried = np.where(reach > 0, reach / least, 0.0)
    sure_zero = (b.value == 0) & (b.error == 0) & (np.abs(a.value) > a.error)
    reaches = (least <= 0) & ~sure_zero & ((a.error > 0) | (b.error > 0))
    return _finish(value, np.where(reaches, np.inf, np.where(sure_zero, 0.0, carried)), dtype)


def _floordiv(a: Inexact, b: Inexact, dtype: DType) -> Any:
    value = PLAIN["//"](a.value, b.value)
    wide = np.where(b.value == 0, np.inf, b.value.astype(np.float64))
    ends = [np.floor((a.value + sign * a.error) / wide) for sign in (-1, 1)]
    carried = np.maximum(np.abs(ends[0] - value), np.abs(ends[1] - value))
    return Inexact(value, np.where(b.error > 0, np.inf, np.where(a.error > 0, carried, 0.0)))


def _mod(a: Inexact, b: Inexact, dtype: DType) -> Any:
    wraps = _floordiv(a, b, dtype).error > 0
    return Inexact(PLAIN["%"](a.value, b.value), np.where(wraps, np.abs(b.value.astype(np.float64)), a.error))


def _unknown(plain: Callable[..., Any], a: Inexact, b: Inexact) -> Inexact:
    """Operators on bits: the result of inexact operands can be anything."""
    value = np.asarray(plain(a.value, b.value))
    return Inexact(value, np.where((a.error > 0) | (b.error > 0), np.inf, 0.0))


def _compare(op: str) -> Callable[[Inexact, Inexact, DType], Any]:
    def rule(a: Inexact, b: Inexact, dtype: DType) -> Any:
        reach = a.error + b.error
        gap = np.abs(a.value.astype(np.float64) - b.value.astype(np.float64))
        unsure = (reach > 0) & ((gap <= reach) | np.isposinf(reach))
        return Inexact(PLAIN[op](a.value, b.value), unsure)

    return rule


def _and(a: Inexact, b: Inexact, dtype: DType) -> Any:
    x, y = a.error > 0, b.error > 0
    return Inexact(a.value & b.value, (x & (b.value | y)) | (y & (a.value | x)))


def _or(a: Inexact, b: Inexact, dtype: DType) -> Any:
    x, y = a.error > 0, b.error > 0
    return Inexact(a.value | b.value, (x & (~b.value | y)) | (y & (~a.value | x)))


_BOUNDS: Mapping[str, Callable[[Inexact, Inexact, DType], Any]] = {
    "+": _add, "-": _sub, "*": _mul, "/": _div, "//": _floordiv, "%": _mod, "and": _and, "or": _or,
    **{op: _compare(op) for op in ("<", "<=", ">", ">=", "==", "!=")},
}  # fmt: skip


def select_bound(condition: Any, a: Any, b: Any) -> Any:
    """`a` where the condition holds, else `b`; where it may be either, the error covers both."""
    x, y = inexact(a), inexact(b)
    test = inexact(condition)
    value = np.where(test.value, x.value, y.value)
    error = np.where(test.value, x.error, y.error)
    if test.error.any():
        gap = np.abs(np.asarray(x.value, np.float64) - np.asarray(y.value, np.float64))
        same = (x.value == y.value) | ((x.value != x.value) & (y.value != y.value))
        gap = np.where(same, 0.0, np.where(np.isnan(gap), np.inf, gap))
        other = np.where(test.value, y.error, x.error) + gap
        error = np.where(test.error > 0, np.maximum(error, other), error)
    both_plain = not isinstance(a, Inexact) and not isinstance(b, Inexact)
    return plain_if_sure(value, error) if both_plain else Inexact(value, error)
