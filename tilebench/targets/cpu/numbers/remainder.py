"""C's `fmod` as LLVM vector code: exact, of float32 by divisions in double, of float64 in integers."""

from __future__ import annotations

import math

from ..llvm import Function, Value, const, lanes_of, vector
from .convert import magnitude
from .elementary import constant, copy_sign, integer_type, is_double, trunc

# A quotient of two float32 has at most 277 bits before the point, and a step takes 23 of them.
_STEPS = 13


def remainder(f: Function, x: Value, y: Value) -> Value:
    """x - trunc(x / y) * y, with the sign of x; NaN of an infinite x and of a zero y."""
    if is_double(x):
        return _of_double(f, x, y)
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


# Bits by which what is left is shifted up at a time: with 53 of its own it fills an i64.
_SHIFT = 11


def _of_double(f: Function, x: Value, y: Value) -> Value:
    """The remainder of the numbers as integers times powers of two: a long division, 11 bits a turn."""
    kind = integer_type(x)
    (whole, high), (by, low) = _parts(f, magnitude(f, x)), _parts(f, magnitude(f, y))
    by = f.select(f.compare("eq", by, 0), const(1, kind), by)
    smaller = f.compare("olt", magnitude(f, x), magnitude(f, y))
    # What is no number, or is returned as it is, makes no turn.
    plain = f.compare("uno", x, y)
    for value in (x, y):
        plain = f.binary("or", plain, f.compare("oeq", magnitude(f, value), constant(x, math.inf)))
    far = f.select(f.binary("or", smaller, plain), const(0, kind), f.binary("sub", high, low))
    left = f.binary("urem", whole, by)
    turns = f.binary("udiv", f.binary("add", _most(f, far), _SHIFT - 1), _SHIFT)
    with f.loop(0, turns, 1, [left, far]) as loop:
        rest, to_go = loop.carried
        step = f.select(f.compare("slt", to_go, _SHIFT), to_go, const(_SHIFT, kind))
        loop.next = [f.binary("urem", f.binary("shl", rest, step), by), f.binary("sub", to_go, step)]
    left = loop.results[0]
    # The power of two in two factors, each of them a normal number: both products are exact.
    found = f.cast("sitofp", left, x.type)
    power = f.binary("sub", low, 1075)
    half = f.binary("ashr", power, 1)
    for part in (half, f.binary("sub", power, half)):
        found = f.fmul(found, f.bits(f.binary("shl", f.binary("add", part, 1023), 52), x.type))
    found = f.select(smaller, x, copy_sign(f, found, x))
    return _special(f, x, y, found)


def _special(f: Function, x: Value, y: Value, found: Value) -> Value:
    nan = constant(x, math.nan)
    endless = f.compare("oeq", magnitude(f, x), constant(x, math.inf))
    none = f.binary("or", endless, f.compare("oeq", y, constant(x, 0)))
    return f.select(f.binary("or", none, f.compare("uno", x, y)), nan, found)


def _parts(f: Function, size: Value) -> tuple[Value, Value]:
    """(m, e): a number that is not negative is m * 2**(e - 1075), e at least 1."""
    kind = integer_type(size)
    bits = f.bits(size, kind)
    exponent = f.binary("lshr", bits, 52)
    normal = f.compare("ne", exponent, 0)
    hidden = f.select(normal, const(1 << 52, kind), const(0, kind))
    whole = f.binary("or", f.binary("and", bits, (1 << 52) - 1), hidden)
    return whole, f.select(normal, exponent, const(1, kind))


def _most(f: Function, a: Value) -> Value:
    """The greatest lane of a vector of i64 that are not negative."""
    if lanes_of(a.type) == 1:
        return a
    return f.intrinsic("vector.reduce.umax", a, result="i64")
