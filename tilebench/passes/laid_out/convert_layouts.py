"""Conversions where two uses of a fragment want different layouts.

The statement works on a second fragment in the layout it needs; `T.convert_layout` brings the values over
before it (when it reads) and back after it (when it writes), by the cheapest of the ways that there are.
Where a copy narrows the elements they change places when they are narrow. Each conversion leaves a remark
with its price and that of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import gcd
from typing import Any

from ...errors import LayoutError
from ...ir import Buffer, DType, Load, Node, Region, Stmt, Store, effects_of, rename_buffers, rewrite, whole
from ...ir.dtypes import bytes_of
from ...ir.names import Names
from ...language.copy import Copy
from ...language.gemm import Gemm
from ...language.lowered.decisions import Instr
from ...language.lowered.layouts import ConvertLayout
from ...language.memory import AllocFragment, AllocShared
from ...language.reduce import Reduce
from ...language.structure import Parallel
from ...layout import Fragment, SharedLayout
from ..analysis.conversions import register_bits, ways
from ..analysis.sites import Site, loop_dims, project
from ..context import Context
from ..threads.registers import value_strides
from .twins import at_twins

NAME = "convert_layouts"


@dataclass(frozen=True)
class Conflict:
    """A fragment that a statement needs in another layout than it has, where `dims` index it.

    `in_memory`: the statement needs it in shared memory, where one thread's value is everybody's.
    """

    buffer: Buffer
    dims: tuple[int | None, ...] | None
    needed: Fragment
    read: bool
    written: bool
    in_memory: bool = False


def find_conflicts(
    sites: list[Site],
    reduces: list[Reduce],
    maps: dict[int, Fragment],
    layouts: dict[str, Fragment],
    reduced: Any,
    alone: Callable[[Site], bool],
) -> dict[int, list[Conflict]]:
    """For each statement, by `id`, the fragments whose layout does not fit it.

    `alone` says of which sites one thread does an element, whoever else has it.
    """
    conflicts: dict[int, list[Conflict]] = {}
    for site in sites:
        needs = _needs(site, maps[id(site.node)], layouts, alone(site))
        if needs:
            _one_order_where_written(site, needs)
            conflicts[id(site.node)] = list(needs.values())
    for reduction in reduces:
        needed = reduced(
            layouts[reduction.src.buffer.name],
            reduction.dim % reduction.src.buffer.rank,
            reduction.dst.buffer,
        )
        if needed != layouts[reduction.dst.buffer.name]:
            conflicts[id(reduction)] = [
                Conflict(reduction.dst.buffer, None, needed, not reduction.clear, True)
            ]
    return conflicts


def find_unfit(gemm: Gemm, wanted: Mapping[str, Fragment], layouts: Mapping[str, Fragment]) -> list[Conflict]:
    """The operands in registers, by how a gemm wants them, that lie otherwise: as the kernel says, or as the
    product before it has them."""
    unfit: list[Conflict] = []
    for effect in effects_of(gemm):
        needed = wanted.get(effect.buffer.name)
        if needed is not None and needed != layouts[effect.buffer.name]:
            unfit.append(Conflict(effect.buffer, None, needed, effect.reads, effect.writes))
    return unfit


def _needs(
    site: Site, box: Fragment, layouts: dict[str, Fragment], alone: bool
) -> dict[tuple[str, Any], Conflict]:
    """The fragments that do not lie as a site needs them, by name and how they are indexed."""
    needs: dict[tuple[str, Any], Conflict] = {}
    stored = {use.buffer.name for use in site.touches if use.written and alone}
    for use in site.touches:
        layout = layouts[use.buffer.name]
        if use.buffer.name in stored:
            needs[use.buffer.name, None] = Conflict(use.buffer, None, layout, True, True, in_memory=True)
            continue
        needed = project(box, use.dims, use.buffer.extents)
        # Where each thread has what it needs in another order, its code names the registers.
        if needed == layout or value_strides(box, layout, use.dims) is not None:
            continue
        key = (use.buffer.name, use.dims)
        before = needs.get(key)
        read = not use.written or _keeps_old(site.node) or (before.read if before else False)
        written = use.written or (before.written if before else False)
        needs[key] = Conflict(use.buffer, use.dims, needed, read, written)
    return needs


def _one_order_where_written(site: Site, needs: dict[tuple[str, Any], Conflict]) -> None:
    """A fragment that a loop writes is used in one order only: copies of it would part otherwise."""
    for name, _ in needs:
        orders = {each.dims for each in site.touches if each.buffer.name == name}
        if len(orders) > 1 and any(each.written for each in site.touches if each.buffer.name == name):
            raise LayoutError(
                "the fragment {name} is written here and used in two orders of its indices",
                at=site.node.place,
                name=name,
                hint="copy it to another fragment first, and read that one in the other order",
            )


def _keeps_old(node: Stmt) -> bool:
    """A loop may store to some elements only, so what it writes must hold the old values first."""
    return not isinstance(node, Copy)


class Converter:
    """Surrounds statements with conversions; hands out names that are free."""

    def __init__(self, names: Names, context: Context) -> None:
        self.names = names
        self.context = context

    def surround(
        self, stmt: Stmt, conflicts: list[Conflict], layouts: dict[str, Fragment]
    ) -> tuple[Stmt, ...]:
        """The statement on fragments of the layouts it needs, with the conversions around it."""
        if isinstance(stmt, Copy) and len(conflicts) == 1 and not conflicts[0].in_memory:
            return self.moved(stmt, conflicts[0], layouts)
        before: list[Stmt] = []
        after: list[Stmt] = []
        twins: list[tuple[Conflict, Buffer]] = []
        for conflict in conflicts:
            old = layouts[conflict.buffer.name]
            change = self.aside if conflict.in_memory else self.convert
            twin, there, back = change(conflict, old, stmt)
            twins.append((conflict, twin))
            before += there
            after += back
        if isinstance(stmt, Parallel) and any(conflict.in_memory for conflict, _ in twins):
            stmt = stmt.but(vector=1)  # what was made in memory has not been asked for its neighbours
        return (*before, _use_twins(stmt, twins), *after)

    def aside(self, conflict: Conflict, old: Fragment, stmt: Stmt) -> tuple[Buffer, list[Stmt], list[Stmt]]:
        """A tile of shared memory in a fragment's place, and what comes before and after the statement."""
        buffer = conflict.buffer
        name = self.names.fresh(f"{buffer.name}_turn")
        scratch = Buffer(name, buffer.shape, bytes_of(buffer.dtype), "shared")
        moved = 2 * buffer.bytes
        self.remark(f"{buffer.name} goes through shared memory for this loop", stmt, bytes=moved)
        layout = SharedLayout.rows(buffer.extents)
        before = [
            AllocShared(scratch, layout=layout, place=stmt.place),
            self.copy(buffer, scratch, old, stmt),
        ]
        return scratch, before, [self.copy(scratch, buffer, old, stmt)]

    def convert(self, conflict: Conflict, old: Fragment, stmt: Stmt) -> tuple[Buffer, list[Stmt], list[Stmt]]:
        """The fragment that a statement works on in another's place, and what comes before and after it."""
        buffer = conflict.buffer
        twin, allocation = self.fragment(f"{buffer.name}_as", buffer, buffer.dtype, conflict.needed, stmt)
        before: list[Stmt] = [allocation]
        after: list[Stmt] = []
        if conflict.read:
            before.append(self.change(buffer, twin, old, conflict.needed, stmt))
        if conflict.written:
            after.append(self.change(twin, buffer, conflict.needed, old, stmt))
        return twin, before, after

    def moved(self, copy: Copy, conflict: Conflict, layouts: dict[str, Fragment]) -> tuple[Stmt, ...]:
        """A copy from or to a fragment: its elements change places in the narrower of the two dtypes."""
        buffer, needed, old = conflict.buffer, conflict.needed, layouts[conflict.buffer.name]
        own, other = ("dst", copy.src) if conflict.written else ("src", copy.dst)
        dtype = min(buffer.dtype, other.buffer.dtype, key=register_bits)
        in_place = other.buffer.scope == "fragment" and _same_box(copy)
        there: list[Stmt] = []
        near, far = buffer, other.buffer
        if register_bits(dtype) < register_bits(buffer.dtype):
            near, allocation = self.fragment(f"{buffer.name}_narrow", buffer, dtype, old, copy)
            there.append(allocation)
        if not in_place or other.buffer.dtype != dtype:
            far, allocation = self.fragment(f"{buffer.name}_as", buffer, dtype, needed, copy)
            there.append(allocation)
        # From the conflict's side to the other, or back.
        steps: list[Stmt] = []
        if near is not buffer:
            steps.append(self.between(buffer, near, old, copy, conflict.written))
        steps.append(
            self.change(*((far, near, needed, old) if conflict.written else (near, far, old, needed)), copy)
        )
        if far is not other.buffer:
            steps.append(copy.but(**{own: whole(far)}))
        return (*there, *(reversed(steps) if conflict.written else steps))

    def between(self, own: Buffer, narrow: Buffer, layout: Fragment, node: Node, written: bool) -> Stmt:
        """A copy between two fragments of one layout."""
        return self.copy(narrow, own, layout, node) if written else self.copy(own, narrow, layout, node)

    def fragment(
        self, name: str, like: Buffer, dtype: DType, layout: Fragment, node: Node
    ) -> tuple[Buffer, Stmt]:
        """Another fragment for a buffer's tile, and its allocation."""
        buffer = Buffer(self.names.fresh(name), like.shape, dtype, "fragment")
        return buffer, AllocFragment(buffer, layout=layout, place=node.place)

    def change(self, src: Buffer, dst: Buffer, old: Fragment, new: Fragment, node: Node) -> Stmt:
        """The conversion by the cheapest way, with a remark that has the price of all."""
        found = ways(old, new, src.dtype, self.context.machine)
        if not found:
            raise LayoutError(
                "{name} has to change its layout for this statement, which {machine} has no instruction for",
                at=node.place, name=src.name, machine=self.context.machine.name,
            )  # fmt: skip
        best = found[0]
        costs = {f"cycles_{way.by.name}": round(way.cycles, 1) for way in found}
        message = f"{src.name} changes its layout for this statement by {best.by.name}: {best.words}"
        self.remark(message, node, bytes=best.bytes, conflicts=round(best.conflicts, 2), **costs)
        return ConvertLayout(
            whole(src), whole(dst), by=best.by, through=best.through, price=best.words, place=node.place
        )

    def remark(self, message: str, node: Node, **values: float) -> None:
        self.context.remark(NAME, "applied", message, node, **values)

    def copy(self, src: Buffer, dst: Buffer, layout: Fragment, node: Node) -> Stmt:
        return _copy(whole(src), whole(dst), layout, max(self.context.machine.vector_bytes), node)


