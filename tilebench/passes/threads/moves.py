"""A copy from memory to memory in accesses of one width: what instructions that bypass registers take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...errors import LayoutError
from ...ir import TRUE, Arith, Call, Const, Expr, If, Load, Stmt, Store, Var, all_of, int32, zero_of
from ...ir.expr_walks import replaced
from ...ir.facts import conjuncts
from ...language.copy import Copy
from ...language.structure import Unroll
from ..analysis.sites import box_of
from .addresses import lower_expr
from .elements import around, value_loops, without_unused
from .emitter import Emitter
from .registers import with_vector
from .rows.copy import cap_of, coordinates, element_of, inside, mapping_of
from .scalars import lower_one
from .tiles import Coordinates
from .vector import UNIFORM, Vector, fold_condition

# The statement of one access: `move(dst, src)`, and of one that fills `valid=`, how many elements are inside.
Move = Callable[..., Stmt]


def memory_moves(emitter: Emitter, statement: Copy, move: Move, fills: bool = False) -> list[Stmt]:
    """The loops of one thread over its part of a copy; `move` makes the statement of one access.

    An access that is not proved inside the source is tested; where it sticks out its elements are stored one
    by one, zeros outside, unless the instruction `fills` with zeros what is not valid. Raises `LayoutError`
    at the copy where the accesses that `by=` names are not neighbours, or not aligned, on both sides.
    """
    src, dst, box = statement.src, statement.dst, box_of(statement.dst)
    names = coordinates(emitter, box)
    mapping = with_vector(mapping_of(emitter, statement, statement.map, box, (src, dst)), 1)
    width = cap_of(statement)
    mapping = with_vector(mapping, width)
    looped = any(count > 1 for count, _, _ in mapping.value[1:])
    with emitter.scope(looped):
        digits, loops, parts = value_loops(emitter, mapping, width, rolled=False)
        # Within a vector of one element there is nothing to count.
        digits = digits if width > 1 else [Const(0), *digits]
        own = tuple(Var(emitter.name(name.name)) for name in names)
        lets: list[Stmt] = [emitter.let(name, part) for name, part in zip(own, parts, strict=True)]
        element = Coordinates(
            mapping, tuple(name.name for name in own), tuple(digits), (own[-1].name, digits[0])
        )
        vector = Vector(emitter, element, own[-1], width)
        load = Load(src.buffer, element_of(src, own), version=src.version, place=src.place)
        store = Store(dst.buffer, element_of(dst, own), load, version=dst.version, place=dst.place)
        if min(vector.access_width(load), vector.access_width(store)) < width:
            raise LayoutError(
                "{by} moves {width} elements at a time, which are not aligned neighbours on both sides",
                at=statement.place, by=getattr(statement.by, "name", ""), width=width,
                hint="use a narrower access, or an instruction that goes through registers",
            )  # fmt: skip
        extents = dict(zip((name.name for name in own), box, strict=True))
        tests = inside(emitter, src, load.index, statement.src_within, extents)
        condition = fold_condition(emitter, all_of(tests), element)
        valid = _valid(vector, condition) if fills else None
        if fills and (valid is not None or condition == TRUE):
            places = dict(zip((name.name for name in own), parts, strict=True))
            apart = tuple(variable.name for variable, _ in loops)
            body = _filling_access(vector, load, store, move, _Filling(valid, places, apart))
        else:
            body = _one_access(vector, load, store, condition, move)
        own_part = [
            *emitter.owner(mapping),
            *(name.compare("<", extent)
              for name, extent, padded in zip(own, box, mapping.padded, strict=True) if padded > extent),
        ]  # fmt: skip
        if own_part:
            # Ghosts of the mapping are another element's place, and of copies of a thread one moves it.
            body = [If(all_of(own_part), tuple(body), ())]
    return around(loops, without_unused([*lets, *body]), rolled=False)


def _valid(vector: Vector, condition: Expr) -> Expr | None:
    """How many elements of a vector are inside, from the first on; None where others than the last are not,
    and where all are, which takes no counting."""
    alike: list[Expr] = []
    count: Expr = Const(vector.width)
    for part in () if condition == TRUE else conjuncts(condition):
        kind = vector.kind(part)
        if kind == UNIFORM:
            alike.append(part)
        elif isinstance(part, Arith) and vector.ends_early(part):
            left = Call("max", (part.args[1] - part.args[0], Const(0)), type=int32)
            count = Call("min", (count, left), type=int32)
        else:
            return None
    if alike:
        return Call("if_then_else", (all_of(alike), count, Const(0)), type=int32)
    return None if count == Const(vector.width) else count


@dataclass(frozen=True)
class _Filling:
    """How many elements of an access are inside (None: all), what coordinates stand for, and the names of the
    loops that are written out around it."""

    valid: Expr | None
    places: dict[str, Expr]
    apart: tuple[str, ...]


def _filling_access(vector: Vector, load: Load, store: Store, move: Move, filling: _Filling) -> list[Stmt]:
    body: list[Stmt] = []
    target = vector.memory(store, vector.width, 0, body)
    source = vector.memory(load, vector.width, 0, body)
    # What repeats add to the address is seen where coordinates are spelled out.
    source = source.but(start=tuple(replaced(part, filling.places) for part in source.start))
    if filling.valid is None:
        return [*body, move(target, source, apart=filling.apart)]
    count = lower_expr(vector.emitter, filling.valid, vector.base, body)
    return [*body, move(target, source, valid=count, apart=filling.apart)]


def _one_access(vector: Vector, load: Load, store: Store, condition: Expr, move: Move) -> list[Stmt]:
    emitter = vector.emitter
    if condition == all_of([]):
        body: list[Stmt] = []
        target = vector.memory(store, vector.width, 0, body)
        source = vector.memory(load, vector.width, 0, body)
        return [*body, move(target, source)]
    before: list[Stmt] = []
    test = lower_expr(emitter, vector.all_inside(condition), vector.base, before)
    with emitter.scope():
        whole = _one_access(vector, load, store, all_of([]), move)
    with emitter.scope():
        picked = Call("if_then_else", (condition, load, zero_of(load.dtype)), type=load.dtype)
        single = lower_one(emitter, store.but(value=picked), vector.element)
    edge = Unroll(Const(vector.width), (vector.e,), tuple(single))
    return [*before, If(test, tuple(whole), (edge,))]
