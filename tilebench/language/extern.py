"""CUDA text of a kernel's own: `T.import_source`, `T.Kernel(prelude=)`, and calls of its functions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from ..errors import DTypeError, IRError, LanguageError
from ..ir import DType, Expr, Extern, OpStmt, Region, Word, attribute, node, operand, points
from ..ir.node import ACCUMULATES, READS, WRITES
from .meanings.extern import MEANINGS
from .pointers import Pointer
from .stages import EVERY
from .tracing.builder import here, in_trace, inside_kernel
from .tracing.dtype_words import plain
from .tracing.expressions import Value
from .tracing.promote import expr_of

if TYPE_CHECKING:
    from .tracing.taken import DTypeLike

# What C calls the same: values of narrower floats are held in types of the text's own.
PLAIN = (
    "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
)  # fmt: skip
_NAME = re.compile(r"[A-Za-z_]\w*(::[A-Za-z_]\w*)*")
_NO_VALUE = ("handle", "void", "")
# What a function does through a pointer, and whether it may be anywhere in the buffer.
KINDS = {"r": (READS, False), "w": (WRITES, False), "rw": (ACCUMULATES, False), "p": (ACCUMULATES, True)}


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


@node
class ExternCall(OpStmt):
    """`T.call_extern("f", A_l[0 : 4], B_l[0 : 8], form="r w x", values=(8,))`: a function with pointers.

    `form` has a word for each of its arguments: `r`, `w` and `rw` for a pointer to one of the regions, by
    what is done there, `p` for one of which that is not known, `x` for one of the values. Inside T.Parallel
    the thread of an element calls it, outside all threads of the block, in `threaded` then `together`.
    """

    word = "call_extern"
    stages = EVERY
    name: str = attribute()
    regions: tuple[Region, ...] = points(star=True)
    form: str = attribute(default="")
    values: tuple[Expr, ...] = operand(default=())
    together: bool = attribute(default=False)

    @property
    def modes(self) -> list[str]:
        """What is done through each pointer."""
        found = [word for word in self.form.split() if word != "x"]
        if len(found) != len(self.regions) or not set(found) <= KINDS.keys():
            raise IRError(
                "{form!r} does not say what {name} does", form=self.form, name=self.name, at=self.place,
                expected="r, w, rw or p for each region, x for each value",
            )  # fmt: skip
        return found

    @property
    def kinds(self) -> list[tuple[str, bool]]:
        """The effect behind each pointer, and whether it may be anywhere in the buffer."""
        return [KINDS[mode] for mode in self.modes]

    def arguments(self) -> list[Region | Expr]:
        """Regions and values in the order of the function's parameters."""
        regions, values = iter(self.regions), iter(self.values)
        return [next(values) if word == "x" else next(regions) for word in self.form.split()]


def call_extern(
    dtype_or_name: DTypeLike,
    *args: Any,
    dtype: DTypeLike | None = None,
    meaning: Callable[..., Any] | None = None,
) -> Any:
    """A function of `T.import_source`'s text: `T.call_extern("float32", "my_gelu", x)`.

    One of values alone returns one, of 32-bit or wider floats, integers or bools; it has no effect and may
    be called for elements that nobody uses. With pointers (`T.access_ptr`) it is a statement, as
    `T.call_extern("handle", "decode", T.access_ptr(L, "r"), T.access_ptr(R, "w"), 8)`: each thread calls it
    in code of threads, that of the element inside T.Parallel, all threads of the block elsewhere. `dtype=`
    behind the name is taken too. Only a card runs it. `meaning`, a function of NumPy arrays (of one
    dimension for a pointer; those that are written are filled in place), is what the reference and the
    simulator take for it; how exact it is nobody says, so a check compares nothing that depends on it.
    Raises `LanguageError` for a name that is none and for a call without a value or pointer, `DTypeError`
    for other dtypes.
    """
    inside_kernel("T.call_extern")
    given = (dtype, dtype_or_name, *args) if dtype is not None else (dtype_or_name, *args)
    kind, name, rest = given[0], given[1] if len(given) > 1 else None, given[2:]
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise LanguageError("T.call_extern takes the name of a function", text=repr(name), found="{text}")
    if meaning is not None:
        MEANINGS[name] = meaning
    if any(isinstance(arg, Pointer) for arg in rest):
        return _with_pointers(name, rest)
    if isinstance(kind, str) and kind in _NO_VALUE:
        raise LanguageError(
            "{name} of T.call_extern returns nothing, and what it does is not known", name=name,
            hint="give it a pointer to what it writes: T.access_ptr(A[i], \"w\")",
        )  # fmt: skip
    result, values = plain(kind), tuple(expr_of(arg) for arg in rest)
    _refuse_dtypes(name, (result, *(value.dtype for value in values)))
    return Value(Extern("call_extern", values, type=result, name=name, place=here()))


class NoValue(Value):
    """What a call with pointers gives: it is a statement."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def expr(self) -> NoReturn:  # pyright: ignore[reportIncompatibleVariableOverride]  # it has none
        raise LanguageError(
            "{name} of T.call_extern has pointers, and gives no value", name=self.name,
            hint="let it write its result through a pointer, and read that",
        )  # fmt: skip


def _with_pointers(name: str, args: tuple[Any, ...]) -> NoValue:
    regions = tuple(arg.region for arg in args if isinstance(arg, Pointer))
    values = tuple(expr_of(arg) for arg in args if not isinstance(arg, Pointer))
    _refuse_dtypes(name, tuple(value.dtype for value in values))
    form = " ".join(arg.mode if isinstance(arg, Pointer) else "x" for arg in args)
    inside_kernel("T.call_extern").emit(ExternCall(name, regions, form=form, values=values, place=here()))
    return NoValue(name)


def _refuse_dtypes(name: str, dtypes: tuple[DType, ...]) -> None:
    for part in dtypes:
        if part.name not in PLAIN:
            raise DTypeError(
                "{name} of T.call_extern cannot take or give {dtype}", name=name, dtype=part,
                expected="{known}", known=", ".join(PLAIN), hint="convert it: T.cast(x, 'float32')",
            )  # fmt: skip


WORDS = (("call_extern", Word(ExternCall)),)

__all__ = ["call_extern", "import_source"]
