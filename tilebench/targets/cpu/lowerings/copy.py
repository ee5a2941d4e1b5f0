"""Copies and fills as loops over vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....ir import (
    Cast,
    Const,
    Expr,
    If,
    Load,
    Region,
    Stmt,
    Store,
    Var,
    all_of,
    const_of,
    substitute,
)
from ....ir.arith import bounds, linear
from ....ir.expr import Call
from ....language.copy import Copy, Fill, Within
from ....passes.bound_accesses import zero_of
from ..loops.plan_buffers import reads_var
from ..loops.to_loops import Lowering, is_transposed, nest
from ..loops.words import ColumnPanels, PackTransposed, Prefetch
from ..render.pack import can_pack

# A store waits for the line it goes into. Asked for some rows earlier, a 1024^3 product in tiles of
# 384 x 512 gained 2 % and one of 1000 x 1100 x 1200 1 %. The same for what packing loads lost 2 %.
_AHEAD_BYTES = 4096
_NAMES = ("i", "j", "k", "l", "m", "n")


@dataclass
class _Axis:
    """A dimension that a copy or fill walks along. `stop` is how far it goes when nothing is filled up."""

    var: Var
    extent: int
    stop: Expr


def _bounded(within: Within, axis: int) -> int | None:
    return within[axis] if within is not None else None


def _axes(work: Lowering, region: Region) -> list[tuple[int, _Axis]]:
    """The dimensions of a region that are longer than 1, each with a variable."""
    held = [(d, extent) for d, extent in enumerate(region.extent or ()) if extent != 1]
    names = _NAMES if len(held) != 1 else ("j",)
    return [(d, _Axis(work.fresh(names[k % 6]), extent, Const(extent))) for k, (d, extent) in enumerate(held)]


def _index(region: Region, axes: Sequence[tuple[int, _Axis]]) -> tuple[Expr, ...]:
    moving = {d: axis.var for d, axis in axes}
    return tuple(start + moving[d] if d in moving else start for d, start in enumerate(region.start))


def _tests(
    work: Lowering, region: Region, within: Within, axes: Sequence[tuple[int, _Axis]], cut: bool
) -> list[Expr]:
    """What must hold for an access; with `cut` the loops' stops take what they can of it."""
    out: list[Expr] = []
    moving = dict(axes)
    for d, start in enumerate(region.start):
        limit = _bounded(within, d)
        if limit is None:
            continue
        axis = moving.get(d)
        low, _ = bounds(start, work.ranges)
        if axis is None:
            out += [start.compare("<", limit)] + ([start.compare(">=", 0)] if low < 0 else [])
        elif cut and low >= 0:
            count = work.valid(start, axis.extent, limit)
            other = const_of(axis.stop)
            axis.stop = count if other is not None else Call("min", (axis.stop, count), type=count.dtype)
        else:
            index = start + axis.var
            out += [index.compare("<", limit)] + ([index.compare(">=", 0)] if low < 0 else [])
    return out


def lower_copy(work: Lowering, at: Copy) -> list[Stmt]:
    """The loops of a copy; what must be filled up with zeros is, unless only gemms that skip it read it."""
    dst, src = work.swapped(at.dst), work.swapped(at.src)
    here = _axes(work, dst)
    there = [d for d, extent in enumerate(src.extent or ()) if extent != 1]
    over = list(zip(there, [axis for _, axis in here], strict=True))
    value: Expr = Load(src.buffer, _index(src, over), place=at.place)
    for dtype in (at.dst.buffer.dtype, dst.buffer.dtype):
        value = value if value.dtype == dtype else Cast(value, type=dtype, place=at.place)
    target = _index(dst, here)
    skips = dst.buffer.scope == "scratch" and skips_ghosts(work, at)
    guards = _tests(work, dst, at.dst_within, here, cut=True)
    axes = [axis for _, axis in here]
    if at.src_within is None or skips:
        guards += _tests(work, src, at.src_within, over, cut=True)
        if not guards and _turns(work, at, src, dst, there):
            lanes = work.isa.lanes(max(dst.buffer.dtype.bytes_of(1), 4))
            corner = Region(src.buffer, src.start, place=src.place)
            return [PackTransposed(dst, corner, axes[0].stop, axes[1].stop, lanes=lanes, place=at.place)]
        return _loops(work, axes, Store(dst.buffer, target, value, place=at.place), guards, dst)
    # In panels a vector must start at a multiple of its length: there the zeros are chosen lane by lane.
    if dst.buffer.scope == "scratch" and not _panel(work, dst):
        return _zero_filled(work, at, src, over, Store(dst.buffer, target, value, place=at.place))
    tests = _tests(work, src, at.src_within, over, cut=False)
    chosen = Call(
        "if_then_else", (all_of(tests), value, zero_of(value.dtype)), type=value.dtype, place=at.place
    )
    return _loops(work, axes, Store(dst.buffer, target, chosen, place=at.place), guards, dst)


def _turns(work: Lowering, at: Copy, src: Region, dst: Region, there: list[int]) -> bool:
    """Whether a copy into transposed panels can go by square blocks: from rows of an array, no rounding."""
    tile = work.plan.tiles.get(dst.buffer.name)
    if tile is None or not is_transposed(tile.layout) or len(there) != 2 or src.buffer.scope != "global":
        return False
    rows = there == [src.buffer.rank - 2, src.buffer.rank - 1] and src.buffer.element_strides[-1] == 1
    # The user's own tile may round: what is widened here must have been exact in it.
    exact = src.buffer.dtype == at.dst.buffer.dtype
    return rows and exact and can_pack(src.buffer.dtype, dst.buffer.dtype)


