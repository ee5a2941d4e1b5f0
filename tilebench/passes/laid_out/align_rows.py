"""Rows that vectors do not divide: loops over them begin where memory is aligned, not where the row does.

A row of 8191 float16 starts anywhere, and no vector of it is aligned. The loop over it gets one vector
more and a shift: `for i, j in T.Parallel(1, 8191): C[bx + i, j] = ...` becomes

    for i, at in T.Parallel(1, 8200):
        if at - bx * 7 % 8 >= 0 and at - bx * 7 % 8 < 8191:
            C[bx + i, at - bx * 7 % 8] = ...

where every eighth `at` is a multiple of 16 bytes. Only the first and last vector of a row are parts. A
fragment that such a loop fills has the shift too, and so have all loops over it; what is reduced along the
row is neutral outside of it. Where a fragment is used in another way its loops stay as they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from ...ir import (
    Arith,
    Buffer,
    Const,
    Expr,
    Function,
    Load,
    LoopStmt,
    Region,
    Stmt,
    Store,
    Var,
    While,
    children,
    map_children,
    walk,
    whole,
)
from ...ir.arith import Linear, linear
from ...ir.expr_walks import replaced
from ...ir.names import Names
from ...language.copy import Copy, Fill
from ...language.memory import AllocFragment
from ...language.reduce import Reduce
from ...language.scopes import entered, entry_facts
from ...language.structure import KernelLaunch, Parallel
from ..analysis.sites import FragmentUse, Site, SiteAccess, is_narrow, row_offset, sites_of
from ..analysis.thread_groups import threads_by_statement
from ..analysis.zero_places import zero_places
from ..context import Context
from .shift_rows import Shift, restored_reduction, shifted_reduction, shifted_site

NAME = "align_rows"
# Rows of fewer vectors are not worth one more.
LEAST_VECTORS = 8
EDGES_APART = 3
# Bytes of shared memory in which the rows of a fragment go back to their places.
MOST_RESTORED = 48 << 10
ZERO_IS_NEUTRAL = ("sum", "bitor", "bitxor")


def align_rows(function: Function, context: Context) -> Function:
    """The function with loops over rows that begin at multiples of the widest access."""
    work = _Rows(function, context)
    for site in work.sites:
        work.start(site)
    return work.write() if work.shifts else function


@dataclass
class _Group:
    """Statements and fragments whose rows are shifted alike; `shifts` by statement, `rows` by fragment."""

    shifts: dict[int, Expr] = field(default_factory=dict[int, Expr])
    rows: dict[str, Expr] = field(default_factory=dict[str, Expr])
    reductions: dict[int, Expr] = field(default_factory=dict[int, Expr])
    # Reductions along another dimension, and how far in loops they stand: there rows go back to their places.
    across: dict[int, Expr] = field(default_factory=dict[int, Expr])


class _Rows:
    def __init__(self, function: Function, context: Context) -> None:
        self.function, self.context = function, context
        self.sites = sites_of(function)
        self.threads = threads_by_statement(function, context.machine)
        self.divisors = entry_facts(function).divisors
        self.users: dict[str, list[tuple[Site, FragmentUse]]] = {}
        for site in self.sites:
            for touch in site.touches:
                self.users.setdefault(touch.buffer.name, []).append((site, touch))
        nodes: list[Any] = list(walk(function))
        self.reductions = [node for node in nodes if isinstance(node, Reduce)]
        self.blocked = _used_otherwise(nodes, self.sites, self.reductions)
        # Names that mean the same wherever a statement of the kernel stands.
        launch = next(node for node in nodes if isinstance(node, KernelLaunch))
        self.everywhere = {var.name for var in (*launch.vars, *function.dimensions)}
        self.facts = entered(launch, entry_facts(function))
        self.depths = _depths(launch)
        # What was found: statements by identity, fragments by name.
        self.shifts: dict[int, Shift] = {}
        self.rows: dict[str, Shift] = {}

    # -- search
    def start(self, site: Site) -> None:
        """Shift what belongs to a site, where an access of it needs that and all of it can be."""
        if id(site.node) in self.shifts or not _may_shift(site):
            return
        lead = next((access for access in _by_weight(site) if self.is_narrow(site, access)), None)
        if lead is None:
            return
        vector = self.vector(lead)
        group = _Group()
        offset = row_offset(lead.buffer, [replaced(part, _still(site)) for part in lead.index], site.vars[-1])
        shift = _shift_of(offset, vector)
        if site.extents[-1] < LEAST_VECTORS * vector or not self.join(group, site, shift):
            return
        if not self.pays(group, site.extents[-1] // vector):
            return
        length = self.length(site, lead)
        vectors = _rounded(-(-(length + vector - 1) // vector), site, self.threads[id(site.node)].count)
        for key, expr in {**group.shifts, **group.reductions, **group.across}.items():
            self.shifts[key] = Shift(expr, length, vector * vectors)
        for name, expr in group.rows.items():
            self.rows[name] = Shift(expr, length, vector * vectors)
        self.context.remark(
            NAME, "applied",
            f"rows of {site.extents[-1]} start anywhere: vectors from a multiple of {vector} elements of"
            f" {lead.buffer.name}", site.node, elements=site.extents[-1], places=vector * vectors,
        )  # fmt: skip

    def length(self, site: Site, lead: SiteAccess) -> int:
        """The elements of a row. Those that a loop never stores, since its array ends before, are none."""
        extent, bound = site.extents[-1], lead.buffer.shape[-1]
        if site.touches or sum(access.written for access in site.accesses) != 1 or not lead.written:
            return extent
        first, _ = self.facts.bounds(linear(lead.index[-1]).without(Var(site.vars[-1])).expr())
        return min(extent, bound - first) if isinstance(bound, int) and 0 <= first < bound else extent

    def pays(self, group: _Group, vectors: int) -> bool:
        """Whether rows go back to their places less often than they are read: outside of a loop of that.

        And whether most warps have no edge of a row: else a load from any address costs less.
        """
        if group.across and vectors < EDGES_APART * self.context.machine.warp:
            return False
        depth = max((self.depths.get(key, 0) for key in group.shifts), default=0)
        return all(self.depths.get(key, 0) < depth for key in group.across)

    def vector(self, access: SiteAccess) -> int:
        return max(1, access.buffer.dtype.elements_in(max(self.context.machine.vector_bytes)))

    def is_narrow(self, site: Site, access: SiteAccess) -> bool:
        """Whether an access goes along the rows in steps of few bytes, of an array that starts aligned."""
        buffer, most = access.buffer, max(self.context.machine.vector_bytes)
        known = all(isinstance(stride, int) for stride in buffer.element_strides)
        return buffer.align >= most and known and is_narrow(access, site.vars[-1], most, self.divisors)

    def join(self, group: _Group, site: Site, shift: Expr) -> bool:
        """Take a site with this shift into the group, and all that has to be shifted with it."""
        known = group.shifts.get(id(site.node))
        if known is not None:
            return _same(known, shift)
        if not _may_shift(site) or not self.is_known(shift, site):
            return False
        group.shifts[id(site.node)] = shift
        last = len(site.extents) - 1
        for touch in site.touches:
            if last not in touch.dims:
                continue
            if touch.dims[-1] != last or not self.join_fragment(group, site, touch, shift):
                return False
        return True

    def is_known(self, shift: Expr, site: Site) -> bool:
        """Whether what a shift names has one value for all that is done with a row."""
        names = {node.name for node in walk(shift) if isinstance(node, Var)}
        # Around a loop that fills no fragment any name is: what it did is not met again.
        here = {*site.vars[:-1], *(() if site.touches else names - {site.vars[-1]})}
        return names <= self.everywhere | here and not any(isinstance(node, Load) for node in walk(shift))

    def join_fragment(self, group: _Group, site: Site, touch: FragmentUse, shift: Expr) -> bool:
        """The same for a fragment whose last dimension is the site's."""
        name = touch.buffer.name
        places = {site.vars[dim]: Var(_row(k)) for k, dim in enumerate(touch.dims[:-1]) if dim is not None}
        rows = replaced(shift, places)
        if any(isinstance(node, Var) and node.name in site.vars for node in walk(rows)):
            return False  # it differs along a dimension that the fragment has not
        known = group.rows.get(name)
        if known is not None:
            return _same(known, rows)
        if name in self.blocked or name in self.rows:
            return False
        group.rows[name] = rows
        for reduction in self.reductions:
            if reduction.dst.buffer.name == name:
                return False
            if reduction.src.buffer.name == name:
                along = reduction.dim % touch.buffer.rank == touch.buffer.rank - 1
                if not along and touch.buffer.bytes > MOST_RESTORED:
                    return False
                (group.reductions if along else group.across)[id(reduction)] = rows
        for user, use in self.users[name]:
            if not use.dims or use.dims[-1] != len(user.extents) - 1:
                return False
            own = {
                _row(k): Const(0) if dim is None or user.extents[dim] == 1 else Var(user.vars[dim])
                for k, dim in enumerate(use.dims[:-1])
            }
            if not self.join(group, user, replaced(rows, own)):
                return False
        return True

    # -- writing
    def write(self) -> Function:
        names = Names(self.function)
        longer = {
            name: _longer(self.users[name][0][1].buffer, shift.extent) for name, shift in self.rows.items()
        }

        zero = zero_places(self.sites, self.rows)

        def step(node: Any) -> Any:
            if isinstance(node, AllocFragment) and node.buffer.name in longer:
                return node.but(buffer=longer[node.buffer.name])
            shift = self.shifts.get(id(node))
            if shift is not None and isinstance(node, Reduce):
                if node.dim % node.src.buffer.rank != node.src.buffer.rank - 1:
                    return restored_reduction(node, shift, _own_rows(node.src.buffer), longer, names)
                if node.kind in ZERO_IS_NEUTRAL and node.src.buffer.name in zero:
                    return node.but(src=whole(longer[node.src.buffer.name]))
                return shifted_reduction(node, shift, _own_rows(node.src.buffer), longer, names)
            if shift is not None and isinstance(node, (Parallel, Copy, Fill)):
                return shifted_site(node, shift, longer, names)
            return map_children(node, step) if isinstance(node, Stmt) else node

        return step(self.function)


