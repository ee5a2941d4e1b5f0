"""Other spellings that TileLang has of words here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import DTypeError, LanguageError
from ..ir import DType
from .annotations import Tensor
from .elementwise import cast, if_then_else
from .grid_barriers import sync_grid
from .launch import Parallel
from .tracing.builder import shown
from .tracing.dtype_words import plain
from .tracing.expressions import SHORT, WORDS, DTypeWord, Pending, Value

if TYPE_CHECKING:
    from .tracing.taken import Condition, DTypeLike, Number


class _AnyDType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, DType)


class dtype(metaclass=_AnyDType):
    """The word of a dtype, from a string or a type of NumPy or torch: `T.dtype("float16")` is `T.float16`.

    Every dtype is an instance of it. Raises `DTypeError` for what is no dtype.
    """

    def __new__(cls, given: Any) -> DTypeWord:  # type: ignore[misc]
        return WORDS[plain(given).name]


def Cast(dtype: DTypeLike, value: Number) -> Value:
    """`T.cast(value, dtype)`, with its arguments in the other order."""
    if not isinstance(dtype, (str, DType)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DTypeError("T.Cast takes the dtype first", hint="T.Cast(dtype, value), or T.cast(value, dtype)")
    return cast(value, dtype)


def Select(condition: Condition, a: Number, b: Number) -> Any:
    """`T.if_then_else(condition, a, b)`: no value has effects, so which are evaluated makes no difference."""
    return if_then_else(condition, a, b)


def let(name: Value, value: Number) -> None:
    """Give `x = T.int32()` its value: `T.let(x, value)`, once, in front of every use; `x = value` does both.

    Raises `LanguageError` for another name, and for one that has its value.
    """
    given: object = name
    if not isinstance(given, Pending):
        raise LanguageError(
            "T.let gives a value to a name of its own", text=shown(given), found="{text}",
            hint="x = T.int32(), then T.let(x, value); or x = value",
        )  # fmt: skip
    given.give(value)


def sync_global() -> None:
    """`T.sync_grid()`: every block of the launch waits for all others."""
    sync_grid()


Buffer = Tensor
boolean = WORDS["bool"]
parallel = Parallel
float8_e4m3 = WORDS["float8_e4m3fn"]
uint = SHORT["uint"]
# Products of float32 are formed in float32, which is more than was asked for.
tfloat32 = SHORT["tfloat32"]

__all__ = [
    "Buffer", "Cast", "Select", "boolean", "dtype", "float8_e4m3", "let", "parallel", "sync_global",
    "tfloat32", "uint",
]  # fmt: skip
