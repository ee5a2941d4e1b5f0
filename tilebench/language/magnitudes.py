"""`T.reduce_absmax` and `T.reduce_abssum`, of the absolute values; `T.reduce`, by the name of its type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import DTypeError, LanguageError
from ..ir import Buffer, Load, Store, Var
from .elementwise import abs as magnitude
from .memory import AllocFragment
from .reduce import BITS, reduce_by, reduce_max, reduce_sum
from .structure import Parallel
from .tracing.builder import for_tiles
from .tracing.expressions import Value
from .tracing.operands import whole_part
from .tracing.values import BufferView

if TYPE_CHECKING:
    from .tracing.taken import Tile


def reduce_absmax(
    buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, batch: int = 1, nan_propagate: bool = False
) -> None:
    """The greatest magnitude along `dim`; see `T.reduce_max`. `clear=False` keeps a greater old value."""
    reduce_max(_magnitudes(buffer, "T.reduce_absmax"), out, dim, clear, batch, nan_propagate)


def reduce_abssum(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, batch: int = 1) -> None:
    """The sum of magnitudes along `dim`; see `T.reduce_sum`. With `clear=False` the old value is added."""
    reduce_sum(_magnitudes(buffer, "T.reduce_abssum"), out, dim, clear)


def reduce(buffer: Tile, out: Tile, reduce_type: str, dim: int = -1, clear: bool = True) -> None:
    """A reduction by its name: "sum", "max", "min", "abssum", "absmax", "bitand", "bitor" or "bitxor"."""
    of_magnitudes = {"abssum": reduce_abssum, "absmax": reduce_absmax}
    named = ("sum", "max", "min", *BITS)
    if reduce_type in of_magnitudes:
        of_magnitudes[reduce_type](buffer, out, dim, clear)
        return
    if reduce_type not in named:
        raise LanguageError(
            "T.reduce has no type {name!r}", name=reduce_type, known=", ".join((*named, "abssum", "absmax")),
            expected="one of {known}",
        )  # fmt: skip
    reduce_by(reduce_type, buffer, out, dim, clear)


def _magnitudes(buf: Tile, word: str) -> Tile:
    """A fragment with the magnitudes of a tile, itself where none has a sign; `DTypeError` for bools."""
    builder, src = for_tiles(word), whole_part(buf, word)
    dtype = src.view.buffer.dtype
    if dtype.kind == "bool":
        raise DTypeError(
            "{word} takes numbers, found {dtype}", word=word, dtype=dtype, also=[src.declared],
            hint="T.reduce_max and T.reduce_sum reduce bools",
        )  # fmt: skip
    if dtype.kind == "uint":
        return buf
    tile = Buffer(builder.unique(f"{src.name}_abs"), src.view.buffer.extents, dtype, "fragment")
    builder.emit(AllocFragment(tile, place=builder.place))
    names = tuple(Var(builder.unique(f"i{axis}")) for axis in range(tile.rank))
    value = magnitude(Value(Load(src.view.buffer, names, place=builder.place)))
    store = Store(tile, names, value.expr, place=builder.place)
    builder.emit(Parallel(tile.extents, names, (store,), place=builder.place))
    return BufferView(tile, builder.frames[-1], builder.place)


__all__ = ["reduce", "reduce_absmax", "reduce_abssum"]