def skips_ghosts(work: Lowering, at: Copy) -> bool:
    """Whether a tile needs no zeros outside the problem: every gemm that reads it leaves that out."""
    from .gemm import skips

    uses = work.plan.uses[at.dst.buffer.name]
    return uses.packed and bool(uses.gemm_a or uses.gemm_b) and all(
        skips(work, each) for each in (*uses.gemm_a, *uses.gemm_b)
    )  # fmt: skip


def _loops(work: Lowering, axes: list[_Axis], store: Store, guards: list[Expr], dst: Region) -> list[Stmt]:
    """Serial loops around one over vectors around one store."""
    if not axes:
        return [If(all_of(guards), (store,), (), place=store.place)] if guards else [store]
    *outer, last = _order(work, axes, dst)
    inside = [each for each in guards if reads_var(each, {last.var.name})]
    outside = [each for each in guards if each not in inside]
    body: tuple[Stmt, ...] = (If(all_of(inside), (store,), (), place=store.place),) if inside else (store,)
    loop = work.vector_loop(last.var, last.stop, body, _panel(work, dst))
    if outer and not inside and not loop.streaming and _in_pieces(store, last):
        rows = -(-_AHEAD_BYTES // store.buffer.dtype.bytes_of(last.extent))
        ahead = substitute(store, {outer[-1].var.name: outer[-1].var + rows})
        hint = Prefetch(Region(store.buffer, ahead.index, place=store.place), place=store.place)
        loop = loop.but(body=(hint, *body))
    inner: tuple[Stmt, ...] = (loop,)
    if outside:
        inner = (If(all_of(outside), inner, (), place=store.place),)
    return list(nest([each.var for each in outer], [each.stop for each in outer], inner))


def _in_pieces(at: Store, last: _Axis) -> bool:
    """Whether a store goes to pieces of an array's rows, which the processor does not see coming."""
    if at.buffer.scope != "global" or at.buffer.rank < 2:
        return False
    along = linear(at.index[-1]).coefficient(last.var) == 1
    return along and last.extent < at.buffer.shape[-1] and at.buffer.element_strides[-1] == 1


def _order(work: Lowering, axes: list[_Axis], dst: Region) -> list[_Axis]:
    """The axes with that of the vectors last: the one whose elements lie side by side in the target."""
    tile = work.plan.tiles.get(dst.buffer.name)
    return axes[::-1] if tile is not None and is_transposed(tile.layout) and len(axes) == 2 else axes


def _panel(work: Lowering, dst: Region) -> int:
    """The width of the panels that vectors of the target must stay inside of; 0 where there are none."""
    tile = work.plan.tiles.get(dst.buffer.name)
    return tile.layout.width if tile is not None and isinstance(tile.layout, ColumnPanels) else 0


def _zero_filled(
    work: Lowering, at: Copy, src: Region, over: list[tuple[int, _Axis]], store: Store
) -> list[Stmt]:
    """Rows inside: elements, then zeros from where the source ends; rows outside: zeros."""
    axes = [axis for _, axis in over]
    zero = store.but(value=zero_of(store.buffer.dtype))
    outer_vars, outer_stops = [a.var for a in axes[:-1]], [Const(a.extent) for a in axes[:-1]]
    if not axes or any(bounds(start, work.ranges)[0] < 0 for start in src.start):
        tests = _tests(work, src, at.src_within, over, cut=False)
        value = Call(
            "if_then_else", (all_of(tests), store.value, zero.value), type=zero.value.dtype, place=at.place
        )
        return _loops(work, axes, store.but(value=value), [], at.dst)
    d, last = over[-1]
    keep = tuple(None if axis == d else each for axis, each in enumerate(at.src_within or ()))
    uniform = _tests(work, src, keep, over[:-1], cut=False)
    body = _row(work, last, _bounded(at.src_within, d), src.start[d], store, zero)
    if uniform:
        empty = (_renamed(work, zero, last, work.fresh(last.var.name), Const(0)),)
        body = (If(all_of(uniform), body, empty, place=at.place),)
    return list(nest(outer_vars, outer_stops, body))


def _row(
    work: Lowering, last: _Axis, limit: int | None, start: Expr, store: Store, zero: Store
) -> tuple[Stmt, ...]:
    if limit is None:
        return (work.vector_loop(last.var, Const(last.extent), (store,)),)
    count = work.not_negative(work.valid(start, last.extent, limit))
    copied = work.vector_loop(last.var, count, (store,))
    return copied, _renamed(work, zero, last, work.fresh(last.var.name), count)


def _renamed(work: Lowering, zero: Store, last: _Axis, var: Var, start: Expr) -> Stmt:
    from ....ir import substitute

    made = substitute(zero, {last.var.name: var})
    return work.vector_loop(var, Const(last.extent), (made,), start=start, unroll=1, overrun=False)


def lower_fill(work: Lowering, at: Fill) -> list[Stmt]:
    """The loops of a fill."""
    dst = work.swapped(at.dst)
    here = _axes(work, dst)
    value = work.swapped(at.value)
    if value.dtype != dst.buffer.dtype:
        value = Cast(value, type=dst.buffer.dtype, place=at.place)
    guards = _tests(work, dst, at.dst_within, here, cut=True)
    store = Store(dst.buffer, _index(dst, here), value, place=at.place)
    return _loops(work, [axis for _, axis in here], store, guards, dst)
