"""Functions of two floats as LLVM vector code: hypot, atan2, copysign, ldexp; and float32's fused product."""

from __future__ import annotations

import math

from ..llvm import Function, Value, const, lanes_of, vector
from .angles import atan
from .convert import magnitude
from .elementary import constant, copy_sign, integer_type, is_double, sqrt
from .inverse_hyperbolic import in_double


def hypot(f: Function, x: Value, y: Value) -> Value:
    """sqrt(x**2 + y**2): float32's squares are in range in double, a double's are taken of the ratio."""
    a, b = magnitude(f, x), magnitude(f, y)
    if is_double(x):
        found = _scaled_hypot(f, a, b)
    else:
        wide = vector("double", lanes_of(x.type))
        c, d = f.cast("fpext", a, wide), f.cast("fpext", b, wide)
        found = f.cast("fptrunc", sqrt(f, f.fadd(f.fmul(c, c), f.fmul(d, d))), x.type)
    endless = constant(x, math.inf)
    either = f.binary("or", f.compare("oeq", a, endless), f.compare("oeq", b, endless))
    return f.select(either, endless, found)


def _scaled_hypot(f: Function, a: Value, b: Value) -> Value:
    less = f.compare("olt", a, b)
    most, least = f.select(less, b, a), f.select(less, a, b)
    ratio = f.fdiv(least, most)
    found = f.fmul(most, sqrt(f, f.fma(ratio, ratio, constant(a, 1))))
    return f.select(f.compare("oeq", most, constant(a, 0)), most, found)


def atan2(f: Function, y: Value, x: Value) -> Value:
    """The angle of (x, y)."""
    a, b = magnitude(f, x), magnitude(f, y)
    steep = f.compare("ogt", b, a)
    ratio = f.fdiv(f.select(steep, a, b), f.select(steep, b, a))
    # 0 / 0 and inf / inf: on an axis, and on a diagonal.
    none = f.compare("oeq", f.select(steep, b, a), constant(x, 0))
    ends = f.binary("and", f.compare("oeq", a, b), f.compare("oeq", a, constant(x, math.inf)))
    ratio = f.select(none, constant(x, 0), f.select(ends, constant(x, 1), ratio))
    angle = atan(f, ratio)
    angle = f.select(steep, f.fsub(constant(x, math.pi / 2), angle), angle)
    behind = f.compare("slt", f.bits(x, integer_type(x)), 0)
    angle = f.select(behind, f.fsub(constant(x, math.pi), angle), angle)
    angle = f.select(f.compare("uno", x, y), constant(x, math.nan), angle)
    return copy_sign(f, angle, y)


def copysign(f: Function, x: Value, y: Value) -> Value:
    """The size of x with the sign bit of y."""
    return copy_sign(f, magnitude(f, x), y)


def ldexp(f: Function, x: Value, n: Value) -> Value:
    """x * 2**n, rounded once; n is a whole number."""
    least, most = (
        (constant(n, -2200.0), constant(n, 2200.0))
        if is_double(x)
        else (constant(n, -300.0), constant(n, 300.0))
    )
    n = f.select(f.compare("ogt", n, least), n, least)
    n = f.select(f.compare("olt", n, most), n, most)
    steps = f.cast("fptosi", n, vector("i64", lanes_of(x.type)))
    if not is_double(x):
        return in_double(f, x, lambda wide: f.fmul(wide, _power(f, steps, wide.type)))
    # Far down first by steps that stay normal, so that only the last product is rounded.
    for _ in range(2):
        low, high = f.compare("slt", steps, -1022), f.compare("sgt", steps, 1023)
        down = f.select(low, constant(x, 2.0**-969), constant(x, 1))
        x = f.fmul(x, f.select(high, constant(x, 2.0**1023), down))
        back = f.select(low, const(969, steps.type), const(0, steps.type))
        steps = f.add(steps, f.select(high, const(-1023, steps.type), back))
    steps = f.select(f.compare("slt", steps, -1022), const(-1022, steps.type), steps)
    steps = f.select(f.compare("sgt", steps, 1023), const(1023, steps.type), steps)
    return f.fmul(x, _power(f, steps, x.type))


def _power(f: Function, n: Value, kind: str) -> Value:
    """2**n of a double, for n of a normal one."""
    return f.bits(f.binary("shl", f.add(n, const(1023, n.type)), 52), kind)


def fused(f: Function, x: Value, y: Value, z: Value) -> Value:
    """x * y + z of float32, rounded once, also where the processor has no such instruction."""
    if "fma" in f.isa.has:
        return f.intrinsic("fma", x, y, z)
    wide = vector("double", lanes_of(x.type))
    a, b, c = (f.cast("fpext", part, wide) for part in (x, y, z))
    product = f.fmul(a, b)
    total = f.fadd(product, c)
    moved = f.fsub(total, product)
    lost = f.fadd(f.fsub(product, f.fsub(total, moved)), f.fsub(c, moved))
    # To an odd last bit, so that the rounding to float32 sees on which side the sum lies.
    bits = f.bits(total, integer_type(total))
    zero = constant(total, 0)
    away = f.compare("eq", f.binary("and", bits, 1), 0)
    inexact = f.binary("and", away, f.compare("one", lost, zero))
    up, positive = f.compare("ogt", lost, zero), f.compare("ogt", total, zero)
    apart = f.binary("xor", up, positive)
    step = f.select(apart, const(-1, bits.type), const(1, bits.type))
    bits = f.add(bits, f.select(inexact, step, const(0, bits.type)))
    return f.cast("fptrunc", f.bits(bits, total.type), x.type)
