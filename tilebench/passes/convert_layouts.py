"""Conversions where two uses of a fragment want different layouts.

The statement works on a second fragment in the layout it needs; a copy through shared memory
brings the values over before it (when it reads) and back after it (when it writes). Each
conversion leaves a remark with its price in bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import gcd
from typing import Any

from ..errors import LayoutError
from ..ir import Buffer, Load, Node, Region, Stmt, Store, effects_of, rename_buffers, rewrite, whole
from ..ir.names import Names
from ..language.copy import Copy
from ..language.gemm import Gemm
from ..language.lowered.decisions import Instr
from ..language.memory import AllocFragment, AllocShared
from ..language.reduce import Reduce
from ..language.structure import Parallel
from ..layout import Fragment, SharedLayout
from .analysis.sites import Site, loop_dims, project
from .context import Context
from .twins import at_twins, own_bytes

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
    """The operands in registers, by how a gemm wants them, that lie otherwise because the kernel says so."""
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
        if needed == layout:
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
        before: list[Stmt] = []
        after: list[Stmt] = []
        twins: list[tuple[Conflict, Buffer]] = []
        for conflict in conflicts:
            twin, there, back = self.convert(conflict, layouts[conflict.buffer.name], stmt)
            twins.append((conflict, twin))
            before += there
            after += back
        if isinstance(stmt, Parallel) and any(conflict.in_memory for conflict, _ in twins):
            stmt = stmt.but(vector=1)  # what was made in memory has not been asked for its neighbours
        return (*before, _use_twins(stmt, twins), *after)

    def convert(self, conflict: Conflict, old: Fragment, stmt: Stmt) -> tuple[Buffer, list[Stmt], list[Stmt]]:
        """What a statement works on in a fragment's place, and what comes before and after it."""
        buffer, needed, place = conflict.buffer, conflict.needed, stmt.place
        layout, name = SharedLayout.rows(buffer.extents), self.names.fresh(f"{buffer.name}_turn")
        scratch = Buffer(name, buffer.shape, own_bytes(buffer.dtype), "shared")
        before: list[Stmt] = [AllocShared(scratch, layout=layout, place=place)]
        trips = conflict.read + conflict.written
        if conflict.in_memory:
            self.remark(f"{buffer.name} goes through shared memory for this loop", stmt, trips * buffer.bytes)
            before.append(self.copy(buffer, scratch, old, stmt))
            return scratch, before, [self.copy(scratch, buffer, old, stmt)]
        twin = Buffer(self.names.fresh(f"{buffer.name}_as"), buffer.shape, buffer.dtype, "fragment")
        before.insert(0, AllocFragment(twin, layout=needed, place=place))
        if conflict.read:
            before += [self.copy(buffer, scratch, old, stmt), self.copy(scratch, twin, needed, stmt)]
        after: list[Stmt] = []
        if conflict.written:
            after += [self.copy(twin, scratch, needed, stmt), self.copy(scratch, buffer, old, stmt)]
        message = f"{buffer.name} changes its layout {trips} times around this statement"
        self.remark(message, stmt, 2 * trips * buffer.bytes)
        return twin, before, after

    def remark(self, message: str, stmt: Stmt, moved: int) -> None:
        self.context.remark(NAME, "applied", message, stmt, bytes=moved)

    def copy(self, src: Buffer, dst: Buffer, layout: Fragment, node: Node) -> Stmt:
        return _copy(whole(src), whole(dst), layout, max(self.context.machine.vector_bytes), node)


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
    width = gcd(box.contiguous_values(len(extents) - 1), most, extents[-1])
    return Copy(src, dst, by=Instr("ld.st", bytes=max(1, width * dtype.bits // 8)), map=box, place=node.place)
