"""Sums, maxima and minima that several threads and blocks form together: `T.atomic_add` and its kin.

Each combines an element of shared or global memory with a value, as one step whoever else does so; in which
order is nobody's to say. Of tiles it is each element with its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import DTypeError, LanguageError, ShapeError
from ..ir import Expr, Load, Stmt, Store, Var
from .notes import note_unused
from .structure import Parallel
from .tracing.builder import Builder, for_tiles, inside_kernel
from .tracing.kinds import Tile as AnyTile
from .tracing.operands import TileOperand, on_chip_reach, part_of
from .tracing.promote import convert
from .tracing.stores import stored
from .tracing.values import BufferView, ElementRef, RegionRef

if TYPE_CHECKING:
    from .tracing.taken import Number, Tile

# A card and a processor change 2 to 8 bytes as one step.
_LEAST_BITS = 16


def atomic_add(
    dst: Tile, value: Number | Tile, memory_order: str | None = None, return_prev: bool = False, *,
    use_tma: bool = False,
) -> None:  # fmt: skip
    """Add to an element, `T.atomic_add(C[i, j], x)`, or a tile to a region, `T.atomic_add(C[i, 0], tile)`.

    `dst` lies in shared or global memory. Inside T.Parallel each iteration adds, elsewhere the block once.
    Outside of `dst` nothing is added. `memory_order` may be "relaxed": nothing else is ordered by it.
    Raises `ShapeError` for tiles that do not match, `DTypeError` for elements of fewer than 16 bits.
    """
    note_unused("T.atomic_add", use_tma=use_tma)
    _atomic("add", dst, value, memory_order, return_prev)


def atomic_max(
    dst: Tile, value: Number | Tile, memory_order: str | None = None, return_prev: bool = False
) -> None:
    """The greater of an element and a value into the element, as `T.atomic_add` adds; a NaN loses."""
    _atomic("max", dst, value, memory_order, return_prev)


def atomic_min(
    dst: Tile, value: Number | Tile, memory_order: str | None = None, return_prev: bool = False
) -> None:
    """The lesser of an element and a value into the element, as `T.atomic_add` adds; a NaN loses."""
    _atomic("min", dst, value, memory_order, return_prev)


def atomic_or(
    dst: Tile, value: Number | Tile, memory_order: str | None = None, return_prev: bool = False
) -> None:
    """The bits of a value into an element of integers, as `T.atomic_add` adds."""
    _atomic("or", dst, value, memory_order, return_prev)


def _atomic(how: str, dst: Any, value: Any, memory_order: str | None, return_prev: bool) -> None:
    word = f"T.atomic_{how}"
    if return_prev:
        raise LanguageError("{word}(return_prev=True) is TileLang's, not here yet", word=word)
    if memory_order not in (None, "relaxed"):
        raise LanguageError(
            "{word}(memory_order={order!r}) is TileLang's, not here yet", word=word, order=memory_order,
            hint="here it orders nothing else, which is \"relaxed\"",
        )  # fmt: skip
    builder = inside_kernel(word)
    target = part_of(dst, word)
    _check_memory(target, word)
    if how == "or" and not target.view.buffer.dtype.is_integer:
        raise DTypeError(
            "{word} takes integers, found {dtype}", word=word, dtype=target.view.buffer.dtype,
            also=[target.declared],
        )  # fmt: skip
    if isinstance(value, (BufferView, RegionRef)) or (
        isinstance(value, ElementRef) and not isinstance(dst, ElementRef)
    ):
        builder.emit(_of_tiles(for_tiles(word), how, target, part_of(value, word)))
        return
    dst = dst[()] if isinstance(dst, BufferView) and dst.ndim == 0 else dst
    if not isinstance(dst, ElementRef):
        if isinstance(value, AnyTile) or target.extent is None:
            raise LanguageError("{word} takes an element and a value, or two tiles", word=word)
        builder.emit(_of_tiles(for_tiles(word), how, target, stored(value, target.view.buffer.dtype)))
        return
    target.view.check_element("write")
    new = stored(value, target.view.buffer.dtype)
    builder.emit(Store(target.view.buffer, dst.index, new, atomic=how, place=builder.place))


def _check_memory(target: TileOperand, word: str) -> None:
    buffer = target.view.buffer
    if buffer.scope not in ("shared", "global"):
        raise LanguageError(
            "{word} works on shared and global memory, and {name} is a {scope}", word=word, name=buffer.name,
            scope=buffer.scope, also=[target.declared],
            hint="what a thread has to itself is assigned: {name}[i] += value",
        )  # fmt: skip
    if buffer.dtype.bits < _LEAST_BITS:
        raise DTypeError(
            "{word} has no single step for {dtype}", word=word, dtype=buffer.dtype, also=[target.declared],
            expected="elements of 16 bits or more",
        )  # fmt: skip


def _of_tiles(builder: Builder, how: str, target: TileOperand, value: TileOperand | Expr) -> Stmt:
    """Each element of a region with its own of a tile, or with one value: a parallel loop."""
    source = value if isinstance(value, TileOperand) else None
    extent = target.extent or (source.extent if source is not None else None)
    if extent is None:
        raise ShapeError("neither side of T.atomic_{how} says how many elements there are", how=how)
    on_chip_reach(target, extent, f"T.atomic_{how}")
    own = tuple(each for each in extent if each != 1) or (1,)
    names = tuple(Var(builder.unique(f"i{axis}")) for axis in range(len(own)))
    index = _index(target, target.extent or extent, own, names)
    if source is not None:
        there = _index(source, source.extent or extent, own, names)
        element: Expr = convert(
            Load(source.view.buffer, there, place=builder.place), target.view.buffer.dtype
        )
    else:
        assert isinstance(value, Expr)  # no operand
        element = value
    store = Store(target.view.buffer, index, element, atomic=how, place=builder.place)
    return Parallel(own, names, (store,), place=builder.place)


def _index(
    part: TileOperand, extent: tuple[int, ...], own: tuple[int, ...], names: tuple[Var, ...]
) -> tuple[Expr, ...]:
    """The element of a side that the names choose: extents are aligned to the right, those of 1 stand."""
    rank = part.view.ndim
    extent = (1,) * (rank - len(extent)) + extent[-rank:] if rank else ()
    if (tuple(each for each in extent if each != 1) or (1,)) != own:
        raise ShapeError(
            "the two sides of this sum have different extents", what=part.described, wanted=own,
            expected="the same extents on both sides, apart from extents of 1", found="{what}, and {wanted}",
            also=[part.declared],
        )  # fmt: skip
    moving = iter(names)
    return tuple(
        start + next(moving) if each != 1 else start
        for start, each in zip(part.region.start, extent, strict=True)
    )
