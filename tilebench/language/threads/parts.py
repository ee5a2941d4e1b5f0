"""Operations on arrays of a thread's own, taken apart into loops over their elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir import Buffer, Const, Expr, Load, LoopStmt, Region, Stmt, Store, Var, boolean
from ...ir.rewrite import rewrite
from ...ir.stmt import statements
from ..copy import Copy, Fill
from ..memory import AllocVar
from ..structure import Serial
from ..tracing.promote import convert
from .differing import pure


def elements_of(statement: Stmt, fresh: Callable[[str], str]) -> list[Stmt] | None:
    """A fill or a copy of a thread's own as loops; None for anything else."""
    if isinstance(statement, Fill):
        return _fill(statement, fresh)
    if isinstance(statement, Copy):
        return _copy(statement, fresh)
    return None


def _fill(fill: Fill, fresh: Callable[[str], str]) -> list[Stmt]:
    extent = _extent(fill.dst) or ()
    names = _names(extent, fresh)
    index = _index(fill.dst, names)
    return _nest(extent, names, Store(fill.dst.buffer, index, fill.value, place=fill.place))


def _copy(copy: Copy, fresh: Callable[[str], str]) -> list[Stmt] | None:
    src, dst = _extent(copy.src), _extent(copy.dst)
    src, dst = src or dst, dst or src
    if src is None or dst is None:
        return None
    moving = tuple(extent for extent in dst if extent != 1)
    if moving != tuple(extent for extent in src if extent != 1):
        return None
    names = _names(moving, fresh)
    value = Load(copy.src.buffer, _index(copy.src, names, src), place=copy.place)
    target = _index(copy.dst, names, dst)
    store = Store(copy.dst.buffer, target, convert(value, copy.dst.buffer.dtype), place=copy.place)
    return _nest(moving, names, store)


def _extent(region: Region) -> tuple[int, ...] | None:
    """The extents of a region, those of its whole buffer on chip where it does not say."""
    if region.extent is not None:
        return region.extent
    return None if region.buffer.scope == "global" else region.buffer.extents


def _names(extent: tuple[int, ...], fresh: Callable[[str], str]) -> list[Var]:
    return [Var(fresh("ijkl"[axis % 4])) for axis in range(len(extent))]


def _index(region: Region, names: list[Var], extent: tuple[int, ...] | None = None) -> tuple[Expr, ...]:
    """The element of a region that names choose; with `extent`, only where that is more than 1."""
    own = extent or _extent(region) or ()
    own = (1,) * (region.buffer.rank - len(own)) + own[-region.buffer.rank :] if region.buffer.rank else ()
    moving = iter(names)
    return tuple(
        start + next(moving) if extent is None or length != 1 else start
        for start, length in zip(region.start, own, strict=True)
    )


def _nest(extent: tuple[int, ...], names: list[Var], store: Store) -> list[Stmt]:
    body: Stmt = store
    for length, name in zip(reversed(extent), reversed(names), strict=True):
        body = Serial(Const(length), (name,), (body,), place=store.place)
    return [body]


def flagged(statement: Stmt, fresh: Callable[[str], str]) -> tuple[Stmt, ...]:
    """A statement of a run whose loops go on by scalars of the run: what a thread keeps is a tile."""

    def change(node: Any) -> Any:
        condition: Expr | None = getattr(node, "condition", None)
        if not isinstance(node, LoopStmt) or condition is None or pure(condition):
            return node
        going = Buffer(fresh("going"), (), boolean, "var")
        again = Store(going, (), condition, place=node.place)
        inside: Any = node
        inside = inside.but(condition=Load(going, ()), body=(*node.body, again))
        return AllocVar(going, init=condition, place=node.place), inside

    if not any(isinstance(inner, LoopStmt) for inner in statements((statement,))):
        return (statement,)
    changed: Any = rewrite(statement, change)
    return tuple(changed) if isinstance(changed, tuple) else (changed,)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
