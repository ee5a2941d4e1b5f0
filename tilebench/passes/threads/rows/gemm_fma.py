"""`T.gemm` by fused multiply-adds: a register tile a thread, k in chunks, operands by vectors."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from ....errors import LayoutError
from ....ir import Arith, Buffer, Call, Cast, Const, Expr, Load, Region, Stmt, Store, Var
from ....ir.dtypes import DType, int32
from ....ir.expr_walks import replaced
from ....language.gemm import Gemm
from ....language.lowered.threads import VectorLoad
from ....language.memory import AllocLocal
from ....language.structure import Serial, Unroll
from ....layout import Fragment
from ....layout.tiling import coalesced
from ..addresses import lower_expr, shared_offset
from ..emitter import Emitter
from ..lowering import Lowering
from ..sums import accumulators, registerwise
from ..tiles import NOWHERE

# Steps of k that are written lowered: by 4 a 128x128x32 tile compiles in 0.2 s, by 32 in 1.8 s, at the
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
        lowered = 1
        for _, count, _, _ in self.loops:
            lowered *= count
        return lowered

    @property
    def number(self) -> Expr:
        """The running number of an element in the operand's registers."""
        lowered: Expr = Const(0)
        unit = 1
        for var, count, _, _ in self.loops:
            lowered, unit = lowered + var * unit, unit * count
        return lowered

    @property
    def register(self) -> Expr:
        """What the loops add to the register number of C."""
        lowered: Expr = Const(0)
        for var, _, _, step in self.loops:
            lowered = lowered + var * step
        return lowered

    def element(self, first: Expr | None = None, width: int = 1) -> Expr:
        """The row or column; ghosts read the last true one, whose product nobody sees."""
        lowered = self.base
        for k, (var, _, step, _) in enumerate(self.loops):
            lowered = lowered + (first if k == 0 and first is not None else var) * step
        if self.clamp is None:
            return lowered
        return Call("min", (lowered, Const(self.clamp - (width - 1))), type=int32)

    def nest(self, body: list[Stmt], skip: int = 0) -> list[Stmt]:
        """`body` under the loops, the first `skip` left lowered."""
        for var, count, _, _ in self.loops[skip:]:
            body = [Unroll(Const(count), (var,), tuple(body))]
        return body


def _axis(emitter: Emitter, layout: Fragment, dim: int, letter: str) -> Axis:
    loops: list[tuple[Var, int, int, int]] = []
    divisor_ = 1
    for count, along, step in coalesced(layout.value):
        if along == dim:
            loops.append((emitter.leaf_variable(f"{letter}{len(loops)}", count), count, step, divisor_))
        divisor_ *= count
    extent = layout.extents[dim]
    clamp = extent - 1 if layout.padded[dim] > extent else None
    return Axis(emitter.thread_part(layout)[dim], tuple(loops), clamp)


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


def gemm_loops(emitter: Emitter, gemm: Gemm) -> list[Stmt]:
    """The multiply-adds of one thread."""
    tile = emitter.fragments.get(gemm.c.buffer.name)
    if tile is None:
        raise LayoutError("the accumulator {name} is no fragment", at=gemm.c.place, name=gemm.c.buffer.name)
    rank = len(tile.layout.extents)
    _, _, k = gemm.mnk
    rows, columns = _axis(emitter, tile.layout, rank - 2, "m"), _axis(emitter, tile.layout, rank - 1, "n")
    acc, lowered, rounded = accumulators(emitter, gemm)
    a = Side("a", gemm.a, gemm.a.buffer.rank - (2 if gemm.transpose_A else 1), rows)
    b = Side("b", gemm.b, gemm.b.buffer.rank - (1 if gemm.transpose_B else 2), columns)
    lowered += _steps(emitter, a, b, acc, k)
    return [*lowered, *rounded]


