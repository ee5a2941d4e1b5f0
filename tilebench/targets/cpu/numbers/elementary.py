"""exp, log, tanh, pow and rounding as LLVM vector code; errors stand in `functions`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..llvm import Function, Value, const, element_of, lanes_of, vector
from .convert import magnitude

_LN2_HI, _LN2_LO = 0.693359375, math.log(2) - 0.693359375
_LOG2E = 1 / math.log(2)
# log10(2) to 86 bits, the first part short enough that 2**20 times it is exact.
_LOG10_2_PARTS = (0.30102999560767785, 5.630334806675098e-11)

_EXP32 = (
    0.4999999333798407,
    0.16666518991858917,
    0.04166840713711028,
    0.008368914973407348,
    0.001381419583351674,
)
_EXP2_32 = (
    0.6931472068162104, 0.2402265127756741, 0.05550326808269053, 0.009618011480928047,
    0.001340062499191125, 0.00015474321391153634,
)  # fmt: skip
_LOG32 = (
    0.33333312531332626, -0.2500000952742255, 0.20002124010660516, -0.1666800464794096, 0.14219442886655656,
    -0.1240534513008482, 0.11888770692638592, -0.1167750657935022, 0.06747559072244573,
)  # fmt: skip
_LOG64 = (
    0.6666666666666264, 0.40000000003068314, 0.2857142778418667, 0.22222318139761227, 0.18175503606174417,
    0.15616099364233446, 0.08868732949179184, 0.47534120600880886,
)  # fmt: skip
_TANH32 = (
    -0.3333327206969318,
    0.13331152524675857,
    -0.05371408765337539,
    0.020551664293558217,
    -0.005603860257872003,
)


def constant(a: Value, number: float) -> Value:
    return const(number, a.type)


def integer_type(a: Value) -> str:
    return vector("i64" if is_double(a) else "i32", lanes_of(a.type))


def is_double(a: Value) -> bool:
    return element_of(a.type) == "double"


def polynomial(f: Function, x: Value, coefficients: Sequence[float]) -> Value:
    """sum(c[i] * x**i) by Horner's rule."""
    total = constant(x, coefficients[-1])
    for each in reversed(coefficients[:-1]):
        total = f.fma(total, x, f.operand(each, x.type))
    return total


def by_pairs(f: Function, x: Value, square: Value, coefficients: Sequence[float]) -> Value:
    """sum(c[i] * x**i), two coefficients at a time; `square` is x * x."""
    pairs = [
        f.fma(x, f.operand(odd, x.type), f.operand(even, x.type))
        for even, odd in zip(coefficients[::2], coefficients[1::2], strict=False)
    ]
    if len(coefficients) % 2:
        pairs.append(f.operand(coefficients[-1], x.type))
    total = pairs[-1]
    for each in reversed(pairs[:-1]):
        total = f.fma(total, square, each)
    return total


def absolute(f: Function, x: Value) -> Value:
    return magnitude(f, x)


def copy_sign(f: Function, size: Value, sign: Value) -> Value:
    """`size` (not negative) with the sign bit of `sign`."""
    kind = integer_type(size)
    top = 1 << 63 if is_double(size) else 1 << 31
    bit = f.binary("and", f.bits(sign, kind), top)
    return f.bits(f.binary("or", f.bits(size, kind), bit), size.type)


def _is_nan(f: Function, x: Value) -> Value:
    return f.compare("uno", x, x)


def clamp(f: Function, x: Value, low: float, high: float) -> Value:
    """x held between two numbers; NaN stays."""
    x = f.select(f.compare("olt", x, constant(x, low)), constant(x, low), x)
    return f.select(f.compare("ogt", x, constant(x, high)), constant(x, high), x)


def _scales(f: Function, x: Value) -> bool:
    """Whether one instruction multiplies a vector of x's kind by powers of two."""
    width = lanes_of(x.type) * (64 if is_double(x) else 32)
    return "avx512f" in f.isa.has and width == 512


def nearest(f: Function, x: Value) -> tuple[Value, Value]:
    """The nearest whole number of a small x, as float and as integer."""
    magic = constant(x, 1.5 * 2.0**52 if is_double(x) else 1.5 * 2.0**23)
    moved = f.fadd(x, magic)
    kind = integer_type(x)
    return f.fsub(moved, magic), f.binary("sub", f.bits(moved, kind), f.bits(magic, kind))


