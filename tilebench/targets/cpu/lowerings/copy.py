"""Copies as loops over vectors."""

from __future__ import annotations

from ....ir import Call, Cast, Const, Expr, If, Load, Region, Stmt, Store, Var, all_of, substitute, zero_of
from ....language.copy import Copy
from ..loops.boxes import (
    Axes,
    Axis,
    axes_of,
    index_of,
    is_transposed,
    limit_of,
    loops_of,
    panel_of,
    tests_of,
)
from ..loops.inside import skips_ghosts
from ..loops.lowering import Lowering
from ..loops.vectors import nest, vector_loop
from ..loops.words import ColumnPanels, PackPairs, PackTransposed
from ..loops.work import Work
from ..microkernel.blocks import can_pack
from ..numbers.convert import stored_bytes


def copy(work: Work, old: Copy) -> list[Stmt]:
    """The loops of a copy; what must be filled up with zeros is, unless only gemms that skip it read it."""
    dst, src = work.swapped(old.dst), work.swapped(old.src)
    here = axes_of(work, dst)
    long = [d for d, extent in enumerate(src.extent or ()) if extent != 1]
    over = list(zip(long, [axis for _, axis in here], strict=True))
    value: Expr = Load(src.buffer, index_of(src, over), place=old.place)
    for dtype in (old.dst.buffer.dtype, dst.buffer.dtype):
        value = value if value.dtype == dtype else Cast(value, type=dtype, place=old.place)
    store = Store(dst.buffer, index_of(dst, here), value, place=old.place)
    scratch = dst.buffer.scope == "scratch"
    guards = tests_of(work, dst, old.dst_within, here, cut=True)
    axes = [axis for _, axis in here]
    if not guards and _pairs(work, old, src, dst, long):
        return _in_pairs(work, old, src, dst, over)
    if old.src_within is None or (scratch and skips_ghosts(work, old)):
        guards += tests_of(work, src, old.src_within, over, cut=True)
        if not guards and _turns(work, old, src, dst, long):
            return [_packed(work, old, src, dst, axes)]
        return loops_of(work, axes, store, guards, dst)
    # In panels a vector must start at a multiple of its length: there the zeros are chosen lane by lane.
    if scratch and not panel_of(work, dst):
        return _zero_filled(work, old, src, over, store)
    return loops_of(work, axes, _chosen(work, old, src, over, store), guards, dst)


def _chosen(work: Work, old: Copy, src: Region, over: Axes, store: Store) -> Store:
    """The store of the element where it is inside, else of zero."""
    tests = tests_of(work, src, old.src_within, over, cut=False)
    arguments = (all_of(tests), store.value, zero_of(store.value.dtype))
    return store.but(value=Call("if_then_else", arguments, type=store.value.dtype, place=old.place))


def _turns(work: Work, old: Copy, src: Region, dst: Region, long: list[int]) -> bool:
    """Whether a copy into transposed panels can go by square blocks: from rows of an array, no rounding."""
    if not is_transposed(work.plan.layout_of(dst.buffer)) or len(long) != 2 or src.buffer.scope != "global":
        return False
    rows = long == [src.buffer.rank - 2, src.buffer.rank - 1] and src.buffer.element_strides[-1] == 1
    # The user's own tile may round: what is widened here must have been exact in it.
    exact = src.buffer.dtype == old.dst.buffer.dtype
    return rows and exact and can_pack(src.buffer.dtype, dst.buffer.dtype)


def _pairs(work: Work, old: Copy, src: Region, dst: Region, long: list[int]) -> bool:
    """Whether a copy into panels of pairs can go by whole vectors: from rows of an array, from inside on."""
    layout = work.plan.layout_of(dst.buffer)
    if not isinstance(layout, ColumnPanels) or not layout.pairs or src.buffer.scope != "global":
        return False
    rows = long == [src.buffer.rank - 2, src.buffer.rank - 1] and src.buffer.element_strides[-1] == 1
    within = old.src_within or (None,) * src.buffer.rank
    cut = [d for d, limit in enumerate(within) if limit is not None]
    ends = all(d in long and work.facts.bounds(src.start[d])[0] >= 0 for d in cut)
    return rows and ends and src.buffer.dtype == old.dst.buffer.dtype == dst.buffer.dtype


def _in_pairs(work: Work, old: Copy, src: Region, dst: Region, over: Axes) -> list[Stmt]:
    fill = old.src_within is not None and not skips_ghosts(work, old)
    tests_of(work, src, old.src_within, over, cut=True)
    rows, columns = (axis.stop for _, axis in over)
    return [PackPairs(dst, src, rows, columns, lanes=work.isa.lanes(4), fill=fill, place=old.place)]


def _packed(work: Work, old: Copy, src: Region, dst: Region, axes: list[Axis]) -> PackTransposed:
    lanes = work.isa.lanes(max(stored_bytes(dst.buffer.dtype, 1), 4))
    return PackTransposed(dst, src, axes[0].stop, axes[1].stop, lanes=lanes, place=old.place)


def _zero_filled(work: Work, old: Copy, src: Region, over: Axes, store: Store) -> list[Stmt]:
    """Rows inside: elements, then zeros from where the source ends; rows outside: zeros."""
    axes = [axis for _, axis in over]
    zero = store.but(value=zero_of(store.buffer.dtype))
    if not axes or any(work.facts.bounds(start)[0] < 0 for start in src.start):
        return loops_of(work, axes, _chosen(work, old, src, over, store), [], old.dst)
    d, last = over[-1]
    rows_only = tuple(None if axis == d else limit for axis, limit in enumerate(old.src_within or ()))
    uniform = tests_of(work, src, rows_only, over[:-1], cut=False)
    body = _row(work, last, limit_of(old.src_within, d), src.start[d], store, zero)
    if uniform:
        empty = (_renamed(work, zero, last, work.fresh(last.var.name), Const(0)),)
        body = (If(all_of(uniform), body, empty, place=old.place),)
    return list(nest([axis.var for axis in axes[:-1]], [Const(axis.extent) for axis in axes[:-1]], body))


def _row(
    work: Work, last: Axis, limit: int | Expr | None, start: Expr, store: Store, zero: Store
) -> tuple[Stmt, ...]:
    if limit is None:
        return (vector_loop(work, last.var, Const(last.extent), (store,)),)
    count = work.not_negative(work.valid(start, last.extent, limit))
    copied = vector_loop(work, last.var, count, (store,))
    return copied, _renamed(work, zero, last, work.fresh(last.var.name), count)


def _renamed(work: Work, zero: Store, last: Axis, var: Var, start: Expr) -> Stmt:
    store = substitute(zero, {last.var.name: var})
    return vector_loop(work, var, Const(last.extent), (store,), start=start, unroll=1, overrun=False)


LOWERINGS = (Lowering(Copy, copy, packable=("dst",)),)
