"""Division of many vectors by one number, as a product with its reciprocal made exact.

A 16-lane division takes a 512-bit x86 core 16 cycles, the six instructions here about 6; the result
is the same to the last bit. With r = 1/d rounded, q = x r is corrected twice by the remainder
x - q d, which a fused multiply-add gives exactly (Markstein, IBM J. Res. Dev. 34(1), 1990). The
remainder must not underflow, so vectors with a lane outside [2^-100, 2^100] that is not +0, and
divisors outside [2^-20, 2^25], take the division itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from .llvm import Function, Value, const, lanes_of, vector

_LOW, _HIGH = (127 - 100) << 23, (127 + 100) << 23


@dataclass(frozen=True)
class Divisor:
    """What is worked out once for a divisor: its reciprocal and negative in all lanes, and whether it is in range."""

    reciprocal: Value
    negative: Value
    good: Value


def prepare(f: Function, d: Value, lanes: int) -> Divisor:
    """The divisor `d`, a float scalar, for vectors of that many lanes."""
    reciprocal = f.fdiv(const(1.0, "float"), d)
    above = f.compare("oge", d, const(2.0**-20, "float"))
    good = f.binary("and", above, f.compare("ole", d, const(2.0**25, "float")))
    return Divisor(f.splat(reciprocal, lanes), f.splat(f.fneg(d), lanes), good)


def divide(f: Function, x: Value, d: Value, by: Divisor) -> Value:
    """`x / d` for float vectors, correctly rounded."""
    q = f.fmul(x, by.reciprocal)
    for _ in range(2):
        q = f.fma(f.fma(by.negative, q, x), by.reciprocal, q)
    lanes = lanes_of(x.type)
    bits = f.bits(x, vector("i32", lanes))
    inside = f.compare("ult", f.binary("sub", bits, _LOW), const(_HIGH - _LOW, bits.type))
    fine = f.bits(f.binary("or", inside, f.compare("eq", bits, 0)), f"i{lanes}")
    all_fine = f.pure(f"icmp eq {fine.type} {fine.name}, -1", "i1")
    return f.choose(f.binary("and", all_fine, by.good), q, lambda: f.fdiv(x, d))
