"""Uses of views (`views.py`) written as uses of the buffers whose memory they are.

An element becomes the element behind it: of another dtype its bits, or the bits of several. An operation on a
box becomes one on the box behind it where there is one; a copy or fill is a parallel loop elsewhere, and what
else works on whole tiles gets a tile of its own, filled before and copied back behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import LanguageError, Place
from ...ir import (
    Arith,
    Buffer,
    Call,
    Cast,
    Const,
    Expr,
    Function,
    If,
    Let,
    Load,
    OpStmt,
    Region,
    Reinterpret,
    Stmt,
    Store,
    Var,
    all_of,
    map_children,
    walk,
    whole,
    zero_of,
)
from ...ir.dtypes import ALL, DType
from ...ir.effects import effects_of
from ...ir.facts import Facts
from ...ir.names import Names
from ...ir.stmt import AllocStmt, statements
from ..copy import Copy, Fill
from ..gemm import Gemm
from ..memory import AllocFragment, AllocShared
from ..scopes import entered, entry_facts
from ..structure import Parallel
from ..view_index import box_of_view, mapped


def open_views(function: Function, views: Mapping[str, Buffer]) -> Function:
    """The function without views. Raises `LanguageError` where a part of an element would be stored."""
    if not views:
        return function
    return _Opener(function, views).step(function)


class _Opener:
    def __init__(self, function: Function, views: Mapping[str, Buffer]) -> None:
        self.names = Names(function)
        self.names.taken |= set(views)
        now = {array.name: array for array in function.arrays}
        facts = entry_facts(function)
        for statement in statements(function.body):
            facts = entered(statement, facts)
            if isinstance(statement, Let):
                facts = facts.with_let(statement.var, statement.value)
            if isinstance(statement, AllocStmt):
                now[statement.buffer.name] = statement.buffer
        # A fragment may be kept in shared memory by now.
        self.views = {name: now.get(root.name, root) for name, root in views.items()}
        self.facts: Facts = facts

    def step(self, node: Any) -> Any:
        """The node without views; a statement may become several."""
        if isinstance(node, OpStmt):
            return self.operation(map_children(node, self.step))
        below = map_children(node, self.step)
        if isinstance(below, Load) and below.buffer.name in self.views:
            return self.read(below.buffer, below.index, below.place)
        if isinstance(below, Store) and below.buffer.name in self.views:
            return self.written(below)
        return below

    def is_view(self, region: Any) -> bool:
        return isinstance(region, Region) and region.buffer.name in self.views

    # -- elements
    def read(self, view: Buffer, index: Sequence[Expr], place: Place | None) -> Expr:
        """The value of an element; zero outside of the view."""
        root = self.views[view.name]
        if view.dtype.bits <= root.dtype.bits:
            ratio = root.dtype.bits // view.dtype.bits
            shape = root.shape if ratio == 1 else (*root.shape, ratio)
            where = mapped(index, view.shape, shape, self.facts)
            spot = where.index if ratio == 1 else where.index[:-1]
            value: Expr = Load(root, spot, place=place)
            value = value if ratio == 1 else _part(value, where.index[-1], view.dtype)
            value = _same_bits(value, view.dtype)
        else:
            ratio = view.dtype.bits // root.dtype.bits
            parts = [
                mapped((*index, Const(k)), (*view.shape, ratio), root.shape, self.facts) for k in range(ratio)
            ]
            where = parts[0]
            value = _joined([Load(root, part.index, place=place) for part in parts], view.dtype)
        if not where.tests:
            return value
        args = (all_of(list(where.tests)), value, zero_of(view.dtype))
        return Call("if_then_else", args, type=view.dtype, place=place)

    def written(self, store: Store) -> Any:
        """The statements that store an element: of a wider dtype, its parts one by one."""
        view, root = store.buffer, self.views[store.buffer.name]
        if store.atomic and view.dtype != root.dtype:
            raise LanguageError(
                "an atomic of {name} would combine elements of {root} as another dtype", name=view.name,
                at=store.place, root=root.name, a=view.dtype, b=root.dtype, found="{a} in {b}",
                hint="allocate {root} in the dtype that is combined, and view it as the other one",
            )  # fmt: skip
        if view.dtype.bits < root.dtype.bits:
            raise LanguageError(
                "a store to {name} would write a part of an element of {root}", name=view.name,
                at=store.place, root=root.name, a=view.dtype, b=root.dtype, found="{a} in {b}",
                hint="allocate the memory in the narrower dtype, and view it as the wider one",
            )  # fmt: skip
        ratio = view.dtype.bits // root.dtype.bits
        if ratio == 1:
            where = mapped(store.index, view.shape, root.shape, self.facts)
            value = _same_bits(store.value, root.dtype)
            done: tuple[Stmt, ...] = (store.but(buffer=root, index=where.index, value=value),)
        else:
            parts = [
                mapped((*store.index, Const(k)), (*view.shape, ratio), root.shape, self.facts)
                for k in range(ratio)
            ]
            where = parts[0]
            # What is stored may read the element whose parts change one after the other.
            name = Var(self.names.fresh("bits"), type=ALL[f"uint{view.dtype.bits}"])
            let = Let(name, _same_bits(store.value, name.type), place=store.place)
            pieces = [
                store.but(
                    buffer=root, index=part.index,
                    value=_same_bits(_part(name, Const(k), root.dtype), root.dtype),
                )
                for k, part in enumerate(parts)
            ]  # fmt: skip
            done = (let, *pieces)
        if where.tests:
            done = (If(all_of(list(where.tests)), done, (), place=store.place),)
        return done if len(done) > 1 else done[0]

    # -- operations
    def operation(self, stmt: Any) -> Any:
        touched = [effect for effect in effects_of(stmt) if self.is_view(effect.region)]
        if not touched:
            return stmt
        if isinstance(stmt, Copy):
            stmt = _with_extents(stmt)
        behind = {
            effect.field: self.boxed(getattr(stmt, effect.field), isinstance(stmt, (Copy, Fill)))
            for effect in touched
        }
        found: dict[str, Any] = {field: region for field, region in behind.items() if region is not None}
        if len(found) == len(touched):
            return stmt.but(**found)
        if isinstance(stmt, Copy):
            return self.moved(stmt)
        if isinstance(stmt, Fill):
            return self.filled(stmt)
        return self.staged(stmt, [effect for effect in touched if effect.field not in found], found)

    def boxed(self, region: Region, moves: bool) -> Region | None:
        """The box behind a box; None where there is none, or where its dimensions would not do."""
        view, root = region.buffer, self.views[region.buffer.name]
        extent = region.extent
        if view.dtype != root.dtype or extent is None:
            return None
        box = box_of_view(region.start, extent, view.shape, root.shape, self.facts)
        same = box is not None and (moves or box.extent[-2:] == tuple(extent[-2:]))
        return Region(root, box.start, extent=box.extent, place=region.place) if box and same else None

    def behind(self, buffer: Buffer) -> Buffer:
        """The buffer that holds the memory."""
        return self.views.get(buffer.name, buffer)

    def moved(self, copy: Copy) -> Any:
        """A copy, element by element; within one buffer through a tile, since elements may meet."""
        if self.behind(copy.src.buffer).name != self.behind(copy.dst.buffer).name:
            return self.copied(copy)
        name = self.names.fresh(f"{copy.src.buffer.name}_tile")
        extent = tuple(size for size in copy.src.extent or () if size != 1) or (1,)
        tile = Buffer(name, extent, copy.src.buffer.dtype, "fragment")
        return (
            AllocFragment(tile, place=copy.place),
            self.copied(copy.but(dst=whole(tile))),
            self.copied(copy.but(src=whole(tile))),
        )

    def copied(self, copy: Copy) -> Stmt:
        """A copy as a loop over its box."""
        box = [size for size in copy.src.extent or () if size != 1] or [1]
        names, around = self.loop(box)
        read = Load(copy.src.buffer, _moved(copy.src, names), place=copy.place)
        dtype = copy.dst.buffer.dtype
        value: Expr = read if read.dtype == dtype else Cast(read, type=dtype, place=copy.place)
        return around(Store(copy.dst.buffer, _moved(copy.dst, names), value, place=copy.place), copy.place)

    def filled(self, fill: Fill) -> Any:
        """A fill, element by element. The value is one, of before: it may be an element that is filled."""
        before: list[Stmt] = []
        value = fill.value
        if any(isinstance(part, Load) for part in walk(value)):
            value = Var(self.names.fresh("filled"), type=fill.value.dtype)
            named = self.step(Let(value, fill.value, place=fill.place))
            before += [named] if isinstance(named, Stmt) else named
        names, around = self.loop([size for size in fill.dst.extent or () if size != 1] or [1])
        store = Store(fill.dst.buffer, _moved(fill.dst, names), value, place=fill.place)
        return (*before, around(store, fill.place)) if before else around(store, fill.place)

    def loop(self, box: Sequence[int]) -> tuple[tuple[Var, ...], Any]:
        """Variables over a box, and what makes the loop of a store over it."""
        names = tuple(Var(self.names.fresh("ijklmn"[axis % 6])) for axis in range(len(box)))
        for name, size in zip(names, box, strict=True):
            self.facts = self.facts.with_extent(name, size)

        def around(store: Store, place: Place | None) -> Stmt:
            body = self.step(store)
            inside: tuple[Stmt, ...] = (body,) if isinstance(body, Stmt) else tuple(body)
            return Parallel(tuple(box), names, inside, place=place)

        return names, around

    def staged(self, stmt: Any, touched: Sequence[Any], found: dict[str, Any]) -> Any:
        """An operation on tiles of its own: filled in front of it, copied back behind it."""
        before: list[Stmt] = []
        behind: list[Stmt] = []
        for effect in touched:
            region = effect.region
            scope, allocate = ("fragment", AllocFragment)
            if isinstance(stmt, Gemm) and effect.field != "c":
                scope, allocate = ("shared", AllocShared)
            name = self.names.fresh(f"{region.buffer.name}_tile")
            tile = Buffer(name, tuple(region.extent or ()), region.buffer.dtype, scope)
            before.append(allocate(tile, place=stmt.place))
            if effect.reads:
                before.append(self.copied(Copy(region, whole(tile), place=stmt.place)))
            if effect.writes:
                behind.append(self.copied(Copy(whole(tile), region, place=stmt.place)))
            found[effect.field] = whole(tile).at(region.place)
        return (*before, stmt.but(**found), *behind)


def _moved(region: Region, names: Sequence[Var]) -> tuple[Expr, ...]:
    """The element of a box that loop variables over its extents other than 1 name."""
    steps = iter(names)
    extent = region.extent or (1,) * region.buffer.rank
    return tuple(
        low if size == 1 else low + next(steps) for low, size in zip(region.start, extent, strict=True)
    )


def _with_extents(copy: Copy) -> Copy:
    """A copy whose head addresses have the extents of the other side."""
    src, dst = copy.src, copy.dst
    if src.extent is None and dst.extent is None:
        return copy.but(src=_headed(src, ()), dst=_headed(dst, ()))
    if src.extent is None:
        return copy.but(src=_headed(src, dst.extent or ()))
    return copy.but(dst=_headed(dst, src.extent)) if dst.extent is None else copy


def _headed(region: Region, extent: Sequence[int]) -> Region:
    rank = region.buffer.rank
    return region.but(extent=((1,) * rank + tuple(extent))[-rank:])


# -- bits
def _same_bits(value: Expr, dtype: DType) -> Expr:
    if value.dtype == dtype:
        return value
    kept = value.dtype.is_float or dtype.is_float
    return (Reinterpret if kept else Cast)(value, type=dtype, place=value.place)


def _part(value: Expr, number: Expr, dtype: DType) -> Expr:
    """Part `number` of a value, counted from the least significant bits, as wide as a dtype."""
    bits = ALL[f"uint{value.dtype.bits}"]
    count = Cast(number * dtype.bits, type=bits) if not isinstance(number, Const) else Const(
        number.value * dtype.bits, type=bits
    )  # fmt: skip
    moved = Arith(">>", (_same_bits(value, bits), count), place=value.place)
    return Cast(moved, type=ALL[f"uint{dtype.bits}"], place=value.place)


def _joined(parts: Sequence[Expr], dtype: DType) -> Expr:
    """A value of the bits of several, the first of them the least significant."""
    bits = ALL[f"uint{dtype.bits}"]
    total: Expr | None = None
    for number, part in enumerate(parts):
        wide: Expr = Cast(_same_bits(part, ALL[f"uint{part.dtype.bits}"]), type=bits, place=part.place)
        if number:
            wide = Arith("<<", (wide, Const(number * part.dtype.bits, type=bits)), place=part.place)
        total = wide if total is None else Arith("|", (total, wide), place=part.place)
    assert total is not None
    return _same_bits(total, dtype)


__all__ = ["open_views"]
