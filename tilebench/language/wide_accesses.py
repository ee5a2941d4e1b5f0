"""Bits of vectors, and accesses of so many bits: `T.reinterpret(v, T.float32x4)`, `T.ldg128`, `T.sts64`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import DTypeError, LanguageError, ShapeError
from ..ir import Expr, Load, Reinterpret
from .bits import reinterpret as bits_of
from .elementwise import cast as cast_to
from .tracing.arithmetic import truth
from .tracing.builder import here
from .tracing.dtype_words import plain
from .tracing.expressions import WORDS, DTypeWord, Value
from .tracing.promote import expr_of
from .tracing.values import BufferView, ElementRef, RegionRef
from .vectors import VectorValue, VectorWord, count_along, loaded, stored_at

if TYPE_CHECKING:
    from .tracing.taken import Condition, DTypeLike, Number, Tile


def reinterpret(value: Number | VectorValue, dtype: DTypeLike | VectorWord) -> Any:
    """The bits of a value as one of another dtype of the same width: `T.reinterpret(x, "uint32")`.

    TileLang's older order, `T.reinterpret("uint32", x)`, is taken too. A Python number is a float32 or int32.
    A vector may become one of other elements, or one value, of as many bits; low bits are first elements.
    Raises `DTypeError` for dtypes of different widths, bools and dtypes of 4 bits. Of a narrow float
    that is NaN the payload may change.
    """
    if isinstance(dtype, VectorWord) or isinstance(value, VectorValue):
        vector = value if isinstance(value, VectorValue) else VectorValue((Value(expr_of(value)),))
        return _reinterpreted(vector, dtype if isinstance(dtype, VectorWord) else WORDS[plain(dtype).name])
    return bits_of(value, dtype)


def _reinterpreted(vector: VectorValue, wanted: VectorWord | DTypeWord) -> Any:
    """The bits of a vector as one of another type of as many bits, or as one value."""
    source = vector.dtype
    goal = VectorWord(wanted, 1) if isinstance(wanted, DTypeWord) else wanted
    if source.bits != goal.bits or "bool" in (source.element.name, goal.element.name):
        raise DTypeError(
            "T.reinterpret of {source} as {target}", source=source.name, target=getattr(wanted, "name", ""),
            bits=source.bits, expected="a type of {bits} bits, not of bools",
        )  # fmt: skip
    parts = _turned(vector.parts, source.element, goal.element)
    return parts[0] if isinstance(wanted, DTypeWord) else VectorValue(parts)


def _turned(parts: Sequence[Any], source: DTypeWord, goal: DTypeWord) -> list[Any]:
    if source.bits == goal.bits:
        return [_same_bits(part, goal) for part in parts]
    narrow, wide = sorted((source.bits, goal.bits))
    times, low, high = wide // narrow, f"uint{narrow}", f"uint{wide}"
    if source.bits < goal.bits:
        codes = [cast_to(bits_of(part, low), high) for part in parts]
        sums: list[Any] = []
        for first in range(0, len(codes), times):
            total = codes[first]
            for k in range(1, times):
                total = total | (codes[first + k] << (narrow * k))
            sums.append(bits_of(total, goal))
        return sums
    whole = [bits_of(part, high) for part in parts]
    return [bits_of(cast_to(code >> (narrow * k), low), goal) for code in whole for k in range(times)]


def _same_bits(part: Any, goal: DTypeWord) -> Any:
    """A value's bits as another dtype; what were bits of that dtype before is that again."""
    before = expr_of(part)
    if isinstance(before, Reinterpret) and before.value.dtype == goal:
        inside = before.value
        own = isinstance(inside, Load) and inside.buffer.scope == "local"
        return ElementRef(BufferView(inside.buffer, None, here()), inside.index) if own else Value(inside)  # type: ignore[union-attr]
    return bits_of(part, goal)


