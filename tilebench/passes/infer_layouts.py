"""A layout for every fragment, and a thread mapping for every statement of many elements.

`C_l = T.alloc_fragment((128, 128), T.float32)` -> the same with `layout=T.Fragment(...)`;
`T.copy(A[...], A_s)` -> the same with `by=T.Instr(...), map=T.Fragment(...)`.

Propagation from seeds: gemms fix their accumulators; then, component by component, at most three
seeds (the heaviest memory site, reductions) are compared by computed cost; what a seed reaches
follows by projection and extension. Where two uses disagree a conversion is inserted.
"""

from __future__ import annotations

from math import gcd, log2, prod
from typing import Any

from ..errors import LayoutError
from ..ir import Buffer, Function, Stmt, map_children, walk
from ..language.copy import Copy, Fill
from ..language.gemm import Gemm
from ..language.lowered.decisions import Instr
from ..language.memory import AllocFragment
from ..language.reduce import Reduce
from ..language.structure import Parallel
from ..layout import Fragment
from ..layout.spread import gemm_microtile, spread
from .apply_schedule import launch_of
from .context import Context
from .convert_layouts import Converter, find_conflicts
from .names import Names
from .sites import Site, Touch, extend, on_true_extents, project, site_vector, sites_of

NAME = "infer_layouts"
# A register tile of 8 by 8 keeps 64 accumulators and 16 operands, far from the limit of 255.
MICRO_TILE = 8
# Per thread: one shuffle and one operation for each halving; a barrier and a round trip across warps.
SHUFFLE_COST, CROSS_WARP_COST = 4.0, 60.0


def infer_layouts(function: Function, context: Context) -> Function:
    """The function with layouts, mappings and instructions on every statement."""
    work = _Inference(function, context)
    work.seed_gemms()
    work.settle()
    return work.write()


def reduction_threads(layout: Fragment, dim: int) -> list[tuple[int, int]]:
    """(distance, count) of the thread digits along a dimension: who holds parts of one result."""
    return [(d.divisor, d.modulus) for d in layout.thread_digits if d.dim == dim and d.modulus > 1]


def reduce_instruction(layout: Fragment, dim: int, warp: int) -> Instr:
    """How the threads that hold parts of one result exchange them."""
    digits = reduction_threads(layout, dim)
    lanes = prod(count for _, count in digits)
    if lanes == 1:
        return Instr("thread")
    inside = all(distance * count <= warp for distance, count in digits)
    powers = all(count & (count - 1) == 0 and distance & (distance - 1) == 0 for distance, count in digits)
    return Instr("shfl" if inside and powers else "shared", lanes=lanes)


