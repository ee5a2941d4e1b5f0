"""`T.reduce_*`: parts in a thread, then shuffles in a warp, then shared memory between warps."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from ....errors import InternalError, LayoutError
from ....ir import (
    Arith,
    Buffer,
    Call,
    Cast,
    Const,
    DType,
    Expr,
    If,
    Let,
    Load,
    Region,
    Stmt,
    Store,
    Var,
    all_of,
    show,
    zero_of,
)
from ....ir.dtypes import float32
from ....language.accumulation import reduction_dtype
from ....language.lowered.lanes import AddLanes
from ....language.memory import AllocLocal
from ....language.reduce import BITS, Reduce
from ....language.structure import Unroll
from ....layout import Fragment
from ....layout.tiling import coalesced
from ....machine import Machine
from ...analysis.exchanges import Exchange, exchange_of, partners
from ..barriers import barrier_of
from ..elements import loop_over_registers, looped
from ..emitter import Emitter
from ..lowering import Lowering, Workspace
from ..registers import value_strides
from ..tiles import FragmentTile


def neutral(kind: str, dtype: DType) -> Const:
    """The value that changes no result: 0, the least or the most of the dtype."""
    if kind in ("sum", "bitor", "bitxor"):
        return zero_of(dtype)
    if kind == "bitand":
        return Const(dtype.most if dtype.kind == "uint" else -1, type=dtype)
    kind = kind.removesuffix("_nan")
    return Const(dtype.least if kind == "max" else dtype.most, type=dtype)


def combine(kind: str, a: Expr, b: Expr) -> Expr:
    """Two partial results made one."""
    if kind == "sum" or kind in BITS:
        return Arith(BITS.get(kind, "+"), (a, b))
    if kind.endswith("_nan"):
        # A NaN in `a` is unequal to itself, and with one in `b` no comparison holds.
        wins = Arith(">=" if kind == "max_nan" else "<=", (a, b))
        return Call("if_then_else", (Arith("or", (Arith("!=", (a, a)), wins)), a, b), type=a.dtype)
    return Call(kind, (a, b), type=a.dtype)


def reduce_loops(emitter: Emitter, reduction: Reduce) -> list[Stmt]:
    """The code of one thread for a reduction of a fragment into a fragment."""
    source, target = (fragment_of(emitter, region) for region in (reduction.src, reduction.dst))
    dim = reduction.dim % len(source.layout.extents)
    keep = len(target.layout.extents) == len(source.layout.extents)
    kept = source.layout.reduce(dim, keep=keep)
    strides = value_strides(kept, target.layout, tuple(range(len(kept.extents))))
    values = prod(d.modulus for d in kept.value_digits)
    if strides is None or values != target.layout.values:
        raise LayoutError(
            "the result {name} of a reduction does not lie where its parts are summed",
            at=reduction.place, name=reduction.dst.buffer.name, a=target.layout, b=kept,
            found="{a}", expected="{b}",
        )  # fmt: skip
    if not reduction.parted:
        check_lanes(reduction, source.layout, dim, emitter.machine.warp)
    dtype = reduction_dtype(reduction.kind, source.local.dtype, target.local.dtype)
    part = Buffer(emitter.name(f"{reduction.dst.buffer.name}_part"), (values,), dtype, "local")
    exchange = exchange_of(source.layout, dim, emitter.machine.warp)
    if reduction.parted:
        exchange = Exchange((), (), ())
    lowered: list[Stmt] = [AllocLocal(part)]
    lowered += _partial(emitter, reduction, source.local, source.layout, dim, part)
    if exchange.shuffles:
        lowered += _shuffle(emitter, reduction.kind, part, exchange.shuffles)
    if exchange.across:
        lowered += _across(emitter, reduction, source.layout, kept, part, exchange)
    return lowered + _finish(emitter, reduction, kept, strides, part, target.local)


def fragment_of(emitter: Emitter, region: Region) -> FragmentTile:
    """The registers of an operand. Raises `LayoutError` where it lies in other memory."""
    tile = emitter.fragments.get(region.buffer.name)
    if tile is not None:
        return tile
    raise LayoutError(
        "a reduction of {name} in {scope} memory is not supported", at=region.place,
        name=region.buffer.name, scope=region.buffer.scope, hint="copy it into a fragment first",
    )  # fmt: skip


def check_lanes(statement: Any, layout: Fragment, dim: int, warp: int) -> None:
    """What `by=` says of the threads that meet must be what the layout makes of it."""
    lanes = prod(count for _, count in partners(layout, dim))
    exchange = exchange_of(layout, dim, warp)
    name = "shared" if exchange.across else "shfl" if exchange.shuffles else "thread"
    if statement.by.name == name and statement.by.lanes in (0, lanes):
        return
    raise LayoutError(
        "{lanes} threads hold parts of one result of T.{word}, which meet by {name}", at=statement.place,
        lanes=lanes, name=repr(name), word=statement.spelling(), by=show(statement.by),
        expected="by=T.Instr({name}, lanes={lanes})", found="by={by}",
        hint="or change the layout of the source",
    )  # fmt: skip


def workspace(reduction: Reduce, layouts: Mapping[str, Fragment], machine: Machine) -> Workspace | None:
    """The shared memory where the parts of several warps meet."""
    layout = layouts.get(reduction.src.buffer.name)
    if layout is None:
        return None
    dim = reduction.dim % len(layout.extents)
    exchange = exchange_of(layout, dim, machine.warp)
    if not exchange.across or reduction.parted:
        return None
    dtype = reduction_dtype(reduction.kind, reduction.src.buffer.dtype, reduction.dst.buffer.dtype)
    elements = exchange.parts * prod(layout.reduce(dim).padded)
    return Workspace(f"{reduction.dst.buffer.name}_parts", elements, dtype)


def _partial(
    emitter: Emitter,
    reduction: Reduce,
    registers: Buffer,
    layout: Fragment,
    dim: int,
    part: Buffer,
) -> list[Stmt]:
    """Each thread folds its own registers; ghosts along the reduced dimension count for nothing."""
    kept_number: Expr = Const(0)
    source: Expr = Const(0)
    column = emitter.thread_part(layout)[dim]
    loops: list[tuple[Var, int, bool]] = []
    unit, divisor = 1, 1
    for count, along, step in coalesced(layout.value):
        var = emitter.leaf_variable(f"r{len(loops)}", count)
        loops.append((var, count, along == dim))
        source = source + var * divisor
        divisor *= count
        if along == dim:
            column = column + var * step
        else:
            kept_number, unit = kept_number + var * unit, unit * count
    value: Expr = Load(registers, (source,))
    if registers.dtype != part.dtype:
        value = Cast(value, type=part.dtype)
    if layout.padded[dim] > layout.extents[dim]:
        test = column.compare("<", layout.extents[dim])
        value = Call("if_then_else", (test, value, neutral(reduction.kind, part.dtype)), type=part.dtype)
    folded = combine(reduction.kind, Load(part, (kept_number,)), value)
    body: list[Stmt] = [Store(part, (kept_number,), folded)]
    word = loop_over_registers(registers.size)
    for var, count, _ in sorted(loops, key=lambda each: not each[2]):
        body = looped(word, var, count, body)
    first = emitter.leaf_variable("r0", part.size)
    return [
        *looped(Unroll, first, part.size, [Store(part, (first,), neutral(reduction.kind, part.dtype))]),
        *body,
    ]


def _shuffle(emitter: Emitter, kind: str, part: Buffer, distances: tuple[int, ...]) -> list[Stmt]:
    var = emitter.leaf_variable("r0", part.size)
    body: list[Stmt] = []
    for distance in distances:
        mine = Load(part, (var,))
        # 8-bit and 16-bit values travel in a register of 32 bits; the target sees to it.
        other: Expr = Call("shfl_xor", (mine, Const(distance)), type=part.dtype)
        if kind.endswith("_nan"):
            # All lanes exchange, whichever of both values each then takes.
            name = Var(emitter.name("other"), type=part.dtype)
            body.append(Let(name, other))
            other = name
        body.append(Store(part, (var,), combine(kind, mine, other)))
    return looped(Unroll, var, part.size, body)


def _across(
    emitter: Emitter, reduction: Reduce, layout: Fragment, kept: Fragment, part: Buffer, exchange: Exchange
) -> list[Stmt]:
    """Owners lay their parts side by side in shared memory; after a barrier every thread folds them."""
    if reduction.scratch is None:
        raise InternalError(
            "the reduction into {name} has no shared memory to meet in", name=reduction.dst.buffer.name
        )
    scratch = emitter.shared[reduction.scratch.buffer.name].flat
    loops, number, row = _results(emitter, kept)
    size = prod(kept.padded)
    mine: Expr = Const(0)
    weight = 1
    for divisor, count, _, _ in exchange.across:
        mine, weight = mine + emitter.digit(divisor, count) * weight, weight * count
    tests = [emitter.digit(d, c).compare("==", 0) for d, c, _, _ in exchange.lanes]
    tests += emitter.owner(layout)
    store: Stmt = Store(scratch, (mine * size + row,), Load(part, (number,)))
    write = _nest(loops, [store])
    write = [If(all_of(tests), tuple(write), ())] if tests else write
    turn = emitter.leaf_variable("p", exchange.parts)
    fold: Stmt = Store(part, (number,), combine(
        reduction.kind, Load(part, (number,)), Load(scratch, (turn * size + row,))
    ))  # fmt: skip
    start: Stmt = Store(part, (number,), neutral(reduction.kind, part.dtype))
    read = _nest(loops, [start, Unroll(Const(exchange.parts), (turn,), (fold,))])
    why = f"parts of {reduction.dst.buffer.name} meet in {reduction.scratch.buffer.name}"
    return [*write, *barrier_of(emitter, why), *read]


def _results(emitter: Emitter, kept: Fragment) -> tuple[list[tuple[Var, int]], Expr, Expr]:
    """Loops over a thread's results, the register of each, and its number among those of all threads.

    Results of one register lie side by side, that of a lane beside the next one's, so that lanes meet in no
    bank; where threads hold elements twice they are numbered row by row.
    """
    coordinates = emitter.thread_part(kept)
    loops: list[tuple[Var, int]] = []
    number: Expr = Const(0)
    unit = 1
    for count, along, step in coalesced(kept.value):
        var = emitter.leaf_variable(f"r{len(loops)}", count)
        loops.append((var, count))
        coordinates[along] = coordinates[along] + var * step
        number, unit = number + var * unit, unit * count
    row: Expr = Const(0)
    if not kept.is_dense:
        for coordinate, extent in zip(coordinates, kept.padded, strict=True):
            row = row * extent + coordinate
        return loops, number, row
    threads = 1
    for divisor, count, along, _ in kept.thread_digits:
        if along >= 0:
            row, threads = row + emitter.digit(divisor, count) * threads, threads * count
    return loops, number, row + number * threads


def _nest(loops: list[tuple[Var, int]], body: list[Stmt]) -> list[Stmt]:
    for var, count in loops:
        body = looped(Unroll, var, count, body)
    return body


def _finish(
    emitter: Emitter,
    reduction: Reduce,
    kept: Fragment,
    strides: tuple[int, ...],
    part: Buffer,
    target: Buffer,
) -> list[Stmt]:
    """The result into its registers; the old value is folded in once with `clear=False`."""
    number: Expr = Const(0)
    register: Expr = Const(0)
    unit = 1
    loops: list[tuple[Var, int]] = []
    for (_, count, _, _), stride in zip(kept.value_digits, strides, strict=True):
        if count == 1:
            continue
        var = emitter.leaf_variable(f"r{len(loops)}", count)
        loops.append((var, count))
        number, register, unit = number + var * unit, register + var * stride, unit * count
    value: Expr = Load(part, (number,))
    if not reduction.clear:
        old: Expr = Load(target, (register,))
        old = old if target.dtype == part.dtype else Cast(old, type=part.dtype)
        value = combine(reduction.kind, old, value)
    if reduction.kind.endswith("_nan") and part.dtype == target.dtype and target.dtype.saturates:
        # Moved by comparisons, an infinity is still there; the result is one of the dtype's operations.
        value = Cast(value, type=float32)
    if value.dtype != target.dtype:
        value = Cast(value, type=target.dtype)
    return _nest(loops, [Store(target, (register,), value)])


def add_lanes(emitter: Emitter, statement: AddLanes) -> list[Stmt]:
    """Parts of elements in several lanes, added up in each of them."""
    target = fragment_of(emitter, statement.dst).local
    return _shuffle(emitter, "sum", target, statement.distances)


LOWERINGS = (
    *(Lowering(Reduce, name, reduce_loops, workspace) for name in ("thread", "shfl", "shared")),
    Lowering(AddLanes, "", add_lanes),
)