def _steps(emitter: Emitter, a: Side, b: Side, acc: Buffer, k: int) -> list[Stmt]:
    chunk = min(_unrolled(emitter, a, b, acc), k)
    whole, rest = divmod(k, chunk)
    if whole == 1:
        steps = _chunk(emitter, a, b, acc, Const(0), chunk)
    else:
        with emitter.scope():
            step = emitter.variable("k0", whole)
            body = _chunk(emitter, a, b, acc, step * chunk, chunk)
        steps: list[Stmt] = [Serial(Const(whole), (step,), tuple(body))]
    if rest:
        steps += _chunk(emitter, a, b, acc, Const(whole * chunk), rest)
    return steps


def _along(emitter: Emitter, side: Side) -> bool:
    """Whether neighbours along k are neighbours in shared memory."""
    tile = emitter.shared.get(side.region.buffer.name)
    return tile is not None and tile.layout.run(side.k_dim) > 1


def _unrolled(emitter: Emitter, a: Side, b: Side, acc: Buffer) -> int:
    """Steps of k written lowered: half where the vectors along k would take the registers over 128.

    256 threads with 8x8 sums in float32: 147 registers by 4, 127 by 2, and so two blocks an SM.
    """
    registers = sum(
        side.axis.count * UNROLLED_K * side.region.buffer.dtype.bits // 32
        for side in (a, b)
        if _along(emitter, side)
    )
    return UNROLLED_K // 2 if acc.size <= 64 and acc.size + registers > 88 else UNROLLED_K


def _chunk(emitter: Emitter, a: Side, b: Side, acc: Buffer, first: Expr, width: int) -> list[Stmt]:
    """`width` steps of k: operands along k are fetched before, operands along m or n in each step."""
    step = emitter.leaf_variable("k1", width)
    before: list[Stmt] = []
    inner: list[Stmt] = []
    a_value = _operand(emitter, a, acc.dtype, first, step, width, before, inner)
    b_value = _operand(emitter, b, acc.dtype, first, step, width, before, inner)
    index = a.axis.register + b.axis.register
    product = Load(acc, (index,))
    total = Arith("+", (product, Arith("*", (a_value, b_value))))
    update: list[Stmt] = [Store(acc, (index,), total)]
    inner += a.axis.nest(b.axis.nest(update))
    return [*before, Unroll(Const(width), (step,), tuple(inner))]


def _operand(
    emitter: Emitter, side: Side, dtype: DType, first: Expr, step: Var, width: int,
    before: list[Stmt], inner: list[Stmt],
) -> Expr:  # fmt: skip
    """The operand's value in the innermost loop; the statements that fetch it go where they belong."""
    buffer = side.region.buffer
    if buffer.name not in emitter.shared:
        raise LayoutError(
            "the operand {name} of a gemm is in {scope} memory", at=side.region.place,
            name=buffer.name, scope=buffer.scope,
            expected="shared memory",
        )  # fmt: skip
    if _along(emitter, side):
        return _along_k(emitter, side, dtype, first, step, width, before)
    return _along_axis(emitter, side, dtype, first + step, inner)


def _index(side: Side, k: Expr, free: Expr) -> tuple[Expr, ...]:
    lowered = list(side.region.start)
    lowered[side.k_dim] = lowered[side.k_dim] + k
    lowered[side.free_dim] = lowered[side.free_dim] + free
    return tuple(lowered)


def _aligned(emitter: Emitter, side: Side, fast: int, start: Expr, width: int) -> int:
    """The elements of one access from `start` on along the dimension `fast`."""
    tile = emitter.shared[side.region.buffer.name]
    most = max(1, tile.flat.dtype.elements_in(emitter.machine.vector_bytes[0]))
    lowered = gcd(gcd(width, tile.layout.vector), emitter.facts.divisor(side.region.start[fast] + start))
    if side.region.version is not None:
        lowered = gcd(lowered, tile.layout.cosize)
    while lowered > most or lowered & (lowered - 1):
        lowered //= 2
    return max(1, lowered)


