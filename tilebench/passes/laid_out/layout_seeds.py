"""Where the inference of layouts starts: the fragments of instructions, and the cheapest of a few spreads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from math import gcd, prod
from typing import Any

from ...errors import LayoutError
from ...ir import Buffer, OpStmt, Stmt, effects_of
from ...language.gemm import Gemm
from ...language.memory import AllocFragment
from ...language.structure import Parallel
from ...layout import Fragment
from ...layout.fragment import REPLICATED
from ...layout.spread import FREE, gemm_microtile, spread
from ...layout.tiling import split_groups, tile_fragment, turned_over
from ...machine import Instruction, Machine
from ..analysis.costs import access_cost, access_cycles, exchange_cycles
from ..analysis.exchanges import exchange_row, partners
from ..analysis.sites import FragmentUse, Site, on_true_extents
from ..analysis.thread_groups import Threads
from ..context import Context
from .choose_instructions import fitting_rows, row_of, takes_instruction

NAME = "infer_layouts"
# A register tile of 8 by 8 keeps 64 accumulators and 16 operands, far from the limit of 255.
MICRO_TILE = 8


def gemm_seeds(
    gemm: Gemm, policy: str, threads: Threads, context: Context, before: Fragment | None = None
) -> dict[str, Fragment]:
    """The layouts that a gemm's instruction wants of its operands in registers, by buffer.

    `policy` says how its threads share it out, `before` how the sum lies that its first operand is made of.
    """
    row = row_of(gemm, context.machine)
    m, n, _ = gemm.mnk
    atom = row.operand("c").fragment
    if atom is None:
        if gemm.policy is not None:
            context.remark(
                NAME, "missed", f"policy={gemm.policy} has no effect: {row.name} splits by threads", gemm
            )
        tile = _in_rows_of(before, n, threads) if before is not None else None
        if tile is None:
            tile = gemm_microtile(m, n, threads.count, MICRO_TILE, MICRO_TILE, context.machine.warp)
        return {gemm.c.buffer.name: on_true_extents(tile)}
    with gemm.place or nullcontext():
        across, along = split_groups(
            (m, n), atom.extents, groups_of(row, gemm, threads), policy, rows_first=bool(row.most)
        )
    seeds: dict[str, Fragment] = {}
    # The number of a group counts along the columns of C first, then along its rows.
    digits = {"c": ((along, 1), (across, 0)), "a": ((along, REPLICATED), (across, 0)),
              "b": ((along, 1), (across, REPLICATED))}  # fmt: skip
    turned = {"a": gemm.transpose_A, "b": gemm.transpose_B, "c": False}
    for field, groups in digits.items():
        region, own = getattr(gemm, field), row.operand(field).fragment
        if region.buffer.scope != "fragment" or own is None:
            continue
        shape = region.buffer.shape[-2:]
        tile = tile_fragment(own, shape[::-1] if turned[field] else shape, groups)
        seeds[region.buffer.name] = turned_over(tile) if turned[field] else tile
    return seeds


def _in_rows_of(before: Fragment, columns: int, threads: Threads) -> Fragment | None:
    """The tile of another width whose rows lie on the threads that have them already.

    What is known of each row (its greatest, its sum) is then where both tiles need it. None where it would
    have more ghosts than columns.
    """
    across = prod(count for count, dim, _ in before.thread if dim == 1)
    neighbours = before.contiguous_values(1)
    reach = across * neighbours
    if before.threads != threads.count or reach >= 2 * columns or len(before.extents) != 2:
        return None
    repeats = -(-columns // reach)
    own = [(neighbours, 1, 1), (repeats, 1, reach), *(mode for mode in before.value if mode[1] == 0)]
    kept = tuple(mode for mode in own if mode[0] > 1)
    return Fragment((before.extents[0], columns), before.thread, kept)


def given_layout(alloc: AllocFragment, threads: Threads, machine: Machine) -> Fragment:
    """The layout that a kernel gives a fragment, for all threads that share it.

    Where it names a part of them, the others have what these have, and theirs is what counts.
    """
    layout = alloc.layout
    assert layout is not None
    return _for_all(
        layout, alloc.buffer.extents or (1,), threads, f"the layout of {alloc.buffer.name}", alloc
    )


def given_map(layout: Fragment, site: Site, threads: Threads) -> Fragment:
    """The mapping that a kernel gives a loop or copy, for all threads of it."""
    return _for_all(layout, site.extents, threads, "the mapping of this loop", site.node)


def _for_all(layout: Fragment, extents: tuple[int, ...], threads: Threads, what: str, node: Stmt) -> Fragment:
    if layout.extents != extents:
        raise LayoutError(
            "{what} is one of {own}", at=node.place, what=what, own=layout.extents, extents=extents,
            expected="extents {extents}",
        )  # fmt: skip
    if not layout.is_dense or threads.count % layout.threads:
        raise LayoutError(
            "{what} is one for {n} threads, and {count} share it out", at=node.place, what=what,
            n=layout.threads, count=threads.count, expected="{count} threads, or a part that divides them",
        )  # fmt: skip
    others = threads.count // layout.threads
    modes = (*layout.thread, (others, REPLICATED, 0)) if others > 1 else layout.thread
    return Fragment(layout.extents, modes, layout.value)


def numbered(loop: Parallel, threads: Threads) -> Fragment:
    """The map of a loop over threads. Raises `LayoutError` where it is over others than work there."""
    if prod(loop.extents) != threads.count or not threads.whole:
        raise LayoutError(
            "a loop over {count} threads, in a block of {threads}", at=loop.place, count=prod(loop.extents),
            threads=threads.count, expected="all threads of the block",
            hint="T.Kernel(..., threads=...) says how many; a schedule has to take as many",
        )  # fmt: skip
    thread = tuple((extent, axis, 1) for axis, extent in reversed(list(enumerate(loop.extents))))
    return Fragment(loop.extents, thread)


def by_each(site: Site, threads: Threads) -> Fragment | None:
    """The map of an operation on a thread's own array: each thread does all of the box by itself. None
    where no side is one. Raises `LayoutError` where the other side is a fragment, of which it has a part."""
    own = {e.buffer.name for e in effects_of(site.node) if e.buffer.scope in ("local", "var")}
    if isinstance(site.node, Parallel) or not own:
        return None
    if site.touches and threads.count > 1:
        raise LayoutError(
            "{own} is each thread's own, and a thread has a part of the fragment {name} only", own=min(own),
            at=site.node.place, name=site.touches[0].buffer.name,
            hint="T.copy {name} to T.alloc_shared(...) first, and {own} from there",
        )  # fmt: skip
    return whole_by_each(site.extents, threads.count)


def whole_by_each(extents: tuple[int, ...], threads: int) -> Fragment:
    """Every thread has all elements of a box, row by row."""
    steps = tuple((extent, dim, 1) for dim, extent in reversed(list(enumerate(extents))))
    return Fragment(extents, ((threads, REPLICATED, 0),), steps)


def groups_of(row: Instruction, statement: Stmt, threads: Threads) -> int:
    """How many groups of an instruction's threads share a statement out."""
    if threads.count % max(row.group, 1):
        raise LayoutError(
            "{name} works on {group} threads at a time, and {count} are no multiple of that",
            at=statement.place, name=row.name, group=row.group, count=threads.count,
        )  # fmt: skip
    return threads.count // max(row.group, 1)


