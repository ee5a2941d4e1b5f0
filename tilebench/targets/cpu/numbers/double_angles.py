"""Sine and cosine of float64 as LLVM vector code; errors stand in `functions`.

An angle is reduced to n * pi/2 + r, |r| <= pi/4, with r in two doubles: near zero by parts of pi/2 of which
whole multiples are exact (W. Cody, W. Waite, Software Manual for the Elementary Functions, 1980), beyond by
the method of Payne and Hanek in integers. The polynomials of r are fdlibm's (Sun Microsystems, 1993).
"""

from __future__ import annotations

import math

from ..llvm import Function, Value, const, lanes_of
from .convert import magnitude
from .elementary import constant, integer_type, nearest, polynomial

_SIN = (
    -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
    2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10,
)  # fmt: skip
_COS = (
    4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
    -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11,
)  # fmt: skip
# pi/2 in three parts of 33 bits, so that up to 2**20 times one is exact, and what is left.
_HALF_PI = (
    1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624871116645580e-21,
    8.47842766036889956997e-32,
)  # fmt: skip
# Up to here there are less than 2**20 multiples of pi/2.
_NEAR = 1.6e6

# pi/2 with 127 bits behind the point, and 2/pi with 1280 of them after 64 zeros.
_FIXED_HALF_PI = 0xC90FDAA22168C234C4C6628B80DC1CD1
_TWO_OVER_PI = (
    0x0000000000000000, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041, 0xFE5163ABDEBBC561,
    0xB7246E3A424DD2E0, 0x06492EEA09D1921C, 0xFE1DEB1CB129A73E, 0xE88235F52EBB4484, 0xE99C7026B45F7E41,
    0x3991D639835339F4, 0x9C845F8BBDF9283B, 0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7,
    0x4F463F669E5FEA2D, 0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB,
    0xF0CFBC209AF4361D,
)  # fmt: skip

Reduced = tuple[Value, Value, Value]


def reduced(f: Function, x: Value) -> Reduced:
    """(r, rest, n): x is n * pi/2 + r + rest; of n (i64) only the last two bits are right."""
    near = _reduced_near(f, x)
    size = magnitude(f, x)
    far = f.compare("ogt", size, constant(x, _NEAR))
    far = f.binary("and", far, f.compare("olt", size, constant(x, math.inf)))

    def choose() -> list[Value]:
        with f.loop(0, f.cast("zext", f.any_lane(far), "i64"), 1, near) as loop:  # at most one turn
            found = _reduced_far(f, f.select(far, x, constant(x, 2.0**21)))
            loop.next = [f.select(far, new, old) for new, old in zip(found, near, strict=True)]
        return loop.results

    r, rest, n = f.once(f"reduced {x.type} {x.name}", choose)
    return r, rest, n


def _difference(f: Function, a: Value, b: Value) -> tuple[Value, Value]:
    """a - b, rounded, and what the rounding left over, exactly (D. Knuth's TwoSum)."""
    total = f.fsub(a, b)
    part = f.fsub(total, a)
    return total, f.fsub(f.fsub(a, f.fsub(total, part)), f.fadd(b, part))


def _reduced_near(f: Function, x: Value) -> Reduced:
    whole, n = nearest(f, f.fmul(x, constant(x, 2 / math.pi)))
    first, second, third, last = (f.fmul(whole, constant(x, part)) for part in _HALF_PI)
    r, left = _difference(f, f.fsub(x, first), second)
    r, more = _difference(f, r, third)
    tail = f.fadd(left, f.fsub(more, last))
    total = f.fadd(r, tail)
    return total, f.fadd(f.fsub(r, total), tail), n


def _reduced_far(f: Function, x: Value) -> Reduced:
    """The same for any finite number of at least 2**20: lane by lane, in integers of 128 bits."""
    lanes, kind = lanes_of(x.type), integer_type(x)
    places = [f.alloca(x.type), f.alloca(x.type), f.alloca(x.type), f.alloca(kind)]
    given, high, low, turns = places
    f.store(x, given)
    table = f.module.table("i64", _TWO_OVER_PI)
    with f.loop(0, lanes, 1, runs=True) as loop:
        bits = f.load(f.at(given, loop.index, "i64"), "i64")
        r, rest, n = _reduced_scalar(f, bits, table)
        f.store(r, f.at(high, loop.index, "double"))
        f.store(rest, f.at(low, loop.index, "double"))
        f.store(n, f.at(turns, loop.index, "i64"))
    return f.load(high, x.type), f.load(low, x.type), f.load(turns, kind)


