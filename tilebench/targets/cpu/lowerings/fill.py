"""Fills as loops over vectors."""

from __future__ import annotations

from ....ir import Cast, Stmt, Store
from ....language.copy import Fill
from ..loops.boxes import axes_of, index_of, loops_of, tests_of
from ..loops.lowering import Lowering
from ..loops.work import Work


def fill(work: Work, old: Fill) -> list[Stmt]:
    """The loops of a fill."""
    dst = work.swapped(old.dst)
    axes = axes_of(work, dst)
    value = work.swapped(old.value)
    if value.dtype != dst.buffer.dtype:
        value = Cast(value, type=dst.buffer.dtype, place=old.place)
    guards = tests_of(work, dst, old.dst_within, axes, cut=True)
    store = Store(dst.buffer, index_of(dst, axes), value, place=old.place)
    return loops_of(work, [axis for _, axis in axes], store, guards, dst)


LOWERINGS = (Lowering(Fill, fill, packable=("dst",)),)