def _depths(node: Any, depth: int = 0) -> dict[int, int]:
    """How many loops stand around each statement, by identity."""
    found: dict[int, int] = {}
    for part in children(node):
        if isinstance(part, Stmt):
            found[id(part)] = depth
            inner = isinstance(part, (LoopStmt, While)) and not isinstance(part, Parallel)
            found |= _depths(part, depth + inner)
    return found


def _used_otherwise(nodes: Iterable[Any], sites: Sequence[Site], reductions: Sequence[Reduce]) -> set[str]:
    """Fragments that are used outside of loops, copies, fills and reductions, or have a layout already."""
    inside: set[int] = set()
    for node in (*[site.node for site in sites], *reductions):
        inside |= {id(part) for part in walk(node)}
    blocked: set[str] = set()
    for node in nodes:
        if isinstance(node, AllocFragment) and node.layout is not None:
            blocked.add(node.buffer.name)
        if isinstance(node, (Load, Store, Region)) and id(node) not in inside:
            blocked.add(node.buffer.name)
    return blocked


def _may_shift(site: Site) -> bool:
    """Whether the loop over a site's rows is the compiler's to choose."""
    node: Any = site.node
    if not isinstance(node, (Parallel, Copy, Fill)) or getattr(node, "map", None) is not None:
        return False
    if isinstance(node, Parallel) and node.of_threads:
        return False
    if getattr(node, "at_stage", None) is not None or getattr(node, "coalesced_width", None) is not None:
        return False
    if isinstance(node, Copy) and node.by is not None and node.by.bytes:
        return False
    return all(access.buffer.scope == "global" for access in site.accesses)


