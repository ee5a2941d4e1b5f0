"""Inverse hyperbolic functions as LLVM vector code, float32 in double; errors stand in `functions`."""

from __future__ import annotations

import math
from collections.abc import Callable

from ..llvm import Function, Value, lanes_of, vector
from .convert import magnitude
from .elementary import constant, copy_sign, is_double, log, log1p, sqrt

# From here on 1 is lost beside the square.
_LARGE = 2.0**28


def in_double(f: Function, x: Value, function: Callable[[Value], Value]) -> Value:
    """A function computed in double, rounded once to the kind of x."""
    if is_double(x):
        return function(x)
    return f.cast("fptrunc", function(f.cast("fpext", x, vector("double", lanes_of(x.type)))), x.type)


def _with_large(f: Function, size: Value, near: Value) -> Value:
    """`near` where its squares are in range, else log(2 size)."""
    far = f.fadd(log(f, size), constant(size, math.log(2)))
    return f.select(f.compare("ogt", size, constant(size, _LARGE)), far, near)


def asinh(f: Function, x: Value) -> Value:
    """log(x + sqrt(x**2 + 1)), good near 0."""

    def double(x: Value) -> Value:
        size, one = magnitude(f, x), constant(x, 1)
        square = f.fmul(size, size)
        near = log1p(f, f.fadd(size, f.fdiv(square, f.fadd(one, sqrt(f, f.fadd(square, one))))))
        return copy_sign(f, _with_large(f, size, near), x)

    return in_double(f, x, double)


def acosh(f: Function, x: Value) -> Value:
    """log(x + sqrt(x**2 - 1)), good near 1; NaN below it."""

    def double(x: Value) -> Value:
        above = f.fsub(x, constant(x, 1))
        near = log1p(f, f.fadd(above, sqrt(f, f.fadd(f.fadd(above, above), f.fmul(above, above)))))
        found = _with_large(f, x, near)
        return f.select(f.compare("olt", x, constant(x, 1)), constant(x, math.nan), found)

    return in_double(f, x, double)


def atanh(f: Function, x: Value) -> Value:
    """log((1 + x) / (1 - x)) / 2, good near 0; infinite at -1 and 1, NaN outside of them."""

    def double(x: Value) -> Value:
        size = magnitude(f, x)
        twice = f.fdiv(f.fadd(size, size), f.fsub(constant(x, 1), size))
        found = f.fmul(log1p(f, twice), constant(x, 0.5))
        outside = f.compare("ogt", size, constant(x, 1))
        return copy_sign(f, f.select(outside, constant(x, math.nan), found), x)

    return in_double(f, x, double)
