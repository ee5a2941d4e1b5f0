"""Products of bfloat16 by the processor's dot products of pairs: twice the multiply-adds an instruction.

`vdpbf16ps` adds a[2p] b[2p] + a[2p + 1] b[2p + 1] to a float32, for 16 columns. A lies in rows, where two
neighbours in k are one word of 32 bits; B in panels whose words hold two neighbours in k
(`ColumnPanels(pairs=True)`). Seen in words both are operands of an ordinary micro-kernel.

The instruction takes what is below 2^-126 as zero, its operands and its sums. Where all elements are zero
or at least 2^-50, every product and every sum of products is zero or far above that, so nothing is lost.
Tiles are looked through for smaller ones first (1 to 5 % of a product's time); with one of these the same
kernel widens the words and multiplies in float32.
"""

from __future__ import annotations

from dataclasses import replace

from ..llvm import Function, Index, Value, const, i64, vector
from ..llvm.lanes import whole_steps
from ..machine import Isa
from .gemm import Block, GemmEmitter
from .pack import TileOperand

WORD = "uint32"
# The bits of 2^-50 in bfloat16.
_LEAST = (127 - 50) << 7


def has_pairs(isa: Isa) -> bool:
    """Whether an instruction set has the dot products of pairs, in its widest registers."""
    return "avx512bf16" in isa.has and isa.vector_bytes == 64


def in_words(operand: TileOperand) -> TileOperand:
    """A tile of bfloat16 as one of words: rows of half as many, panels of as many for two rows."""
    field = "panel_stride" if operand.panel else "row"
    stride = getattr(operand, field)
    return replace(operand, dtype=WORD, **{field: stride // 2})


def emit_pair_gemm(
    f: Function, a: TileOperand, b: TileOperand, c: TileOperand, m: Index, n: Index, k: Index, block: Block,
    *, accumulate: bool | Value = True, even: bool = False,
) -> None:  # fmt: skip
    """Emit C[:m, :n] (+)= A[:m, :k] B[:k, :n]; A and B are given in words, k (at least 1) in elements.

    `accumulate` as in `emit_gemm`; `even` says that k is.
    """
    m, n, k = none_or(f, f.value(m)), none_or(f, f.value(n)), f.value(k)
    words = f.binary("lshr", k, 1)
    odd = i64(0) if even else f.binary("and", k, 1)
    every = f.add(words, odd)
    tiny = f.binary("or", _has_tiny(f, a, m, every), _has_tiny(f, b, n, every))
    plain = f.binary("xor", tiny, _flag(True))
    some = f.compare("sgt", words, 0) if not even else _flag(True)
    adds = _flag(accumulate) if isinstance(accumulate, bool) else accumulate
    with f.when(f.binary("and", plain, some)):
        _Pairs(f, a, b, c, m, n, "float", block).run(i64(0), words, accumulate)
    with f.when(f.binary("and", tiny, some)):
        _Widened(f, a, b, c, m, n, "float", block).run(i64(0), words, accumulate)
    if odd.integer == 0:
        return
    with f.when(f.compare("ne", odd, 0)):
        _Last(f, a, b, c, m, n, "float", block).run(words, i64(1), f.binary("or", adds, some))


def none_or(f: Function, count: Value) -> Value:
    """A count, or 0 where it is negative: halves and panels of it are counted without a sign."""
    if count.integer is not None:
        return i64(max(count.integer, 0))
    return f.select(f.compare("sgt", count, 0), count, i64(0))


def _flag(given: bool) -> Value:
    return Value(str(int(given)), "i1")


class _Pairs(GemmEmitter):
    """The micro-kernel on words: one dot product for each vector of words."""

    def to_compute(self, value: Value, dtype: str) -> Value:
        return value

    def multiply_add(self, left: Value, right: Value, total: Value) -> Value:
        f = self.f
        name, half = "llvm.x86.avx512bf16.dpbf16ps.512", vector("bfloat", 2 * self.lanes)
        f.module.declare(name, total.type, [total.type, half, half])
        a, b = f.bits(left, half), f.bits(right, half)
        inside = f"{total.type} {total.name}, {half} {a.name}, {half} {b.name}"
        return f.pure(f"call {total.type} @{name}({inside})", total.type)


class _Widened(_Pairs):
    """The same on words whose elements are widened: two multiply-adds in float32."""

    halves = (0, 1)

    def multiply_add(self, left: Value, right: Value, total: Value) -> Value:
        for half in self.halves:
            total = self.f.fma(self.widened(left, half), self.widened(right, half), total)
        return total

    def widened(self, words: Value, half: int) -> Value:
        """The first or second element of each word."""
        f = self.f
        sixteen, upper = const(16, words.type), const(-(1 << 16), words.type)
        bits = f.binary("and", words, upper) if half else f.binary("shl", words, sixteen)
        return f.bits(bits, vector("float", self.lanes))


class _Last(_Widened):
    """Of the last word of an odd k the first elements alone: what is beside them is nobody's."""

    halves = (0,)


def _has_tiny(f: Function, operand: TileOperand, count: Value, words: Value) -> Value:
    """Whether an element is not zero and below 2^-50: among `count` rows, or in panels of `count` columns."""
    lanes = f.isa.lanes(4)
    nothing = const(-1, vector("i16", 2 * lanes))
    if operand.panel:
        lines = f.binary("udiv", f.add(count, operand.panel - 1), operand.panel)
        length, stride = f.mul(words, operand.panel), operand.panel_stride
    else:
        lines, length, stride = count, words, operand.row
    with f.loop(0, lines, 1, [nothing]) as line:
        start = f.at(operand.pointer, f.mul(line.index, stride), "i32")
        whole = whole_steps(f, length, lanes)
        with f.loop(0, whole, lanes, line.carried) as turn:
            word = f.load(f.at(start, turn.index, "i32"), vector("i32", lanes))
            turn.next = [_least(f, word, turn.carried[0])]
        with f.loop(whole, length, lanes, turn.results) as turn:
            mask = f.lane_mask(f.sub(length, turn.index), lanes)
            word = f.masked_load(f.at(start, turn.index, "i32"), vector("i32", lanes), mask)
            turn.next = [_least(f, word, turn.carried[0])]
        line.next = turn.results
    (least,) = line.results
    return f.any_lane(f.compare("ult", least, const(_LEAST - 1, least.type)))


def _least(f: Function, words: Value, least: Value) -> Value:
    """The least magnitude so far, less one: of zero that is the greatest number there is."""
    halves = f.bits(words, least.type)
    size = f.binary("and", halves, const(0x7FFF, least.type))
    below = f.binary("sub", size, const(1, least.type))
    return f.intrinsic("umin", below, least)
