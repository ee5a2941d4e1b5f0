"""Words of a kernel function whose own body is the kernel: its constants and the arrays that it makes.

@tilebench.jit
def double(A, block=128):
    N = T.const("N")
    A: T.Tensor((N,), "float32")
    B = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, block)) as bx:
        ...
    return B
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import LanguageError
from ..ir import Buffer, Var
from .dynamic import global_shape
from .tracing.builder import Builder, in_trace
from .tracing.dtype_words import plain
from .tracing.values import BufferView, Value

if TYPE_CHECKING:
    from .tracing.taken import DTypeLike


@dataclass(eq=False)
class EagerTrace:
    """What a trace of such a function knows: the numbers of its constants, and the arrays that it has made.

    `symbolic`: a constant without a number stands for itself, so that shapes tell what it must be.
    """

    constants: Mapping[str, int]
    symbolic: bool = False
    named: dict[str, Var] = field(default_factory=dict[str, Var])
    made: dict[str, Buffer] = field(default_factory=dict[str, Buffer])


def names_of_const(names: object) -> list[str]:
    """The names in the text of `T.const`. Raises `LanguageError` for what is no name."""
    parts = re.split(r"[,\s]+", names.strip()) if isinstance(names, str) else [""]
    for name in parts:
        if not name.isidentifier() or keyword.iskeyword(name) or name == "T":
            raise LanguageError('T.const takes names, T.const("M, N") say', text=repr(names), found="{text}")
    return parts


def const(names: str, dtype: DTypeLike = "int32") -> Any:
    """Sizes that are numbers when the kernel is compiled: `M, N = T.const("M, N")`.

    A call reads them from the shapes of its arrays, `compile(M=1024, N=512)` names them. One name gives one
    number, several a tuple. Raises `LanguageError` where a name has no number, or outside a kernel function
    whose body is the kernel.
    """
    trace = _eager("T.const").eager
    parts = names_of_const(names)
    if not plain(dtype).is_integer:
        raise LanguageError("T.const makes whole numbers, found {dtype}", dtype=plain(dtype))
    found: list[Any] = []
    for name in parts:
        if name in trace.constants:
            found.append(trace.constants[name])
        elif trace.symbolic:
            found.append(Value(trace.named.setdefault(name, Var(name))))
        else:
            raise LanguageError(
                "the constant {name} has no number", name=name,
                hint="call the function with its arrays, or name it: .compile({name}=1024)",
            )  # fmt: skip
    return found[0] if len(found) == 1 else tuple(found)


def empty(*shape: Any, dtype: DTypeLike | None = None) -> BufferView:
    """An array that each call makes and the function returns: `C = T.empty((M, N), dtype)`.

    The extents may stand alone, `T.empty(M, N, dtype=dtype)`; without a dtype it is float32. Its elements are
    undefined until the kernel writes them. Raises `ShapeError`, `DTypeError`, and `LanguageError` inside
    `with T.Kernel` or outside a kernel function whose body is the kernel.
    """
    builder = _eager("T.empty")
    extents: Any = shape
    if dtype is None and len(shape) == 2 and not isinstance(shape[1], (int, Value)):
        extents, dtype = shape
    elif len(shape) == 1:
        (extents,) = shape
    if len(builder.frames) > 1:
        raise LanguageError(
            "T.empty makes an array that the call returns, before `with T.Kernel`",
            hint="T.alloc_shared and T.alloc_fragment make the tiles of a block",
        )
    name = builder.allocation_name("T.empty")
    kind = plain("float32" if dtype is None else dtype)
    buffer = Buffer(name, global_shape(extents, "T.empty"), kind, "global")
    builder.eager.made[name] = buffer
    return BufferView(buffer, None, builder.place)


def _eager(word: str) -> Builder:
    """The running trace, of a function whose body is the kernel."""
    builder = in_trace(word)
    if builder.eager is None:
        raise LanguageError(
            "{word} belongs to a kernel function whose own body is the kernel", word=word,
            hint="a @T.prim_func has its arrays in its signature, and sizes from the function around it",
        )  # fmt: skip
    return builder
