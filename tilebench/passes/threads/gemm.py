"""`T.gemm` by fused multiply-adds: a register tile a thread, k in chunks, operands by vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd

from ...errors import LayoutError, TargetError
from ...ir import (
    FALSE,
    TRUE,
    Arith,
    Buffer,
    Call,
    Cast,
    Const,
    Expr,
    If,
    Load,
    Region,
    Stmt,
    Store,
    Var,
)
from ...ir.arith import divisor
from ...ir.dtypes import DType, float32, int32
from ...language.gemm import Gemm
from ...language.lowered.threads import VectorLoad
from ...language.memory import AllocLocal
from ...language.structure import Serial, Unroll
from ...layout import Fragment, FragmentMode
from ..fast_exprs import replaced
from .access import coalesced, lower_expr, shared_offset, value_strides
from .env import NOWHERE, Env

# Steps of k that are written out: by 4 a 128x128x32 tile compiles in 0.2 s, by 32 in 1.8 s, at the
# same speed of the code.
UNROLLED_K = 4


@dataclass(frozen=True)
class Axis:
    """The elements of one side (rows or columns) that a thread computes.

    `loops` are the value digits, fastest first: (variable, count, step in the tile, step in C's
    registers). `base` is the thread's part; `clamp` is the last true element where ghosts exist.
    """

    base: Expr
    loops: tuple[tuple[Var, int, int, int], ...]
    clamp: int | None

    @property
    def count(self) -> int:
        out = 1
        for _, count, _, _ in self.loops:
            out *= count
        return out

    @property
    def number(self) -> Expr:
        """The running number of an element in the operand's registers."""
        out: Expr = Const(0)
        unit = 1
        for var, count, _, _ in self.loops:
            out, unit = out + var * unit, unit * count
        return out

    @property
    def register(self) -> Expr:
        """What the loops add to the register number of C."""
        out: Expr = Const(0)
        for var, _, _, step in self.loops:
            out = out + var * step
        return out

    def element(self, first: Expr | None = None, width: int = 1) -> Expr:
        """The row or column; ghosts read the last true one, whose product nobody sees."""
        out = self.base
        for k, (var, _, step, _) in enumerate(self.loops):
            out = out + (first if k == 0 and first is not None else var) * step
        if self.clamp is None:
            return out
        return Call("min", (out, Const(self.clamp - (width - 1))), type=int32)

    def nest(self, body: list[Stmt], skip: int = 0) -> list[Stmt]:
        """`body` under the loops, the first `skip` left out."""
        for var, count, _, _ in self.loops[skip:]:
            body = [Unroll(Const(count), (var,), tuple(body))]
        return body


def _axis(env: Env, layout: Fragment, dim: int, letter: str) -> Axis:
    loops: list[tuple[Var, int, int, int]] = []
    divisor_ = 1
    for count, at, step in coalesced(layout.value):
        if at == dim:
            loops.append((env.loop_var(f"{letter}{len(loops)}", count), count, step, divisor_))
        divisor_ *= count
    extent = layout.extents[dim]
    clamp = extent - 1 if layout.padded[dim] > extent else None
    return Axis(env.thread_part(layout)[dim], tuple(loops), clamp)


@dataclass(frozen=True)
class Side:
    """One operand: its region, which of its dimensions is k, and the axis of the other one."""

    name: str
    region: Region
    k_dim: int
    axis: Axis

    @property
    def free_dim(self) -> int:
        return (
            self.region.buffer.rank - 1
            if self.k_dim == self.region.buffer.rank - 2
            else self.region.buffer.rank - 2
        )


def accumulate_dtype(dtype: DType) -> DType:
    """The dtype a gemm sums in: C's, or float32 for a narrower float."""
    return float32 if dtype.is_float and dtype.bits < 32 else dtype


