"""An operand of a product by atoms, from shared memory element by element: any layout, any extents."""

from __future__ import annotations

from ...ir import Buffer, Call, Const, Expr, Load, Stmt, Store, Var, all_of, zero_of
from ...language.memory import AllocLocal
from ...language.structure import Unroll
from .addresses import lower_expr, shared_offset
from .atom_operands import AtomSide, Operand, of_buffer
from .emitter import Emitter
from .tiles import NOWHERE


def fetched_by_elements(emitter: Emitter, side: AtomSide) -> Operand:
    """The registers of one step of k, each element by a load of its own; zeros outside of the region."""
    registers = emitter.buffer(side.field, side.repeats * side.atom.values, side.region.buffer)
    return Operand(
        [AllocLocal(registers)],
        lambda turn, ghosts, part: _fetch(emitter, side, registers, turn),
        of_buffer(side, registers),
    )


def _fetch(emitter: Emitter, side: AtomSide, registers: Buffer, turn: Expr) -> list[Stmt]:
    atom = side.atom
    with emitter.scope():
        repeat = emitter.variable("r0", side.repeats)
        place = emitter.thread_part(atom)
        place[side.free] = place[side.free] + side.origin(emitter) + repeat * side.stride
        place[side.k_dim] = place[side.k_dim] + turn * side.unit
        loops: list[tuple[Var, int]] = []
        number: Expr = repeat * atom.values
        for divisor, count, dim, stride in atom.value_digits:
            value = emitter.variable(f"r{len(loops) + 1}", count)
            loops.append((value, count))
            number = number + value * divisor
            place[dim] = place[dim] + value * stride
        body: list[Stmt] = _element(emitter, side, place, registers, number)
    for variable, count in (*loops, (repeat, side.repeats)):
        body = [Unroll(Const(count), (variable,), tuple(body))]
    return body


def _element(
    emitter: Emitter, side: AtomSide, place: list[Expr], registers: Buffer, number: Expr
) -> list[Stmt]:
    region = side.region
    index = list(region.start)
    tests: list[Expr] = []
    for dim, part in enumerate(place):
        test = part.compare("<", side.extent(dim))
        if not emitter.facts.proves(test):
            tests.append(test)
        index[side.dims[dim]] = index[side.dims[dim]] + part
    before: list[Stmt] = []
    lowered = tuple(lower_expr(emitter, part, NOWHERE, before) for part in index)
    version = None if region.version is None else lower_expr(emitter, region.version, NOWHERE, before)
    offset = shared_offset(emitter, region.buffer.name, lowered, version, before)
    value: Expr = Load(emitter.shared[region.buffer.name].flat, (offset,))
    if tests:
        value = Call("if_then_else", (all_of(tests), value, zero_of(value.dtype)), type=value.dtype)
    return [*before, Store(registers, (number,), value)]
