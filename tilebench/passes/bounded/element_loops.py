"""A copy or fill of a box as a loop over its elements, for passes that have something to say of each."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir import Call, Cast, Expr, If, Load, Region, Stmt, Store, Var, all_of, zero_of
from ...ir.names import Names
from ...language.copy import Copy, Fill, Within
from ...language.structure import Parallel

LETTERS = "ijkl"


def copy_loop(copy: Copy, names: Names) -> Parallel:
    """The loop that copies element by element, with the tests of both sides; extents of 1 stand still."""
    extent = (copy.dst.extent if copy.dst.extent is not None else copy.src.extent) or ()
    moved = [n for n in extent if n != 1] or [1]
    index = _variables(len(moved), names)
    source, target = _element(copy.src, index, extent), _element(copy.dst, index, extent)
    value: Expr = Load(copy.src.buffer, source, version=copy.src.version, place=copy.place)
    tests = _tests(source, copy.src_within)
    if tests:
        args = (all_of(tests), value, zero_of(value.dtype))
        value = Call("if_then_else", args, type=value.dtype, place=copy.place)
    into = copy.dst.buffer
    value = value if value.dtype == into.dtype else Cast(value, type=into.dtype, place=copy.place)
    store = Store(into, target, value, version=copy.dst.version, place=copy.place)
    body = _guarded(store, _tests(target, copy.dst_within))
    width = copy.coalesced_width
    return Parallel(tuple(moved), index, body, map=copy.map, coalesced_width=width, place=copy.place)


def fill_loop(fill: Fill, names: Names) -> Parallel:
    """The loop that fills element by element."""
    extent = fill.dst.extent or ()
    moved = [n for n in extent if n != 1] or [1]
    index = _variables(len(moved), names)
    target = _element(fill.dst, index, extent)
    store = Store(fill.dst.buffer, target, fill.value, version=fill.dst.version, place=fill.place)
    return Parallel(tuple(moved), index, _guarded(store, _tests(target, fill.dst_within)), place=fill.place)


def _tests(index: Sequence[Expr], within: Within) -> list[Expr]:
    """What must hold for an element to be inside; nothing of dimensions where that is proved."""
    pairs = zip(index, within or (None,) * len(index), strict=True)
    bounded = [(position, limit) for position, limit in pairs if limit is not None]
    return [position.compare(*end) for position, limit in bounded for end in ((">=", 0), ("<", limit))]


def _guarded(store: Store, tests: Sequence[Expr]) -> tuple[Stmt, ...]:
    return (If(all_of(list(tests)), (store,), (), place=store.place),) if tests else (store,)


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
