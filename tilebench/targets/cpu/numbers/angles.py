"""Sine, cosine, tangent and their inverses as LLVM vector code; errors stand in `functions`.

Those of float64 are in files of their own; what stands here is float32.
"""

from __future__ import annotations

import math

from ..llvm import Function, Value, const, lanes_of, vector
from . import double_angles, double_arcs
from .convert import magnitude
from .elementary import constant, copy_sign, integer_type, is_double, nearest, polynomial, round_even

_SIN = (-0.16666666639425384, 0.008333329128682135, -0.00019839251780109536, 2.717518682582633e-06)
_COS = (0.04166664557495256, -0.0013887302163766546, 2.4430754558670417e-05)
_ATAN = (
    -0.33333315453981394,
    0.19998486080240135,
    -0.14243781530058874,
    0.10595478437558642,
    -0.06082065759734257,
)


# 2/pi in parts of 24 bits (the digits as in fdlibm's e_rem_pio2): a float32 times one is exact in double.
_TWO_OVER_PI = (0xA2F983, 0x6E4E44, 0x1529FC, 0x2757D1, 0xF534DD, 0xC0DB62, 0x95993C, 0x439041)
# Up to here the two parts of pi/2 below are enough: the whole multiples of the first are exact.
_NEAR = 1e6


def _reduced(f: Function, x: Value) -> tuple[Value, Value]:
    """(r, n): x is n * pi/2 + r, |r| <= pi/4, in double; of n (i32) only the last two bits are right."""
    wide = f.cast("fpext", x, vector("double", lanes_of(x.type)))
    whole, n = nearest(f, f.fmul(wide, constant(wide, 2 / math.pi)))
    first, rest = 1.57079632673412561417e00, 6.07710050650619224932e-11  # fdlibm's pi/2 in two parts
    r = f.fsub(f.fsub(wide, f.fmul(whole, constant(wide, first))), f.fmul(whole, constant(wide, rest)))
    near = r, f.cast("trunc", n, integer_type(x))
    size = magnitude(f, x)
    far = f.compare("ogt", size, constant(x, _NEAR))
    far = f.binary("and", far, f.compare("olt", size, constant(x, math.inf)))

    def choose() -> list[Value]:
        with f.loop(0, f.cast("zext", f.any_lane(far), "i64"), 1, near) as loop:  # at most one turn
            found = _reduced_far(f, f.select(far, wide, constant(wide, 0)))
            loop.next = [f.select(far, new, old) for new, old in zip(found, near, strict=True)]
        return loop.results

    r, n = f.once(f"reduced {x.type} {x.name}", choose)
    return r, n


def _reduced_far(f: Function, x: Value) -> tuple[Value, Value]:
    """The same for any finite float32 of at least 1, by the method of Payne and Hanek.

    (M. Payne, R. Hanek, Radian reduction for trigonometric functions, SIGNUM Newsletter 18, 1983.) Of
    x * 2/pi only what is left of whole turns matters: of each part's product a fraction of a turn, exactly,
    in units of 2**-63. No float32 is nearer to a multiple of pi/2 than 1.6e-9: 29 bits of r are right.
    """
    kind = integer_type(x)
    turns = const(0, kind)
    for k, part in enumerate(_TWO_OVER_PI):
        product = f.fmul(x, constant(x, part * 2.0 ** (-24 * (k + 1) - 2)))
        rest = f.fsub(product, round_even(f, product))
        turns = f.binary("add", turns, f.cast("fptosi", f.fmul(rest, constant(x, 2.0**63)), kind))
    turns = f.binary("shl", turns, 1)  # 2**64 a turn: what is more than one falls off
    n = f.binary("lshr", f.binary("add", turns, 1 << 61), 62)
    rest = f.binary("sub", turns, f.binary("shl", n, 62))
    r = f.fmul(f.cast("sitofp", rest, x.type), constant(x, math.pi / 2 * 2.0**-62))
    return r, f.cast("trunc", n, vector("i32", lanes_of(x.type)))


def _turn(f: Function, x: Value, quarter: int) -> Value:
    """sin(x + quarter * pi/2)."""
    if is_double(x):
        return double_angles.turned(f, x, quarter)
    r, n = _reduced(f, x)
    r = f.cast("fptrunc", r, x.type)
    n = f.binary("add", n, quarter)
    z = f.fmul(r, r)
    sine = f.fma(f.fmul(polynomial(f, z, _SIN), z), r, r)
    cosine = f.fma(polynomial(f, z, _COS), f.fmul(z, z), f.fma(z, constant(x, -0.5), constant(x, 1)))
    found = f.select(f.compare("ne", f.binary("and", n, 1), 0), cosine, sine)
    flip = f.binary("shl", f.binary("and", n, 2), 30)
    found = f.bits(f.binary("xor", f.bits(found, integer_type(x)), flip), x.type)
    infinite = f.compare("oeq", magnitude(f, x), constant(x, math.inf))
    return f.select(infinite, constant(x, math.nan), found)


def sin(f: Function, x: Value) -> Value:
    """The sine."""
    return f.select(f.compare("oeq", x, constant(x, 0)), x, _turn(f, x, 0))


def cos(f: Function, x: Value) -> Value:
    """The cosine."""
    return _turn(f, x, 1)


def tan(f: Function, x: Value) -> Value:
    """The tangent, as sine over cosine."""
    return f.fdiv(sin(f, x), cos(f, x))


def atan(f: Function, x: Value) -> Value:
    """The inverse tangent."""
    if is_double(x):
        return double_arcs.atan(f, x)
    size = magnitude(f, x)
    steep = f.compare("ogt", size, constant(x, math.tan(3 * math.pi / 8)))
    middle = f.compare("ogt", size, constant(x, math.tan(math.pi / 8)))
    one = constant(x, 1)
    folded = f.fdiv(f.fsub(size, one), f.fadd(size, one))
    t = f.select(steep, f.fdiv(constant(x, -1), size), f.select(middle, folded, size))
    base = f.select(
        steep, constant(x, math.pi / 2), f.select(middle, constant(x, math.pi / 4), constant(x, 0))
    )
    z = f.fmul(t, t)
    return copy_sign(f, f.fadd(base, f.fma(f.fmul(polynomial(f, z, _ATAN), z), t, t)), x)


def asin(f: Function, x: Value) -> Value:
    """The inverse sine; of float32 as atan(x / sqrt(1 - x**2)). NaN outside of [-1, 1]."""
    if is_double(x):
        return double_arcs.asin(f, x)
    one = constant(x, 1)
    side = f.intrinsic("sqrt", f.fmul(f.fsub(one, x), f.fadd(one, x)))
    return atan(f, f.fdiv(x, side))


def acos(f: Function, x: Value) -> Value:
    """The inverse cosine; of float32 as 2 atan(sqrt((1 - x) / (1 + x))). NaN outside of [-1, 1]."""
    if is_double(x):
        return double_arcs.acos(f, x)
    one = constant(x, 1)
    half = atan(f, f.intrinsic("sqrt", f.fdiv(f.fsub(one, x), f.fadd(one, x))))
    return f.fadd(half, half)
