"""Matrix products by an instruction that a group of threads carries out together.

The instruction's row says how each operand lies in the registers of the group. Operands that lie there
already are taken as they are, those in shared memory are fetched, by whole matrices where the row has an
instruction for that and the layout the rows; then the instruction is issued for each part of the tile that
a group has. Extents that the instruction does not divide are padded with zeros along k; what is computed
of ghosts of C nobody sees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ...errors import LayoutError
from ...ir import Arith, Buffer, Const, Expr, Load, Region, Stmt, zero_of
from ...language.gemm import Gemm
from ...language.memory import AllocLocal
from ...language.structure import Serial, Unroll
from ...layout import Fragment
from ...layout.tiling import PlacedAtoms, placed_atoms
from ...machine import Instruction
from .atom_operands import AtomSide, Operand, in_registers
from .emitter import Emitter
from .fetch_elements import fetched_by_elements
from .fetch_matrices import LoadStep, fetched_by_matrices
from .sums import accumulators, registerwise

# The statement of one instruction, from registers: `step(c, a, b)`.
Step = Callable[[Region, Region, Region], Stmt]
# Steps of k that are written out: those of one tile can then overlap.
UNROLLED_K = 8


def gemm_by_atoms(
    emitter: Emitter, gemm: Gemm, row: Instruction, step: Step, load: LoadStep | None = None
) -> list[Stmt]:
    """The code of one thread for a gemm by a row whose operands have fragments.

    `load(dst, src, turned)` is the statement of the row's matrix load, where it has one.
    Raises `LayoutError` where operands do not lie as the instruction takes them.
    """
    layout, placed = accumulator_of(emitter, gemm, row)
    sums, before, after = accumulators(emitter, gemm)
    depth = gemm.mnk[2]
    sides = (_side(gemm, row, field, layout, placed) for field in ("a", "b"))
    a, b = (_operand(emitter, side, load) for side in sides)
    issue = _Issue(step, a, b, sums, placed, _values(row, "c"), row.shape[2])
    parted = bool(row.exact_k) and not gemm.fast_accum
    body = _in_parts(emitter, issue, depth, row.exact_k) if parted else _steps(emitter, issue, 0, depth)
    return [*before, *a.before, *b.before, *body, *after]


@dataclass(frozen=True)
class _Issue:
    """What one step of k is: the instruction, its operands, and the registers that it adds to.

    `values` are those of one instruction, `unit` its extent along k.
    """

    instruction: Step
    a: Operand
    b: Operand
    sums: Buffer
    placed: PlacedAtoms
    values: int
    unit: int

    def step(self, emitter: Emitter, turn: Expr, *, ghosts: bool = False) -> list[Stmt]:
        """The operands of a step, and the instruction for each row and column of atoms."""
        whole: list[Stmt] = []
        for operand in (self.a, self.b):
            if operand.parts == 1:
                whole += operand.fetch(turn, ghosts, Const(0))
        parted = next((operand for operand in (self.a, self.b) if operand.parts > 1), None)
        if parted is None:
            return [*whole, *self.issue(emitter, turn, Const(0))]
        with emitter.scope():
            part = emitter.variable("p0", parted.parts)
            body = [*parted.fetch(turn, ghosts, part), *self.issue(emitter, turn, part)]
        return [*whole, Unroll(Const(parted.parts), (part,), tuple(body))]

    def issue(self, emitter: Emitter, turn: Expr, part: Expr) -> list[Stmt]:
        """The instruction for the rows and columns of atoms whose operands are there."""
        rows, columns = (
            count // operand.parts
            for count, operand in zip(self.placed.counts, (self.a, self.b), strict=True)
        )
        numbers = self.placed.numbers
        with emitter.scope():
            m, n = emitter.variable("m0", rows), emitter.variable("n0", columns)
            across, along = (
                part * count + own if operand.parts > 1 else own
                for own, count, operand in ((m, rows, self.a), (n, columns, self.b))
            )
            c = Region(self.sums, (across * numbers[0] + along * numbers[1],), extent=(self.values,))
            body: list[Stmt] = [self.instruction(c, self.a.registers(m, turn), self.b.registers(n, turn))]
        return [Unroll(Const(rows), (m,), (Unroll(Const(columns), (n,), tuple(body)),))]


def _in_parts(emitter: Emitter, issue: _Issue, depth: int, longest: int) -> list[Stmt]:
    """The product in sums of at most `longest` terms each, which are added to C's in ordinary registers."""
    sums = issue.sums
    part = Buffer(emitter.name("part"), sums.shape, sums.dtype, "local")
    own = replace(issue, sums=part)

    def one(first: Expr | int, terms: int) -> list[Stmt]:
        clear = registerwise(emitter, part, lambda r: zero_of(part.dtype))
        added = registerwise(emitter, sums, lambda r: Arith("+", (Load(sums, (r,)), Load(part, (r,)))))
        return [*clear, *_steps(emitter, own, first, terms), *added]

    body: list[Stmt] = [AllocLocal(part)]
    whole, rest = divmod(depth, longest)
    if whole > 1:
        with emitter.scope():
            number = emitter.variable("k2", whole)
            inside = one(number * (longest // issue.unit), longest)
        body.append(Serial(Const(whole), (number,), tuple(inside)))
    elif whole:
        body += one(0, longest)
    return [*body, *one(whole * longest // issue.unit, rest)] if rest else body


def _steps(emitter: Emitter, issue: _Issue, first: Expr | int, depth: int) -> list[Stmt]:
    """The steps of `depth` terms from step `first` on: written out, or in a loop of as many at a time."""
    steps, rest = divmod(depth, issue.unit)
    start = first if isinstance(first, Expr) else Const(first)
    body: list[Stmt] = []
    together = max((n for n in range(1, UNROLLED_K + 1) if steps % n == 0), default=1)
    if steps == 1:
        body = issue.step(emitter, start)
    elif steps:
        with emitter.scope():
            turn = start
            outer = emitter.variable("k0", steps // together) if together < steps else None
            if outer is not None:
                turn = turn + outer * together
            inner = emitter.variable("k1", together)
            body = [Unroll(Const(together), (inner,), tuple(issue.step(emitter, turn + inner)))]
            if outer is not None:
                body = [Serial(Const(steps // together), (outer,), tuple(body))]
    return [*body, *issue.step(emitter, start + steps, ghosts=True)] if rest else body


def accumulator_of(emitter: Emitter, gemm: Gemm, row: Instruction) -> tuple[Fragment, PlacedAtoms]:
    """How the sums of a product lie, and how they repeat the instruction's.

    Raises `LayoutError` where they do not.
    """
    tile, atom = emitter.fragments.get(gemm.c.buffer.name), row.operand("c").fragment
    placed = None if tile is None or atom is None else placed_atoms(tile.layout, atom)
    if tile is None or placed is None:
        raise LayoutError(
            "the accumulator {name} does not lie as {by} writes it", at=gemm.c.place,
            name=gemm.c.buffer.name, by=row.name, atom=atom, layout=getattr(tile, "layout", None),
            expected="{atom}, repeated", found="{layout}",
        )  # fmt: skip
    return tile.layout, placed


def _values(row: Instruction, field: str) -> int:
    fragment = row.operand(field).fragment
    assert fragment is not None
    return fragment.values


def _side(gemm: Gemm, row: Instruction, field: str, layout: Fragment, placed: PlacedAtoms) -> AtomSide:
    form, first = row.operand(field), field == "a"
    region: Region = getattr(gemm, field)
    free, atom = 0 if first else 1, form.fragment
    if atom is None:
        raise LayoutError("{by} does not say how {field} lies", at=gemm.place, by=row.name, field=field)
    # What the digits of a thread's number beyond the instruction's own add to the coordinate.
    groups = tuple(d for d in layout.thread_digits if d.divisor >= atom.threads and d.dim == free)
    turned = gemm.transpose_A if first else gemm.transpose_B
    return AtomSide(
        field, region, form, atom, turned, free, placed.counts[free], placed.strides[free], groups,
        gemm.mnk[2], row.shape[2],
        "a" if placed.counts[0] * row.shape[0] > placed.counts[1] * row.shape[1] else "b",
    )  # fmt: skip


def _operand(emitter: Emitter, side: AtomSide, load: LoadStep | None) -> Operand:
    name = side.region.buffer.name
    if name in emitter.fragments:
        return in_registers(emitter, side)
    if name not in emitter.shared:
        raise LayoutError(
            "the operand {name} of a gemm is in {scope} memory", at=side.region.place, name=name,
            scope=side.region.buffer.scope, expected="shared memory or a fragment",
        )  # fmt: skip
    fetched = None if load is None else fetched_by_matrices(emitter, side, load)
    return fetched or fetched_by_elements(emitter, side)