def _exponent(f: Function, x: Value, factor: float = 1.0) -> tuple[Value, Value | None]:
    """The nearest whole number of a small x * factor, as float, and as bits where `_powers` wants them."""
    by = constant(x, factor)
    if _scales(f, x):
        return f.intrinsic("roundeven", x if factor == 1 else f.fmul(x, by)), None
    # The sum's last bits are the number and twice the exponent's bias.
    magic = constant(x, 1.5 * 2.0**52 + 2 * 1023 if is_double(x) else 1.5 * 2.0**23 + 2 * 127)
    moved = f.fadd(x, magic) if factor == 1 else f.fma(x, by, magic)
    return f.fsub(moved, magic), f.bits(moved, integer_type(x))


def _powers(f: Function, bits: Value, type_: str) -> tuple[Value, Value]:
    """Two powers of two, both normal, whose product is 2**n; the bits are of `_exponent`."""
    place = 52 if element_of(type_) == "double" else 23
    half = f.binary("shl", bits, place - 1)
    first = f.binary("and", half, const(-(1 << place), half.type))
    return f.bits(first, type_), f.bits(f.binary("sub", f.binary("add", half, half), first), type_)


def _raised(f: Function, r: Value, coefficients: Sequence[float], whole: Value, bits: Value | None) -> Value:
    """(1 + r * sum(c[i] * r**i)) * 2**n, also where that is subnormal; n is of `_exponent`."""
    if bits is None:
        return _scale_instruction(f, polynomial(f, r, (1.0, *coefficients)), whole)
    # By pairs: fewer products wait for each other, and more vectors are on their way at a time.
    square = f.fmul(r, r)
    start = r if coefficients[0] == 1 else f.fmul(r, constant(r, coefficients[0]))
    above = f.fma(by_pairs(f, r, square, coefficients[1:]), square, start)
    first, rest = _powers(f, bits, r.type)
    return f.fmul(f.fma(above, first, first), rest)


def _scale_instruction(f: Function, x: Value, whole: Value) -> Value:
    """x * 2**n, with one rounding also where the result is subnormal."""
    short, mask = ("pd", "i8") if is_double(x) else ("ps", "i16")
    name = f"llvm.x86.avx512.mask.scalef.{short}.512"
    f.module.declare(name, x.type, [x.type, x.type, x.type, mask, "i32 immarg"])
    inside = f"{x.type} {x.name}, {x.type} {whole.name}, {x.type} zeroinitializer, {mask} -1, i32 4"
    return f.pure(f"call {x.type} @{name}({inside})", x.type)


def _exp_terms(r: Value) -> Sequence[float]:
    """Coefficients of (exp(r) - 1) / r for |r| <= 0.35."""
    return [1 / math.factorial(k) for k in range(1, 14)] if is_double(r) else (1.0, *_EXP32)


def _split(number: float, bits: int) -> tuple[float, float]:
    """The leading bits of a number and the rest, so that a small multiple of the first is exact."""
    power = 2.0 ** (bits - math.frexp(number)[1])
    high = math.floor(number * power) / power
    return high, number - high


def exp(f: Function, x: Value) -> Value:
    """e**x."""
    low, high = (-750.0, 712.0) if is_double(x) else (-105.0, 90.0)
    x = clamp(f, x, low, high)
    whole, bits = _exponent(f, x, _LOG2E)
    if is_double(x):
        # fdlibm's split of ln 2: 33 bits, so that up to 2**20 times the first is exact.
        first, rest = 6.93147180369123816490e-01, 1.90821492927058770002e-10
    else:
        first, rest = _LN2_HI, _LN2_LO
    r = f.fma(whole, f.operand(-rest, x.type), f.fma(whole, f.operand(-first, x.type), x))
    return _raised(f, r, _exp_terms(r), whole, bits)


def exp2(f: Function, x: Value) -> Value:
    """2**x."""
    x = clamp(f, x, -1080.0, 1030.0) if is_double(x) else clamp(f, x, -152.0, 130.0)
    whole, bits = _exponent(f, x)
    r = f.fsub(x, whole)
    if is_double(x):
        r = f.fmul(r, constant(x, math.log(2)))
        return _raised(f, r, _exp_terms(r), whole, bits)
    return _raised(f, r, _EXP2_32, whole, bits)


def exp10(f: Function, x: Value) -> Value:
    """10**x."""
    x = clamp(f, x, -326.0, 310.0) if is_double(x) else clamp(f, x, -46.0, 39.5)
    whole, bits = _exponent(f, x, math.log2(10))
    first, rest = _LOG10_2_PARTS if is_double(x) else _split(math.log10(2), 12)
    r = f.fma(whole, constant(x, -rest), f.fma(whole, constant(x, -first), x))
    r = f.fmul(r, constant(x, math.log(10)))
    return _raised(f, r, _exp_terms(r), whole, bits)


