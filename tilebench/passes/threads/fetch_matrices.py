"""An operand of a product by atoms, brought from shared memory by whole matrices of 8 rows.

The address of a thread's row is formed once, ahead of the product. In a swizzled layout what a step of k or
a repeat adds is an exclusive or with a constant, and a distance: which of both is found by trying all
threads, so that in the loop an address is the row's, one XOR and a number that the access holds itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...ir import Arith, Call, Const, Expr, Let, Region, Stmt, Var, int32
from ...language.memory import AllocLocal
from ...language.structure import Unroll
from ...layout import SharedLayout, Swizzle
from ..analysis.matrix_rows import MatrixRows, matrix_rows
from .addresses import lower_expr, shared_offset
from .atom_operands import AtomSide, Operand, of_buffer, without_ghosts
from .emitter import Emitter
from .registers import check_version
from .tiles import NOWHERE

# The statement of one load: `load(dst, src, turned)`; src is the row that the thread names.
LoadStep = Callable[[Region, Region, bool], Stmt]


# Registers of one step that may all be there at once; of more, a part is fetched where it is used.
AT_ONCE = 16


def fetched_by_matrices(emitter: Emitter, side: AtomSide, load: LoadStep) -> Operand | None:
    """The registers of one step of k, by whole matrices; None where rows do not lie together for that."""
    rows = _rows(emitter, side)
    if rows is None:
        return None
    values, count = side.atom.values, rows.together
    loads = side.repeats // count
    words = side.repeats * values * side.region.buffer.dtype.bits // 32
    parts = loads if words > AT_ONCE and side.field == side.larger else 1
    registers = emitter.buffer(side.field, side.repeats * values // parts, side.region.buffer)
    before: list[Stmt] = [AllocLocal(registers)]
    address = _Addresses(emitter, side, rows, before)
    flat = emitter.shared[side.region.buffer.name].flat

    def one(number: Expr, turn: Expr, own: Expr) -> list[Stmt]:
        inside: list[Stmt] = []
        source = Region(flat, (address.of(number, turn, inside),), extent=(rows.chunk,))
        target = Region(registers, (own,), extent=(values * count,))
        return [*inside, load(target, source, rows.turned)]

    def fetch(turn: Expr, ghosts: bool, part: Expr) -> list[Stmt]:
        zeros = without_ghosts(emitter, side, registers, turn, side.repeats // parts) if ghosts else []
        if parts > 1:
            return [*one(part, turn, Const(0)), *zeros]
        with emitter.scope():
            repeat = emitter.variable("r0", loads)
            loop = Unroll(Const(loads), (repeat,), tuple(one(repeat, turn, repeat * (values * count))))
        return [loop, *zeros]

    return Operand(before, fetch, of_buffer(side, registers), parts)


def _rows(emitter: Emitter, side: AtomSide) -> MatrixRows | None:
    """How threads name rows, if each is whole and on a multiple of its own width."""
    load, layout = side.form.load, emitter.shared[side.region.buffer.name].layout
    if load is None:
        return None
    bits = side.region.buffer.dtype.bits
    for turned in (False, True):
        rows = matrix_rows(
            side.atom, load, side.k_dim, bits, turned=turned, repeats=side.repeats, stride=side.stride
        )
        if rows is not None and _whole(emitter, side, rows, layout):
            return rows
    return None


def _whole(emitter: Emitter, side: AtomSide, rows: MatrixRows, layout: SharedLayout) -> bool:
    dim = side.dims[rows.along]
    start = side.region.start[dim]
    return (
        layout.run(dim) % rows.chunk == 0
        and layout.vector % rows.chunk == 0
        and side.extent(rows.along) % rows.chunk == 0
        and emitter.facts.divisor(start) % rows.chunk == 0
    )


class _Split(NamedTuple):
    """What repeats and steps change of an offset: what is exclusive-ored onto it, and what is added then."""

    xors: tuple[tuple[int, ...], tuple[int, ...]]
    adds: tuple[tuple[int, ...], tuple[int, ...]]


class _Addresses:
    """The offset of the row that a thread names, by repeat and step of k."""

    def __init__(self, emitter: Emitter, side: AtomSide, rows: MatrixRows, before: list[Stmt]) -> None:
        self.emitter, self.side, self.rows = emitter, side, rows
        tile = emitter.shared[side.region.buffer.name]
        self.layout = tile.layout
        self.shift: Expr = Const(0)
        version = side.region.version
        if version is not None:
            lowered = lower_expr(emitter, version, NOWHERE, before)
            check_version(emitter, side.region.buffer.name, lowered, tile.flat.size // tile.layout.cosize)
            self.shift = lowered * tile.layout.cosize
        self.split = self._split()
        if self.split is not None:
            offset = self._offset(Const(0), Const(0), before)
            self.base: Expr = offset
            if not isinstance(offset, (Var, Const)):
                self.base = Var(emitter.name(f"{side.region.buffer.name}_row"))
                before.append(Let(self.base, offset))

    def of(self, repeat: Expr, turn: Expr, before: list[Stmt]) -> Expr:
        """The offset in the flat buffer; lets that it needs are added to `before`."""
        if self.split is None:
            return self._offset(repeat, turn, before) + self.shift
        total = self.base
        for variable, values in zip((repeat, turn), self.split.xors, strict=True):
            part = _by(variable, values)
            if part != Const(0):
                total = Arith("^", (total, part))
        for variable, values in zip((repeat, turn), self.split.adds, strict=True):
            total = total + _by(variable, values)
        return total + self.shift

    def _offset(self, repeat: Expr, turn: Expr, before: list[Stmt]) -> Expr:
        emitter, side = self.emitter, self.side
        place: list[Expr] = [Const(0), Const(0)]
        for divisor, count, dim, step in self.rows.digits:
            place[dim] = place[dim] + emitter.digit(divisor, count) * step
        place[side.free] = (
            place[side.free] + side.origin(emitter) + repeat * (side.stride * self.rows.together)
        )
        place[side.k_dim] = place[side.k_dim] + turn * side.unit
        index = list(side.region.start)
        for dim, part in enumerate(place):
            index[side.dims[dim]] = index[side.dims[dim]] + self._inside(dim, part)
        lowered = tuple(lower_expr(emitter, part, NOWHERE, before) for part in index)
        return shared_offset(emitter, side.region.buffer.name, lowered, None, before)

    def _inside(self, dim: int, part: Expr) -> Expr:
        """A row behind the operand's end is its last one: what comes of it nobody sees, or is set to zero."""
        most = self.side.extent(dim) - (self.rows.chunk if dim == self.rows.along else 1)
        if self.emitter.facts.proves(part.compare("<=", most)):
            return part
        return Call("min", (part, Const(most)), type=int32)

    def _split(self) -> _Split | None:
        """The parts of all offsets, where they are those of the first and constants."""
        side, rows, layout = self.side, self.rows, self.layout
        if any(not self._whole_periods(dim, start) for dim, start in enumerate(side.region.start)):
            return None
        repeats, steps = side.repeats // rows.together, -(-side.depth // side.unit)
        place = [part[:, None, None] for part in rows.places(self.emitter.threads.count)]
        threads = np.arange(self.emitter.threads.count)[:, None, None]
        for divisor, count, _, step in side.groups:
            place[side.free] = place[side.free] + threads // divisor % count * step
        stride = side.stride * rows.together
        place[side.free] = place[side.free] + np.arange(repeats)[None, :, None] * stride
        place[side.k_dim] = place[side.k_dim] + np.arange(steps)[None, None, :] * side.unit
        if any(
            int(part.max()) > side.extent(dim) - (rows.chunk if dim == rows.along else 1)
            for dim, part in enumerate(place)
        ):
            return None
        index: list[Any] = [start.value if isinstance(start, Const) else 0 for start in side.region.start]
        for dim, part in zip(side.dims, place, strict=True):
            index[dim] = index[dim] + part
        offsets = np.broadcast_to(layout.offset(index), (len(threads), repeats, steps))
        return _split_of(offsets, layout.swizzle)

    def _whole_periods(self, dim: int, start: Expr) -> bool:
        """Whether a region's start is a constant, or shifts all offsets by whole periods of the swizzle."""
        if isinstance(start, Const):
            return True
        modes = self.layout.dims[dim].modes
        period = 1 if self.layout.swizzle is None else self.layout.swizzle.period
        return len(modes) == 1 and self.emitter.facts.divisor(start) * modes[0][1] % period == 0


