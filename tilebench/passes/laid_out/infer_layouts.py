"""A layout for every fragment, and a thread mapping for every statement of many elements.

`C_l = T.alloc_fragment((128, 128), T.float32)` -> the same with `layout=T.Fragment(...)`;
`T.copy(A[...], A_s)` -> the same with `by=T.Instr(...), map=T.Fragment(...)`.

Propagation from seeds: the instructions of gemms fix their operands; then, component by component, at
most three seeds (the heaviest memory site, reductions) are compared by computed cost; what a seed
reaches follows by projection and extension. Where two uses disagree a conversion is inserted.
"""

from __future__ import annotations

from math import gcd
from typing import Any

from ...errors import LayoutError
from ...ir import Buffer, Function, OpStmt, Stmt, effects_in, map_bodies
from ...ir.names import Names
from ...ir.stmt import statements
from ...language.copy import Copy
from ...language.gemm import Gemm
from ...language.lowered.decisions import Instr
from ...language.memory import AllocFragment, AllocShared
from ...language.scopes import entry_facts
from ...language.structure import Parallel
from ...layout import Fragment
from ...machine import Instruction
from ..analysis.body_accesses import BodyAccesses
from ..analysis.exchanges import exchange_instruction, exchange_row
from ..analysis.sites import (
    Site,
    extend,
    is_mapped,
    is_narrow,
    project,
    site_vector,
    sites_of,
    unaligned_vector,
    vector_of,
)
from ..analysis.thread_groups import refuse_strange_fragment, threads_by_statement
from ..context import Context
from .choose_instructions import choose, fitting_rows
from .choose_maps import Settled, cheapest_map, room_of
from .convert_layouts import Converter, find_conflicts, find_unfit
from .layout_seeds import (
    NAME,
    Seeds,
    by_each,
    exchanges_of,
    gemm_seeds,
    given_layout,
    given_map,
    numbered,
    spread_over,
)
from .warp_policies import warp_policies


def infer_layouts(function: Function, context: Context) -> Function:
    """The function with layouts, mappings and instructions on every statement."""
    inference = _Inference(function, context)
    inference.seed_gemms()
    inference.settle()
    return inference.write()