def _wide_load(name: str, bits: int, scope: str, src: Tile, pred: Condition | None) -> Any:
    view, start, count = _side(name, bits, scope, src)
    test = None if pred is None else truth(expr_of(pred))
    vector = loaded(view, start, count, test)
    word = WORDS["uint32"]
    return _reinterpreted(vector, word if bits == 32 else VectorWord(word, bits // 32))


def _wide_store(word: str, bits: int, scope: str, dst: Tile, value: Any, pred: Condition | None) -> None:
    view, start, _ = _side(word, bits, scope, dst)
    given = value if isinstance(value, VectorValue) else VectorValue((Value(expr_of(value)),))
    if given.dtype.bits != bits:
        raise DTypeError(
            "{word} stores {bits} bits, found {given}", word=word, bits=bits, given=given.dtype.bits
        )
    parts = _turned(given.parts, given.dtype.element, view.dtype)
    stored_at(view, start, VectorValue(parts), None if pred is None else truth(expr_of(pred)))


def _side(word: str, bits: int, scope: str, given: Tile) -> tuple[BufferView, tuple[Expr, ...], int]:
    """The buffer, the first element and how many make so many bits."""
    part: object = given
    if not isinstance(part, (ElementRef, RegionRef)):
        raise LanguageError("{word} takes an element or a box, A[i : i + 4]", word=word)
    view, dtype = part.view, part.view.buffer.dtype
    if view.scope != scope:
        raise LanguageError(
            "{word} works on {wanted} memory, and {name} is in {memory}", word=word, wanted=scope,
            name=view.name, memory=view.scope, also=[("{name} is declared here", view.place)],
        )  # fmt: skip
    if dtype.bits < 8 or dtype.bits > bits or dtype.name == "bool":
        raise DTypeError(
            "{word} of {dtype}: {bits} bits are no whole elements", word=word, dtype=dtype, bits=bits
        )
    count = bits // dtype.bits
    start = part.index if isinstance(part, ElementRef) else part.region.start
    if isinstance(part, RegionRef) and count_along(part.region.extent, view.name) != count:
        raise ShapeError(
            "{word} moves {count} elements of {dtype}, and this box has {box}", word=word, count=count,
            dtype=dtype, box=part.region.extent,
        )  # fmt: skip
    return view, start, count


def ldg32(src: Tile, pred: Condition | None = None) -> Any:
    """32 aligned bits of global memory by one access, a uint32; 0 where `pred` is false."""
    return _wide_load("T.ldg32", 32, "global", src, pred)


def ldg64(src: Tile, pred: Condition | None = None) -> Any:
    """64 aligned bits of global memory by one access, a vector of 2 uint32; 0 where `pred` is false."""
    return _wide_load("T.ldg64", 64, "global", src, pred)


def ldg128(src: Tile, pred: Condition | None = None) -> Any:
    """128 aligned bits of global memory by one access, a vector of 4 uint32; 0 where `pred` is false."""
    return _wide_load("T.ldg128", 128, "global", src, pred)


def ldg256(src: Tile, pred: Condition | None = None) -> Any:
    """256 aligned bits of global memory by one access, a vector of 8 uint32; 0 where `pred` is false."""
    return _wide_load("T.ldg256", 256, "global", src, pred)


def lds32(src: Tile, pred: Condition | None = None) -> Any:
    """32 aligned bits of shared memory by one access, a uint32; 0 where `pred` is false."""
    return _wide_load("T.lds32", 32, "shared", src, pred)


def lds64(src: Tile, pred: Condition | None = None) -> Any:
    """64 aligned bits of shared memory by one access, a vector of 2 uint32; 0 where `pred` is false."""
    return _wide_load("T.lds64", 64, "shared", src, pred)


def lds128(src: Tile, pred: Condition | None = None) -> Any:
    """128 aligned bits of shared memory by one access, a vector of 4 uint32; 0 where `pred` is false."""
    return _wide_load("T.lds128", 128, "shared", src, pred)


def stg32(dst: Tile, value: Any, pred: Condition | None = None) -> None:
    """Store a value or vector of 32 bits in global memory, where `pred` is not false."""
    _wide_store("T.stg32", 32, "global", dst, value, pred)


def stg64(dst: Tile, value: Any, pred: Condition | None = None) -> None:
    """Store a value or vector of 64 bits in global memory, where `pred` is not false."""
    _wide_store("T.stg64", 64, "global", dst, value, pred)


def stg128(dst: Tile, value: Any, pred: Condition | None = None) -> None:
    """Store a value or vector of 128 bits in global memory, where `pred` is not false."""
    _wide_store("T.stg128", 128, "global", dst, value, pred)


def stg256(dst: Tile, value: Any, pred: Condition | None = None) -> None:
    """Store a value or vector of 256 bits in global memory, where `pred` is not false."""
    _wide_store("T.stg256", 256, "global", dst, value, pred)


def sts32(dst: Tile, value: Any, pred: Condition | None = None) -> None:
    """Store a value or vector of 32 bits in shared memory, where `pred` is not false."""
    _wide_store("T.sts32", 32, "shared", dst, value, pred)


def sts64(dst: Tile, value: Any, pred: Condition | None = None) -> None:
    """Store a value or vector of 64 bits in shared memory, where `pred` is not false."""
    _wide_store("T.sts64", 64, "shared", dst, value, pred)


def sts128(dst: Tile, value: Any, pred: Condition | None = None) -> None:
    """Store a value or vector of 128 bits in shared memory, where `pred` is not false."""
    _wide_store("T.sts128", 128, "shared", dst, value, pred)


__all__ = [
    "ldg32",
    "ldg64",
    "ldg128",
    "ldg256",
    "lds32",
    "lds64",
    "lds128",
    "reinterpret",
    "stg32",
    "stg64",
    "stg128",
    "stg256",
    "sts32",
    "sts64",
    "sts128",
]  # fmt: skip
