"""C's `fmod` as LLVM vector code for float32: exact, in steps of a division in double."""

from __future__ import annotations

import math

from ..llvm import Function, Value, const, lanes_of, vector
from .convert import magnitude
from .elementary import constant, copy_sign, single, trunc

# A quotient of two float32 has at most 277 bits before the point, and a step takes 23 of them.
_STEPS = 13


def remainder(f: Function, x: Value, y: Value) -> Value:
    """x - trunc(x / y) * y, with the sign of x, float32; NaN of an infinite x and of a zero y."""
    single(x, "fmod")
    wide = vector("double", lanes_of(x.type))
    left, by = magnitude(f, f.cast("fpext", x, wide)), magnitude(f, f.cast("fpext", y, wide))
    found = _step(f, left, by)
    far = f.compare("oge", found, by)
    far = f.binary("and", far, f.compare("ogt", by, constant(by, 0)))
    with f.loop(0, f.cast("zext", f.any_lane(far), "i64"), 1, [found]) as loop:  # at most one turn
        rest = loop.carried[0]
        for _ in range(_STEPS):
            rest = _step(f, rest, by)
        loop.next = [rest]
    found = copy_sign(f, f.cast("fptrunc", loop.results[0], x.type), x)
    endless = f.compare("oeq", by, constant(by, math.inf))
    keeps = f.binary("and", endless, f.compare("olt", left, constant(left, math.inf)))
    return f.select(keeps, x, found)


def _step(f: Function, left: Value, by: Value) -> Value:
    """What is left of `left` once its quotient's upper 24 bits are taken: exact.

    A quotient of numbers of 25 and 24 bits is no nearer to one of 24 bits than 2**-49 of it, so the
    division's rounding does not step over one, and the product and the difference have room in a double.
    """
    bits = vector("i64", lanes_of(left.type))
    quotient = f.bits(f.binary("and", f.bits(f.fdiv(left, by), bits), const(-(1 << 29), bits)), left.type)
    return f.fsub(left, f.fmul(trunc(f, quotient), by))