class _Inference:
    """`layouts` by the name of a fragment, `maps` and `vectors` by the identity of a statement."""

    def __init__(self, function: Function, context: Context) -> None:
        self.function = function
        self.context = context
        self.machine = context.machine
        self.threads = threads_by_statement(function, context.machine)
        self.divisors = entry_facts(function).divisors
        self.room = room_of(function, context.machine)
        self.sites = sites_of(function)
        # Those that may still get a map from what they touch.
        self.open = [site for site in self.sites if site.touches]
        nodes: list[Any] = statements(function.body)
        self.exchanges = exchanges_of(nodes)
        self.reductions = [node for node in self.exchanges if not is_mapped(node)]
        self.gemms = [node for node in nodes if isinstance(node, Gemm)]
        self.allocations = {n.buffer.name: n for n in nodes if isinstance(n, AllocFragment)}
        self.shared = {n.buffer.name: n.layout for n in nodes if isinstance(n, AllocShared) and n.layout}
        self.layouts: dict[str, Fragment] = {}
        for name, each in self.allocations.items():
            if each.layout is not None:
                self.layouts[name] = given_layout(each, self.threads[id(each)], self.machine)
        self.maps: dict[int, Fragment] = {}
        self.narrow: dict[int, int] = {}
        self.take_maps()
        # How a gemm wants its fragments, by its identity: where one lies otherwise it is converted.
        self.wanted: dict[int, dict[str, Fragment]] = {}
        self.vectors = {id(site.node): self.vector(site) for site in self.sites}
        self.seeds = Seeds(self.sites, self.exchanges, self.vectors, context)
        self.check_owners()
        self.seed_threads()

    def vector(self, site: Site) -> int:
        """Elements of one access: what neighbours in memory allow, and the cap of the user or schedule."""
        cap = getattr(site.node, "coalesced_width", None)
        # An access has a power of two of elements.
        caps = [1 << cap.bit_length() - 1] if cap else []
        if isinstance(site.node, Copy) and self.is_ahead(site.node):
            # What passes by registers is in one piece on both sides.
            caps.append(self.narrowest(site.node) * 8 // site.node.dst.buffer.dtype.bits)
        most = max(self.machine.vector_bytes)
        if not caps and not self.stores_narrowly(site):
            width = unaligned_vector(site, self.machine.unaligned_bytes, most, self.divisors)
            if width > 1:
                return width
        return site_vector(site, most, caps, self.divisors)

    def stores_narrowly(self, site: Site) -> bool:
        """Whether what a site fills is stored element by element: then lanes should have neighbours."""
        filled = {touch.buffer.name for touch in site.touches}
        most = max(self.machine.vector_bytes)
        return any(
            access.written and is_narrow(access, other.vars[-1], most, self.divisors)
            for other in self.sites
            if filled.intersection(touch.buffer.name for touch in other.touches)
            for access in other.accesses
        )

    def check_owners(self) -> None:
        """Every fragment is used by the threads it was made for."""
        uses = [(site.node, touch.buffer.name) for site in self.sites for touch in site.touches]
        for statement in (*self.exchanges, *self.gemms):
            uses += [(statement, effect.buffer.name) for effect in effects_in(statement)]
        for statement, name in uses:
            allocation = self.allocations.get(name)
            if allocation is not None:
                owner, user = self.threads[id(allocation)], self.threads[id(statement)]
                refuse_strange_fragment(name, owner, user, statement)

    def take_maps(self) -> None:
        """The mappings that kernels give loops, and with them the layouts of what the loops touch."""
        for site in self.sites:
            given = getattr(site.node, "map", None)
            if given is None:
                continue
            box = given_map(given, site, self.threads[id(site.node)])
            self.maps[id(site.node)] = box
            for touch in site.touches:
                if touch.buffer.name not in self.layouts:
                    self.layouts[touch.buffer.name] = project(box, touch.dims, touch.buffer.extents)

    # -- seeds
    def seed_threads(self) -> None:
        """Loops over threads: each index is the thread's that it names. Their own arrays: each does all."""
        for site in self.sites:
            own = by_each(site, self.threads[id(site.node)])
            if own is not None and id(site.node) not in self.maps:
                self.maps[id(site.node)] = own
            if isinstance(site.node, Parallel) and site.node.of_threads:
                box = numbered(site.node, self.threads[id(site.node)])
                self.maps[id(site.node)], self.vectors[id(site.node)] = box, 1
                for touch in site.touches:
                    if touch.buffer.name not in self.layouts:
                        self.layouts[touch.buffer.name] = project(box, touch.dims, touch.buffer.extents)

    def seed_gemms(self) -> None:
        policies = warp_policies(self.gemms, self.threads, self.context)
        for gemm in self.gemms:
            policy, threads = policies[id(gemm)], self.threads[id(gemm)]
            seeds = gemm_seeds(gemm, policy, threads, self.context, self.before(gemm))
            for name, layout in seeds.items():
                self.layouts.setdefault(name, layout)
            self.wanted[id(gemm)] = seeds

    def before(self, gemm: Gemm) -> Fragment | None:
        """The layout of a sum before it that may have become its first operand, by way of shared memory."""
        m, _, k = gemm.mnk
        for other in self.gemms:
            if other is gemm:
                break
            if other.mnk[:2] == (m, k) and self.threads[id(other)] == self.threads[id(gemm)]:
                return self.layouts.get(other.c.buffer.name)
        return None

    def settle(self) -> None:
        """Propagate until nothing changes; then seed the next component, until all have layouts."""
        while True:
            self.propagate()
            remaining = [name for name in self.allocations if name not in self.layouts]
            if not remaining:
                break
            # The first of those that are as large.
            largest = max(remaining, key=lambda name: self.allocations[name].buffer.size)
            allocation = self.allocations[largest]
            threads = self.threads[id(allocation)]
            self.layouts[largest] = self.seeds.best(allocation.buffer, allocation, threads)
        for site in self.sites:
            if id(site.node) not in self.maps:
                vector, threads = self.vectors[id(site.node)], self.threads[id(site.node)]
                self.maps[id(site.node)] = spread_over(site.extents, vector, site, threads, self.machine)

    # -- propagation
    def propagate(self) -> None:
        changed = True
        while changed:
            changed = False
            self.open = [site for site in self.open if id(site.node) not in self.maps]
            for site in self.open:
                changed |= self.at_site(site)
            for each in self.reductions:
                changed |= self.after_reduction(each)
            # A result says how its rows lie and nothing of where in a row: what else is known comes first.
            changed = changed or any(self.before_reduction(each) for each in self.reductions)

    def at_site(self, site: Site) -> bool:
        if id(site.node) in self.maps:
            return False
        known = [touch for touch in site.touches if touch.buffer.name in self.layouts]
        if not known:
            return False
        # A written fragment's owner must do the work; then the one that spans most of the box.
        lead = max(known, key=lambda t: (sum(d is not None for d in t.dims), t.written))
        layout = self.layouts[lead.buffer.name]
        vector, threads = self.vectors[id(site.node)], self.threads[id(site.node)]
        box = extend(layout, lead.dims, site.extents, vector)
        if vector > 1:
            rows = spread_over(site.extents, vector, site, threads, self.machine)
            known = Settled(self.layouts, self.divisors, self.room)
            box = cheapest_map(site, box, rows, vector, known, self.context)
        self.maps[id(site.node)] = box
        for touch in site.touches:
            if touch.buffer.name not in self.layouts:
                self.layouts[touch.buffer.name] = project(box, touch.dims, touch.buffer.extents)
        return True

    def after_reduction(self, node: Any) -> bool:
        """The layout of a result, from that of what is reduced."""
        src, dst = node.src.buffer, node.dst.buffer
        if src.name not in self.layouts or dst.name in self.layouts:
            return False
        self.layouts[dst.name] = reduced(self.layouts[src.name], node.dim % src.rank, dst)
        return True

    def before_reduction(self, node: Any) -> bool:
        """The layout of what is reduced, from that of the result."""
        src, dst = node.src.buffer, node.dst.buffer
        if dst.name not in self.layouts or src.name in self.layouts:
            return False
        dim = node.dim % src.rank
        kept = [k for k in range(src.rank) if k != dim]
        where: list[int | None] = list(kept)
        if dst.rank == src.rank:
            where = [None if k == dim else k for k in range(src.rank)]
        elif not kept:
            where = [None]
        self.layouts[src.name] = extend(self.layouts[dst.name], tuple(where), src.shape, 1)
        return True

    # -- writing the decisions down
    def write(self) -> Function:
        conflicts = find_conflicts(
            self.sites, self.reductions, self.maps, self.layouts, reduced, self.one_thread_an_element
        )
        for gemm in self.gemms:
            unfit = find_unfit(gemm, self.wanted[id(gemm)], self.layouts)
            if unfit:
                conflicts[id(gemm)] = unfit
        converter = Converter(Names(self.function), self.context)

        def step(node: Any) -> Any:
            decided = self.decide(node, map_bodies(node, step))
            unfit = conflicts.get(id(node))
            return converter.surround(decided, unfit, self.layouts) if unfit else decided

        return step(self.function)

    def one_thread_an_element(self, site: Site) -> bool:
        """Whether threads that share an element must not all do it: they would read what one stores."""
        if not isinstance(site.node, Parallel):
            return False
        box = self.maps[id(site.node)]
        shared = box.replicated_threads > 1 or box.threads < self.threads[id(site.node)].count
        return shared and BodyAccesses.of(site.node.body).is_of_one

    def decide(self, node: Any, below: Any) -> Any:
        """The statement with its own decisions on it; `node` is the one that the decisions were made for."""
        if isinstance(node, AllocFragment):
            return below.but(layout=self.layouts[node.buffer.name])
        if isinstance(node, Parallel):
            return below.but(map=self.maps[id(node)], vector=self.width(node))
        if not isinstance(node, OpStmt):
            return below
        mapped = is_mapped(node) and "map" not in node.settled()
        changes: dict[str, Any] = {"map": self.maps[id(node)]} if mapped else {}
        if isinstance(node, Gemm):
            changes["policy"] = None  # the layout of the accumulator says it now
        if isinstance(node, Copy):
            changes["by"] = self.copy_instruction(node)
        elif any(node is exchange for exchange in self.exchanges):
            source: Any = node
            layout = self.layouts[source.src.buffer.name]
            row = exchange_row(node, fitting_rows(node, self.machine), layout, self.machine)
            changes["by"] = exchange_instruction(node, row, layout)
        return below.but(**changes) if changes else below

    def width(self, node: Stmt) -> int:
        box = self.maps[id(node)]
        return gcd(self.vectors[id(node)], box.contiguous_values(len(box.extents) - 1)) or 1

    def copy_instruction(self, node: Copy) -> Instr:
        """The copy's instruction with the bytes of one access, of the side with the narrower dtype."""
        bits = min(node.src.buffer.dtype.bits, node.dst.buffer.dtype.bits)
        width = max(1, self.width(node) * bits // 8)
        name = node.by.name if node.by is not None else self.copy_row(node)
        rows = self.machine.instructions_for(node.word)
        if any(row.name == name and row.boxes for row in rows):
            return Instr(name)
        if not any(row.name == name and self.reaches(row, node, width) for row in rows):
            others = [row for row in rows if row.shape == (width,) and not row.asynchronous]
            if others:
                self.context.remark(
                    NAME, "missed",
                    f"{name} does not take this copy: its accesses are of {self.narrowest(node)} bytes",
                    node, bytes=self.narrowest(node),
                )  # fmt: skip
                name = others[0].name
        return Instr(name, bytes=width)

    def is_ahead(self, node: Copy) -> bool:
        """Whether a copy is by an asynchronous instruction, of which one is as narrow as its accesses."""
        name = node.by.name if node.by is not None else ""
        rows = [row for row in self.machine.instructions_for(node.word) if row.name == name]
        return any(row.asynchronous and self.reaches(row, node, row.shape[0]) for row in rows if row.shape)

    def reaches(self, row: Instruction, node: Copy, width: int) -> bool:
        """Whether an instruction moves accesses of that many bytes; an asynchronous one on both sides."""
        if row.shape and row.shape != (width,):
            return False
        return not row.asynchronous or self.narrowest(node) >= width

    def narrowest(self, node: Copy) -> int:
        """Bytes of the narrower of the two sides' accesses, found once: each row of the table asks."""
        known = self.narrow.get(id(node))
        if known is None:
            known = self.narrow[id(node)] = self.narrower_side(node)
        return known

    def narrower_side(self, node: Copy) -> int:
        site = next(site for site in self.sites if site.node is node)
        most = max(self.machine.vector_bytes)
        widths: list[int] = []
        for access in site.accesses:
            width = max(1, vector_of(access, site.vars[-1], most, self.divisors))
            given = self.shared.get(access.buffer.name)
            if given is not None:
                # The layout that a kernel gives may keep fewer together than a row of the tile has.
                along_rows = given.contiguous_dim == len(given.extents) - 1
                width = gcd(width, given.vector) if along_rows else 1
            widths.append(width * access.buffer.dtype.bits // 8)
        return min(widths, default=0)

    def copy_row(self, node: Copy) -> str:
        row = choose(node, self.machine, self.threads[id(node)].count)
        if row is None:
            raise LayoutError("no one instruction carries out this copy", at=node.place)
        return row.name


def reduced(layout: Fragment, dim: int, dst: Buffer) -> Fragment:
    """The layout of a reduction's result, with the dimension dropped or kept as 1 as `dst` has it."""
    result = layout.reduce(dim, keep=dst.rank == len(layout.extents))
    return result if result.extents == dst.extents else Fragment(dst.extents, result.thread, result.value)
