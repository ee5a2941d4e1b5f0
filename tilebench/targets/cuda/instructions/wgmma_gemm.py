"""A gemm on tiles as instructions of warp groups: which of them, from which addresses and registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product as product_of
from typing import Any, NamedTuple

import numpy as np

from ....errors import ScheduleError
from ....ir import FALSE, TRUE, Arith, Buffer, Const, Expr, Load, Region, Stmt, all_of, const_of, substitute
from ....language.accumulation import gemm_sum_dtype
from ....language.gemm import Gemm
from ....language.memory import AllocLocal
from ....language.structure import Serial, Unroll
from ....layout import Fragment, SharedLayout, offset_expr
from ....layout.tiling import PlacedAtoms
from ....machine import Instruction
from ....passes.laid_out.choose_instructions import row_of
from ....passes.threads.addresses import lower_expr, version_start
from ....passes.threads.atom_operands import AtomSide, in_registers
from ....passes.threads.atoms import UNROLLED_K, accumulator_of
from ....passes.threads.emitter import Emitter
from ....passes.threads.sums import accumulators, registerwise
from ....passes.threads.tiles import NOWHERE
from ..warp_groups import GROUP, ROWS, SWIZZLES, MatrixForm, WgmmaShape

# Parts of a sum that are written out after each other, and registers that a thread needs beside sums.
MOST_PARTS, OTHER_REGISTERS = 4, 48


@dataclass(frozen=True)
class Words:
    """The classes of the words that a product becomes."""

    multiply: Any
    fence: Any
    commit: Any
    wait: Any


class _Operand(NamedTuple):
    """The region that an instruction reads, by the number of its block and of the step of k, and its form."""

    region: Callable[[Expr, Expr], Region]
    form: MatrixForm | None


@dataclass(frozen=True)
class _Product:
    """What is issued: `blocks` of 64 rows and of columns, `sums` the registers, `numbers` how far blocks' lie
    apart, `values` how many one instruction has."""

    words: Words
    shape: WgmmaShape
    a: _Operand
    b: _Operand
    sums: Buffer
    blocks: tuple[int, int]
    numbers: tuple[int, int]
    values: int

    @property
    def all_sums(self) -> Region:
        """The registers of all sums."""
        return Region(self.sums, (Const(0),), extent=(self.sums.size,))

    def step(self, emitter: Emitter, turn: Expr, clear: Expr) -> list[Stmt]:
        """The instructions of one step of k."""
        with emitter.scope():
            m, n = (emitter.variable(name, count) for name, count in zip("mn", self.blocks, strict=True))
            start = m * self.numbers[0] + n * self.numbers[1]
            one = self.words.multiply(
                Region(self.sums, (start,), extent=(self.values,)), self.a.region(m, turn),
                self.b.region(n, turn), shape=self.shape.name, a_form=self.a.form, b_form=self.b.form,
                clear=clear,
            )  # fmt: skip
        inner: Stmt = _repeated(n, self.blocks[1], one)
        return [_repeated(m, self.blocks[0], inner)]


def _repeated(variable: Any, count: int, body: Stmt) -> Stmt:
    if count == 1:
        return substitute(body, {variable.name: Const(0)})
    return Unroll(Const(count), (variable,), (body,))


def product(emitter: Emitter, gemm: Gemm, words: Words) -> list[Stmt]:
    """The instructions of a gemm, issued.

    Its token learns which registers hold sums, and what is left to do; of a product that is waited for in
    parts, nothing is.
    """
    row = row_of(gemm, emitter.machine)
    layout, placed = accumulator_of(emitter, gemm, row)
    # As many columns as one instruction takes, in instructions that are all alike.
    together = max(c for c in range(1, row.most[1] + 1) if placed.counts[1] % c == 0)
    blocks = placed.counts[0], placed.counts[1] // together
    shape = WgmmaShape(together * row.shape[1], gemm.a.buffer.dtype.bits)
    before: list[Stmt] = []
    a = _operand(emitter, _side(gemm, row, "a", layout, placed), blocks[0], ROWS, before)
    b = _operand(emitter, _side(gemm, row, "b", layout, placed), blocks[1], shape.n, before)
    own = emitter.fragments[gemm.c.buffer.name].local
    parted = bool(row.exact_k) and not gemm.fast_accum
    # A sum that the instruction itself can start at zero.
    itself = gemm_sum_dtype(own.dtype) == own.dtype and not parted
    sums, start, after = (own, [], []) if itself else accumulators(emitter, gemm)
    clear = lower_expr(emitter, gemm.clear_accum, NOWHERE, before) if itself else FALSE
    numbers = placed.numbers[0], placed.numbers[1] * together
    issue = _Product(words, shape, a, b, sums, blocks, numbers, shape.c.values)
    if parted:
        body = _in_parts(emitter, issue, gemm.mnk[2], row)
    else:
        body = [words.fence(), *_steps(emitter, issue, Const(0), gemm.mnk[2] // shape.k, clear)]
    if parted:
        emitter.issued[gemm.token] = {}
        return [*before, *start, *body, *after]
    emitter.issue(gemm.token, issue.all_sums, after)
    return [*before, *start, *body]


def _side(gemm: Gemm, row: Instruction, field: str, layout: Fragment, placed: PlacedAtoms) -> AtomSide:
    """An operand as the instruction takes it; its fragment counts where it is in registers alone."""
    first = field == "a"
    free, form = 0 if first else 1, row.operand(field)
    atom = form.fragment or row.operand("c").fragment
    assert atom is not None
    groups = tuple(d for d in layout.thread_digits if d.divisor >= GROUP and d.dim == free)
    turned = gemm.transpose_A if first else gemm.transpose_B
    region: Region = gemm.a if first else gemm.b
    return AtomSide(
        field, region, form, atom, turned, free, placed.counts[free], placed.strides[free], groups,
        gemm.mnk[2], row.shape[2], field,
    )  # fmt: skip


def _steps(emitter: Emitter, issue: _Product, first: Expr, steps: int, clear: Expr) -> list[Stmt]:
    """Steps of k from `first` on: written out, or in a loop of as many at a time.

    A sum that starts afresh does so in a step of its own: it needs no registers before.
    """
    if steps == 1:
        return issue.step(emitter, first, clear)
    if clear == TRUE:
        return [*issue.step(emitter, first, TRUE), *_steps(emitter, issue, first + 1, steps - 1, FALSE)]
    together = max(n for n in range(1, UNROLLED_K + 1) if steps % n == 0)
    if issue.a.form is None:
        # Registers have no address: those of another turn of a loop would be moved into the same ones,
        # which the instruction of this turn still reads.
        together = steps

    def cleared(turn: Expr) -> Expr:
        return FALSE if clear == FALSE else all_of([turn.compare("==", 0), clear])

    with emitter.scope():
        outer = emitter.variable("k0", steps // together) if together < steps else None
        inner = emitter.variable("k1", together)
        own = inner if outer is None else outer * together + inner
        body: tuple[Stmt, ...] = tuple(issue.step(emitter, first + own, cleared(own)))
        unrolled = Unroll(Const(together), (inner,), body)
    return [unrolled if outer is None else Serial(Const(steps // together), (outer,), (unrolled,))]


def _in_parts(emitter: Emitter, issue: _Product, depth: int, row: Instruction) -> list[Stmt]:
    """Sums of at most `exact_k` terms, each waited for and added to C's in ordinary registers.

    Where a thread has registers for two of them, one is added while the next is formed. The last of a step is
    waited for before any is left: ptxas lets a sum be read in front of a later one's end only where both were
    issued in the same turn of a loop.
    """
    sums, unit = issue.sums, row.shape[2]
    whole, rest = divmod(depth, row.exact_k)
    together = min(whole, MOST_PARTS) if _has_room(emitter, sums) else 1
    parts = [Buffer(emitter.name("part"), sums.shape, sums.dtype, "local") for _ in range(min(together, 2))]
    parts = parts or [Buffer(emitter.name("part"), sums.shape, sums.dtype, "local")]

    def chain(first: Expr, lengths: Sequence[int]) -> list[Stmt]:
        body: list[Stmt] = []
        for number, terms in enumerate(lengths):
            part = parts[number % len(parts)]
            own = replace(issue, sums=part)
            steps = _steps(emitter, own, first + number * (row.exact_k // unit), terms // unit, TRUE)
            body += [issue.words.fence(), *steps, issue.words.commit()]
            last = number == len(lengths) - 1
            if number and len(parts) > 1:
                body += _added(emitter, issue, parts[(number - 1) % 2], pending=1)
            if last or len(parts) == 1:
                body += _added(emitter, issue, part, pending=0)
        return body

    rounds, left = divmod(whole, together) if together else (0, 0)
    body: list[Stmt] = [AllocLocal(part) for part in parts]
    if rounds > 1:
        with emitter.scope():
            number = emitter.variable("k2", rounds)
            inside = chain(number * (together * row.exact_k // unit), [row.exact_k] * together)
        body.append(Serial(Const(rounds), (number,), tuple(inside)))
    elif rounds:
        body += chain(Const(0), [row.exact_k] * together)
    lengths = [row.exact_k] * left + ([rest] if rest else [])
    return [*body, *chain(Const((whole - left) * row.exact_k // unit), lengths)]


def _added(emitter: Emitter, issue: _Product, part: Buffer, pending: int) -> list[Stmt]:
    """A wait for a part of the sums, and the part added to them."""
    sums = issue.sums
    added = registerwise(emitter, sums, lambda r: Arith("+", (Load(sums, (r,)), Load(part, (r,)))))
    return [issue.words.wait(c=replace(issue, sums=part).all_sums, pending=pending), *added]


def _has_room(emitter: Emitter, sums: Buffer) -> bool:
    """Whether a thread has registers for sums, two parts of them, and what else a product takes."""
    most = min(
        emitter.machine.sm.registers // emitter.threads.count, emitter.machine.sm.max_registers_per_thread
    )
    return 3 * sums.size + OTHER_REGISTERS <= most


# -- operands


def _operand(emitter: Emitter, side: AtomSide, blocks: int, extent: int, before: list[Stmt]) -> _Operand:
    """Where blocks of `extent` along the dimension that is not k are read from."""
    name = side.region.buffer.name
    if name in emitter.fragments:
        return _Operand(in_registers(emitter, side).registers, None)
    tile = emitter.shared[name]
    other, k_dim = side.dims[side.free], side.dims[side.k_dim]
    size = side.region.buffer.dtype.bits // 8
    read = _Read(tile.layout, other, k_dim, extent, side.unit, size)
    firsts = tuple(first + block * extent for first in _starts(emitter, side) for block in range(blocks))
    first_k = const_of(side.region.start[k_dim]) or 0
    form = form_of(read, firsts, tuple(range(first_k, first_k + side.depth, side.unit)))
    if form is None or not _whole_start(emitter, side, form):
        raise ScheduleError(
            "wgmma cannot read {tile} as it lies", at=side.region.place, tile=name,
            layout=tile.layout, found="{layout}",
            expected="panels of a swizzle atom, and parts that start at whole lines of them",
        )  # fmt: skip
    shift = version_start(emitter, side.region, before)
    span = read.plain(extent - 1, side.unit - 1) + 1
    index = [lower_expr(emitter, part, NOWHERE, before) for part in side.region.start]
    origin = _origin(emitter, side)

    def region(block: Expr, turn: Expr) -> Region:
        place = list(index)
        place[other] = place[other] + origin + block * extent
        place[k_dim] = place[k_dim] + turn * side.unit
        start = offset_expr(tile.layout, place, emitter.facts) + shift
        return Region(tile.flat, (start,), extent=(span,))

    return _Operand(region, form)


def _origin(emitter: Emitter, side: AtomSide) -> Expr:
    """Where a warp group's part starts, by a number that its warps have in common."""
    total: Expr = Const(0)
    for divisor, count, _, step in side.groups:
        total = total + emitter.uniform_digit(divisor, count) * step
    return total


