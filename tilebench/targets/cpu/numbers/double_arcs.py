"""Inverse tangent, sine and cosine of float64 as LLVM vector code; errors stand in `functions`.

Polynomials and rational functions are those of fdlibm's s_atan.c, e_asin.c and e_acos.c (Sun Microsystems,
1993); what branches there is chosen among here.
"""

from __future__ import annotations

import math

from ..llvm import Function, Value
from .convert import magnitude
from .elementary import constant, copy_sign, integer_type, polynomial

_ATAN = (
    3.33333333333329318027e-01, -1.99999999998764832476e-01, 1.42857142725034663711e-01,
    -1.11111104054623557880e-01, 9.09088713343650656196e-02, -7.69187620504482999495e-02,
    6.66107313738753120669e-02, -5.83357013379057348645e-02, 4.97687799461593236017e-02,
    -3.65315727442169155270e-02, 1.62858201153657823623e-02,
)  # fmt: skip
# From each end of an interval: the angle in two parts, and the angle's tangent.
_ENDS = (
    (7 / 16, 4.63647609000806093515e-01, 2.26987774529616870924e-17, 0.5),
    (11 / 16, 7.85398163397448278999e-01, 3.06161699786838301793e-17, 1.0),
    (19 / 16, 9.82793723247329054082e-01, 1.39033110312309984516e-17, 1.5),
)
_HALF_PI = (1.57079632679489655800e00, 6.12323399573676603587e-17)
# asin(x) = x + x * R(x**2), over and under.
_P = (
    1.66666666666666657415e-01, -3.25565818622400915405e-01, 2.01212532134862925881e-01,
    -4.00555345006794114027e-02, 7.91534994289814532176e-04, 3.47933107596021167570e-05,
)  # fmt: skip
_Q = (
    1.0, -2.40339491173441421878e00, 2.02094576023350569471e00, -6.88283971605453293030e-01,
    7.70381505559019352791e-02,
)  # fmt: skip


def atan(f: Function, x: Value) -> Value:
    """The inverse tangent: of the difference to a tangent that is known, added to its angle."""
    size = magnitude(f, x)
    one, zero = constant(x, 1), constant(x, 0)
    over, under, angle, rest = size, one, zero, zero
    for end, high, low, tangent in _ENDS:
        beyond = f.compare("oge", size, constant(x, end))
        # tan(a - b) = (tan a - tan b) / (1 + tan a * tan b)
        known = constant(x, tangent)
        over = f.select(beyond, f.fsub(size, known), over)
        under = f.select(beyond, f.fadd(one, f.fmul(size, known)), under)
        angle, rest = f.select(beyond, constant(x, high), angle), f.select(beyond, constant(x, low), rest)
    steep = f.compare("oge", size, constant(x, 39 / 16))
    over, under = f.select(steep, constant(x, -1), over), f.select(steep, size, under)
    angle = f.select(steep, constant(x, _HALF_PI[0]), angle)
    rest = f.select(steep, constant(x, _HALF_PI[1]), rest)
    t = f.fdiv(over, under)
    z = f.fmul(t, t)
    bent = f.fmul(t, f.fmul(z, polynomial(f, z, _ATAN)))
    return copy_sign(f, f.fsub(angle, f.fsub(f.fsub(bent, rest), t)), x)


def asin(f: Function, x: Value) -> Value:
    """The inverse sine; NaN outside of [-1, 1]."""
    size = magnitude(f, x)
    small = f.compare("olt", size, constant(x, 0.5))
    z = f.select(small, f.fmul(x, x), _half_of_rest(f, size))
    bent = _ratio(f, z)
    near = f.fadd(x, f.fmul(x, bent))
    # pi/2 - 2 * asin(sqrt((1 - x) / 2)), the root in two parts
    root, short, left = _root(f, z)
    high, low = (constant(x, part) for part in _HALF_PI)
    quarter = constant(x, _HALF_PI[0] / 2)
    twice = f.fmul(constant(x, 2), root)
    fine = f.fsub(f.fmul(twice, bent), f.fsub(low, f.fmul(constant(x, 2), left)))
    far = f.fsub(quarter, f.fsub(fine, f.fsub(quarter, f.fmul(constant(x, 2), short))))
    steep = f.fsub(high, f.fsub(f.fmul(constant(x, 2), f.fadd(root, f.fmul(root, bent))), low))
    far = f.select(f.compare("oge", size, constant(x, 0.975)), steep, far)
    return f.select(small, near, copy_sign(f, far, x))


def acos(f: Function, x: Value) -> Value:
    """The inverse cosine; NaN outside of [-1, 1]."""
    size = magnitude(f, x)
    small = f.compare("olt", size, constant(x, 0.5))
    z = f.select(small, f.fmul(x, x), _half_of_rest(f, size))
    bent = _ratio(f, z)
    high, low = (constant(x, part) for part in _HALF_PI)
    near = f.fsub(high, f.fsub(x, f.fsub(low, f.fmul(x, bent))))
    root, short, left = _root(f, z)
    above = f.fadd(short, f.fadd(f.fmul(bent, root), left))
    below = f.fadd(root, f.fsub(f.fmul(bent, root), low))
    two = constant(x, 2)
    far = f.select(
        f.compare("olt", x, constant(x, 0)),
        f.fsub(constant(x, math.pi), f.fmul(two, below)),
        f.fmul(two, above),
    )
    return f.select(small, near, far)


def _half_of_rest(f: Function, size: Value) -> Value:
    return f.fmul(f.fsub(constant(size, 1), size), constant(size, 0.5))


def _ratio(f: Function, z: Value) -> Value:
    return f.fdiv(f.fmul(z, polynomial(f, z, _P)), polynomial(f, z, _Q))


def _root(f: Function, z: Value) -> tuple[Value, Value, Value]:
    """The square root, its upper 21 bits, whose square is exact, and the rest of it."""
    root = f.intrinsic("sqrt", z)
    kind = integer_type(z)
    short = f.bits(f.binary("and", f.bits(root, kind), -(1 << 32)), z.type)
    # Of zero the rest is zero: no quotient of zeros.
    both = f.fadd(root, short)
    both = f.select(f.compare("oeq", both, constant(z, 0)), constant(z, 1), both)
    return root, short, f.fdiv(f.fsub(z, f.fmul(short, short)), both)
