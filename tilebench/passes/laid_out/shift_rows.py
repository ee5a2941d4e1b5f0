"""Loops and reductions over rows, written anew with a shift: what `align_rows` has decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...ir import (
    Buffer,
    Call,
    Const,
    Expr,
    If,
    Load,
    Node,
    Stmt,
    Store,
    Var,
    all_of,
    rename_buffers,
    substitute,
    whole,
    zero_of,
)
from ...ir.expr_walks import replaced
from ...ir.names import Names
from ...ir.rewrite import rewrite
from ...language.copy import Copy, Fill
from ...language.memory import AllocFragment, AllocShared
from ...language.reduce import Reduce
from ...language.structure import Parallel
from ..analysis.accesses import MEMORY
from ..analysis.body_accesses import BodyAccesses
from ..bounded.element_loops import copy_loop, fill_loop
from ..threads.rows.reduce import neutral


@dataclass(frozen=True)
class Shift:
    """Element j of a row of `length` stands at place `j + by` of a loop or fragment of `extent` places."""

    by: Expr
    length: int
    extent: int

    def holds(self, place: Expr) -> Expr:
        """Whether a place has an element of the row."""
        element = place - self.by
        return all_of([element.compare(">=", 0), element.compare("<", self.length)])


def shifted_site(node: Stmt, shift: Shift, longer: Mapping[str, Buffer], names: Names) -> Stmt:
    """The loop over places. A fill of a whole fragment stays one: no place of it matters but elements."""
    if isinstance(node, Fill) and node.dst.buffer.name in longer:
        return node.but(dst=whole(longer[node.dst.buffer.name]))
    loop = node
    if isinstance(node, Copy):
        loop = copy_loop(node, names)
    elif isinstance(node, Fill):
        loop = fill_loop(node, names)
    assert isinstance(loop, Parallel)
    own = names_of_rows(node, loop, shift)
    last = loop.vars[-1]
    place = Var(names.fresh(f"{last.name}_at"), type=last.type)
    condition = own.holds(place)

    def at_places(part: Node) -> Node:
        """Fragments are indexed by places; what is left of the variable is the element."""
        if isinstance(part, (Load, Store)) and part.buffer.name in longer and part.index[-1] == last:
            return part.but(index=(*part.index[:-1], place))
        return part

    body = tuple(rewrite(statement, at_places) for statement in loop.body)
    values: dict[str, Expr] = {last.name: place - own.by}
    values |= {v.name: Const(0) for v, n in zip(loop.vars[:-1], loop.extents[:-1], strict=True) if n == 1}
    body = tuple(substitute(statement, values) for statement in body)
    body = rename_buffers_in(_inside(condition, body, loop), longer)
    return loop.but(extents=(*loop.extents[:-1], own.extent), vars=(*loop.vars[:-1], place), body=body)


def names_of_rows(node: Stmt, loop: Parallel, shift: Shift) -> Shift:
    """The shift in the variables of a loop that stands for a copy or fill, whose box had names of its own."""
    if loop is node:
        return shift
    new = {f"__box{k}": var for k, var in enumerate(loop.vars)}
    return Shift(replaced(shift.by, new), shift.length, shift.extent)


def rename_buffers_in(body: tuple[Stmt, ...], buffers: Mapping[str, Buffer]) -> tuple[Stmt, ...]:
    return tuple(rename_buffers(statement, buffers) for statement in body)


def _inside(condition: Expr, body: tuple[Stmt, ...], loop: Parallel) -> tuple[Stmt, ...]:
    """The body without accesses to memory outside of the row.

    Where only fragments are written the reads alone are guarded, and give zero: without a branch around them
    all loads of a thread are in flight together.
    """
    touched = BodyAccesses.of(body)
    if touched.outside or touched.stores.intersection(MEMORY):
        return (If(condition, body, (), place=loop.place),)

    def guard(part: Node) -> Node:
        if not isinstance(part, Load) or part.buffer.scope not in MEMORY:
            return part
        return Call("if_then_else", (condition, part, zero_of(part.dtype)), type=part.dtype)

    return tuple(rewrite(statement, guard) for statement in body)


def shifted_reduction(
    node: Reduce, shift: Shift, rows: tuple[str, ...], longer: Mapping[str, Buffer], names: Names
) -> tuple[Stmt, ...]:
    """The reduction of a longer fragment, made neutral outside of its rows in front of it."""
    source = longer[node.src.buffer.name]
    index = tuple(Var(names.fresh(letter)) for letter in _letters(source.rank))
    own = Shift(replaced(shift.by, _named(rows, index, source)), shift.length, shift.extent)
    value = Load(source, index)
    kept = Call(
        "if_then_else", (own.holds(index[-1]), value, neutral(node.kind, source.dtype)), type=source.dtype
    )
    store = Store(source, index, kept, place=node.place)
    return (
        Parallel(source.extents, index, (store,), place=node.place),
        node.but(src=whole(source)),
    )


def restored_reduction(
    node: Reduce, shift: Shift, rows: tuple[str, ...], longer: Mapping[str, Buffer], names: Names
) -> tuple[Stmt, ...]:
    """The reduction across rows, whose elements go back to their places by way of shared memory."""
    source, old = longer[node.src.buffer.name], node.src.buffer
    tile = Buffer(names.fresh(f"{old.name}_rows"), old.extents, old.dtype, "shared")
    again = Buffer(names.fresh(f"{old.name}_again"), old.extents, old.dtype, "fragment")
    index = tuple(Var(names.fresh(letter)) for letter in _letters(source.rank))
    own = Shift(replaced(shift.by, _named(rows, index, source)), shift.length, shift.extent)
    store = Store(tile, (*index[:-1], index[-1] - own.by), Load(source, index), place=node.place)
    guarded = If(own.holds(index[-1]), (store,), (), place=node.place)
    return (
        AllocShared(tile, place=node.place),
        AllocFragment(again, place=node.place),
        Parallel(source.extents, index, (guarded,), place=node.place),
        Copy(whole(tile), whole(again), place=node.place),
        node.but(src=whole(again)),
    )


def _named(rows: tuple[str, ...], index: tuple[Var, ...], buffer: Buffer) -> dict[str, Expr]:
    """The rows of a fragment by the variables of a loop over it."""
    pairs = zip(rows, index, buffer.extents, strict=False)
    return {name: var if extent != 1 else Const(0) for name, var, extent in pairs}


def _letters(rank: int) -> list[str]:
    return [*(f"i{k}" if k else "i" for k in range(rank - 1)), "at"]
