"""`T.reduce_*`: parts in a thread, then shuffles in a warp, then shared memory between warps."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ...errors import InternalError, LayoutError
from ...ir import Arith, Buffer, Call, Cast, Const, DType, Expr, If, Load, Stmt, Store, Var, all_of
from ...ir.dtypes import float32
from ...language.lowered.threads import SyncThreads
from ...language.memory import AllocLocal
from ...language.reduce import Reduce
from ...language.structure import Unroll
from ...layout import Digit, Fragment
from ..fast_exprs import looped
from .access import coalesced, value_strides
from .env import Env, written_out


def accumulate_dtype(kind: str, dtype: DType) -> DType:
    """The dtype of a partial result: sums of narrow floats in float32, everything else as it is."""
    return float32 if kind == "sum" and dtype.is_float and dtype.bits < 32 else dtype


def neutral(kind: str, dtype: DType) -> Const:
    """The value that changes no result: 0, the least or the most of the dtype."""
    if kind == "sum":
        return Const(0.0 if dtype.is_float else 0, type=dtype)
    return Const(dtype.least if kind == "max" else dtype.most, type=dtype)


def combine(kind: str, a: Expr, b: Expr) -> Expr:
    """Two partial results made one."""
    if kind == "sum":
        return Arith("+", (a, b))
    return Call(kind, (a, b), type=a.dtype)


@dataclass(frozen=True)
class Exchange:
    """How the threads that hold parts of one result meet.

    `shuffles` are XOR distances in lanes; `across` are the digits of the thread number whose
    partners are met in shared memory, `lanes` those that a shuffle has already made equal.
    """

    shuffles: tuple[int, ...]
    across: tuple[Digit, ...]
    lanes: tuple[Digit, ...]

    @property
    def parts(self) -> int:
        """The partial results of one element that meet in shared memory."""
        return prod(each.modulus for each in self.across)


def _power(n: int) -> bool:
    return n & (n - 1) == 0


def exchange_of(layout: Fragment, dim: int, warp: int) -> Exchange:
    """The exchanges that a reduction of `layout` over `dim` takes on warps of `warp` threads."""
    shuffles: list[int] = []
    across: list[Digit] = []
    lanes: list[Digit] = []
    for digit in layout.thread_digits:
        if digit.dim != dim or digit.modulus == 1:
            continue
        divisor, count = digit.divisor, digit.modulus
        inside = warp // divisor if divisor < warp and _power(divisor) else 1
        if inside > 1 and _power(count):
            inside = min(inside, count)
            lanes.append(Digit(divisor, inside, dim, digit.step))
            step = divisor
            while step < divisor * inside:
                shuffles.append(step)
                step *= 2
            divisor, count = divisor * inside, count // inside
        if count > 1:
            across.append(Digit(divisor, count, dim, digit.step))
    return Exchange(tuple(shuffles), tuple(across), tuple(lanes))


def scratch_elements(stmt: Reduce, layout: Fragment, warp: int) -> int:
    """The elements of shared memory that the exchange between warps takes; 0 when there is none."""
    dim = stmt.dim % len(layout.extents)
    found = exchange_of(layout, dim, warp)
    if not found.across:
        return 0
    kept = layout.reduce(dim)
    return found.parts * prod(kept.padded)


def reduce_loops(env: Env, stmt: Reduce) -> list[Stmt]:
    """The code of one thread for a reduction of a fragment into a fragment."""
    for each in (stmt.src, stmt.dst):
        if each.buffer.name not in env.fragments:
            raise LayoutError(
                "a reduction of {name} in {scope} memory is not supported", at=each.place,
                name=each.buffer.name, scope=each.buffer.scope, hint="copy it into a fragment first",
            )  # fmt: skip
    source, target = env.fragments[stmt.src.buffer.name], env.fragments[stmt.dst.buffer.name]
    dim = stmt.dim % len(source.layout.extents)
    keep = len(target.layout.extents) == len(source.layout.extents)
    kept = source.layout.reduce(dim, keep=keep)
    strides = value_strides(kept, target.layout, tuple(range(len(kept.extents))))
    values = prod(d.modulus for d in kept.value_digits)
    if strides is None or values != target.layout.values:
        raise LayoutError(
            "the result {name} of a reduction does not lie where its parts are summed",
            at=stmt.place, name=stmt.dst.buffer.name, a=target.layout, b=kept,
            found="{a}", expected="{b}",
        )  # fmt: skip
    dtype = accumulate_dtype(stmt.kind, source.local.dtype)
    part = Buffer(env.fresh(f"{stmt.dst.buffer.name}_part"), (values,), dtype, "local")
    out: list[Stmt] = [AllocLocal(part)]
    out += _partial(env, stmt, source.local, source.layout, kept, dim, part)
    found = exchange_of(source.layout, dim, env.machine.warp)
    if found.shuffles:
        out += _shuffle(env, stmt, part, found.shuffles)
    if found.across:
        out += _across(env, stmt, source.layout, kept, part, found)
    return out + _finish(env, stmt, kept, strides, part, target.local)


def _partial(
    env: Env, stmt: Reduce, held: Buffer, layout: Fragment, kept: Fragment, dim: int, part: Buffer
) -> list[Stmt]:
    """Each thread folds its own registers; ghosts along the reduced dimension count for nothing."""
    kept_number: Expr = Const(0)
    source: Expr = Const(0)
    column = env.thread_part(layout)[dim]
    loops: list[tuple[Var, int, bool]] = []
    unit, divisor = 1, 1
    for count, at, step in coalesced(layout.value):
        var = env.loop_var(f"r{len(loops)}", count)
        loops.append((var, count, at == dim))
        source = source + var * divisor
        divisor *= count
        if at == dim:
            column = column + var * step
        else:
            kept_number, unit = kept_number + var * unit, unit * count
    value: Expr = Load(held, (source,))
    if layout.padded[dim] > layout.extents[dim]:
        test = column.compare("<", layout.extents[dim])
        value = Call("if_then_else", (test, value, neutral(stmt.kind, held.dtype)), type=held.dtype)
    if held.dtype != part.dtype:
        value = Cast(value, type=part.dtype)
    body: list[Stmt] = [Store(part, (kept_number,), combine(stmt.kind, Load(part, (kept_number,)), value))]
    word = written_out(held.size)
    for var, count, _ in sorted(loops, key=lambda each: not each[2]):
        body = looped(word, var, count, body)
    first = env.loop_var("r0", part.size)
    return [
        *looped(Unroll, first, part.size, [Store(part, (first,), neutral(stmt.kind, part.dtype))]),
        *body,
    ]


def _shuffle(env: Env, stmt: Reduce, part: Buffer, distances: tuple[int, ...]) -> list[Stmt]:
    var = env.loop_var("r0", part.size)
    body: list[Stmt] = []
    for distance in distances:
        mine = Load(part, (var,))
        # 8-bit and 16-bit values travel in a register of 32 bits; the target sees to it.
        other = Call("shfl_xor", (mine, Const(distance)), type=part.dtype)
        body.append(Store(part, (var,), combine(stmt.kind, mine, other)))
    return looped(Unroll, var, part.size, body)


def _across(
    env: Env, stmt: Reduce, layout: Fragment, kept: Fragment, part: Buffer, found: Exchange
) -> list[Stmt]:
    """Owners lay their parts side by side in shared memory; after a barrier every thread folds them."""
    if stmt.scratch is None:
        raise InternalError(
            "the reduction into {name} has no shared memory to meet in", name=stmt.dst.buffer.name
        )
    scratch = env.shared[stmt.scratch.buffer.name].flat
    box = kept.padded
    where = env.thread_part(kept)
    loops: list[tuple[Var, int]] = []
    number: Expr = Const(0)
    unit = 1
    for count, at, step in coalesced(kept.value):
        var = env.loop_var(f"r{len(loops)}", count)
        loops.append((var, count))
        where[at] = where[at] + var * step
        number, unit = number + var * unit, unit * count
    row: Expr = Const(0)
    for at, extent in zip(where, box, strict=True):
        row = row * extent + at
    mine: Expr = Const(0)
    weight = 1
    for divisor, count, _, _ in found.across:
        mine, weight = mine + env.digit(divisor, count) * weight, weight * count
    tests = [env.digit(d, c).compare("==", 0) for d, c, _, _ in found.lanes]
    tests += env.owner(layout)
    store: Stmt = Store(scratch, (mine * prod(box) + row,), Load(part, (number,)))
    write = _nest(loops, [store])
    write = [If(all_of(tests), tuple(write), ())] if tests else write
    turn = env.loop_var("p", found.parts)
    fold: Stmt = Store(part, (number,), combine(
        stmt.kind, Load(part, (number,)), Load(scratch, (turn * prod(box) + row,))
    ))  # fmt: skip
    start: Stmt = Store(part, (number,), neutral(stmt.kind, part.dtype))
    read = _nest(loops, [start, Unroll(Const(found.parts), (turn,), (fold,))])
    why = f"parts of {stmt.dst.buffer.name} meet in {stmt.scratch.buffer.name}"
    return [*write, SyncThreads(why=why), *read]


def _nest(loops: list[tuple[Var, int]], body: list[Stmt]) -> list[Stmt]:
    for var, count in loops:
        body = looped(Unroll, var, count, body)
    return body


def _finish(
    env: Env, stmt: Reduce, kept: Fragment, strides: tuple[int, ...], part: Buffer, target: Buffer
) -> list[Stmt]:
    """The result into its registers; the old value is folded in once with `clear=False`."""
    number: Expr = Const(0)
    register: Expr = Const(0)
    unit = 1
    loops: list[tuple[Var, int]] = []
    for (_, count, _, _), stride in zip(kept.value_digits, strides, strict=True):
        if count == 1:
            continue
        var = env.loop_var(f"r{len(loops)}", count)
        loops.append((var, count))
        number, register, unit = number + var * unit, register + var * stride, unit * count
    value: Expr = Load(part, (number,))
    if not stmt.clear:
        old: Expr = Load(target, (register,))
        old = old if target.dtype == part.dtype else Cast(old, type=part.dtype)
        value = combine(stmt.kind, old, value)
    if part.dtype != target.dtype:
        value = Cast(value, type=target.dtype)
    return _nest(loops, [Store(target, (register,), value)])