def _log_parts(f: Function, x: Value) -> tuple[Value, Value, Value]:
    """(e, u, v): x = 2**e * (1 + u), v = log(1 + u) - u, for finite x > 0."""
    kind = integer_type(x)
    bits, place, least = (64, 52, 2.0**-1022) if is_double(x) else (32, 23, 2.0**-126)
    tiny = f.compare("olt", x, constant(x, least))
    up = 2.0 ** (54 if bits == 64 else 25)
    pattern = f.bits(f.select(tiny, f.fmul(x, constant(x, up)), x), kind)
    start = 0x3FE6A09E667F3BCD if bits == 64 else 0x3F3504F3  # sqrt(1/2)
    e = f.binary("ashr", f.binary("sub", pattern, start), place)
    mantissa = f.bits(f.binary("sub", pattern, f.binary("shl", e, place)), x.type)
    e = f.cast("sitofp", e, x.type)
    e = f.select(tiny, f.fsub(e, constant(x, 54.0 if bits == 64 else 25.0)), e)
    u = f.fsub(mantissa, constant(x, 1))
    square = f.fmul(u, u)
    if is_double(x):
        s = f.fdiv(u, f.fadd(u, constant(x, 2)))
        z = f.fmul(s, s)
        series = f.fmul(z, polynomial(f, z, _LOG64))
        half = f.fmul(square, constant(x, 0.5))
        # log(1+u) = u - u^2/2 + s (u^2/2 + R(s^2)), as fdlibm arranges it.
        return e, u, f.fsub(f.fmul(s, f.fadd(half, series)), half)
    v = f.fmul(f.fmul(square, u), polynomial(f, u, _LOG32))
    return e, u, f.fma(square, constant(x, -0.5), v)


def _log_edges(f: Function, x: Value, found: Value) -> Value:
    """NaN below 0, -inf at 0, inf and NaN as they are."""
    found = f.select(f.compare("oeq", x, constant(x, math.inf)), x, found)
    found = f.select(f.compare("oeq", x, constant(x, 0)), constant(x, -math.inf), found)
    return f.select(
        f.compare("uge", x, constant(x, 0)), f.select(_is_nan(f, x), x, found), constant(x, math.nan)
    )


def log(f: Function, x: Value) -> Value:
    """The natural logarithm."""
    e, u, v = _log_parts(f, x)
    first, rest = (
        (6.93147180369123816490e-01, 1.90821492927058770002e-10) if is_double(x) else (_LN2_HI, _LN2_LO)
    )
    v = f.fadd(v, f.fmul(e, constant(x, rest)))
    return _log_edges(f, x, f.fadd(f.fmul(e, constant(x, first)), f.fadd(u, v)))


def log2(f: Function, x: Value) -> Value:
    """The logarithm to base 2."""
    e, u, v = _log_parts(f, x)
    above = constant(x, _LOG2E - 1)  # log2(e) = 1 + this: u and v are added once exactly
    low = f.fadd(f.fadd(f.fmul(v, above), f.fmul(u, above)), v)
    return _log_edges(f, x, f.fadd(f.fadd(low, u), e))


def log10(f: Function, x: Value) -> Value:
    """The logarithm to base 10."""
    e, u, v = _log_parts(f, x)
    first, rest = _split(math.log10(math.e), 33 if is_double(x) else 12)
    high, low = _split(math.log10(2), 33 if is_double(x) else 12)
    small = f.fma(v, constant(x, first + rest), f.fmul(u, constant(x, rest)))
    small = f.fma(e, constant(x, low), small)
    return _log_edges(f, x, f.fma(e, constant(x, high), f.fma(u, constant(x, first), small)))


def log1p(f: Function, x: Value) -> Value:
    """log(1 + x), good near 0."""
    one = constant(x, 1)
    u = f.fadd(x, one)
    lost = f.fsub(x, f.fsub(u, one))
    found = f.fadd(log(f, u), f.fdiv(lost, u))
    found = f.select(f.compare("oeq", u, one), x, found)
    edge = f.binary("or", f.compare("oeq", u, constant(x, math.inf)), f.compare("oeq", u, constant(x, 0)))
    return f.select(edge, log(f, u), found)


def sqrt(f: Function, x: Value) -> Value:
    """The square root, rounded right; NaN below 0."""
    return f.intrinsic("sqrt", x)


def rsqrt(f: Function, x: Value) -> Value:
    """1 / sqrt(x) by a division: the processor's estimate has 14 bits."""
    return f.fdiv(constant(x, 1), sqrt(f, x))