def _still(site: Site) -> dict[str, Expr]:
    """The variables of a site that have one value, which is 0."""
    pairs = zip(site.vars[:-1], site.extents[:-1], strict=True)
    return {name: Const(0) for name, extent in pairs if extent == 1}


def _by_weight(site: Site) -> list[SiteAccess]:
    """Stores first: a load that is not aligned can be put together, a store cannot."""
    return sorted(site.accesses, key=lambda access: not access.written)


def _shift_of(offset: Linear, vector: int) -> Expr:
    """The elements between the last multiple of `vector` and the place where a row starts."""
    terms = tuple((term, factor % vector) for term, factor in offset.terms if factor % vector)
    return Linear(terms, offset.constant % vector).expr() % vector


def _same(a: Expr, b: Expr) -> bool:
    if a == b:
        return True
    return all(isinstance(x, Arith) for x in (a, b)) and _terms(a) == _terms(b)


def _terms(shift: Expr) -> tuple[dict[Expr, int], int]:
    assert isinstance(shift, Arith)
    form = linear(shift.args[0])
    return dict(form.terms), form.constant


def _rounded(vectors: int, site: Site, threads: int) -> int:
    """The vectors of a row, as many as threads or a part of them can take where one row is all there is."""
    if prod(site.extents[:-1]) != 1:
        return vectors
    if vectors >= threads:
        return -(-vectors // threads) * threads
    return next(count for count in range(vectors, threads + 1) if threads % count == 0)


def _row(dim: int) -> str:
    """The name of a fragment's row in a shift, where no loop has named it."""
    return f"__row{dim}"


def _own_rows(buffer: Buffer) -> tuple[str, ...]:
    return tuple(_row(k) for k in range(buffer.rank - 1))


def _longer(buffer: Buffer, extent: int) -> Buffer:
    return Buffer(buffer.name, (*buffer.extents[:-1], extent), buffer.dtype, buffer.scope)
