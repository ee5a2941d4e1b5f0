"""Sine, cosine, tangent and its inverse as LLVM vector code for float32; errors stand in `math`."""

from __future__ import annotations

import math

from ..llvm import Function, Value, lanes_of, vector
from .convert import magnitude
from .elementary import constant, copy_sign, integer_type, nearest, polynomial, single

_SIN = (-0.16666666639425384, 0.008333329128682135, -0.00019839251780109536, 2.717518682582633e-06)
_COS = (0.04166664557495256, -0.0013887302163766546, 2.4430754558670417e-05)
_ATAN = (
    -0.33333315453981394,
    0.19998486080240135,
    -0.14243781530058874,
    0.10595478437558642,
    -0.06082065759734257,
)


def _turn(f: Function, x: Value, quarter: int) -> Value:
    """sin(x + quarter * pi/2), reduced in double precision."""
    wide = f.cast("fpext", x, vector("double", lanes_of(x.type)))
    whole, n = nearest(f, f.fmul(wide, constant(wide, 2 / math.pi)))
    first, rest = 1.57079632673412561417e00, 6.07710050650619224932e-11  # fdlibm's pi/2 in two parts
    r = f.fsub(f.fsub(wide, f.fmul(whole, constant(wide, first))), f.fmul(whole, constant(wide, rest)))
    r = f.cast("fptrunc", r, x.type)
    n = f.cast("trunc", f.binary("add", n, quarter), integer_type(x))
    z = f.fmul(r, r)
    sine = f.fma(f.fmul(polynomial(f, z, _SIN), z), r, r)
    cosine = f.fma(polynomial(f, z, _COS), f.fmul(z, z), f.fma(z, constant(x, -0.5), constant(x, 1)))
    found = f.select(f.compare("ne", f.binary("and", n, 1), 0), cosine, sine)
    flip = f.binary("shl", f.binary("and", n, 2), 30)
    found = f.bits(f.binary("xor", f.bits(found, integer_type(x)), flip), x.type)
    infinite = f.compare("oeq", magnitude(f, x), constant(x, math.inf))
    return f.select(infinite, constant(x, math.nan), found)


def sin(f: Function, x: Value) -> Value:
    """The sine, float32; the error grows beyond |x| = 1e6."""
    single(x, "sin")
    return f.select(f.compare("oeq", x, constant(x, 0)), x, _turn(f, x, 0))


def cos(f: Function, x: Value) -> Value:
    """The cosine, float32; the error grows beyond |x| = 1e6."""
    single(x, "cos")
    return _turn(f, x, 1)


def tan(f: Function, x: Value) -> Value:
    """The tangent, float32, as sine over cosine (4 ulp)."""
    return f.fdiv(sin(f, x), cos(f, x))


def atan(f: Function, x: Value) -> Value:
    """The inverse tangent, float32."""
    single(x, "atan")
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
