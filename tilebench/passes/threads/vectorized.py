"""`for v in T.vectorized(8): a[v] = A[tx * 8 + v]` of one thread: moves of neighbours as wide accesses.

A move between an array of the thread's own and memory is wide where the addresses are proved aligned and all
neighbours are there, or none. Each statement of the loop is then done for all turns before the next one, if
no turn needs what another one did; else all turns are written out, in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd

from ...ir import Buffer, Call, Const, Expr, If, Load, Region, Stmt, Store, all_of, substitute, zero_of
from ...ir.arith import linear
from ...ir.expr_walks import mentions
from ...language.lowered.threads import VectorLoad, VectorStore
from ...language.structure import Unroll, Vectorized
from ..analysis.turns_apart import turns_apart
from .addresses import lower_access, lower_expr
from .emitter import Emitter
from .tiles import Coordinates
from .vector import MEMORY, UNIFORM, Vector, fold_condition


@dataclass(frozen=True)
class WideMove:
    """A move of `width` elements at a time between `own` and `there`; `loads` says which way.

    `guard` holds for all turns or for none; where it does not a load gives zeros, and a store is left out.
    """

    statement: Stmt
    own: Load | Store
    there: Load | Store
    loads: bool
    width: int
    guard: Expr | None


def wide_moves(emitter: Emitter, loop: Vectorized, element: Coordinates) -> list[Stmt | WideMove] | None:
    """The statements of the loop, wide moves as such; None without any, or where turns are to be in order."""
    name, wide = loop.vars[0].name, loop.extent & -loop.extent
    vector = Vector(emitter, element, loop.vars[0], wide)
    with emitter.scope():
        # An access starts at a multiple of its width.
        emitter.facts = emitter.facts.with_range(name, 0, loop.extent - wide, multiple_of=wide)
        parts: list[Stmt | WideMove] = [_move(vector, statement) or statement for statement in loop.body]
    if not any(isinstance(part, WideMove) for part in parts) or not turns_apart(loop):
        return None
    return parts


def _move(vector: Vector, statement: Stmt) -> WideMove | None:
    store, guard = statement, None
    if isinstance(store, If) and not store.orelse and len(store.then) == 1:
        store, guard = store.then[0], store.condition
    if not isinstance(store, Store) or not store.plain or store.version is not None:
        return None
    value: Expr = store.value
    loads = store.buffer.scope == "local"
    if loads and guard is None and isinstance(value, Call) and value.word == "if_then_else":
        guard, value = (
            (value.args[0], value.args[1]) if value.args[2] == zero_of(value.dtype) else (None, value)
        )
    if not isinstance(value, Load) or (loads and isinstance(statement, If)):
        return None
    own, there = (store, value) if loads else (value, store)
    packed = own.buffer.dtype.per_byte > 1 or there.buffer.dtype.per_byte > 1
    if own.buffer.scope != "local" or there.buffer.scope not in MEMORY or packed:
        return None
    if guard is not None and vector.kind(guard) != UNIFORM:
        return None
    width = gcd(vector.access_width(there), _own_width(vector, own))
    return WideMove(statement, own, there, loads, width, guard) if width > 1 else None


def _own_width(vector: Vector, own: Load | Store) -> int:
    """The neighbours in an array of the thread's own that start at a multiple of their number."""
    if not own.index or any(mentions(part, vector.var.name) for part in own.index[:-1]):
        return 1
    last = own.index[-1]
    form = linear(vector.spelled(last))
    if form.coefficient(vector.var) != 1 or mentions(form.without(vector.var).expr(), vector.var.name):
        return 1
    offset: Expr = Const(0)
    for part, stride in zip(own.index, own.buffer.element_strides, strict=True):
        offset = offset + substitute(part, {vector.var.name: Const(0)}) * stride
    return gcd(vector.width, vector.emitter.facts.divisor_of(linear(vector.spelled(offset))))


def moved(emitter: Emitter, loop: Vectorized, move: WideMove, element: Coordinates) -> list[Stmt]:
    """The accesses of a wide move."""
    place, name = move.statement.place, loop.vars[0].name
    inside: list[Stmt] = []
    with emitter.scope(move.guard is not None):
        for lead in range(0, loop.extent, move.width):
            turn = {name: Const(lead)}
            own = _region(emitter, move.own, turn, move.width, element, inside)
            there = _region(emitter, move.there, turn, move.width, element, inside)
            wide = VectorLoad(own, there, place=place) if move.loads else VectorStore(there, own, place=place)
            inside.append(wide)
    if move.guard is None:
        return inside
    guard = fold_condition(emitter, substitute(move.guard, {name: Const(0)}), element)
    if guard == all_of([]):
        return inside
    outside: list[Stmt] = []
    test = lower_expr(emitter, guard, element, outside)
    other = _zeros(emitter, loop, move.own, element) if move.loads else ()
    return [*outside, If(test, tuple(inside), other, place=place)]


def _region(
    emitter: Emitter, access: Load | Store, turn: Mapping[str, Expr], width: int, element: Coordinates,
    before: list[Stmt],
) -> Region:  # fmt: skip
    """The neighbours from the element of one turn on, in the buffer that one thread has."""
    buffer, index = _lowered(emitter, access, turn, element, before)
    return Region(buffer, index, extent=(1,) * (len(index) - 1) + (width,))


def _lowered(
    emitter: Emitter, access: Load | Store, turn: Mapping[str, Expr], element: Coordinates, before: list[Stmt]
) -> tuple[Buffer, tuple[Expr, ...]]:
    def lower(expr: Expr) -> Expr:
        return lower_expr(emitter, expr, element, before)

    here = Load(access.buffer, tuple(substitute(part, turn) for part in access.index), place=access.place)
    return lower_access(emitter, here, element, before, lower)


def _zeros(emitter: Emitter, loop: Vectorized, own: Load | Store, element: Coordinates) -> tuple[Stmt, ...]:
    """What a load outside its array leaves."""
    before: list[Stmt] = []
    with emitter.scope():
        turn = emitter.variable(loop.vars[0].name, loop.extent)
        buffer, index = _lowered(emitter, own, {loop.vars[0].name: turn}, element, before)
    store = Store(buffer, index, zero_of(buffer.dtype), place=own.place)
    return (Unroll(Const(loop.extent), (turn,), (*before, store), place=own.place),)


def one_by_one(loop: Vectorized, statement: Stmt) -> Vectorized:
    """A loop over one of the statements."""
    return loop.but(body=(statement,))


__all__ = ["WideMove", "moved", "one_by_one", "wide_moves"]
