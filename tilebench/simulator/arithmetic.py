"""Expressions over all lanes at once: each gives an array of one value a lane, or a number all share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Set
from typing import Any

import numpy as np

from ..ir import Arith, Cast, DType, Expr, Let, Load, Stmt, Var, walk
from ..ir.dtypes import boolean, float32, int32
from ..ir.stmt import statements
from ..language.meanings.elements import SCALARS
from ..language.meanings.rounding import narrowed, round_to
from .refusal import refuse

Array = Any


def narrow(dtype: DType) -> bool:
    """Floats that are computed on in float32 and rounded after each operation."""
    return dtype.is_float and dtype.bits < 32


def computed(dtype: DType) -> Any:
    """The NumPy type that values of a dtype are held in while they are computed with."""
    if dtype.is_float or dtype.bits == 64:
        return dtype.numpy
    return np.dtype(np.bool_) if dtype == boolean else np.dtype(np.int64)


def data_names(body: tuple[Stmt, ...]) -> frozenset[str]:
    """The names of values that something read from memory, or a float, went into."""
    found: set[str] = set()
    for stmt in statements(body):
        if isinstance(stmt, Let) and of_data(stmt.value, found):
            found.add(stmt.var.name)
    return frozenset(found)


def of_data(expr: Expr, names: Set[str]) -> bool:
    return any(
        isinstance(e, Load)
        or (isinstance(e, Var) and e.name in names)
        or (isinstance(e, Cast) and e.value.dtype.is_float)
        for e in walk(expr)
    )


def settle(value: Any, dtype: DType, node: Expr, data: Set[str], mask: Any) -> Any:
    """An integer result in its own width: it wraps, but for an int32 that no memory and no float went into.

    Such a one is an index or leads to one; one that leaves its range in an active lane is a fault of a
    pass. A shift to the left is one of bits, and loses those that leave.
    """
    if not dtype.is_integer or dtype.bits == 64:
        return value
    if dtype == int32:
        if inside_int32(value):
            return value
        active = value if mask is None or not np.ndim(value) else value[mask]
        bits = isinstance(node, Arith) and node.op == "<<"
        if not bits and not inside_int32(active) and not of_data(node, data):
            refuse("an int32 overflows", node)
    return np.asarray(value).astype(dtype.numpy).astype(np.int64)


def inside_int32(value: Any) -> bool:
    """Whether a number, or all of an array, are values of int32."""
    if isinstance(value, int):
        return -(2**31) <= value < 2**31
    return bool((value >= -(2**31)).all() and (value < 2**31).all())


def convert(value: Any, source: DType, target: DType) -> Any:
    """A cast: to nearest even for floats, towards zero from float to integer, a bool by being non-zero."""
    if source == target:
        return value
    if target == boolean:
        return np.asarray(value) != 0
    with np.errstate(all="ignore"):
        return _converted(np.asarray(value), source, target)


def _converted(array: Any, source: DType, target: DType) -> Any:
    if source.is_float and target.is_integer:
        low, high = int(target.least), int(target.most)
        whole = np.trunc(np.nan_to_num(array.astype(np.float64), nan=0.0))
        wide = np.clip(whole, float(low), float(high))
        stored = np.dtype(np.int64) if target.bits < 64 else target.numpy
        return np.where(wide >= float(high), stored.type(high), wide.astype(stored)).astype(computed(target))
    if narrow(target):
        # Doubles and wide integers would be rounded twice on their way through single precision.
        return round_to(array, target) if source.bits >= 32 and source != float32 else narrowed(array, target)
    if target.is_integer:
        if target.per_byte > 1:  # `ml_dtypes` has no way from one 4-bit type to the other
            array = array.astype(np.int8)
        return array.astype(target.numpy).astype(computed(target))
    return array.astype(np.float32).astype(target.numpy) if narrow(source) else array.astype(target.numpy)


def _floordiv(a: Any, b: Any) -> Any:
    """Floor division, as the language has it: 0 of a divisor that is 0."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b else 0
    return np.where(np.equal(b, 0), 0, np.floor_divide(a, np.where(np.equal(b, 0), 1, b)))


def _mod(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return a % b if b else 0
    return np.where(np.equal(b, 0), 0, np.mod(a, np.where(np.equal(b, 0), 1, b)))


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
    "//": _floordiv, "%": _mod, "<<": lambda a, b: a << b, ">>": lambda a, b: a >> b,
    "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b,
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
}  # fmt: skip

_erf = np.vectorize(math.erf, otypes=[np.float64])


def _rsqrt(x: Any) -> Any:
    return 1 / np.sqrt(x)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _erf_of(x: Any) -> Any:
    array: Any = np.asarray(x)
    return _erf(array).astype(array.dtype)


def _exp10(x: Any) -> Any:
    return np.power(np.asarray(x).dtype.type(10), x)


def _half_away(x: Any) -> Any:
    wide = np.asarray(x)
    return np.trunc(wide + np.copysign(np.nextafter(wide.dtype.type(0.5), wide.dtype.type(0)), wide))


_where: Any = np.where


def _clamp(x: Any, low: Any, high: Any) -> Any:
    raised = _where(x < low, low, x)
    return _where(raised > high, high, raised)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "sqrt": np.sqrt,
    "rsqrt": _rsqrt, "tanh": np.tanh, "abs": np.abs, "floor": np.floor, "ceil": np.ceil,
    "sigmoid": _sigmoid, "erf": _erf_of,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "exp10": _exp10, "log10": np.log10, "log1p": np.log1p,
    "trunc": np.trunc, "round": _half_away, "nearbyint": np.rint, "fmod": np.fmod, "pow": np.power,
    # As fmaxf and fminf: a NaN loses against a number.
    "max": np.fmax, "min": np.fmin, "clamp": _clamp,
    **{word: SCALARS[word].plain for word in (
        "asinh", "acosh", "atanh", "hypot", "atan2", "copysign", "ldexp", "fma", "popcount", "bit_length",
        "philox",
    )},
}  # fmt: skip


def apply(
    function: Callable[..., Any], args: list[Any], dtype: DType, node: Expr, data: Set[str], mask: Any
) -> Any:
    """A scalar function, computed in float32 and rounded for narrow floats."""
    with np.errstate(all="ignore"):
        if narrow(dtype):
            return narrowed(function(*(np.asarray(arg).astype(np.float32) for arg in args)), dtype)
        return settle(function(*args), dtype, node, data, mask)


def operate(op: str, a: Any, b: Any, dtype: DType, node: Arith, data: Set[str], mask: Any) -> Any:
    """One binary operator on two values of `dtype`, as part of the expression `node`."""
    result = node.dtype
    with np.errstate(all="ignore"):
        if narrow(dtype):
            value = BINARY[op](np.asarray(a).astype(np.float32), np.asarray(b).astype(np.float32))
            return value if result == boolean else narrowed(value, dtype)
        if op == "//" and dtype.is_float:
            return np.floor(a / b)
        value = BINARY[op](a, b)
    return value if result == boolean else settle(value, dtype, node, data, mask)
