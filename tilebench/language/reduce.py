"""Reductions and scans of tiles: `T.reduce_sum`, `T.reduce_max`, `T.reduce_min`, `T.cumsum`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import DTypeError, LanguageError, ShapeError
from ..ir import (
    Buffer,
    Const,
    Expr,
    Load,
    OpStmt,
    Region,
    Store,
    Word,
    accumulates,
    attribute,
    boolean,
    decision,
    node,
    reads,
    works,
    writes,
)
from ..ir.dtypes import bytes_of
from ..layout import Fragment
from .copy import copy
from .lowered.decisions import Instr
from .memory import AllocFragment, AllocLocal, AllocShared
from .notes import note_unused
from .own_reductions import combined, reduce_own
from .stages import TILES
from .tracing.builder import Builder, for_tiles, inside_kernel
from .tracing.operands import TileOperand, part_of, whole_number, whole_part
from .tracing.values import BufferView, VarRef

if TYPE_CHECKING:
    from .tracing.taken import Tile

# `max_nan` and `min_nan` hand a NaN on, which loses against a number in `max` and `min`.
KINDS = ("sum", "max", "min", "bitand", "bitor", "bitxor", "max_nan", "min_nan")
ON_CHIP = ("fragment", "shared")
BITS = {"bitand": "&", "bitor": "|", "bitxor": "^"}


@node
class Reduce(OpStmt):
    """`T.reduce_sum(src, dst, dim=-1, clear=True)`; `dst` lacks dimension `dim` or has it as 1.

    With `clear=False` the old value of `dst` is folded in exactly once. From `laid_out` on `by`
    says how threads exchange: within a thread, by shuffles, or through shared memory, and `scratch`
    is where the parts of several warps meet. `parted` leaves each thread its own part (`T.add_lanes`).
    """

    word = "reduce"
    stages = TILES
    kind: str = attribute()
    src: Region = reads()
    dst: Region = accumulates(unless="clear")
    dim: int = attribute(default=-1)
    clear: bool = attribute(default=True)
    by: Instr | None = decision("laid_out", default=None, early=True)
    parted: bool = attribute(default=False)
    scratch: Region | None = works(default=None)

    def spelling(self) -> str:
        return f"reduce_{self.kind}"

    def hidden(self) -> frozenset[str]:
        return frozenset({"kind"})


@node
class Scan(OpStmt):
    """`T.cumsum(src, dst, dim=0, reverse=False)`: element i of a line of `dst` is the sum of `src` up to i.

    With `reverse` from i on; of `T.cummax` the greatest. `scratch` is where the lines stand while threads
    go along them.
    """

    word = "scan"
    stages = TILES
    kind: str = attribute()
    src: Region = reads()
    dst: Region = writes()
    dim: int = attribute(default=0)
    reverse: bool = attribute(default=False)
    map: Fragment | None = decision("laid_out", default=None)
    scratch: Region | None = works(default=None)

    def spelling(self) -> str:
        return f"cum{self.kind}"

    def hidden(self) -> frozenset[str]:
        return frozenset({"kind"})


WORDS = (
    *((f"reduce_{kind}", Word(Reduce, {"kind": kind})) for kind in KINDS),
    *((f"cum{kind}", Word(Scan, {"kind": kind})) for kind in ("sum", "max")),
)
__all__ = [
    "cummax", "cumsum", "reduce_bitand", "reduce_bitor", "reduce_bitxor", "reduce_max",
    "reduce_min", "reduce_sum",
]  # fmt: skip


# -- as a kernel writes them


def reduce_sum(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, batch: int = 1) -> None:
    """Sum a tile along `dim`: `T.reduce_sum(X, s, dim=1)` gives `s[i] = sum over j of X[i, j]`.

    Both are whole fragments or shared tiles, or arrays of a thread's own; `out` lacks dimension `dim` or has
    it as 1 (a tile of one dimension gives shape (1,)), or is a scalar. With `clear=False` the old value of
    `out` is added, once. Sums are formed in the wider of both dtypes, floats in float32 at least; bools are
    counted. Integers may be summed into a float, and are converted first. `batch` (how many results threads
    exchange at once) is the compiler's to choose. Raises `ShapeError` where the shapes do not fit,
    `DTypeError` for dtypes of two kinds.
    """
    reduce_by("sum", buffer, out, dim, clear, batch)


def reduce_max(
    buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, batch: int = 1, nan_propagate: bool = False
) -> None:
    """The greatest element along `dim`; see `reduce_sum`. `clear=False` keeps a greater old value.

    A NaN loses against a number; with `nan_propagate` it makes the result NaN.
    """
    reduce_by(_with_nan("max", buffer, nan_propagate), buffer, out, dim, clear, batch)


def reduce_min(
    buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, batch: int = 1, nan_propagate: bool = False
) -> None:
    """The least element along `dim`; see `reduce_max`. `clear=False` keeps a smaller old value."""
    reduce_by(_with_nan("min", buffer, nan_propagate), buffer, out, dim, clear, batch)


def reduce_bitand(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, batch: int = 1) -> None:
    """The bits that all integers along `dim` have; see `reduce_sum`."""
    reduce_by("bitand", buffer, out, dim, clear, batch)


def reduce_bitor(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, batch: int = 1) -> None:
    """The bits that any of the integers along `dim` has; see `reduce_sum`."""
    reduce_by("bitor", buffer, out, dim, clear, batch)


def reduce_bitxor(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, batch: int = 1) -> None:
    """The bits that an odd number of integers along `dim` have; see `reduce_sum`."""
    reduce_by("bitxor", buffer, out, dim, clear, batch)


def _with_nan(kind: str, buffer: Tile, nan_propagate: bool) -> str:
    floats = isinstance(buffer, BufferView) and buffer.buffer.dtype.is_float
    return f"{kind}_nan" if nan_propagate and floats else kind


def reduce_by(kind: str, buf: Tile, out: Tile, dim: object, clear: bool, batch: int = 1) -> None:
    """A reduction of one of the kinds."""
    word = f"T.reduce_{kind.removesuffix('_nan')}"
    if isinstance(out, VarRef):
        _into_scalar(kind, buf, out, dim, clear)
        return
    own = isinstance(buf, BufferView) and buf.scope == "local"
    builder = inside_kernel(word) if own else for_tiles(word)
    note_unused(word, batch=None if batch == 1 else batch)
    places = ("local",) if own else ON_CHIP
    src, dst = _on_chip(buf, word, places), _on_chip(out, word, places)
    axis = _dimension(whole_number(dim, word, "dim"), src, word)
    _check_out(axis, src, dst, word)
    _check_dtypes(src, dst, word)
    if kind in BITS and not src.view.buffer.dtype.is_integer:
        raise DTypeError(
            "{word} takes integers, found {dtype}",
            word=word,
            dtype=src.view.buffer.dtype,
            also=[src.declared],
        )
    if own:
        reduce_own(builder, kind, src.view.buffer, dst.view.buffer, axis, bool(clear))
        return
    last = -1 if axis == src.view.ndim - 1 else axis
    builder.emit(Reduce(kind, src.region, dst.region, dim=last, clear=bool(clear), place=builder.place))


def _into_scalar(kind: str, buf: Tile, out: VarRef, dim: object, clear: bool) -> None:
    """A reduction of a tile of one dimension into a scalar of the thread: by way of a tile of one element."""
    builder, scalar = inside_kernel("T.reduce"), out.view.buffer
    own = isinstance(buf, BufferView) and buf.scope == "local"
    allocate, scope = (AllocLocal, "local") if own else (AllocFragment, "fragment")
    tile = Buffer(builder.unique(f"{scalar.name}_tile"), (1,), scalar.dtype, scope)
    builder.emit(allocate(tile, place=builder.place))
    reduce_by(kind, buf, BufferView(tile, builder.frames[-1], builder.place), dim, True)
    if not own:
        builder.lone.setdefault(tile.name, builder.place)
    found: Expr = Load(tile, (Const(0),), place=builder.place)
    value = found if clear else combined(kind, Load(scalar, ()), found)
    builder.emit(Store(scalar, (), value, place=builder.place))


def cumsum(src: Tile, dst: Tile | None = None, dim: int = 0, reverse: bool = False) -> None:
    """Running sums along `dim`: `T.cumsum(X, Y, dim=1)` gives `Y[i, j] = sum over k <= j of X[i, k]`.

    Both are fragments or shared tiles, or parts of them, of one shape; without `dst` the sums take the place
    of `src`.
    With `reverse` the sum is over k >= j. Sums are formed as those of `T.reduce_sum`.
    Raises `ShapeError` where the shapes differ, `DTypeError` for dtypes of two kinds.
    """
    _scan("sum", src, dst, dim, reverse)


def cummax(src: Tile, dst: Tile | None = None, dim: int = 0, reverse: bool = False) -> None:
    """Running maxima along `dim`: as `T.cumsum`, with the greatest element so far; a NaN loses."""
    _scan("max", src, dst, dim, reverse)


def _scan(kind: str, src: Tile, dst: Tile | None, dim: int, reverse: bool) -> None:
    word = f"T.cum{kind}"
    builder = for_tiles(word)
    source = _scanned(builder, src, word, fill=True)
    target = source if dst is None else _scanned(builder, dst, word, fill=False)
    axis = _dimension(whole_number(dim, word, "dim"), source, word)
    if source.view.shape != target.view.shape:
        raise ShapeError(
            "{word} gives a tile of the same shape", word=word, src=source.described, dst=target.described,
            found="{src}; {dst}", also=[source.declared, target.declared],
        )  # fmt: skip
    _check_dtypes(source, target, word)
    scan = Scan(kind, source.region, target.region, dim=axis, reverse=bool(reverse), place=builder.place)
    builder.emit(scan)
    if not isinstance(given := src if dst is None else dst, BufferView):
        copy(target.view, given)


def _scanned(builder: Builder, given: Tile, word: str, fill: bool) -> TileOperand:
    """A whole tile; of a part of one a tile of its own, with the part's elements where they are read."""
    part = part_of(given, word)
    if isinstance(given, BufferView) or part.extent is None or part.view.scope not in ON_CHIP:
        return _on_chip(given, word)
    scope: Any = part.view.scope
    name = builder.unique(f"{part.name}_part")
    buffer = Buffer(name, part.extent, part.view.buffer.dtype, scope)
    allocate: Any = AllocShared if scope == "shared" else AllocFragment
    builder.emit(allocate(buffer, place=builder.place))
    own = BufferView(buffer, builder.frames[-1], builder.place)
    if fill:
        copy(given, own)
    return part_of(own, word)