def gemm_loops(env: Env, stmt: Gemm) -> list[Stmt]:
    """The multiply-adds of one thread. Raises `TargetError` for another instruction than `fma`."""
    if stmt.by is not None and stmt.by.name != "fma":
        raise TargetError(
            "there is no code for the gemm instruction {name} yet", at=stmt.place, name=stmt.by.name
        )
    tile = env.fragments.get(stmt.c.buffer.name)
    if tile is None:
        raise LayoutError("the accumulator {name} is no fragment", at=stmt.c.place, name=stmt.c.buffer.name)
    rank = len(tile.layout.extents)
    _, _, k = stmt.mnk
    rows, columns = _axis(env, tile.layout, rank - 2, "m"), _axis(env, tile.layout, rank - 1, "n")
    total = accumulate_dtype(stmt.c.buffer.dtype)
    out: list[Stmt] = []
    acc = tile.local
    narrow = total != acc.dtype
    if narrow:
        acc = Buffer(env.fresh(f"{stmt.c.buffer.name}_sum"), acc.shape, total, "local")
        out.append(AllocLocal(acc))
    out += _start(env, stmt, tile.local, acc)
    a = Side("a", stmt.a, stmt.a.buffer.rank - (2 if stmt.transpose_A else 1), rows)
    b = Side("b", stmt.b, stmt.b.buffer.rank - (1 if stmt.transpose_B else 2), columns)
    out += _steps(env, stmt, a, b, acc, k, tile.layout)
    if narrow:
        out += _flat(env, tile.local, lambda r: Cast(Load(acc, (r,)), type=tile.local.dtype))
    return out


def _flat(env: Env, target: Buffer, value: Callable[[Expr], Expr]) -> list[Stmt]:
    var = env.loop_var("r0", target.size)
    return [Unroll(Const(target.size), (var,), (Store(target, (var,), value(var)),))]


def _start(env: Env, stmt: Gemm, held: Buffer, acc: Buffer) -> list[Stmt]:
    """The sum's first value: zero, C, or either by `clear_accum`."""
    zero = Const(0.0 if acc.dtype.is_float else 0, type=acc.dtype)
    clear = _flat(env, acc, lambda r: zero)
    keep = _flat(env, acc, lambda r: Cast(Load(held, (r,)), type=acc.dtype)) if acc != held else []
    if stmt.clear_accum == TRUE:
        return clear
    if stmt.clear_accum == FALSE:
        return keep
    out: list[Stmt] = []
    condition = lower_expr(env, stmt.clear_accum, NOWHERE, out)
    return [*out, If(condition, tuple(clear), tuple(keep))]


def _steps(env: Env, stmt: Gemm, a: Side, b: Side, acc: Buffer, k: int, layout: Fragment) -> list[Stmt]:
    chunk = min(_unrolled(env, a, b, acc), k)
    in_registers = any(each.region.buffer.name in env.fragments for each in (a, b))
    whole, rest = divmod(k, chunk)
    out: list[Stmt] = []
    env.begin(open=whole == 1)
    if whole == 1:
        out += _chunk(env, stmt, a, b, acc, Const(0), chunk, layout)
    elif whole:
        var = env.loop_var("k0", whole)
        body = _chunk(env, stmt, a, b, acc, var * chunk, chunk, layout)
        # Registers have no address: with an operand in a fragment every step of k is written out.
        word = Unroll if in_registers else Serial
        out.append(word(Const(whole), (var,), tuple(body)))
    if rest:
        env.begin(open=True)
        out += _chunk(env, stmt, a, b, acc, Const(whole * chunk), rest, layout)
    return out


def _along(env: Env, side: Side) -> bool:
    """Whether neighbours along k are neighbours in shared memory."""
    tile = env.shared.get(side.region.buffer.name)
    return tile is not None and tile.layout.run(side.k_dim) > 1


def _unrolled(env: Env, a: Side, b: Side, acc: Buffer) -> int:
    """Steps of k written out: half where the vectors along k would take the registers over 128.

    256 threads with 8x8 sums in float32: 147 registers by 4, 127 by 2, and so two blocks an SM.
    """
    held = sum(
        side.axis.count * UNROLLED_K * side.region.buffer.dtype.bits // 32
        for side in (a, b)
        if _along(env, side)
    )
    return UNROLLED_K // 2 if acc.size <= 64 and acc.size + held > 88 else UNROLLED_K