def spread_over(
    extents: tuple[int, ...], vector: int, site: Site | None, threads: Threads, machine: Machine,
    dim: int | None = None, sharers: Sequence[Site] = (),
) -> Fragment:  # fmt: skip
    """The default mapping of a box over the threads of a statement, or of a fragment that `sharers` use.

    Elements that share a byte stay on one thread.
    """
    sites = (*sharers, *([site] if site else []))
    unit = max((access.buffer.dtype.per_byte for s in sites for access in s.accesses), default=1)
    size = max((access.buffer.dtype.bits for access in site.accesses), default=32) if site else 32
    cost = access_cost(machine, len(site.accesses)) if site and vector > 1 else FREE
    return spread(extents, threads.count, vector, machine.warp, dim, size, unit, cost)


class Seeds:
    """Compares at most three layouts for a fragment that nothing else decides."""

    def __init__(
        self, sites: Sequence[Site], exchanges: Sequence[Any], vectors: Mapping[int, int], context: Context
    ) -> None:
        self.exchanges, self.vectors, self.context = exchanges, vectors, context
        self.machine = context.machine
        self.users: dict[str, list[tuple[Site, Any]]] = {}
        for site in sites:
            for touch in site.touches:
                self.users.setdefault(touch.buffer.name, []).append((site, touch))

    def best(self, buffer: Buffer, allocation: Stmt, threads: Threads) -> Fragment:
        """The cheapest layout of a fragment, with a remark that has the costs."""
        users = self.users.get(buffer.name, [])
        heavy = self.heaviest(users)
        vector = self.vectors[id(heavy.node)] if heavy is not None else 1
        dims: list[int | None] = [None]
        for exchange in self.exchanges:
            dim = exchange.dim % exchange.src.buffer.rank
            if exchange.src.buffer.name == buffer.name and dim not in dims and len(dims) < 3:
                dims.append(dim)
        shape = buffer.extents or (1,)
        sharers = [site for site, _ in users]
        candidates = [spread_over(shape, vector, heavy, threads, self.machine, dim, sharers) for dim in dims]
        costs = [self.cost(buffer.name, candidate, users) for candidate in candidates]
        best = min(range(len(candidates)), key=lambda k: costs[k])
        values = candidates[best].values
        self.context.remark(
            NAME,
            "applied",
            f"{buffer.name}: the cheapest of {len(costs)} seeds holds {values} values a thread",
            users[0][0].node if users else allocation,
            **{f"cost_{_seed_name(d)}": round(c, 1) for d, c in zip(dims, costs, strict=True)},
        )  # fmt: skip
        return candidates[best]

    def heaviest(self, users: Sequence[tuple[Site, FragmentUse]]) -> Site | None:
        """The site with most traffic whose vectors run over the fragment's last dimension with its own."""
        fitting = [
            site
            for site, touch in users
            if touch.dims and touch.dims[-1] == len(site.extents) - 1 and self.vectors[id(site.node)] > 1
        ]
        return max(fitting, key=_traffic, default=None)

    def cost(self, name: str, layout: Fragment, users: Sequence[tuple[Site, FragmentUse]]) -> float:
        """Issue cycles of a warp: accesses to memory, an operation a value, exchanges of reductions."""
        total = float(layout.values)
        for site, _ in users:
            run = layout.contiguous_values(len(layout.extents) - 1)
            width = gcd(self.vectors[id(site.node)], run) or 1
            for access in site.accesses:
                cycles = access_cycles(self.machine, width * access.buffer.dtype.bits // 8)
                total += layout.values / width * cycles
        for exchange in self.exchanges:
            if exchange.src.buffer.name != name:
                continue
            dim = exchange.dim % exchange.src.buffer.rank
            rows = fitting_rows(exchange, self.machine)
            row = exchange_row(exchange, rows, layout, self.machine)
            results = layout.values // max(1, prod(c for c, d, _ in layout.value if d == dim))
            lanes = prod(count for _, count in partners(layout, dim))
            total += layout.values + exchange_cycles(self.machine, row, lanes, results)
        return total


def exchanges_of(statements: Sequence[Stmt]) -> list[Any]:
    """The operations whose threads exchange along a dimension of their source."""
    return [s for s in statements if isinstance(s, OpStmt) and hasattr(s, "dim") and takes_instruction(s)]


def _seed_name(dim: int | None) -> str:
    return "memory" if dim is None else f"reduce_dim_{dim}"


def _traffic(site: Site) -> int:
    """Bytes that a site moves to and from global memory; shared memory counts a tenth."""
    return sum(
        site.elements * access.buffer.dtype.bits // 8 * (10 if access.buffer.scope == "global" else 1)
        for access in site.accesses
    )