def _on_chip(given: object, word: str, places: tuple[str, ...] = ON_CHIP) -> TileOperand:
    """A whole tile in shared memory or registers, or both arrays of one thread."""
    part = whole_part(given, word)
    if part.view.scope not in places:
        raise LanguageError(
            "{word} works on fragments and shared tiles, {name} is in {scope} memory",
            word=word,
            name=part.name,
            scope=part.view.scope,
            also=[part.declared],
            hint="copy it into T.alloc_fragment(...) first",
        )
    return part


def _check_dtypes(src: TileOperand, dst: TileOperand, word: str) -> None:
    a, b = src.view.buffer.dtype, dst.view.buffer.dtype
    if b.per_byte > 1:
        raise DTypeError(
            "{word} of {a} into {b}: a dtype of 4 bits is one of storage", word=word, a=a, b=b,
            also=[src.declared, dst.declared],
            wide=bytes_of(b), hint="give the result {wide} or a wider dtype",
        )  # fmt: skip
    sums = word in ("T.reduce_sum", "T.cumsum")
    counts = a == boolean and sums
    converted = sums and a.is_integer and b.is_float
    if not (converted or (b.is_integer if counts else a.kind == b.kind)):
        raise DTypeError(
            "{word} of {a} cannot give {b}",
            word=word,
            a=a,
            b=b,
            also=[src.declared, dst.declared],
            hint="bools are counted: give the result an integer dtype, such as T.int32"
            if counts
            else "give the result the dtype of the tile, or one of its kind",
        )


def _dimension(dim: int, src: TileOperand, word: str) -> int:
    rank = src.view.ndim
    if not -rank <= dim < rank:
        raise ShapeError(
            "{word} along dimension {dim}, but {name} has {rank}",
            word=word,
            dim=dim,
            name=src.name,
            rank=rank,
            low=-rank,
            high=rank - 1,
            expected="{low} to {high}",
            also=[src.declared],
        )
    return dim % rank


def _check_out(axis: int, src: TileOperand, dst: TileOperand, word: str) -> None:
    shape = src.view.shape
    without = shape[:axis] + shape[axis + 1 :]
    kept = (*shape[:axis], 1, *shape[axis + 1 :])
    fitting = ((1,),) if not without else (without, kept)
    if dst.view.shape in fitting:
        return
    raise ShapeError(
        "the result of {word} has the wrong shape",
        word=word,
        wanted=" or ".join(str(each) for each in fitting),
        src=src.described,
        dst=dst.described,
        dim=axis,
        expected="{wanted}: the shape of {name} without dimension {dim}",
        found="{src}; {dst}",
        name=src.name,
        also=[src.declared, dst.declared],
    )
