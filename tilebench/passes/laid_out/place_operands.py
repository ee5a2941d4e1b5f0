"""Shared tiles that an instruction reads by itself get a layout that it can read, before others are chosen.

`A_s = T.alloc_shared((128, 64), T.float16)`, read by a gemm whose row names swizzled panels for it -> the
same with `layout=T.SharedLayout(...)`: panels of the widest atom, padded to the rows and columns that its
instructions cover. Copies that fill the tile then see a layout that is given. A tile that cannot be read so,
by its own layout, its extents or the threads that there are, is refused at the product.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np

from ...errors import LayoutError, Place, ScheduleError
from ...ir import Buffer, Function, Region, const_of, map_bodies
from ...ir.stmt import statements
from ...language.gemm import Gemm
from ...language.memory import AllocShared
from ...layout import Fragment, SharedLayout, atom_layout
from ...layout.tiling import placed_atoms
from ...machine import Instruction, OperandForm
from ..analysis.thread_groups import Threads, threads_by_statement
from ..context import Context
from .choose_instructions import row_of
from .layout_seeds import gemm_seeds
from .warp_policies import warp_policies

NAME = "place_operands"
# What a row of a tile may grow by for a wider atom.
_MOST_PADDING = 1.25


@dataclass(frozen=True)
class _Demand:
    """What one product asks of one tile.

    `reach` is how far it reads along `other`, the dimension that is not k, in blocks that start at multiples
    of `unit` (0: in one block).
    """

    gemm: Gemm
    row: Instruction
    form: OperandForm
    region: Region
    other: int
    reach: int
    unit: int

    @property
    def along_k(self) -> bool:
        """Whether neighbours of a row of the tile are neighbours along k."""
        return self.other != self.region.buffer.rank - 1


def place_operands(function: Function, context: Context) -> Function:
    """The function whose shared tiles lie as the instructions that read them by themselves ask."""
    demands = _demands(function, context)
    if not demands:
        return function

    def step(node: Any) -> Any:
        if isinstance(node, AllocShared) and node.buffer.name in demands:
            return node.but(layout=_layout_for(node, demands[node.buffer.name], context), swizzle=None)
        return map_bodies(node, step)

    return step(function)


def unreadable(function: Function, context: Context) -> list[tuple[Gemm, str]]:
    """The products whose instruction cannot read its tiles, with why: what `place_operands` would refuse."""
    found: list[tuple[Gemm, str]] = []
    demands = _demands(function, context, found)
    silent = Context(context.machine)
    for node in statements(function.body):
        if isinstance(node, AllocShared) and (own := demands.get(node.buffer.name)):
            try:
                _layout_for(node, own, silent)
            except (ScheduleError, LayoutError) as error:
                found += [(demand.gemm, error.message) for demand in own]
    return found


def _demands(
    function: Function, context: Context, refused: list[tuple[Gemm, str]] | None = None
) -> dict[str, list[_Demand]]:
    """What products ask of each tile. Raises at the first that its instruction cannot do, or adds it to
    `refused`."""
    gemms = [
        node
        for node in statements(function.body)
        if isinstance(node, Gemm) and any(f.panels for f in row_of(node, context.machine).operands)
    ]
    if not gemms:
        return {}
    threads = threads_by_statement(function, context.machine)
    silent = Context(context.machine)  # the inference tells what it decides
    every = [node for node in statements(function.body) if isinstance(node, Gemm)]
    policies = warp_policies(every, threads, silent)
    found: dict[str, list[_Demand]] = {}
    for gemm in gemms:
        try:
            for demand in _of_product(gemm, policies[id(gemm)], threads[id(gemm)], silent):
                found.setdefault(demand.region.buffer.name, []).append(demand)
        except (ScheduleError, LayoutError) as error:
            if refused is None:
                raise
            refused.append((gemm, error.message))
    return found


def _of_product(gemm: Gemm, policy: str, threads: Threads, silent: Context) -> list[_Demand]:
    """What one product asks of its tiles. Raises where its instruction cannot do it."""
    row = row_of(gemm, silent.machine)
    _check(gemm, row, threads)
    tile = gemm_seeds(gemm, policy, threads, silent)[gemm.c.buffer.name]
    return [
        _demand(gemm, row, field, tile)
        for field in ("a", "b")
        if getattr(gemm, field).buffer.scope == "shared" and row.operand(field).panels
    ]


def _check(gemm: Gemm, row: Instruction, threads: Threads) -> None:
    """Refuse a product that an instruction of whole groups cannot do, whatever its tiles lie like."""
    if threads.count % row.group or threads.first % row.group:
        raise ScheduleError(
            "{name} works on {group} threads at a time, and this product has threads {first} to {last}",
            at=gemm.place, name=row.name, group=row.group, first=threads.first,
            last=threads.first + threads.count - 1, expected="a multiple of {group} threads, from one on",
            hint="threads={some} in T.Kernel or the schedule, or leave {name} out", some=row.group * 2,
        )  # fmt: skip
    depth, unit = gemm.mnk[2], row.shape[2]
    if depth % unit:
        raise ScheduleError(
            "{name} sums {unit} terms at a time, and the tiles of this product have k={depth}", at=gemm.place,
            name=row.name, unit=unit, depth=depth, expected="a k that {unit} divides",
        )  # fmt: skip


def _demand(gemm: Gemm, row: Instruction, field: str, tile: Fragment) -> _Demand:
    region: Region = getattr(gemm, field)
    free = 0 if field == "a" else 1
    turned = gemm.transpose_A if field == "a" else gemm.transpose_B
    last = region.buffer.rank - 1
    atom = row.operand("c").fragment
    placed = None if atom is None else placed_atoms(tile, atom)
    blocks = placed.counts[free] if placed is not None else 1
    most = row.most[free] if row.most else 1
    together = max(c for c in range(1, most + 1) if blocks % c == 0)
    own = [d.step for d in tile.thread_digits if d.divisor >= row.group and d.dim == free and d.modulus > 1]
    starts = [*own, *([together * row.shape[free]] if together < blocks else [])]
    other = last - 1 if (free == 0) != turned else last
    form = row.operand(field)
    return _Demand(gemm, row, form, region, other, tile.padded[free], gcd(*starts) if starts else 0)


def _layout_for(alloc: AllocShared, demands: Sequence[_Demand], context: Context) -> SharedLayout:
    """The layout of a tile that all products can read. Raises `ScheduleError` at the first that cannot."""
    candidates = _candidates(alloc.buffer, demands)
    first = demands[0]
    if alloc.layout is not None:
        if not any(_same(alloc.layout, candidate, alloc.buffer) for candidate in candidates):
            raise ScheduleError(
                "{name} cannot read {tile} where its layout has it", at=first.gemm.place, name=first.row.name,
                tile=alloc.buffer.name, layout=alloc.layout, wanted=candidates[0],
                expected="{wanted}", found="{layout}", also=_also(alloc.place),
                hint="leave the layout out, or use another instruction",
            )  # fmt: skip
        return alloc.layout
    if alloc.swizzle is False:
        raise ScheduleError(
            "{name} reads {tile} in swizzled panels, and swizzle=False says that it is none",
            at=first.gemm.place, name=first.row.name, tile=alloc.buffer.name, also=_also(alloc.place),
            hint="leave swizzle= out, or use another instruction",
        )  # fmt: skip
    layout = candidates[0]
    extra = layout.cosize - alloc.buffer.size
    panels = (layout.swizzle.granule if layout.swizzle else 0) * alloc.buffer.dtype.bits // 8
    context.remark(
        NAME, "applied",
        f"{alloc.buffer.name} lies in panels of {panels} bytes, as {first.row.name} reads it", alloc,
        panel_bytes=panels, padding_bytes=max(0, extra) * alloc.buffer.dtype.bits // 8,
    )  # fmt: skip
    return layout


def _also(place: Place | None) -> list[tuple[str, Place | None]]:
    return [("it is allocated here", place)]


def _candidates(buffer: Buffer, demands: Sequence[_Demand]) -> list[SharedLayout]:
    """The layouts that all products can read, the best first. Raises `ScheduleError` where there is none."""
    bits, shape = buffer.dtype.bits, list(buffer.extents)
    for demand in demands:
        first = const_of(demand.region.start[demand.other]) or 0
        shape[demand.other] = max(shape[demand.other], first + demand.reach)
        if not demand.along_k and not demand.form.either_way:
            raise _turned(demand, bits)
    for demand in demands:
        panels = _fitting(demand, shape[-1] * bits // 8, bits)
        if not panels:
            raise ScheduleError(
                "{name} reads {tile} in panels of {least} columns at least, and parts of it are {unit} wide",
                at=demand.gemm.place, name=demand.row.name, tile=buffer.name, unit=demand.unit,
                least=min(demand.form.panels) * 8 // bits,
                hint="make each warp group's part a multiple of {least} wide, or split along rows",
            )  # fmt: skip
    found: list[SharedLayout] = []
    for atom in _fitting(demands[0], shape[-1] * bits // 8, bits):
        if all(atom in _fitting(demand, shape[-1] * bits // 8, bits) for demand in demands):
            wide = max(shape[-1], atom * 8 // bits)
            with suppress(LayoutError):
                found.append(atom_layout((*shape[:-1], wide), bits, atom))
    if not found:
        first = demands[0]
        raise ScheduleError(
            "{name} reads panels of rows, and {tile} has none", at=first.gemm.place, name=first.row.name,
            tile=buffer.name, found="extents {extents}", extents=buffer.extents,
        )  # fmt: skip
    return found


def _turned(demand: _Demand, bits: int) -> ScheduleError:
    side = "A as (m, k)" if demand.form.field == "a" else "B as (n, k), with transpose_B=True"
    return ScheduleError(
        "{name} reads operands of {bits} bits along k, and rows of {tile} run across it",
        at=demand.gemm.place, name=demand.row.name, bits=bits, tile=demand.region.buffer.name,
        hint="give {side}", side=side,
    )  # fmt: skip


def _fitting(demand: _Demand, row_bytes: int, bits: int) -> list[int]:
    """The atoms that can be read, those that pad a row little first, the widest of them first."""
    atoms = [
        atom
        for atom in demand.form.panels
        if demand.along_k or demand.unit % (atom * 8 // bits) == 0
    ]  # fmt: skip
    lean = [atom for atom in atoms if -(-row_bytes // atom) * atom <= row_bytes * _MOST_PADDING]
    return [*lean, *(atom for atom in reversed(atoms) if atom not in lean)]


def _same(given: SharedLayout, wanted: SharedLayout, buffer: Buffer) -> bool:
    """Whether two layouts put every element of what is read at one place."""
    if len(given.extents) != len(wanted.extents):
        return False
    reach = [max(a, b) for a, b in zip(buffer.extents, wanted.extents, strict=True)]
    if any(a < b for a, b in zip(given.extents, reach, strict=True)):
        return False
    index = np.indices(tuple(reach), dtype=np.int64, sparse=True)
    return bool(np.array_equal(given.offset(index), wanted.offset(index)))
