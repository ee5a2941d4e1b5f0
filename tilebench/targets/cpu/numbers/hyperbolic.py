"""Hyperbolic sine and cosine as LLVM vector code; errors stand in `functions`."""

from __future__ import annotations

import math

from ..llvm import Function, Value, lanes_of, vector
from .convert import magnitude
from .elementary import constant, copy_sign, exp, is_double, polynomial

# Below this the series of sinh is used: exp(x) - exp(-x) loses a digit where x is small.
_SMALL = 0.5


def _in_double(f: Function, x: Value) -> Value:
    return x if is_double(x) else f.cast("fpext", x, vector("double", lanes_of(x.type)))


def _halves(f: Function, size: Value) -> tuple[Value, Value]:
    """exp(size) / 2 and exp(-size) / 2; the square of exp(size / 2) overflows where the whole does."""
    root = exp(f, f.fmul(size, constant(size, 0.5)))
    half = f.fmul(root, constant(size, 0.5))
    return f.fmul(half, root), f.fdiv(f.fdiv(constant(size, 0.5), root), root)


def sinh(f: Function, x: Value) -> Value:
    """(exp(x) - exp(-x)) / 2; float32 is computed in double."""
    size = magnitude(f, _in_double(f, x))
    up, down = _halves(f, size)
    square = f.fmul(size, size)
    terms = [1 / math.factorial(2 * k + 1) for k in range(1, 9)]
    near = f.fma(f.fmul(polynomial(f, square, terms), square), size, size)
    found = f.select(f.compare("olt", size, constant(size, _SMALL)), near, f.fsub(up, down))
    return copy_sign(f, found if is_double(x) else f.cast("fptrunc", found, x.type), x)


def cosh(f: Function, x: Value) -> Value:
    """(exp(x) + exp(-x)) / 2; float32 is computed in double."""
    up, down = _halves(f, magnitude(f, _in_double(f, x)))
    found = f.fadd(up, down)
    return found if is_double(x) else f.cast("fptrunc", found, x.type)