class _Inference:
    def __init__(self, function: Function, context: Context) -> None:
        self.function = function
        self.context = context
        self.machine = context.machine
        self.threads = launch_of(function).threads
        self.sites = sites_of(function)
        self.reduces = [each for each in walk(function) if isinstance(each, Reduce)]
        self.gemms = [each for each in walk(function) if isinstance(each, Gemm)]
        self.allocations = {n.buffer.name: n for n in walk(function) if isinstance(n, AllocFragment)}
        self.buffers = {name: each.buffer for name, each in self.allocations.items()}
        self.layouts: dict[str, Fragment] = {}
        self.maps: dict[int, Fragment] = {}
        self.vectors = {id(site.node): self.vector(site) for site in self.sites}

    def vector(self, site: Site) -> int:
        caps: list[int] = []
        if isinstance(site.node, Copy) and site.node.coalesced_width:
            caps.append(site.node.coalesced_width)
        return site_vector(site, max(self.machine.vector_bytes), caps)

    # -- seeds
    def seed_gemms(self) -> None:
        for each in self.gemms:
            m, n, _ = each.mnk
            if each.c.buffer.name not in self.layouts:
                made = gemm_microtile(m, n, self.threads, MICRO_TILE, MICRO_TILE, self.machine.warp)
                self.layouts[each.c.buffer.name] = on_true_extents(made)
            if each.policy != "square":
                self.context.remark(
                    NAME,
                    "missed",
                    f"policy={each.policy} has no effect: multiply-adds split by threads",
                    each,
                )

    def settle(self) -> None:
        """Propagate until nothing changes; then seed the next component, until all have layouts."""
        while True:
            self.propagate()
            open_names = [name for name in self.buffers if name not in self.layouts]
            if not open_names:
                break
            name, layout = self.best_seed(open_names)
            self.layouts[name] = layout
        for site in self.sites:
            if id(site.node) not in self.maps:
                self.maps[id(site.node)] = self.spread(site.extents, self.vectors[id(site.node)], site)

    def spread(
        self, extents: tuple[int, ...], vector: int, site: Site | None, dim: int | None = None
    ) -> Fragment:
        size = max((each.buffer.dtype.bytes for each in site.accesses), default=4) if site else 4
        return spread(extents, self.threads, vector, self.machine.warp, dim, size)

    def best_seed(self, names: list[str]) -> tuple[str, Fragment]:
        """The cheapest of at most three layouts for the largest fragment that has none."""
        target = max(names, key=lambda name: (self.buffers[name].size, -names.index(name)))
        buffer = self.buffers[target]
        users = [
            (site, touch) for site in self.sites for touch in site.touches if touch.buffer.name == target
        ]
        vector, heavy = 1, None
        for site, touch in users:
            # Only a site that runs over the fragment's last dimension with its own can pass its vector on.
            if touch.dims and touch.dims[-1] == len(site.extents) - 1 and self.vectors[id(site.node)] > 1:
                heavy = site if heavy is None or _traffic(site) > _traffic(heavy) else heavy
        if heavy is not None:
            vector = self.vectors[id(heavy.node)]
        dims: list[int | None] = [None]
        for each in self.reduces:
            dim = each.dim % each.src.buffer.rank
            if each.src.buffer.name == target and dim not in dims and len(dims) < 3:
                dims.append(dim)
        shape = buffer.shape or (1,)
        candidates = [self.spread(shape, vector, heavy, dim) for dim in dims]
        costs = [self.cost(target, each, users) for each in candidates]
        best = min(range(len(candidates)), key=lambda k: costs[k])
        self.context.remark(
            NAME,
            "applied",
            f"{target}: the cheapest of {len(costs)} seeds holds {candidates[best].values} values a thread",
            users[0][0].node if users else self.allocations[target],
            **{f"cost_{_seed_name(d)}": round(c, 1) for d, c in zip(dims, costs, strict=True)},
        )
        return target, candidates[best]

    def cost(self, name: str, layout: Fragment, users: list[tuple[Site, Touch]]) -> float:
        """Instructions of one thread: accesses to memory, operations, exchanges of reductions."""
        total = float(layout.values)
        for site, _ in users:
            width = gcd(self.vectors[id(site.node)], layout.contiguous_values(len(layout.extents) - 1)) or 1
            total += 2.0 * layout.values / width * max(1, len(site.accesses))
        for each in self.reduces:
            if each.src.buffer.name != name:
                continue
            dim = each.dim % each.src.buffer.rank
            by = reduce_instruction(layout, dim, self.machine.warp)
            results = layout.values // max(1, prod(c for c, d, _ in layout.value if d == dim))
            total += layout.values + results * SHUFFLE_COST * log2(max(1, by.lanes))
            total += CROSS_WARP_COST if by.name == "shared" else 0.0
        return total

    # -- propagation
    def propagate(self) -> None:
        changed = True
        while changed:
            changed = False
            for site in self.sites:
                changed |= self.at_site(site)
            for each in self.reduces:
                changed |= self.at_reduce(each)

    def at_site(self, site: Site) -> bool:
        if id(site.node) in self.maps or not site.touches:
            return False
        known = [each for each in site.touches if each.buffer.name in self.layouts]
        if not known:
            return False
        # A written fragment's owner must do the work; then the one that spans most of the box.
        lead = max(known, key=lambda t: (sum(d is not None for d in t.dims), t.written))
        layout = self.layouts[lead.buffer.name]
        vector = self.vectors[id(site.node)]
        box = extend(layout, lead.dims, site.extents, vector)
        self.maps[id(site.node)] = box
        for each in site.touches:
            if each.buffer.name not in self.layouts:
                self.layouts[each.buffer.name] = project(box, each.dims, each.buffer.shape)
        return True

    def at_reduce(self, node: Reduce) -> bool:
        src, dst = node.src.buffer, node.dst.buffer
        dim = node.dim % src.rank
        if src.name in self.layouts and dst.name not in self.layouts:
            self.layouts[dst.name] = reduced(self.layouts[src.name], dim, dst)
            return True
        if dst.name in self.layouts and src.name not in self.layouts:
            dims = [k for k in range(src.rank) if k != dim]
            where: list[int | None] = list(dims)
            if dst.rank == src.rank:
                where = [None if k == dim else k for k in range(src.rank)]
            elif not dims:
                where = [None]
            self.layouts[src.name] = extend(self.layouts[dst.name], tuple(where), src.shape, 1)
            return True
        return False

    # -- writing the decisions down
    def write(self) -> Function:
        conflicts = find_conflicts(self.sites, self.reduces, self.maps, self.layouts, reduced)
        converter = Converter(Names(self.function), self.context)

        def step(at: Any) -> Any:
            if not isinstance(at, Stmt):
                return at
            made = self.decide(at, map_children(at, step))
            found = conflicts.get(id(at))
            return converter.surround(made, found, self.layouts) if found else made

        return step(self.function)

    def decide(self, at: Stmt, below: Any) -> Any:
        """The statement with its own decisions on it; `at` is the node the decisions were made for."""
        match at:
            case AllocFragment():
                return below.but(layout=self.layouts[at.buffer.name])
            case Parallel():
                return below.but(map=self.maps[id(at)], vector=self.width(at))
            case Copy():
                size = min(at.src.buffer.dtype.bytes, at.dst.buffer.dtype.bytes)
                return below.but(by=Instr("ld.st", bytes=self.width(at) * size), map=self.maps[id(at)])
            case Fill():
                return below.but(map=self.maps[id(at)])
            case Reduce():
                layout = self.layouts[at.src.buffer.name]
                return below.but(
                    by=reduce_instruction(layout, at.dim % at.src.buffer.rank, self.machine.warp)
                )
            case Gemm():
                return below.but(by=self.instruction(at))
            case _:
                return below

    def width(self, node: Stmt) -> int:
        box = self.maps[id(node)]
        return gcd(self.vectors[id(node)], box.contiguous_values(len(box.extents) - 1)) or 1

    def instruction(self, node: Gemm) -> Instr:
        operands = (node.a.buffer.dtype.name, node.b.buffer.dtype.name, node.c.buffer.dtype.name)
        rows = [each for each in self.machine.for_kind("gemm") if not each.dtypes or each.dtypes == operands]
        if node.by is not None:
            rows = [each for each in rows if each.name == node.by.name]
        if not rows:
            known = {" ".join(each.dtypes) for each in self.machine.for_kind("gemm")}
            raise LayoutError(
                "{machine} has no instruction for a gemm of {a} by {b} into {c}", at=node.place,
                machine=self.machine.name, a=operands[0], b=operands[1], c=operands[2],
                hint="its table holds: " + "; ".join(sorted(known)),
            )  # fmt: skip
        return Instr(min(rows, key=lambda each: each.cost).name)


def reduced(layout: Fragment, dim: int, dst: Buffer) -> Fragment:
    """The layout of a reduction's result, with the dimension dropped or kept as 1 as `dst` has it."""
    made = layout.reduce(dim, keep=dst.rank == len(layout.extents))
    return made if made.extents == dst.shape else Fragment(dst.shape, made.thread, made.value)


def _seed_name(dim: int | None) -> str:
    return "memory" if dim is None else f"reduce_dim_{dim}"


def _traffic(site: Site) -> int:
    """Bytes that a site moves to and from global memory; shared memory counts a tenth."""
    return sum(
        site.elements * each.buffer.dtype.bytes * (10 if each.buffer.scope == "global" else 1)
        for each in site.accesses
    )