def _starts(emitter: Emitter, side: AtomSide) -> tuple[int, ...]:
    """Where the parts of warp groups start along the dimension that is not k."""
    starts = [const_of(side.region.start[side.dims[side.free]]) or 0]
    for divisor, count, _, step in side.groups:
        numbers = range(min(count, -(-emitter.threads.count // divisor)))
        starts = [start + number * step for start in starts for number in numbers]
    return tuple(sorted(starts))


def _whole_start(emitter: Emitter, side: AtomSide, form: MatrixForm) -> bool:
    """Whether a region whose start is no constant begins where the swizzle does.

    That is at a line along the lines (at a step of k, where they run along k), and at 8 lines across them.
    """
    line = form.swizzle // (side.region.buffer.dtype.bits // 8)
    units = {side.free: line if form.turned else 8, side.k_dim: 8 if form.turned else side.unit}
    return all(
        emitter.facts.divisor(side.region.start[side.dims[dim]]) % unit == 0
        for dim, unit in units.items()
        if not isinstance(side.region.start[side.dims[dim]], Const)
    )


class _Read(NamedTuple):
    """A tile that is read: its layout, the dimensions, and the part that one instruction takes."""

    layout: SharedLayout
    other: int
    k_dim: int
    extent: int
    depth: int
    size: int

    def plain(self, other: int, k: int) -> int:
        """The offset of an element before the swizzle, in elements."""
        index = [0] * len(self.layout.dims)
        index[self.other], index[self.k_dim] = other, k
        return sum(int(dim(part)) for dim, part in zip(self.layout.dims, index, strict=True))

    def bytes_of(self, other: int, k: int) -> Any:
        """The addresses of the elements that one instruction takes from there on, (extent, depth)."""
        index: list[Any] = [0] * len(self.layout.dims)
        index[self.other] = other + np.arange(self.extent)[:, None]
        index[self.k_dim] = k + np.arange(self.depth)[None, :]
        return np.asarray(self.layout.offset(index)) * self.size


@lru_cache(maxsize=256)
def form_of(read: _Read, starts: tuple[int, ...], steps: tuple[int, ...]) -> MatrixForm | None:
    """How the instruction reads a tile from each of `starts`, for each of `steps` of k; None: it cannot."""
    swizzle = read.layout.swizzle
    unit = 16 // read.size
    if swizzle is None or 1 << swizzle.base != unit or swizzle.shift != 3:
        return None
    line = 16 << swizzle.bits
    if line not in SWIZZLES or max(starts) + read.extent > read.layout.extents[read.other]:
        return None
    turned = read.layout.run(read.other) > 1 and read.layout.run(read.k_dim) == 1
    columns = line // read.size
    if turned:
        lead = read.plain(columns, 0) * read.size if read.extent > columns else 16
        form = MatrixForm(line, read.plain(0, 8) * read.size, lead, turned=True)
    else:
        stride = read.plain(8, 0) * read.size if read.extent > 8 else 8 * line
        form = MatrixForm(line, stride)
    for start, k in product_of(starts, steps):
        begin = read.plain(start, k) * read.size
        found = form.bytes_of(begin, read.extent, read.depth, read.size)
        if not np.array_equal(found, read.bytes_of(start, k)):
            return None
    return form