def _chunk(
    env: Env, stmt: Gemm, a: Side, b: Side, acc: Buffer, first: Expr, width: int, layout: Fragment
) -> list[Stmt]:
    """`width` steps of k: operands along k are fetched before, operands along m or n in each step."""
    step = env.loop_var("k1", width)
    before: list[Stmt] = []
    inner: list[Stmt] = []
    a_value = _operand(env, stmt, a, acc.dtype, first, step, width, before, inner, layout, 0)
    b_value = _operand(env, stmt, b, acc.dtype, first, step, width, before, inner, layout, 1)
    index = a.axis.register + b.axis.register
    product = Load(acc, (index,))
    total = Arith("+", (product, Arith("*", (a_value, b_value))))
    update: list[Stmt] = [Store(acc, (index,), total)]
    inner += a.axis.nest(b.axis.nest(update))
    return [*before, Unroll(Const(width), (step,), tuple(inner))]


def _operand(
    env: Env, stmt: Gemm, side: Side, dtype: DType, first: Expr, step: Var, width: int,
    before: list[Stmt], inner: list[Stmt], layout: Fragment, c_dim: int,
) -> Expr:  # fmt: skip
    """The operand's value in the innermost loop; the statements that fetch it go where they belong."""
    buffer = side.region.buffer
    if buffer.name in env.fragments:
        held, index = _from_fragment(env, stmt, side, first + step, layout, c_dim)
        value: Expr = Load(held, (index,))
        return value if held.dtype == dtype else Cast(value, type=dtype)
    if buffer.name not in env.shared:
        raise LayoutError(
            "the operand {name} of a gemm is in {scope} memory", at=side.region.place,
            name=buffer.name, scope=buffer.scope,
            expected="shared memory or a fragment",
        )  # fmt: skip
    if _along(env, side):
        return _along_k(env, side, dtype, first, step, width, before)
    return _along_axis(env, side, dtype, first + step, inner)


def _index(side: Side, k: Expr, free: Expr) -> tuple[Expr, ...]:
    out = list(side.region.start)
    out[side.k_dim] = out[side.k_dim] + k
    out[side.free_dim] = out[side.free_dim] + free
    return tuple(out)


def _aligned(env: Env, side: Side, fast: int, start: Expr, width: int) -> int:
    """The elements of one access from `start` on along the dimension `fast`."""
    tile = env.shared[side.region.buffer.name]
    most = max(1, tile.flat.dtype.elements_in(env.machine.vector_bytes[0]))
    out = gcd(gcd(width, tile.layout.vector), divisor(env.resolved(side.region.start[fast] + start)))
    if side.region.version is not None:
        out = gcd(out, tile.layout.cosize)
    while out > most or out & (out - 1):
        out //= 2
    return max(1, out)


def _fetch(env: Env, side: Side, held: Buffer, at: Expr, index: tuple[Expr, ...], width: int) -> list[Stmt]:
    out: list[Stmt] = []
    lowered = tuple(lower_expr(env, each, NOWHERE, out) for each in index)
    version = None if side.region.version is None else lower_expr(env, side.region.version, NOWHERE, out)
    name = side.region.buffer.name
    offset = shared_offset(env, name, lowered, version, out)
    flat = env.shared[name].flat
    if width == 1:
        return [*out, Store(held, (at,), Load(flat, (offset,)))]
    return [*out, VectorLoad(Region(held, (at,), extent=(width,)), Region(flat, (offset,), extent=(width,)))]


def _widened(env: Env, side: Side, raw: Buffer, dtype: DType, where: list[Stmt], read: list[Stmt]) -> Buffer:
    """Fetched elements in the dtype of the sum: narrow ones are converted once, not once a product."""
    where.append(AllocLocal(raw))
    where += read
    if raw.dtype == dtype:
        return raw
    wide = Buffer(env.scoped(side.name), raw.shape, dtype, "local")
    where.append(AllocLocal(wide))
    where += _flat(env, wide, lambda r: Cast(Load(raw, (r,)), type=dtype))
    return wide


