"""`T.atomic_addx2` and `T.atomic_addx4`: neighbours along the last dimension, added as T.atomic_add does."""

from __future__ import annotations

from typing import Any

from ..errors import LanguageError
from .atomic import atomic_add
from .memory import alloc_local
from .tracing.expressions import Value
from .tracing.values import BufferView, ElementRef


def atomic_addx2(dst: Any, value: Any, return_prev: bool = False) -> BufferView | None:
    """Add two elements to two: `T.atomic_addx2(C[i, j], A[i, j])` is `j` and `j + 1`, of both sides.

    Each is one step and the pair is not, as on the cards. A side is an element, the first of the pair, or a
    buffer of one dimension. With `return_prev` it gives what both were before, an array of the thread's own
    of two elements, `old[0]` and `old[1]`. Raises what `T.atomic_add` raises.
    """
    return _neighbours(2, dst, value, return_prev)


def atomic_addx4(dst: Any, value: Any, return_prev: bool = False) -> BufferView | None:
    """Add four elements to four, as `T.atomic_addx2` adds two."""
    return _neighbours(4, dst, value, return_prev)


def _neighbours(count: int, dst: Any, value: Any, return_prev: bool) -> BufferView | None:
    word = f"T.atomic_addx{count}"
    sides = [_first(side, word, count) for side in (dst, value)]
    found: list[Value] = []
    for place in range(count):
        to, of = (side.view[(*map(Value, side.index[:-1]), Value(side.index[-1]) + place)] for side in sides)
        old = atomic_add(to, of, return_prev=return_prev)
        found += [old] if old is not None else []
    if not found:
        return None
    all_ = alloc_local((count,), found[0].dtype)
    for place, old in enumerate(found):
        all_[place] = old
    return all_


def _first(side: Any, word: str, count: int) -> ElementRef:
    """The first element of one side."""
    if isinstance(side, BufferView) and side.ndim == 1:
        side = side[0]
    if not isinstance(side, ElementRef) or not side.index:
        raise LanguageError(
            "{word} adds {count} elements to {count} others, and this is none of a buffer's",
            word=word, count=count, expected="the first element of each side: {word}(C[i, j], A[i, j])",
        )  # fmt: skip
    return side


__all__ = ["atomic_addx2", "atomic_addx4"]
