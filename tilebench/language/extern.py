"""CUDA text of a kernel's own: `T.import_source`, `T.Kernel(prelude=)`, and calls of its functions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from ..errors import DTypeError, LanguageError
from ..ir import Extern
from .meanings.extern import MEANINGS
from .tracing.builder import here, in_trace, inside_kernel
from .tracing.dtype_words import plain
from .tracing.expressions import Value
from .tracing.promote import expr_of

if TYPE_CHECKING:
    from .tracing.taken import DTypeLike, Number

# What C calls the same: values of narrower floats are held in types of the text's own.
PLAIN = (
    "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
)  # fmt: skip
_NAME = re.compile(r"[A-Za-z_]\w*(::[A-Za-z_]\w*)*")
_NO_VALUE = ("handle", "void", "")


def import_source(source: str | None = None) -> None:
    """CUDA text that stands in front of the kernels of this function: functions that `T.call_extern` calls.

    Each text stands there once. On the CPU, the reference and in the simulator it means nothing by itself.
    Raises `LanguageError` for what is no text.
    """
    add_source(source, "T.import_source")


def add_source(source: object, word: str) -> None:
    """Keep a text for the front of the kernels; None is none."""
    builder = in_trace(word)
    if source is None:
        return
    if not isinstance(source, str):
        raise LanguageError(
            "{word} takes CUDA text", word=word, found="{kind}", kind=type(source).__name__,
            hint="read the file before the kernel: text = Path(...).read_text()",
        )  # fmt: skip
    if source not in builder.sources:
        builder.sources.append(source)


def call_extern(
    dtype: DTypeLike, name: str, *args: Number, meaning: Callable[..., Any] | None = None
) -> Value:
    """The value of a function of `T.import_source`'s text: `T.call_extern("float32", "my_gelu", x)`.

    The function takes values and returns one, of 32-bit or wider floats, integers or bools; it sees nothing
    else and has no effect, and may be called for elements that nobody uses. Only a card runs it. `meaning`, a
    function of NumPy arrays, is what the reference and the simulator take for it; how exact it is nobody
    says, so a check compares nothing that depends on it. Raises `LanguageError` for a name that is none and
    for a call without a value, `DTypeError` for other dtypes.
    """
    inside_kernel("T.call_extern")
    if not isinstance(name, str) or not _NAME.fullmatch(name):  # pyright: ignore[reportUnnecessaryIsInstance]  # a person's own
        raise LanguageError("T.call_extern takes the name of a function", text=repr(name), found="{text}")
    if isinstance(dtype, str) and dtype in _NO_VALUE:
        raise LanguageError(
            "{name} of T.call_extern returns nothing, and what it does to memory is not known", name=name,
            hint="write a function of values that returns one, and store that: A[i] = T.call_extern(...)",
        )  # fmt: skip
    given = tuple(expr_of(arg) for arg in args)
    for part in (plain(dtype), *(arg.dtype for arg in given)):
        if part.name not in PLAIN:
            raise DTypeError(
                "{name} of T.call_extern cannot take or give {dtype}", name=name, dtype=part,
                expected="{known}", known=", ".join(PLAIN), hint="convert it: T.cast(x, 'float32')",
            )  # fmt: skip
    if meaning is not None:
        MEANINGS[name] = meaning
    return Value(Extern("call_extern", given, type=plain(dtype), name=name, place=here()))


def _no_pointers(word: str) -> NoReturn:
    raise LanguageError(
        "{word} gives a pointer, and what is done through it is not known", word=word,
        hint="pass values to T.call_extern, A[i], and store what it returns",
    )  # fmt: skip


def access_ptr(*_: Any, **__: Any) -> NoReturn:
    """Raises `LanguageError`: functions of a kernel's own text take values here, and return one."""
    _no_pointers("T.access_ptr")


def address_of(*_: Any) -> NoReturn:
    """Raises `LanguageError`, as `T.access_ptr` does."""
    _no_pointers("T.address_of")


__all__ = ["access_ptr", "address_of", "call_extern", "import_source"]