def _reduced_scalar(f: Function, bits: Value, table: Value) -> Reduced:
    """Of the number with these bits. What 2/pi has in front of the window gives whole turns only.

    192 bits of 2/pi times the 53 of the number leave 126 behind the point. No double is nearer to a
    multiple of pi/2 than 2**-61 of it, so 64 of them are right where most cancel.
    """
    size = f.binary("and", bits, (1 << 63) - 1)
    whole = f.binary("or", f.binary("and", size, (1 << 52) - 1), 1 << 52)
    first = f.binary("sub", f.binary("lshr", size, 52), 1075 - 62)
    word, shift = f.binary("lshr", first, 6), f.binary("and", first, 63)
    words = [f.load(f.at(table, f.binary("add", word, k), "i64"), "i64") for k in range(4)]
    window = [f.intrinsic("fshl", words[k], words[k + 1], shift) for k in range(3)]
    top = f.binary("shl", _wide(f, f.binary("mul", window[0], whole)), 64)
    under = f.binary("lshr", _product(f, window[2], whole), 64)
    turn = f.binary("add", f.binary("add", top, _product(f, window[1], whole)), under)
    n = f.binary("lshr", f.binary("add", turn, 1 << 125), 126)
    left = f.binary("sub", turn, f.binary("shl", n, 126))
    below = f.compare("slt", left, 0)
    left = f.select(below, f.binary("sub", const(0, "i128"), left), left)
    zeros = f.intrinsic("ctlz", left, Value("false", "i1"))
    r, rest = _times_half_pi(f, f.binary("shl", left, zeros), zeros)
    n = f.cast("trunc", n, "i64")
    # An angle below zero has everything of the other sign.
    flips = f.compare("slt", bits, 0)
    n = f.select(flips, f.binary("sub", 0, n), n)
    other = f.binary("xor", below, flips)
    return f.select(other, f.fneg(r), r), f.select(other, f.fneg(rest), rest), n


def _times_half_pi(f: Function, number: Value, zeros: Value) -> tuple[Value, Value]:
    """number / 2**(126 + zeros) * pi/2 in two doubles; the top bit of `number` is set."""
    over, under = (f.cast("trunc", f.binary("lshr", number, k), "i64") for k in (64, 0))
    high, low = (const(_FIXED_HALF_PI >> k & (1 << 64) - 1, "i64") for k in (64, 0))
    total = _product(f, over, high)
    for a, b in ((over, low), (under, high)):
        total = f.binary("add", total, f.binary("lshr", _product(f, a, b), 64))
    first = f.cast("trunc", f.binary("lshr", total, 75), "i64")
    second = f.binary("and", f.cast("trunc", f.binary("lshr", total, 22), "i64"), (1 << 53) - 1)
    scale = f.binary("sub", const(1023 + 3 - 53, "i64"), f.cast("trunc", zeros, "i64"))
    unit = f.bits(f.binary("shl", scale, 52), "double")
    less = f.fmul(unit, constant(unit, 2.0**-53))
    parts = (f.fmul(f.cast("sitofp", part, "double"), by) for part, by in ((first, unit), (second, less)))
    r, rest = parts
    return r, rest


def _wide(f: Function, a: Value) -> Value:
    return f.cast("zext", a, "i128")


def _product(f: Function, a: Value, b: Value) -> Value:
    """The whole product of two i64."""
    return f.binary("mul", _wide(f, a), _wide(f, b))


def turned(f: Function, x: Value, quarter: int) -> Value:
    """sin(x + quarter * pi/2); NaN of what is not finite."""
    r, rest, n = reduced(f, x)
    n = f.binary("add", n, quarter)
    z = f.fmul(r, r)
    half = constant(x, 0.5)
    # sin(r + rest) = r - ((z * (rest / 2 - z * r * S) - rest) - z * r * S1)
    cube = f.fmul(z, r)
    inner = f.fsub(f.fmul(half, rest), f.fmul(cube, polynomial(f, z, _SIN[1:])))
    sine = f.fsub(r, f.fsub(f.fsub(f.fmul(z, inner), rest), f.fmul(cube, constant(x, _SIN[0]))))
    # cos(r + rest) = w + ((1 - w - z / 2) + (z * z * C - r * rest)), w = 1 - z / 2
    one, slope = constant(x, 1), f.fmul(half, z)
    w = f.fsub(one, slope)
    small = f.fsub(f.fmul(z, f.fmul(z, polynomial(f, z, _COS))), f.fmul(r, rest))
    cosine = f.fadd(w, f.fadd(f.fsub(f.fsub(one, w), slope), small))
    found = f.select(f.compare("ne", f.binary("and", n, 1), 0), cosine, sine)
    flip = f.binary("shl", f.binary("and", n, 2), 62)
    found = f.bits(f.binary("xor", f.bits(found, integer_type(x)), flip), x.type)
    infinite = f.compare("oeq", magnitude(f, x), constant(x, math.inf))
    return f.select(infinite, constant(x, math.nan), found)
