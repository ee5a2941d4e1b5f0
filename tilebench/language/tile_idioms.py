"""Words that others express: `T.transpose` of a tile, `T.any_of` and `T.all_of` over elements."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from ..errors import LanguageError, ShapeError
from ..ir import Expr, Load, Store, Var
from .structure import Parallel
from .tracing.arithmetic import logical, truth
from .tracing.builder import for_tiles, inside_kernel
from .tracing.expressions import Value
from .tracing.operands import TileOperand, part_of
from .tracing.promote import convert

if TYPE_CHECKING:
    from .tracing.taken import Tile

# Elements that a condition is written out over; a reduction does more of them together.
_MOST = 256


def transpose(src: Tile, dst: Tile) -> None:
    """The transpose of a tile of two dimensions: `dst[j, i] = src[i, j]`, converted to dst's dtype.

    Both are tiles or boxes of them, in shared memory or registers, that share no element. Raises `ShapeError`
    where the extents do not fit.
    """
    builder = for_tiles("T.transpose")
    source, target = (part_of(each, "T.transpose") for each in (src, dst))
    box, turned = _matrix(source), _matrix(target)
    if box != turned[::-1]:
        raise ShapeError(
            "T.transpose of {a} gives {b}, but {name} has {c}", a=box, b=box[::-1], name=target.name,
            c=turned, also=[source.declared, target.declared],
        )  # fmt: skip
    memory = builder.memory_of(source.view.buffer)
    if memory == builder.memory_of(target.view.buffer):
        raise LanguageError(
            "T.transpose of {name} into itself", name=memory,
            hint="transpose it into another tile: its elements would be read while they are written",
        )  # fmt: skip
    i, j = Var(builder.unique("i")), Var(builder.unique("j"))
    value = Load(source.view.buffer, _inside(source, (i, j)), place=builder.place)
    stored = convert(value, target.view.buffer.dtype)
    store = Store(target.view.buffer, _inside(target, (j, i)), stored, place=builder.place)
    builder.emit(Parallel(box, (i, j), (store,), place=builder.place))


def _matrix(part: TileOperand) -> tuple[int, ...]:
    extent = part.extent or ()
    if len(extent) < 2 or any(size != 1 for size in extent[:-2]):
        raise ShapeError(
            "T.transpose takes tiles of two dimensions, {what}", what=part.described, also=[part.declared]
        )
    return extent[-2:]


def _inside(part: TileOperand, index: tuple[Var, Var]) -> tuple[Expr, ...]:
    lead = part.region.start[:-2]
    return (*lead, *(low + each for low, each in zip(part.region.start[-2:], index, strict=True)))


def any_of(buffer: Tile) -> Value:
    """Whether any element of a buffer or box is not zero, as a value: `if T.any_of(mask[i, 0:8]):`."""
    return _over("T.any_of", "or", buffer)


def all_of(buffer: Tile) -> Value:
    """Whether no element of a buffer or box is zero, as a value."""
    return _over("T.all_of", "and", buffer)


def _over(word: str, op: str, buffer: Tile) -> Value:
    builder = inside_kernel(word)
    part = part_of(buffer, word)
    extent = part.extent or (1,) * part.view.ndim
    points = list(product(*map(range, extent)))
    if len(points) > _MOST:
        raise ShapeError(
            "{word} of {count} elements", word=word, count=len(points), most=_MOST,
            expected="at most {most}", hint="T.reduce_max of the tile, as int32, tells the same",
            also=[part.declared],
        )  # fmt: skip
    if part.view.scope == "fragment" and builder.within("parallel") is None:
        builder.lone.setdefault(part.name, builder.place)
    loads = [
        truth(Load(part.view.buffer, tuple(a + b for a, b in zip(part.region.start, point, strict=True)),
                   place=builder.place))
        for point in points
    ]  # fmt: skip
    return Value(logical(op, loads))


__all__ = ["all_of", "any_of", "transpose"]
