"""Sizes that are known only when a kernel is launched: `T.dynamic("m")`, shapes and grids made of them."""

from __future__ import annotations

import keyword
import re
from typing import TYPE_CHECKING, Any

from ..errors import LanguageError, ShapeError
from ..ir import Arith, Const, Expr, Var, int32, show, walk
from .tracing.dtype_words import plain
from .tracing.operands import at_least, indexable
from .tracing.promote import convert
from .tracing.values import Value

if TYPE_CHECKING:
    from .tracing.taken import DTypeLike


def dynamic(names: str, dtype: DTypeLike = "int32") -> Any:
    """Extents that each call reads from its arrays: `m = T.dynamic("m")`, `m, n = T.dynamic("m, n")`.

    A name stands in shapes and strides of `T.Tensor` and `T.StridedTensor`, in the grid, and in the kernel
    as an int32. The kernel is compiled once for all sizes. `names` are divided by commas or blanks; one
    name gives one value, several a tuple. Raises `LanguageError` for what is no name, or another dtype.
    """
    parts = re.split(r"[,\s]+", names.strip()) if hasattr(names, "strip") else [""]
    if not parts[0]:
        raise LanguageError('T.dynamic takes names, T.dynamic("m, n") say', text=repr(names), found="{text}")
    if plain(dtype) != int32:
        raise LanguageError(
            "T.dynamic makes sizes of dtype int32, found {dtype}", dtype=plain(dtype),
            hint="the array itself may have more than 2^31 elements",
        )  # fmt: skip
    for name in parts:
        if not name.isidentifier() or keyword.iskeyword(name) or name == "T":
            raise LanguageError("{name!r} is no name for a size", name=name, expected="a name such as m")
    sizes = tuple(Value(Var(name)) for name in parts)
    return sizes[0] if len(sizes) == 1 else sizes


def symbolic(names: str, dtype: DTypeLike = "int32") -> Any:
    """TileLang's older name of `T.dynamic`."""
    return dynamic(names, dtype)


def size_of(given: object, word: str, what: str, least: int = 0) -> int | Expr:
    """A size of a signature or grid: an integer of at least `least`, or made of names of `T.dynamic`.

    Raises `ShapeError` or `LanguageError` for anything else.
    """
    if not isinstance(given, Value):
        return at_least(least, given, word, what)
    expr = given.expr
    if not expr.dtype.is_integer or not all(isinstance(part, (Var, Const, Arith)) for part in walk(expr)):
        raise ShapeError(
            "{what} of {word} is made of sizes and whole numbers", what=what, word=word, text=show(expr),
            found="{text}", hint="names of T.dynamic with + - * // %",
        )  # fmt: skip
    return convert(expr, int32)


def global_shape(given: object, word: str) -> tuple[int | Expr, ...]:
    """The shape of an array in global memory: a size or a tuple or list of them."""
    parts: list[object] = list(given) if isinstance(given, (tuple, list)) else [given]  # pyright: ignore[reportUnknownArgumentType]
    if not parts:
        raise ShapeError("{word} needs a shape of at least one dimension", word=word)
    sizes = [size_of(part, word, f"extent {axis}") for axis, part in enumerate(parts)]
    return tuple(
        indexable(size, word, axis) if isinstance(size, int) else size for axis, size in enumerate(sizes)
    )