def _fetch(
    emitter: Emitter, side: Side, registers: Buffer, number: Expr, index: tuple[Expr, ...], width: int
) -> list[Stmt]:
    lowered: list[Stmt] = []
    place = tuple(lower_expr(emitter, part, NOWHERE, lowered) for part in index)
    version = side.region.version
    version = None if version is None else lower_expr(emitter, version, NOWHERE, lowered)
    name = side.region.buffer.name
    offset = shared_offset(emitter, name, place, version, lowered)
    flat = emitter.shared[name].flat
    if width == 1:
        return [*lowered, Store(registers, (number,), Load(flat, (offset,)))]
    source = Region(flat, (offset,), extent=(width,))
    return [*lowered, VectorLoad(Region(registers, (number,), extent=(width,)), source)]


def _widened(
    emitter: Emitter, side: Side, raw: Buffer, dtype: DType, where: list[Stmt], read: list[Stmt]
) -> Buffer:
    """Fetched elements in the dtype of the sum: narrow ones are converted once, not once a product."""
    where.append(AllocLocal(raw))
    where += read
    if raw.dtype == dtype:
        return raw
    wide = Buffer(emitter.name(side.name), raw.shape, dtype, "local")
    where.append(AllocLocal(wide))
    where += registerwise(emitter, wide, lambda r: Cast(Load(raw, (r,)), type=dtype))
    return wide


def _raw(emitter: Emitter, side: Side, count: int, dtype: DType) -> Buffer:
    own = side.region.buffer.dtype
    name = emitter.name(side.name if own == dtype else f"{side.name}_raw")
    return Buffer(name, (count,), own, "local")


def _along_k(
    emitter: Emitter, side: Side, dtype: DType, first: Expr, step: Var, width: int, before: list[Stmt]
) -> Expr:
    raw = _raw(emitter, side, side.axis.count * width, dtype)
    take = _aligned(emitter, side, side.k_dim, first, width)
    number = side.axis.number * width
    if take == 1 and width > 1:
        var = emitter.leaf_variable("k2", width)
        one = _fetch(emitter, side, raw, number + var, _index(side, first + var, side.axis.element()), 1)
        read: list[Stmt] = [Unroll(Const(width), (var,), tuple(one))]
    else:
        read = []
        for lead in range(0, width, take):
            read += _fetch(
                emitter, side, raw, number + lead, _index(side, first + lead, side.axis.element()), take
            )
    return Load(_widened(emitter, side, raw, dtype, before, side.axis.nest(read)), (number + step,))


def _along_axis(emitter: Emitter, side: Side, dtype: DType, k: Expr, inner: list[Stmt]) -> Expr:
    axis = side.axis
    raw = _raw(emitter, side, axis.count, dtype)
    take, skip = 1, 0
    if axis.loops and axis.loops[0][2] == 1:
        base = Axis(axis.base, axis.loops[1:], None).element()
        extent = (side.region.extent or side.region.buffer.extents)[side.free_dim]
        run = axis.loops[0][1] if axis.clamp is None else gcd(axis.loops[0][1], extent)
        fast = emitter.shared[side.region.buffer.name].layout.run(side.free_dim) > 1
        take = _aligned(emitter, side, side.free_dim, base, run) if fast else 1
        skip = 1 if take > 1 else 0
    read: list[Stmt] = []
    if skip:
        number = axis.number
        loop = axis.loops[0]
        for lead in range(0, loop[1], take):
            slot = replaced(number, {loop[0].name: Const(lead)})
            read += _fetch(emitter, side, raw, slot, _index(side, k, axis.element(Const(lead), take)), take)
    else:
        read = _fetch(emitter, side, raw, axis.number, _index(side, k, axis.element()), 1)
    return Load(_widened(emitter, side, raw, dtype, inner, axis.nest(read, skip)), (axis.number,))


LOWERINGS = (Lowering(Gemm, "fma", gemm_loops),)
