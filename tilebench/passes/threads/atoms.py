"""Matrix products by an instruction that a group of threads carries out together.

The instruction's row says how each operand lies in the registers of the group; here operands are
fetched from shared memory into registers of that form, and the instruction is issued for each part of
the tile that a group has. Extents that the instruction does not divide are padded with zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...errors import LayoutError
from ...ir import FALSE, TRUE, Buffer, Call, Const, Expr, If, Load, Region, Stmt, Store, Var, all_of, zero_of
from ...language.gemm import Gemm
from ...language.memory import AllocLocal
from ...language.structure import Serial, Unroll
from ...layout import Fragment
from ...machine import Instruction
from .addresses import lower_expr, shared_offset
from .emitter import Emitter
from .tiles import NOWHERE

# The statement of one instruction, from registers: `step(c, a, b)`.
Step = Callable[[Region, Region, Region], Stmt]


@dataclass(frozen=True)
class _Operand:
    """An operand in shared memory, and where the group's part of it starts.

    `dims` are the region's dimensions that the atom's two stand for; `repeats` is how often the atom
    is repeated along the one that is not k, `stride` how far apart, `origin` where the first lies.
    """

    name: str
    region: Region
    atom: Fragment
    dims: tuple[int, int]
    free: int
    repeats: int
    stride: int
    origin: Expr


def gemm_by_atoms(emitter: Emitter, gemm: Gemm, row: Instruction, step: Step) -> list[Stmt]:
    """The code of one thread for a gemm by a row whose operands have fragments, A and B in shared memory.

    Raises `LayoutError` where the accumulator does not lie as the instruction writes it.
    """
    layout, atom = _accumulator(emitter, gemm, row)
    _, _, depth = gemm.mnk
    unit = row.shape[2]
    (rows, row_stride), (columns, column_stride) = (_repeats(layout, atom, dim) for dim in (0, 1))
    origins = _origins(emitter, layout, atom)
    a = _operand(emitter, gemm, row, "a", gemm.transpose_A, rows, row_stride, origins[0])
    b = _operand(emitter, gemm, row, "b", gemm.transpose_B, columns, column_stride, origins[1])
    steps = -(-depth // unit)
    with emitter.scope(steps > 1):
        first: Expr = Const(0)
        turn = emitter.variable("k0", steps) if steps > 1 else None
        if turn is not None:
            first = turn * unit
        fetched_a, registers_a = _fetch(emitter, a, first)
        fetched_b, registers_b = _fetch(emitter, b, first)
        issued = _issue(emitter, gemm, step, (rows, columns), atom, (registers_a, a), (registers_b, b))
    body = [*fetched_a, *fetched_b, *issued]
    looped: list[Stmt] = [Serial(Const(steps), (turn,), tuple(body))] if turn is not None else body
    return [*_cleared(emitter, gemm), *looped]


def _accumulator(emitter: Emitter, gemm: Gemm, row: Instruction) -> tuple[Fragment, Fragment]:
    tile, atom = emitter.fragments.get(gemm.c.buffer.name), row.operand("c").fragment
    if tile is None or atom is None or tile.layout.thread[: len(atom.thread)] != atom.thread:
        raise LayoutError(
            "the accumulator {name} does not lie as {by} writes it", at=gemm.c.place,
            name=gemm.c.buffer.name, by=row.name, atom=atom, layout=getattr(tile, "layout", None),
            expected="{atom}, repeated", found="{layout}",
        )  # fmt: skip
    return tile.layout, atom


def _repeats(layout: Fragment, atom: Fragment, dim: int) -> tuple[int, int]:
    """How often a group repeats the atom along a dimension, and how far apart."""
    for count, along, stride in layout.value[len(atom.value) :]:
        if along == dim:
            return count, stride
    return 1, 0


def _origins(emitter: Emitter, layout: Fragment, atom: Fragment) -> list[Expr]:
    """Where the group's part of the tile starts: what the digits beyond the atom's own add."""
    origins: list[Expr] = [Const(0), Const(0)]
    for divisor, count, dim, stride in layout.thread_digits[len(atom.thread) :]:
        if dim >= 0:
            origins[dim] = origins[dim] + emitter.digit(divisor, count) * stride
    return origins


def _operand(
    emitter: Emitter, gemm: Gemm, row: Instruction, field: str, transposed: bool, repeats: int, stride: int,
    origin: Expr,
) -> _Operand:  # fmt: skip
    region, atom = getattr(gemm, field), row.operand(field).fragment
    if atom is None or region.buffer.name not in emitter.shared:
        raise LayoutError(
            "the operand {name} of a gemm by {by} is in {scope} memory", at=region.place,
            name=region.buffer.name, by=row.name, scope=region.buffer.scope, expected="shared memory",
        )  # fmt: skip
    last = region.buffer.rank - 1
    dims = (last, last - 1) if transposed else (last - 1, last)
    return _Operand(field, region, atom, dims, 0 if field == "a" else 1, repeats, stride, origin)


def _fetch(emitter: Emitter, operand: _Operand, first: Expr) -> tuple[list[Stmt], Buffer]:
    """The operand's registers for one step of k, from `first` on; zeros outside of the region."""
    atom = operand.atom
    registers = emitter.buffer(operand.name, operand.repeats * atom.values, operand.region.buffer)
    with emitter.scope():
        repeat = emitter.variable("r0", operand.repeats)
        place = emitter.thread_part(atom)
        place[operand.free] = place[operand.free] + operand.origin + repeat * operand.stride
        place[1 - operand.free] = place[1 - operand.free] + first
        loops: list[tuple[Var, int]] = []
        number: Expr = repeat * atom.values
        for divisor, count, dim, stride in atom.value_digits:
            value = emitter.variable(f"r{len(loops) + 1}", count)
            loops.append((value, count))
            number = number + value * divisor
            place[dim] = place[dim] + value * stride
        body = _element(emitter, operand, place, registers, number)
    for variable, count in (*loops, (repeat, operand.repeats)):
        body = [Unroll(Const(count), (variable,), tuple(body))]
    return [AllocLocal(registers), *body], registers