def _same_box(copy: Copy) -> bool:
    """Whether both sides are whole tiles of the same extents."""
    return copy.src.is_whole and copy.dst.is_whole and copy.src.buffer.shape == copy.dst.buffer.shape


def _use_twins(stmt: Any, twins: list[tuple[Conflict, Buffer]]) -> Any:
    """The statement with each conflicting use pointed at its twin, told apart by the order of indices."""
    if not isinstance(stmt, Parallel):
        return rename_buffers(stmt, {conflict.buffer.name: twin for conflict, twin in twins})
    names = tuple(v.name for v in stmt.vars)
    in_memory = {conflict.buffer.name: twin for conflict, twin in twins if conflict.in_memory}

    def change(access: Any) -> Any:
        if not isinstance(access, (Load, Store)):
            return access
        for conflict, twin in twins:
            if (
                access.buffer == conflict.buffer
                and not conflict.in_memory
                and loop_dims(access.buffer, access.index, names, access) == conflict.dims
            ):
                return access.but(buffer=twin)
        return access

    return at_twins(rewrite(stmt, change), in_memory)


def _copy(src: Region, dst: Region, layout: Fragment, widest: int, node: Node) -> Copy:
    """A copy in which each thread moves what it holds, in accesses of at most `widest` bytes.

    Dimensions of extent 1 are no part of a map; behind such a one elements lie apart.
    """
    kept = [k for k, extent in enumerate(layout.extents) if extent != 1] or [0]
    place = {dim: k for k, dim in enumerate(kept)}
    extents = tuple(layout.extents[k] for k in kept)
    thread = tuple((c, place.get(d, -1), s if d in place else 0) for c, d, s in layout.thread)
    value = tuple((c, place[d], s) for c, d, s in layout.value if d in place)
    box = Fragment(extents, thread, value)
    dtype = min(src.buffer.dtype, dst.buffer.dtype, key=lambda each: each.bits)
    most = max(1, dtype.elements_in(widest)) if kept[-1] == len(layout.extents) - 1 else 1
    in_memory = any(side.buffer.scope != "fragment" for side in (src, dst))
    width = gcd(box.contiguous_values(len(extents) - 1), most, extents[-1]) if in_memory else 1
    return Copy(src, dst, by=Instr("ld.st", bytes=max(1, width * dtype.bits // 8)), map=box, place=node.place)