def tanh(f: Function, x: Value) -> Value:
    """The hyperbolic tangent."""
    size = magnitude(f, x)
    if is_double(x):
        return copy_sign(f, _tanh_double(f, size), x)
    z = f.fmul(size, size)
    near = f.fma(f.fmul(polynomial(f, z, _TANH32), z), size, size)
    power = exp(f, f.fadd(size, size))
    far = f.fsub(constant(x, 1), f.fdiv(constant(x, 2), f.fadd(power, constant(x, 1))))
    return copy_sign(f, f.select(f.compare("olt", size, constant(x, 0.625)), near, far), x)


def _tanh_double(f: Function, size: Value) -> Value:
    # tanh(x) = m / (m + 2) with m = expm1(2x); for small x expm1 comes from its series.
    twice = clamp(f, f.fadd(size, size), 0.0, 80.0)
    series = [1 / math.factorial(k) for k in range(2, 16)]
    small = f.fma(f.fmul(polynomial(f, twice, series), twice), twice, twice)
    m = f.select(
        f.compare("olt", twice, constant(size, 0.5)), small, f.fsub(exp(f, twice), constant(size, 1))
    )
    return f.fdiv(m, f.fadd(m, constant(size, 2)))


def sigmoid(f: Function, x: Value) -> Value:
    """1 / (1 + e**-x), through e**-|x|, which cannot overflow."""
    power = exp(f, f.fneg(magnitude(f, x)))
    above = f.select(f.compare("olt", x, constant(x, 0)), power, constant(x, 1))
    return f.fdiv(above, f.fadd(constant(x, 1), power))


def _rounded(f: Function, x: Value, name: str) -> Value:
    """`floor`, `ceil`, `trunc`, `roundeven`: an instruction from SSE4.1 on, else through the adder."""
    if "sse4.1" in f.isa.has or not f.isa.triple.startswith("x86"):
        return f.intrinsic(name, x)
    big = constant(x, 2.0**52 if is_double(x) else 2.0**23)
    size = magnitude(f, x)
    near = f.fsub(f.fadd(size, big), big)
    if name == "trunc":
        near = f.select(f.compare("ogt", near, size), f.fsub(near, constant(x, 1)), near)
    signed = copy_sign(f, near, x)
    if name in ("floor", "ceil"):
        how, step = ("ogt", -1.0) if name == "floor" else ("olt", 1.0)
        signed = f.select(f.compare(how, signed, x), f.fadd(signed, constant(x, step)), signed)
        signed = copy_sign(f, magnitude(f, signed), x)
    return f.select(f.compare("olt", size, big), signed, x)


def floor(f: Function, x: Value) -> Value:
    return _rounded(f, x, "floor")


def ceil(f: Function, x: Value) -> Value:
    return _rounded(f, x, "ceil")


def trunc(f: Function, x: Value) -> Value:
    return _rounded(f, x, "trunc")


def round_even(f: Function, x: Value) -> Value:
    """The nearest whole number, ties to even (NumPy's `rint`)."""
    return _rounded(f, x, "roundeven")


def round_away(f: Function, x: Value) -> Value:
    """The nearest whole number, halves away from zero (C's `round`)."""
    below_half = math.nextafter(0.5, 0.0) if is_double(x) else 0.5 - 2.0**-25
    return trunc(f, f.fadd(x, copy_sign(f, constant(x, below_half), x)))


def power(f: Function, a: Value, b: Value) -> Value:
    """a**b. float32 is computed in double; the cases of 0, 1, infinity and NaN follow C's pow."""
    if not is_double(a):
        wide = vector("double", lanes_of(a.type))
        found = power(f, f.cast("fpext", a, wide), f.cast("fpext", b, wide))
        return f.cast("fptrunc", found, a.type)
    size = magnitude(f, a)
    found = exp2(f, f.fmul(b, log2(f, size)))
    whole = f.compare("oeq", trunc(f, b), b)
    half = f.fmul(b, constant(b, 0.5))
    odd = f.binary("and", whole, f.compare("one", trunc(f, half), half))
    negative = f.compare("slt", f.bits(a, integer_type(a)), 0)
    found = f.select(f.binary("and", negative, odd), f.fneg(found), found)
    below = f.compare("olt", a, constant(a, 0))
    finite = f.compare("one", size, constant(a, math.inf))
    broken = f.binary("and", f.binary("and", below, finite), f.compare("one", trunc(f, b), b))
    found = f.select(broken, constant(a, math.nan), found)
    one = constant(a, 1)
    endless = f.compare("oeq", magnitude(f, b), constant(a, math.inf))
    unit = f.binary("and", endless, f.compare("oeq", size, one))
    sure = f.binary("or", f.compare("oeq", b, constant(b, 0)), f.compare("oeq", a, one))
    return f.select(f.binary("or", unit, sure), one, found)
