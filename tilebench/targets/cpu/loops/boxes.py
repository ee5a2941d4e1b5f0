"""Boxes as loops: a variable for each dimension that is longer than 1, and what must hold for an access."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....ir import Const, Expr, If, Region, Stmt, Store, Var, all_of, const_of, substitute
from ....ir.arith import linear
from ....ir.expr import Call
from ....language.copy import Within
from ..numbers.convert import stored_bytes
from .buffers import reads_var
from .vectors import nest, vector_loop
from .words import ColumnPanels, Prefetch
from .work import Work

# A store waits for the line it goes into. Asked for some rows earlier, a 1024^3 product in tiles of
# 384 x 512 gained 2 % and one of 1000 x 1100 x 1200 1 %. The same for what packing loads lost 2 %.
_AHEAD_BYTES = 4096
_NAMES = ("i", "j", "k", "l", "m", "n")


@dataclass
class Axis:
    """A dimension that a copy or fill walks along. `stop` is how far it goes when nothing is filled up."""

    var: Var
    extent: int
    stop: Expr


# Axes by the dimension of the region that they walk along.
Axes = list[tuple[int, Axis]]


def axes_of(work: Work, region: Region) -> Axes:
    """The dimensions of a region that are longer than 1, each with a variable."""
    long = [(d, extent) for d, extent in enumerate(region.extent or ()) if extent != 1]
    names = _NAMES if len(long) != 1 else ("j",)
    return [(d, Axis(work.fresh(names[k % 6]), extent, Const(extent))) for k, (d, extent) in enumerate(long)]


def index_of(region: Region, axes: Sequence[tuple[int, Axis]]) -> tuple[Expr, ...]:
    """The element of a region that the axes' variables point at."""
    moving = {d: axis.var for d, axis in axes}
    return tuple(start + moving[d] if d in moving else start for d, start in enumerate(region.start))


def limit_of(within: Within, dimension: int) -> int | Expr | None:
    """Where a dimension of the buffer ends, None where every access is inside."""
    return within[dimension] if within is not None else None


def tests_of(
    work: Work, region: Region, within: Within, axes: Sequence[tuple[int, Axis]], *, cut: bool
) -> list[Expr]:
    """What must hold for an access; with `cut` the loops' stops take what they can of it."""
    tests: list[Expr] = []
    moving = dict(axes)
    for d, start in enumerate(region.start):
        limit = limit_of(within, d)
        if limit is None:
            continue
        axis = moving.get(d)
        low, _ = work.facts.bounds(start)
        if axis is not None and cut and low >= 0:
            count = work.valid(start, axis.extent, limit)
            shorter = const_of(axis.stop) is not None
            axis.stop = count if shorter else Call("min", (axis.stop, count), type=count.dtype)
            continue
        index = start if axis is None else start + axis.var
        tests += [index.compare("<", limit)] + ([index.compare(">=", 0)] if low < 0 else [])
    return tests


def loops_of(work: Work, axes: list[Axis], store: Store, guards: list[Expr], dst: Region) -> list[Stmt]:
    """Serial loops around one over vectors around one store."""
    if not axes:
        return [If(all_of(guards), (store,), (), place=store.place)] if guards else [store]
    *outer, last = _order(work, axes, dst)
    inside = [test for test in guards if reads_var(test, {last.var.name})]
    outside = [test for test in guards if test not in inside]
    body: tuple[Stmt, ...] = (If(all_of(inside), (store,), (), place=store.place),) if inside else (store,)
    loop = vector_loop(work, last.var, last.stop, body, panel_of(work, dst))
    if outer and not inside and not loop.streaming and _in_pieces(store, last):
        rows = -(-_AHEAD_BYTES // stored_bytes(store.buffer.dtype, last.extent))
        ahead = substitute(store, {outer[-1].var.name: outer[-1].var + rows})
        hint = Prefetch(Region(store.buffer, ahead.index, place=store.place), place=store.place)
        loop = loop.but(body=(hint, *body))
    inner: tuple[Stmt, ...] = (loop,)
    if outside:
        inner = (If(all_of(outside), inner, (), place=store.place),)
    return list(nest([axis.var for axis in outer], [axis.stop for axis in outer], inner))


def _in_pieces(store: Store, last: Axis) -> bool:
    """Whether a store goes to pieces of an array's rows, which the processor does not see coming."""
    if store.buffer.scope != "global" or store.buffer.rank < 2:
        return False
    along = linear(store.index[-1]).coefficient(last.var) == 1
    row = store.buffer.shape[-1]
    shorter = not isinstance(row, int) or last.extent < row
    return along and shorter and store.buffer.element_strides[-1] == 1


def _order(work: Work, axes: list[Axis], dst: Region) -> list[Axis]:
    """The axes with that of the vectors last: the one whose elements lie side by side in the target."""
    turned = is_transposed(work.plan.layout_of(dst.buffer))
    return axes[::-1] if turned and len(axes) == 2 else axes


def is_transposed(layout: object) -> bool:
    """Whether a tile lies in panels of its transpose."""
    return isinstance(layout, ColumnPanels) and layout.transposed


def panel_of(work: Work, dst: Region) -> int:
    """The width of the panels that vectors of the target must stay inside of; 0 where there are none."""
    layout = work.plan.layout_of(dst.buffer)
    return layout.width if isinstance(layout, ColumnPanels) else 0
