"""Conversions where two uses of a fragment want different layouts.

The statement works on a second fragment in the layout it needs; a copy through shared memory
brings the values over before it (when it reads) and back after it (when it writes). Each
conversion leaves a remark with its price in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any

from ..errors import LayoutError
from ..ir import Buffer, Load, Node, Region, Stmt, Store, rename_buffers, rewrite, whole
from ..ir.names import Names
from ..language.copy import Copy
from ..language.lowered.decisions import Instr
from ..language.memory import AllocFragment, AllocShared
from ..language.reduce import Reduce
from ..language.structure import Parallel
from ..layout import Fragment, SharedLayout
from .context import Context
from .sites import Site, loop_dims, project

NAME = "convert_layouts"


@dataclass(frozen=True)
class Conflict:
    """A fragment that a statement needs in another layout than it has, where `dims` index it."""

    buffer: Buffer
    dims: tuple[int | None, ...] | None
    needed: Fragment
    read: bool
    written: bool


def find_conflicts(
    sites: list[Site],
    reduces: list[Reduce],
    maps: dict[int, Fragment],
    layouts: dict[str, Fragment],
    reduced: Any,
) -> dict[int, list[Conflict]]:
    """For each statement, by `id`, the fragments whose layout does not fit it."""
    conflicts: dict[int, list[Conflict]] = {}
    for site in sites:
        needs: dict[tuple[str, Any], Conflict] = {}
        for use in site.touches:
            needed = project(maps[id(site.node)], use.dims, use.buffer.extents)
            if needed == layouts[use.buffer.name]:
                continue
            key = (use.buffer.name, use.dims)
            before = needs.get(key)
            read = not use.written or _keeps_old(site.node) or (before.read if before else False)
            written = use.written or (before.written if before else False)
            needs[key] = Conflict(use.buffer, use.dims, needed, read, written)
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
            buffer, place = conflict.buffer, stmt.place
            twin = Buffer(self.names.fresh(f"{buffer.name}_as"), buffer.shape, buffer.dtype, "fragment")
            scratch = Buffer(self.names.fresh(f"{buffer.name}_turn"), buffer.shape, buffer.dtype, "shared")
            layout = SharedLayout.rows(buffer.extents, buffer.dtype.per_byte)
            before.append(AllocFragment(twin, layout=conflict.needed, place=place))
            before.append(AllocShared(scratch, layout=layout, place=place))
            twins.append((conflict, twin))
            old = layouts[buffer.name]
            if conflict.read:
                before += self.through(buffer, old, scratch, twin, conflict.needed, stmt)
            if conflict.written:
                after += self.through(twin, conflict.needed, scratch, buffer, old, stmt)
            trips = conflict.read + conflict.written
            self.context.remark(
                NAME, "applied", f"{buffer.name} changes its layout {trips} times around this statement",
                stmt, bytes=2 * trips * buffer.bytes,
            )  # fmt: skip
        return (*before, _use_twins(stmt, twins), *after)

    def through(
        self,
        src: Buffer,
        src_layout: Fragment,
        scratch: Buffer,
        dst: Buffer,
        dst_layout: Fragment,
        node: Node,
    ) -> list[Stmt]:
        widest = max(self.context.machine.vector_bytes)
        return [
            _copy(whole(src), whole(scratch), src_layout, widest, node),
            _copy(whole(scratch), whole(dst), dst_layout, widest, node),
        ]


def _use_twins(stmt: Any, twins: list[tuple[Conflict, Buffer]]) -> Any:
    """The statement with each conflicting use pointed at its twin, told apart by the order of indices."""
    if not isinstance(stmt, Parallel):
        return rename_buffers(stmt, {conflict.buffer.name: twin for conflict, twin in twins})
    names = tuple(v.name for v in stmt.vars)

    def change(access: Any) -> Any:
        if not isinstance(access, (Load, Store)):
            return access
        for conflict, twin in twins:
            if (
                access.buffer == conflict.buffer
                and loop_dims(access.buffer, access.index, names, access) == conflict.dims
            ):
                return access.but(buffer=twin)
        return access

    return rewrite(stmt, change)


def _copy(src: Region, dst: Region, layout: Fragment, widest: int, node: Node) -> Copy:
    """A copy in which each thread moves what it holds, in accesses of at most `widest` bytes.

    Dimensions of extent 1 are no part of a map.
    """
    kept = [k for k, extent in enumerate(layout.extents) if extent != 1] or [0]
    place = {dim: k for k, dim in enumerate(kept)}
    extents = tuple(layout.extents[k] for k in kept)
    thread = tuple((c, place.get(d, -1), s if d in place else 0) for c, d, s in layout.thread)
    value = tuple((c, place[d], s) for c, d, s in layout.value if d in place)
    box = Fragment(extents, thread, value)
    dtype = src.buffer.dtype
    width = gcd(box.contiguous_values(len(extents) - 1), max(1, dtype.elements_in(widest)), extents[-1])
    return Copy(src, dst, by=Instr("ld.st", bytes=max(1, width * dtype.bits // 8)), map=box, place=node.place)
