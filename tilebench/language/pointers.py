"""Pointers into a kernel's memory, for functions of its own text: `T.access_ptr`, `T.address_of`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from ..errors import LanguageError, ShapeError
from ..ir import Buffer, Const, Expr, Region
from .tracing.builder import here, inside_kernel, shown
from .tracing.operands import whole_number
from .tracing.promote import convert, expr_of
from .tracing.values import BufferView, ElementRef, RegionRef, VarRef

if TYPE_CHECKING:
    from .tracing.taken import Number, Tile, Whole

MODES = {"r": "r", "w": "w", "rw": "rw", 1: "r", 2: "w", 3: "rw"}


@dataclass(frozen=True)
class Pointer:
    """The address of a region's first element. `mode` is `r`, `w`, `rw`, or `p`: anywhere in the buffer."""

    region: Region
    mode: str

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise LanguageError("a pointer goes to a function, and is nothing else", hint="T.call_extern(...)")


def access_ptr(
    base: Tile | Number,
    access_type: str | int = "r",
    *extents: Whole,
    offset: Whole = 0,
    extent: int | None = None,
    ignore_last_ndim: int = 0,
) -> Any:
    """A pointer for `T.call_extern`: to a buffer, a box or an element, and what the function does there.

    `access_type` is "r", "w" or "rw" (or 1, 2, 3). A buffer or box gives all of itself, an element itself
    alone, or `extents` (`extent` in all) elements from there on, which have to lie one behind the other.
    `offset` goes on by elements of the last dimension, `ignore_last_ndim` dimensions start at 0. On a card
    nothing tests that they lie inside. Raises `LanguageError` for a fragment, whose elements lie in many
    threads, for 4-bit elements and for a view, `ShapeError` for elements that do not follow each other.
    """
    word = "T.access_ptr"
    inside_kernel(word)
    mode = MODES.get(access_type)
    if mode is None:
        raise LanguageError(
            "T.access_ptr has no access_type {given!r}", given=access_type, expected="'r', 'w' or 'rw'"
        )
    region = _base(word, base)
    start = list(region.start)
    for axis in range(
        ignore_last_ndim and len(start) - ignore_last_ndim, len(start) if ignore_last_ndim else 0
    ):
        start[axis] = Const(0)
    if start:
        start[-1] = start[-1] + convert(expr_of(offset), start[-1].dtype)
    given = tuple(whole_number(part, word, "an extent") for part in _flat(extents))
    count = None if extent is None else whole_number(extent, word, "extent")
    if count is None and given:
        count = 1
        for part in given:
            count *= part
    box = region.extent if count is None else _box(region.buffer, tuple(start), count)
    box = (1,) * len(start) if box is None else box
    _refuse_gaps(region.buffer, box)
    return Pointer(Region(region.buffer, tuple(start), extent=box, place=here()), mode)


def address_of(buffer: Tile | Number) -> Any:
    """A pointer to an element for `T.call_extern`, which may read and write anywhere in its buffer.

    `T.access_ptr` says more: what is done, and to which elements. Raises `LanguageError` as that does.
    """
    inside_kernel("T.address_of")
    region = _base("T.address_of", buffer)
    return Pointer(region.but(extent=(1,) * len(region.start)), "p")


def _flat(extents: tuple[Any, ...]) -> list[Any]:
    out: list[Any] = []
    for part in extents:
        out += list(part) if isinstance(part, (tuple, list)) else [part]  # pyright: ignore[reportUnknownArgumentType]
    return out


def _base(word: str, base: Any) -> Region:
    """What a pointer is to, an element as a box of one. Raises `LanguageError` for what has no address."""
    start: tuple[Expr, ...]
    extent: tuple[int, ...] | None
    match base:
        case VarRef():
            start, extent = (), ()
        case ElementRef():
            start, extent = base.index, (1,) * len(base.index)
        case RegionRef():
            start, extent = base.region.start, base.region.extent
        case BufferView():
            start, extent = (Const(0),) * base.ndim, _extents(word, base)
        case _:
            raise LanguageError(
                "{word} takes a buffer, a part of one or an element",
                word=word,
                found="{kind}",
                kind=shown(base),
            )
    view: BufferView = base if isinstance(base, BufferView) else base.view
    view.check_scope()
    _refuse_buffer(word, view.buffer)
    return Region(view.buffer, start, extent=extent, place=here())


def _extents(word: str, view: BufferView) -> tuple[int, ...]:
    shape = view.buffer.shape
    if all(isinstance(extent, int) for extent in shape):
        return tuple(extent for extent in shape if isinstance(extent, int))
    raise ShapeError(
        "{word} of all of {name}, whose sizes are read from the arrays of a call", word=word, name=view.name,
        hint="say where it begins and how many elements it is: T.access_ptr(A[0, 0], \"r\", 128)",
    )  # fmt: skip


def _refuse_buffer(word: str, buffer: Buffer) -> None:
    if buffer.scope == "fragment":
        raise LanguageError(
            "{name} has no address: its elements lie in the registers of many threads", name=buffer.name,
            hint="T.copy it to T.alloc_shared, or its elements to T.alloc_local of a thread",
        )  # fmt: skip
    if buffer.dtype.per_byte > 1:
        raise LanguageError(
            "an element of {name} has no address: two of them share a byte", name=buffer.name,
            hint="T.view(A, dtype=\"uint8\") is its bytes",
        )  # fmt: skip
    views = inside_kernel(word).views
    if buffer.name in views:
        raise LanguageError(
            "{name} is a view of {other}", name=buffer.name, other=views[buffer.name].name,
            hint="take the pointer of {other} itself: a function casts it as it likes",
        )  # fmt: skip


def _box(buffer: Buffer, start: tuple[Expr, ...], count: int) -> tuple[int, ...]:
    """The box of `count` elements from an element on: rows are taken whole behind the first dimension."""
    box = [1] * len(start)
    left = count
    for axis in reversed(range(len(start))):
        size = buffer.shape[axis]
        if isinstance(size, int) and left > size and axis:
            if left % size or start[axis] != Const(0):
                raise ShapeError(
                    "{count} elements from here on are no box of {name}", count=count, name=buffer.name,
                    shape=buffer.shape, expected="whole rows of {shape}, or a part of one",
                )  # fmt: skip
            box[axis], left = size, left // size
        else:
            box[axis] = left
            break
    return tuple(box)


def _refuse_gaps(buffer: Buffer, box: tuple[int, ...]) -> None:
    """Raise `ShapeError` where the elements of a box do not lie one behind the other."""
    inner = True
    for size, extent in zip(reversed(buffer.shape), reversed(box), strict=True):
        if not inner and extent != 1:
            raise ShapeError(
                "these elements of {name} do not follow each other", name=buffer.name, box=box,
                shape=buffer.shape, found="{box} of {shape}", expected="whole rows, or a part of one",
                hint="give one pointer to each row, or T.address_of the first element",
            )  # fmt: skip
        inner = inner and extent == size
    moving = [k for k, extent in enumerate(box) if extent > 1]
    if buffer.strides is not None and moving and (moving != [len(box) - 1] or buffer.strides[-1] != 1):
        raise ShapeError(
            "elements of {name} do not follow each other: it has strides of its own", name=buffer.name,
            hint="give one pointer to each row, or T.address_of the first element",
        )  # fmt: skip


__all__ = ["access_ptr", "address_of"]
