"""One operand of a product by atoms: where it lies, and which registers an instruction takes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...errors import LayoutError
from ...ir import Buffer, Call, Const, Expr, Load, Region, Stmt, Store, zero_of
from ...language.memory import AllocLocal
from ...language.structure import Unroll
from ...layout import Fragment
from ...layout.fragment import Digit
from ...layout.tiling import placed_atoms, turned_over
from ...machine import OperandForm
from .emitter import Emitter


@dataclass(frozen=True)
class AtomSide:
    """One operand as the product needs it.

    `free` is the dimension of the atom that is not k. The atom is repeated `repeats` times along it, `stride`
    apart, in each group; `groups` are the digits of a thread's number that step over groups. `transposed`:
    the region's dimensions are the atom's turned over. `depth` is k of the product, `unit` of an instruction.
    `larger` is the field of the operand of which a group has more.
    """

    field: str
    region: Region
    form: OperandForm
    atom: Fragment
    transposed: bool
    free: int
    repeats: int
    stride: int
    groups: tuple[Digit, ...]
    depth: int
    unit: int
    larger: str

    @property
    def k_dim(self) -> int:
        return 1 - self.free

    @property
    def dims(self) -> tuple[int, int]:
        """The region's dimensions that the atom's two stand for."""
        last = self.region.buffer.rank - 1
        return (last, last - 1) if self.transposed else (last - 1, last)

    def extent(self, dim: int) -> int:
        """The true extent of the operand along a dimension of the atom."""
        if dim == self.k_dim:
            return self.depth
        return (self.region.extent or self.region.buffer.extents)[self.dims[dim]]

    def origin(self, emitter: Emitter) -> Expr:
        """Where a group's part starts along the dimension that is not k."""
        total: Expr = Const(0)
        for divisor, count, _, step in self.groups:
            total = total + emitter.digit(divisor, count) * step
        return total


@dataclass(frozen=True)
class Operand:
    """The code for an operand: what stands before the product, what fetches one step of k (with ghosts set
    to zero where there may be any), and the registers of a repeat in a step.

    One with `parts` above 1 is fetched a part of its repeats at a time, into the same registers: `fetch`
    takes the number of the part, and `registers` that of a repeat in it.
    """

    before: list[Stmt]
    fetch: Callable[[Expr, bool, Expr], list[Stmt]]
    registers: Callable[[Expr, Expr], Region]
    parts: int = 1


def of_buffer(side: AtomSide, registers: Buffer) -> Callable[[Expr, Expr], Region]:
    """The registers of a repeat where a buffer holds those of one step, repeat after repeat."""
    values = side.atom.values
    return lambda repeat, turn: Region(registers, (repeat * values,), extent=(values,))


def in_registers(emitter: Emitter, side: AtomSide) -> Operand:
    """An operand that is a fragment: its own registers; ghosts along k are set to zero in a copy of a step.

    Raises `LayoutError` where it does not lie as the instruction reads it.
    """
    tile = emitter.fragments[side.region.buffer.name]
    layout = turned_over(tile.layout) if side.transposed else tile.layout
    placed = placed_atoms(layout, side.atom)
    steps = -(-side.depth // side.unit)
    wanted = [(side.repeats, side.stride), (steps, side.unit if steps > 1 else 0)]
    found = None if placed is None else list(zip(placed.counts, placed.strides, strict=True))
    groups = tuple(d for d in layout.thread_digits if d.divisor >= side.atom.threads and d.dim >= 0)
    if placed is None or found != (wanted if side.free == 0 else wanted[::-1]) or groups != side.groups:
        raise LayoutError(
            "the operand {name} does not lie in registers as the product reads it", at=side.region.place,
            name=side.region.buffer.name, atom=side.atom, layout=tile.layout,
            expected="{atom}, repeated as in the accumulator", found="{layout}",
        )  # fmt: skip
    by_repeat, by_step = placed.numbers[side.free], placed.numbers[side.k_dim]
    values = side.atom.values

    def registers(repeat: Expr, turn: Expr) -> Region:
        return Region(tile.local, (repeat * by_repeat + turn * by_step,), extent=(values,))

    if side.depth % side.unit == 0:
        return Operand([], lambda turn, ghosts, part: [], registers)
    own = emitter.buffer(side.field, side.repeats * values, side.region.buffer)

    def padded(turn: Expr, ghosts: bool, part: Expr) -> list[Stmt]:
        if not ghosts:
            return []
        with emitter.scope():
            repeat, value = emitter.variable("r0", side.repeats), emitter.variable("r1", values)
            source = registers(repeat, turn)
            copied = Store(own, (repeat * values + value,), Load(tile.local, (source.start[0] + value,)))
            loop = Unroll(Const(side.repeats), (repeat,), (Unroll(Const(values), (value,), (copied,)),))
        return [loop, *without_ghosts(emitter, side, own, turn, side.repeats)]

    in_copy = of_buffer(side, own)
    last = Const(side.depth // side.unit)
    return Operand(
        [AllocLocal(own)], padded, lambda repeat, turn: (in_copy if turn == last else registers)(repeat, turn)
    )


def without_ghosts(
    emitter: Emitter, side: AtomSide, registers: Buffer, turn: Expr, repeats: int
) -> list[Stmt]:
    """The registers of one step with zeros where k is behind the operand's end."""
    k_dim, values = side.k_dim, side.atom.values
    with emitter.scope():
        repeat = emitter.variable("r0", repeats)
        first = emitter.thread_part(side.atom)[k_dim] + turn * side.unit
        cleared: list[Stmt] = []
        for value, offset in enumerate(side.atom.value_offsets):
            inside = (first + offset[k_dim]).compare("<", side.depth)
            if emitter.facts.proves(inside):
                continue
            index = (repeat * values + value,)
            kept = Call("if_then_else", (inside, Load(registers, index), zero_of(registers.dtype)),
                        type=registers.dtype)  # fmt: skip
            cleared.append(Store(registers, index, kept))
    return [Unroll(Const(repeats), (repeat,), tuple(cleared))] if cleared else []
