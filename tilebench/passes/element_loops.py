"""A copy or fill of a box as a loop over its elements, for passes that have something to say of each."""

from __future__ import annotations

from ..ir import Cast, Expr, Load, Region, Store, Var
from ..ir.names import Names
from ..language.copy import Copy, Fill
from ..language.structure import Parallel

LETTERS = "ijkl"


def copy_loop(copy: Copy, names: Names) -> Parallel:
    """The loop that copies element by element; dimensions of extent 1 stand still."""
    extent = (copy.dst.extent if copy.dst.extent is not None else copy.src.extent) or ()
    moved = [n for n in extent if n != 1] or [1]
    index = _variables(len(moved), names)
    load = Load(copy.src.buffer, _element(copy.src, index, extent), place=copy.place)
    into = copy.dst.buffer
    value = load if load.dtype == into.dtype else Cast(load, type=into.dtype, place=copy.place)
    store = Store(into, _element(copy.dst, index, extent), value, place=copy.place)
    width = copy.coalesced_width
    return Parallel(tuple(moved), index, (store,), map=copy.map, coalesced_width=width, place=copy.place)


def fill_loop(fill: Fill, names: Names) -> Parallel:
    """The loop that fills element by element."""
    extent = fill.dst.extent or ()
    moved = [n for n in extent if n != 1] or [1]
    index = _variables(len(moved), names)
    store = Store(fill.dst.buffer, _element(fill.dst, index, extent), fill.value, place=fill.place)
    return Parallel(tuple(moved), index, (store,), place=fill.place)


def _variables(count: int, names: Names) -> tuple[Var, ...]:
    """Free names for the loops over a box."""
    letters = [LETTERS[k] if k < len(LETTERS) else f"i{k}" for k in range(count)]
    return tuple(Var(names.fresh(letter)) for letter in letters)


def _element(region: Region, index: tuple[Var, ...], other: tuple[int, ...]) -> tuple[Expr, ...]:
    """The element of a box at these loop variables; dimensions of extent 1 stand still.

    A head address takes the extents of the `other` side, aligned to the right.
    """
    rank, extent = region.buffer.rank, region.extent
    if extent is None:
        extent = ((1,) * rank + other)[-rank:] if rank else ()
    steps = iter(index)
    return tuple(
        start if n == 1 else start + next(steps) for start, n in zip(region.start, extent, strict=True)
    )