def _element(
    emitter: Emitter, operand: _Operand, place: list[Expr], registers: Buffer, number: Expr
) -> list[Stmt]:
    region = operand.region
    extents = region.extent or region.buffer.shape
    index = list(region.start)
    tests: list[Expr] = []
    for dim, part in zip(operand.dims, place, strict=True):
        test = part.compare("<", extents[dim])
        if not emitter.facts.proves(test):
            tests.append(test)
        index[dim] = index[dim] + part
    before: list[Stmt] = []
    lowered = tuple(lower_expr(emitter, part, NOWHERE, before) for part in index)
    version = None if region.version is None else lower_expr(emitter, region.version, NOWHERE, before)
    offset = shared_offset(emitter, region.buffer.name, lowered, version, before)
    value: Expr = Load(emitter.shared[region.buffer.name].flat, (offset,))
    if tests:
        value = Call("if_then_else", (all_of(tests), value, zero_of(value.dtype)), type=value.dtype)
    return [*before, Store(registers, (number,), value)]


def _issue(
    emitter: Emitter, gemm: Gemm, step: Step, repeats: tuple[int, int], atom: Fragment,
    a: tuple[Buffer, _Operand], b: tuple[Buffer, _Operand],
) -> list[Stmt]:  # fmt: skip
    """The instruction for each row and column of atoms."""
    rows, columns = repeats
    with emitter.scope():
        m, n = emitter.variable("m0", rows), emitter.variable("n0", columns)
        accumulators = emitter.fragments[gemm.c.buffer.name].local
        # The fragment repeats along the last dimension first.
        c = _registers(accumulators, (m * columns + n) * atom.values, atom.values)
        left, right = (
            _registers(buffer, variable * operand.atom.values, operand.atom.values)
            for (buffer, operand), variable in ((a, m), (b, n))
        )
        body: list[Stmt] = [step(c, left, right)]
    inner = Unroll(Const(columns), (n,), tuple(body))
    return [Unroll(Const(rows), (m,), (inner,))]


def _registers(buffer: Buffer, first: Expr, count: int) -> Region:
    return Region(buffer, (first,), extent=(count,))


def _cleared(emitter: Emitter, gemm: Gemm) -> list[Stmt]:
    """The accumulator set to zero where the gemm starts afresh."""
    if gemm.clear_accum == FALSE:
        return []
    local = emitter.fragments[gemm.c.buffer.name].local
    register = emitter.leaf_variable("r0", local.size)
    store = Store(local, (register,), zero_of(local.dtype))
    clear = Unroll(Const(local.size), (register,), (store,))
    if gemm.clear_accum == TRUE:
        return [clear]
    before: list[Stmt] = []
    condition = lower_expr(emitter, gemm.clear_accum, NOWHERE, before)
    return [*before, If(condition, (clear,), ())]
