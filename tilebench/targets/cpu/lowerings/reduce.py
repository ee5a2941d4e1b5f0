"""Reductions as folds."""

from __future__ import annotations

from ....ir import Const, Expr, Region, Stmt, Var
from ....language.reduce import Reduce
from ..llvm import bytes_of
from ..loops.lowering import Lowering
from ..loops.vectors import nest
from ..loops.words import Fold, Vectors
from ..loops.work import Work
from ..numbers.convert import COMPUTE

# Accumulators side by side, so that an addition need not wait for the one before it.
_CHAINS = 4


def reduce(work: Work, old: Reduce) -> list[Stmt]:
    """Each result by a fold of its own; along a leading dimension, as many results as lanes at once."""
    src, dst = work.swapped(old.src), work.swapped(old.dst)
    shape = src.buffer.extents
    last = len(shape) - 1
    axis = old.dim % len(shape)
    moving = {d: work.fresh("ijklmn"[d % 6]) for d in range(len(shape)) if d != axis}
    wide = max(bytes_of(COMPUTE[region.buffer.dtype.name]) for region in (src, dst))
    lanes = work.isa.vector_bytes // wide
    along = axis == last
    fold = Fold(
        old.kind, _result(old, dst, moving, axis), _box(old, src, moving, axis), lanes=lanes if along else 1,
        chains=_CHAINS if along else 1, clear=old.clear, place=old.place,
    )  # fmt: skip
    if along:
        return list(nest(list(moving.values()), [Const(shape[d]) for d in moving], (fold,)))
    inner = Vectors(Const(shape[last]), (moving[last],), (fold,), lanes=lanes, place=old.place)
    outer = [d for d in moving if d != last]
    return list(nest([moving[d] for d in outer], [Const(shape[d]) for d in outer], (inner,)))


def _result(old: Reduce, dst: Region, moving: dict[int, Var], axis: int) -> Region:
    """The element of the result that a box goes to; it lacks the dimension `axis`, or has it as 1."""
    index: list[Expr] = list(moving.values())
    if dst.buffer.rank > len(index):
        index.insert(axis if index else 0, Const(0))
    return Region(dst.buffer, tuple(index[: dst.buffer.rank]), place=old.place)


def _box(old: Reduce, src: Region, moving: dict[int, Var], axis: int) -> Region:
    """What one result is folded from: all of the dimension `axis`, one of each other."""
    shape = src.buffer.extents
    start = tuple(moving.get(d, Const(0)) for d in range(len(shape)))
    extent = tuple(size if d == axis else 1 for d, size in enumerate(shape))
    return Region(src.buffer, start, extent=extent, place=old.place)


LOWERINGS = (Lowering(Reduce, reduce),)
