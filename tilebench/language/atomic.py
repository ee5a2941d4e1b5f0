"""What several threads and blocks form together, and tell each other: `T.atomic_add` and its kin.

Each combines an element of shared or global memory with a value, as one step whoever else does so; in which
order is nobody's to say. Of tiles it is each element with its own. What was there before, where it is asked
for, goes into a scalar of the thread (`Store.found`), so that no expression does anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import DTypeError, LanguageError, ShapeError
from ..ir import ACQUIRES, MEMORY_ORDERS, RELEASES, Buffer, Expr, Let, Load, Stmt, Store, Var, zero_of
from .memory import AllocVar
from .notes import note_unused
from .structure import Parallel
from .tracing.builder import Builder, for_tiles, inside_kernel
from .tracing.expressions import Value
from .tracing.kinds import Tile as AnyTile
from .tracing.operands import TileOperand, on_chip_reach, part_of
from .tracing.promote import convert
from .tracing.stores import stored
from .tracing.values import BufferView, ElementRef, RegionRef

if TYPE_CHECKING:
    from .tracing.taken import Number, Tile

# A card and a processor change 2 to 8 bytes as one step.
_LEAST_BITS = 16
# What only reads or only writes cannot order the other way.
_OF_ONE_SIDE = {
    "load": [each for each in MEMORY_ORDERS if each == "relaxed" or (each in ACQUIRES and each != "acq_rel")],
    "store": [
        each for each in MEMORY_ORDERS if each == "relaxed" or (each in RELEASES and each != "acq_rel")
    ],
}


def atomic_add(
    dst: Tile, value: Number | Tile, memory_order: str | None = None, return_prev: bool = False, *,
    use_tma: bool = False,
) -> Value | None:  # fmt: skip
    """Add to an element, `T.atomic_add(C[i, j], x)`, or a tile to a region, `T.atomic_add(C[i, 0], tile)`.

    `dst` lies in shared or global memory. Inside T.Parallel each iteration adds, elsewhere the block once.
    Outside of `dst` nothing is added. With `return_prev` it gives what the element was before, in its dtype,
    0 outside of `dst`; of tiles that is refused. Who comes first is nobody's to say: a kernel may count on
    each finding another value, and not on which.

    `memory_order` is "relaxed" (nothing else is ordered), "acquire" (what follows comes after it), "release"
    (what is before it comes first), "acq_rel" or "seq_cst", as in C++, among all threads of the card. In code
    of tiles it orders what the block did, in code of threads and in T.Parallel what the thread did.
    Raises `ShapeError` for tiles that do not match, `DTypeError` for elements of fewer than 16 bits.
    """
    note_unused("T.atomic_add", use_tma=use_tma)
    return _atomic("add", dst, value, memory_order, return_prev)


def atomic_max(
    dst: Tile, value: Number | Tile, memory_order: str | None = None, return_prev: bool = False
) -> Value | None:
    """The greater of an element and a value into the element, as `T.atomic_add` adds; a NaN loses."""
    return _atomic("max", dst, value, memory_order, return_prev)


def atomic_min(
    dst: Tile, value: Number | Tile, memory_order: str | None = None, return_prev: bool = False
) -> Value | None:
    """The lesser of an element and a value into the element, as `T.atomic_add` adds; a NaN loses."""
    return _atomic("min", dst, value, memory_order, return_prev)


def atomic_or(
    dst: Tile, value: Number | Tile, memory_order: str | None = None, return_prev: bool = False
) -> Value | None:
    """The bits of a value into an element of integers, as `T.atomic_add` adds."""
    return _atomic("or", dst, value, memory_order, return_prev)


def atomic_load(src: Tile, memory_order: str = "seq_cst") -> Value:
    """What an element of shared or global memory is, while others may change it by atomics.

    `memory_order` is "relaxed", "acquire" or "seq_cst" (see `T.atomic_add`). Raises `LanguageError` for what
    is no element, `DTypeError` for elements of fewer than 16 bits.
    """
    found = _atomic("load", src, 0, memory_order, return_prev=True)
    assert found is not None  # asked for
    return found


def atomic_store(dst: Tile, src: Number, memory_order: str = "seq_cst") -> None:
    """`dst[i] = src`, while others may read the element by atomics; see `T.atomic_load`.

    `memory_order` is "relaxed", "release" or "seq_cst". Inside T.Parallel each iteration stores, elsewhere
    the block once.
    """
    _atomic("store", dst, src, memory_order, return_prev=False)


def _order(how: str, memory_order: str | None) -> str:
    """The order by the name that a stage has; what a load or store cannot have is refused."""
    order = "acquire" if memory_order == "consume" else memory_order or "relaxed"
    known = [each for each in MEMORY_ORDERS if each in _OF_ONE_SIDE.get(how, MEMORY_ORDERS)]
    if order not in known:
        raise LanguageError(
            "T.atomic_{how} has no memory_order={order!r}", how=how, order=memory_order,
            expected=", ".join(f'"{each}"' for each in known),
        )  # fmt: skip
    return order


def _atomic(how: str, dst: Any, value: Any, memory_order: str | None, return_prev: bool) -> Value | None:
    word = f"T.atomic_{how}"
    order = _order(how, memory_order)
    builder = inside_kernel(word)
    target = part_of(dst, word)
    _check_memory(target, word)
    if how == "or" and not target.view.buffer.dtype.is_integer:
        raise DTypeError(
            "{word} takes integers, found {dtype}", word=word, dtype=target.view.buffer.dtype,
            also=[target.declared],
        )  # fmt: skip
    dst = dst[()] if isinstance(dst, BufferView) and dst.ndim == 0 else dst
    source = None
    if isinstance(value, (BufferView, RegionRef)) or (
        isinstance(value, ElementRef) and not isinstance(dst, ElementRef)
    ):
        source = part_of(value, word)
    if isinstance(dst, ElementRef) and source is None:
        return _of_element(builder, how, dst, value, order, return_prev)
    if how in _OF_ONE_SIDE or (source is None and (isinstance(value, AnyTile) or target.extent is None)):
        takes = "an element" if how == "load" else "an element and a value"
        raise LanguageError(
            "{word} takes {takes}", word=word,
            takes=takes if how in _OF_ONE_SIDE else f"{takes}, or two tiles",
        )  # fmt: skip
    if return_prev:
        raise LanguageError(
            "{word}(return_prev=True) gives what one element was before, and these are tiles", word=word,
            hint="for i in T.Parallel(n): old = {word}(C[i], x[i], return_prev=True)",
        )  # fmt: skip
    of = source or stored(value, target.view.buffer.dtype)
    builder.emit(_of_tiles(for_tiles(word), how, target, of, order))
    return None


def _of_element(
    builder: Builder, how: str, dst: ElementRef, value: Any, order: str, return_prev: bool
) -> Value | None:
    buffer, place = dst.view.buffer, builder.place
    dst.view.check_element("write")
    new = zero_of(buffer.dtype) if how == "load" else stored(value, buffer.dtype)
    found = None
    if return_prev:
        found = Buffer(builder.unique(f"{buffer.name}_found"), (), buffer.dtype, "var")
        builder.emit(AllocVar(found, init=zero_of(buffer.dtype), place=place))
    builder.emit(Store(buffer, dst.index, new, atomic=how, found=found, order=order, place=place))
    if found is None:
        return None
    # A name, because that is the same wherever threads carry it.
    old = Var(builder.unique("old"), type=buffer.dtype, place=place)
    builder.emit(Let(old, Load(found, (), place=place), place=place))
    return Value(old)


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


def _of_tiles(builder: Builder, how: str, target: TileOperand, value: TileOperand | Expr, order: str) -> Stmt:
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
    store = Store(target.view.buffer, index, element, atomic=how, order=order, place=builder.place)
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