def _raw(env: Env, side: Side, count: int, dtype: DType) -> Buffer:
    held = side.region.buffer.dtype
    return Buffer(env.scoped(side.name if held == dtype else f"{side.name}_raw"), (count,), held, "local")


def _along_k(
    env: Env, side: Side, dtype: DType, first: Expr, step: Var, width: int, before: list[Stmt]
) -> Expr:
    raw = _raw(env, side, side.axis.count * width, dtype)
    take = _aligned(env, side, side.k_dim, first, width)
    number = side.axis.number * width
    if take == 1 and width > 1:
        var = env.loop_var("k2", width)
        one = _fetch(env, side, raw, number + var, _index(side, first + var, side.axis.element()), 1)
        read: list[Stmt] = [Unroll(Const(width), (var,), tuple(one))]
    else:
        read = []
        for lead in range(0, width, take):
            read += _fetch(
                env, side, raw, number + lead, _index(side, first + lead, side.axis.element()), take
            )
    return Load(_widened(env, side, raw, dtype, before, side.axis.nest(read)), (number + step,))


def _along_axis(env: Env, side: Side, dtype: DType, k: Expr, inner: list[Stmt]) -> Expr:
    axis = side.axis
    raw = _raw(env, side, axis.count, dtype)
    take, skip = 1, 0
    if axis.loops and axis.loops[0][2] == 1:
        base = Axis(axis.base, axis.loops[1:], None).element()
        extent = (side.region.extent or side.region.buffer.shape)[side.free_dim]
        run = axis.loops[0][1] if axis.clamp is None else gcd(axis.loops[0][1], extent)
        fast = env.shared[side.region.buffer.name].layout.run(side.free_dim) > 1
        take = _aligned(env, side, side.free_dim, base, run) if fast else 1
        skip = 1 if take > 1 else 0
    read: list[Stmt] = []
    if skip:
        number = axis.number
        loop = axis.loops[0]
        for lead in range(0, loop[1], take):
            at = replaced(number, {loop[0].name: Const(lead)})
            read += _fetch(env, side, raw, at, _index(side, k, axis.element(Const(lead), take)), take)
    else:
        read = _fetch(env, side, raw, axis.number, _index(side, k, axis.element()), 1)
    return Load(_widened(env, side, raw, dtype, inner, axis.nest(read, skip)), (axis.number,))


def _from_fragment(
    env: Env, stmt: Gemm, side: Side, k: Expr, layout: Fragment, c_dim: int
) -> tuple[Buffer, Expr]:
    """The register of a fragment operand: the thread must hold all of k of its rows or columns."""
    tile = env.fragments[side.region.buffer.name]
    depth = tile.layout.extents[side.k_dim]
    rank = len(layout.extents)
    free = rank - 2 + c_dim
    values: tuple[FragmentMode, ...] = (*coalesced(layout.value), (depth, rank, 1))
    site = Fragment((*layout.extents, depth), layout.thread, values)
    dims = [0] * tile.local.rank if len(tile.layout.extents) == 1 else [0] * len(tile.layout.extents)
    dims[side.k_dim], dims[side.free_dim] = rank, free
    strides = value_strides(site, tile.layout, tuple(dims)) if len(dims) == 2 else None
    if strides is None:
        raise LayoutError(
            "the gemm by fma needs every thread to hold all of k of its part of {name}",
            at=side.region.place, name=side.region.buffer.name, layout=tile.layout,
            found="{layout}", hint="keep {name} in shared memory",
        )  # fmt: skip
    index: Expr = k * strides[-1] if depth > 1 else Const(0)
    at = 0
    for (_, dim, _), stride in zip(coalesced(layout.value), strides, strict=False):
        if dim == free:
            index = index + side.axis.loops[at][0] * stride
            at += 1
    return tile.local, index