def _split_of(offsets: Any, swizzle: Swizzle | None) -> _Split | None:
    """`offsets` of (thread, repeat, step) as those of the first of both, with constants, or None."""
    base = offsets[:, 0, 0]
    parts: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    for along in (offsets[:, :, 0], offsets[:, 0, :]):
        found = [_constants(base, along[:, k], swizzle) for k in range(along.shape[1])]
        if any(each is None for each in found):
            return None
        pairs = [each for each in found if each is not None]
        parts.append((tuple(x for x, _ in pairs), tuple(y for _, y in pairs)))
    (xor_r, add_r), (xor_k, add_k) = parts
    if any(_by(Var("x"), values) is None for values in (xor_r, add_r, xor_k, add_k)):
        return None
    again = (base[:, None, None] ^ np.array(xor_r)[None, :, None] ^ np.array(xor_k)) + (
        np.array(add_r)[None, :, None] + np.array(add_k)
    )
    return _Split((xor_r, xor_k), (add_r, add_k)) if np.array_equal(again, offsets) else None


def _constants(base: Any, other: Any, swizzle: Swizzle | None) -> tuple[int, int] | None:
    """The numbers x and y with `other == (base ^ x) + y` in all threads.

    x is 0 or has bits alone that a swizzle changes: the distance y costs nothing, since the access holds it.
    """
    masks = [0] if swizzle is None else [0, swizzle.granule - (1 << swizzle.base)]
    for mask in masks:
        xor = int(other[0] ^ base[0]) & mask
        distance = other - (base ^ xor)
        if (distance == distance[0]).all():
            return xor, int(distance[0])
    return None


def _by(variable: Expr, values: tuple[int, ...]) -> Any:
    """`values[variable]` as an expression; None where it is not linear in the variable or a digit of it."""
    if not any(values):
        return Const(0)
    if isinstance(variable, Const):
        return Const(values[variable.value])
    count = len(values)
    if all(value == k * values[1] for k, value in enumerate(values)):
        return variable * values[1]
    for unit in (2, 4, 8, 16):
        if unit < count and all(value == k % unit * values[1] for k, value in enumerate(values)):
            return variable % unit * values[1]
        if unit < count and all(value == k // unit * values[unit] for k, value in enumerate(values)):
            return variable // unit * values[unit]
    return None
