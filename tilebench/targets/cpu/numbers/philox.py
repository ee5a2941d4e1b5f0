"""Philox 4x32-10 as LLVM vector code; the numbers are `language.meanings.philox`'s."""

from __future__ import annotations

from ....language.meanings.philox import MULTIPLIERS, ROUNDS, STEPS
from ..llvm import Function, Value, const, lanes_of, vector


def philox(f: Function, word: Value, *words: Value) -> Value:
    """Word `word % 4` of the block of a counter and a key, all i32."""
    a, b, c, d, key, other = words
    for _ in range(ROUNDS):
        first, second = _product(f, a, MULTIPLIERS[0]), _product(f, c, MULTIPLIERS[1])
        a, b, c, d = (
            f.binary("xor", f.binary("xor", second[0], b), key), second[1],
            f.binary("xor", f.binary("xor", first[0], d), other), first[1],
        )  # fmt: skip
        key, other = f.add(key, _word(key, STEPS[0])), f.add(other, _word(other, STEPS[1]))
    odd = f.compare("ne", f.binary("and", word, 1), 0)
    upper = f.compare("ne", f.binary("and", word, 2), 0)
    return f.select(upper, f.select(odd, d, c), f.select(odd, b, a))


def _product(f: Function, x: Value, number: int) -> tuple[Value, Value]:
    """The upper and the lower half of a product."""
    wide = vector("i64", lanes_of(x.type))
    product = f.mul(f.cast("zext", x, wide), const(number, wide))
    return f.cast("trunc", f.binary("lshr", product, 32), x.type), f.cast("trunc", product, x.type)


def _word(like: Value, number: int) -> Value:
    return const(number - (1 << 32) if number >> 31 else number, like.type)
