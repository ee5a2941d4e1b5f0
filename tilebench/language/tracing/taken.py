"""What the words of a kernel take, by the names that their signatures show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import FunctionType
from typing import TypeAlias

from ...ir import DType
from .expressions import Value
from .values import BufferView, ElementRef, RegionRef

# A buffer, a region of it, or the head address of one.
Tile: TypeAlias = BufferView | RegionRef | ElementRef
# A value of the running kernel, or one that Python knows.
Number: TypeAlias = Value | int | float
Whole: TypeAlias = Value | int
Condition: TypeAlias = Value | bool
Shape: TypeAlias = Whole | Sequence[Whole]
DTypeLike: TypeAlias = DType | str


class _Note(str):
    """An annotation that stands in a signature as it is written: `A: Tile`, not `A: 'Tile'`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def show_types(words: Iterable[object]) -> None:
    """Let the signatures of functions, classes and dtypes say their types without quotes."""
    for word in words:
        made = [vars(word).get(name) for name in ("__new__", "__init__")] if isinstance(word, type) else []
        for called in (word, type(word).__call__, *made):
            function = called.__func__ if isinstance(called, staticmethod) else called
            if isinstance(function, FunctionType):
                notes = function.__annotations__
                notes.update({name: _Note(note) for name, note in notes.items() if isinstance(note, str)})
