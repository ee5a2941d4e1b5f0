"""How a tensor core sums the products of one instruction.

Products are exact. With the old sum they are aligned to the largest exponent among them and cut off behind
some bits, added as integers, and the total is cut off to some bits: Fasi, Higham, Mikaitis and Pranesh,
"Numerical behavior of NVIDIA tensor cores" (2021), and Li et al., "MMA-Sim" (2025), for Hopper: 16 products
of 16-bit floats at once, 25 bits behind the point, 24 of the total; of 8-bit floats 32 products, 13 bits
behind the point, and as many of the total. Recorded results of a card hold this to it.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from ....ir import DType


class Adder(NamedTuple):
    """Products that are added at once, bits behind the point of the largest, and those of the total."""

    together: int
    bits: int
    kept: int


WIDE = Adder(16, 25, 23)
# Of 8-bit floats: the fewest bits that a card has.
NARROW = Adder(32, 13, 13)
# The exponents of the smallest normal numbers.
LEAST_EXPONENTS = {
    "float16": -14, "bfloat16": -126, "float32": -126, "float8_e4m3fn": -6, "float8_e5m2": -14,
}  # fmt: skip
# Below every exponent that counts.
_LEAST = -1000


def product_sums(a: Any, b: Any, c: Any, dtype: DType) -> Any:
    """C + A B of matrices (warps, m, k), (warps, k, n), (warps, m, n), in C's dtype; `dtype` is A's."""
    if not dtype.is_float:
        return (c.astype(np.int64) + a.astype(np.int64) @ b.astype(np.int64)).astype(c.dtype)
    if dtype.bits == 64:
        return _one_by_one(a, b, c)
    if dtype.bits == 32:
        a, b = _as_tf32(a), _as_tf32(b)
    adder = NARROW if dtype.bits == 8 else WIDE
    for first in range(0, a.shape[2], adder.together):
        part = slice(first, first + adder.together)
        c = _added(a[:, :, part], b[:, part], c, adder)
    return c


def _as_tf32(x: Any) -> Any:
    """Float32 with the last 13 bits of its mantissa set to zero."""
    return (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def _one_by_one(a: Any, b: Any, c: Any) -> Any:
    """Doubles are fused multiply-adds along k; the wider type may round a second time."""
    with np.errstate(invalid="ignore", over="ignore"):  # infinities and what is of them are results here
        for k in range(a.shape[2]):
            wide = a[:, :, k, None].astype(np.longdouble) * b[:, None, k, :].astype(np.longdouble)
            c = (wide + c).astype(np.float64)
    return c


def _added(a: Any, b: Any, c: Any, adder: Adder) -> Any:
    least = [LEAST_EXPONENTS.get(part.dtype.name, _LEAST) for part in (a, b)]
    x, y, old = (part.astype(np.float64) for part in (a, b, c))
    with np.errstate(invalid="ignore", over="ignore"):
        plain = old + x @ y
        special = ~np.isfinite(plain)
        total = _cut_sum(x, y, old, adder, least) if not special.all() else plain
    return cast("Any", np.where(special, plain, total)).astype(c.dtype)


def _cut_sum(x: Any, y: Any, old: Any, adder: Adder, least: list[int]) -> Any:
    """The sum of products and the old value with terms cut off behind some bits, as float32 values."""
    products = np.nan_to_num(x[:, :, :, None] * y[:, None, :, :], nan=0.0, posinf=0.0, neginf=0.0)
    old = np.nan_to_num(old, nan=0.0, posinf=0.0, neginf=0.0)
    exponents = _exponent(x, least[0])[:, :, :, None] + _exponent(y, least[1])[:, None, :, :]
    exponents = np.where(products == 0, _LEAST, exponents).max(axis=2)
    top = np.maximum(exponents, np.where(old == 0, _LEAST, _exponent(old, -126)))
    scale = adder.bits - top
    whole = np.trunc(np.ldexp(products, scale[:, :, None, :])).sum(axis=2) + np.trunc(np.ldexp(old, scale))
    total = np.ldexp(whole, -scale)
    if adder.kept < WIDE.kept:
        behind = adder.kept + 1 - np.frexp(total)[1]
        total = np.ldexp(np.trunc(np.ldexp(total, behind)), -behind)
    return cut_off(total)


def _exponent(x: Any, least: int) -> Any:
    """The exponent that a number is stored with, that of the smallest normal one for those below it."""
    return np.where(x == 0, _LEAST, np.maximum(np.frexp(x)[1] - 1, least))


def cut_off(x: Any) -> Any:
    """A float64 as the float32 next to it towards zero."""
    near = x.astype(np.float32)
    beyond = np.abs(near.astype(np.float64)) > np.abs(x)
    below: Any = np.nextafter(near, np.float32(0))
    return cast("Any", np.where(beyond, below, near))
