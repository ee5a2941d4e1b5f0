"""Fragments made for a purpose: spreading an iteration space over threads, and a register tile.

Both search the few ways a thread count factors over the dimensions and keep the cheapest, so any
extents and any thread count work; threads that are left over replicate, they never alias.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import gcd, log2, prod

from ..errors import LayoutError
from .fragment import REPLICATED, Fragment, FragmentMode

# A whole 32-byte sector is the least that memory moves; longer runs save requests. The weights only
# order candidates: a run below a sector moves unused bytes, the last two steps are a few percent.
_SECTOR_BYTES = 32
_RUN_COST = ((128, 1.0), (64, 1.04), (32, 1.1))
# A reduction across warps goes through shared memory and a barrier; within one, a shuffle a halving.
_CROSS_WARP_COST = 1.05
_SHUFFLE_COST = 0.01


@dataclass(frozen=True)
class AccessCost:
    """What the accesses to memory of an element cost a warp, in issue cycles, all of them together.

    `issue` of each instruction, and `passing` the cycles in which its bytes pass, as rows (bytes of a
    lane, cycles) from narrow to wide.
    """

    issue: float = 0.0
    passing: tuple[tuple[int, float], ...] = ()

    def passing_of(self, bits: int) -> float:
        """The cycles in which an access of `bits` a lane passes."""
        return next((cycles for width, cycles in self.passing if width * 8 >= bits), 0.0)


FREE = AccessCost()


@lru_cache(maxsize=1024)
def _divisors(n: int) -> tuple[int, ...]:
    return tuple(d for d in range(1, n + 1) if n % d == 0)


def _is_power(n: int) -> bool:
    return n & (n - 1) == 0


def _check(threads: int, warp: int, extents: tuple[int, ...]) -> None:
    if threads < 1 or (threads != 1 and threads % warp):
        raise LayoutError(
            "{threads} threads cannot be spread: they are not whole warps of {warp}",
            threads=threads,
            warp=warp,
        )
    if not extents or min(extents) < 1:
        raise LayoutError("the extents {extents} hold nothing to spread over threads", extents=extents)


@lru_cache(maxsize=4096)
def _splits(threads: int, counts: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Thread counts a dimension (last dimension first) whose product divides `threads`."""
    if not counts:
        return ((),)
    # Doubling past the count only makes ghosts; the surplus is better replicated.
    fitting = [t for t in _divisors(threads) if t < 2 * counts[0]]
    return tuple([(t, *rest) for t in fitting for rest in _splits(threads // t, counts[1:])])


def _run_cost(run_bytes: float) -> float:
    for least, cost in _RUN_COST:
        if run_bytes >= least:
            return cost
    return 1.1 * _SECTOR_BYTES / run_bytes


@lru_cache(maxsize=4096)
def spread(
    extents: tuple[int, ...],
    threads: int,
    vector: int,
    warp: int,
    reduce_dim: int | None = None,
    element_bits: int = 0,
    unit: int = 1,
    accesses: AccessCost = FREE,
) -> Fragment:
    """The default mapping of an iteration space: vectors along the last dimension, threads over rows.

    `vector` is the most elements one access may take; the width used divides it and the last
    extent, so no vector is partly a ghost. Threads run cyclically along the last dimension, then
    the one before, and so on; what remains repeats as values. Least work of a thread wins: a cycle a
    value, weighed by how long a contiguous run of memory is, and its accesses (ghosts and idle threads
    count as work, but no bytes pass for them); then fewer ghosts, then the wider vector. With
    `reduce_dim`, threads along it are a power of two at a power-of-two distance, so that shuffles can
    combine them. `element_bits` (for the length of a run) defaults to what makes `vector` 16 bytes. A
    thread's vector is a multiple of `unit` (elements that share a byte) where `vector` and the extent
    are. Surplus threads replicate.

    Raises `LayoutError` when `threads` are not whole warps (1 is always allowed).
    """
    _check(threads, warp, extents)
    size = element_bits or (max(8, 128 // vector) if vector > 1 else 32)
    best: tuple[tuple[float, ...], int, tuple[int, ...]] | None = None
    reduced = None if reduce_dim is None else len(extents) - 1 - reduce_dim
    together = unit if vector % unit == 0 and extents[-1] % unit == 0 else 1
    for width in (v for v in _divisors(vector) if extents[-1] % v == 0 and v % together == 0):
        counts = (extents[-1] // width, *reversed(extents[:-1]))
        # What passes does so for the elements that there are, however they are shared out.
        passing = accesses.passing_of(width * size) * prod(counts) / threads
        for split in _splits(threads, counts):
            if reduced is not None and not all(_is_power(t) for t in split[: reduced + 1]):
                continue
            key = _spread_key(accesses.issue, passing, counts, split, width, size, warp, reduced)
            if best is None or key < best[0]:
                best = key, width, split
    assert best is not None  # the least width on one thread is always a candidate
    return _spread_fragment(extents, threads, best[1], best[2])


def _spread_key(
    issue: float, passing: float, counts: tuple[int, ...], split: tuple[int, ...], width: int, size: int,
    warp: int, reduced: int | None,
) -> tuple[float, ...]:  # fmt: skip
    """What is minimised: the cost of one thread's work; then ghosts, then narrowness."""
    elements = reached = width
    issued = 1
    alone = True
    for count, threads in zip(counts, split, strict=True):
        repeats = -(-count // threads)
        issued *= repeats
        reached *= repeats * threads
        elements *= count
        alone = alone and threads == 1
    # On one thread there is nobody to share a sector with: its own walk is contiguous.
    run = width * (counts[0] if alone else min(split[0], counts[0]))
    if run == width * counts[0] and not alone:
        run = 1024 // size  # whole rows: consecutive rows follow in memory or are all there is
    cost = issued * (width * _run_cost(run * size / 8) + issue) + passing
    if reduced is not None:
        t = split[reduced]
        cost *= 1 + _SHUFFLE_COST * log2(t)
        if t * prod(split[:reduced]) > warp and t > 1:
            cost *= _CROSS_WARP_COST
    return (cost, reached - elements, -width, -split[0])


def _spread_fragment(extents: tuple[int, ...], threads: int, width: int, split: tuple[int, ...]) -> Fragment:
    last = len(extents) - 1
    thread: list[FragmentMode] = []
    value: list[FragmentMode] = [(width, last, 1)] if width > 1 else []
    for back, t in enumerate(split):
        dim = last - back
        unit = width if dim == last else 1
        if t > 1:
            thread.append((t, dim, unit))
        repeats = -(-extents[dim] // (unit * t))
        if repeats > 1:
            value.append((repeats, dim, unit * t))
    surplus = threads // prod(split)
    if surplus > 1:
        thread.append((surplus, REPLICATED, 0))
    return Fragment(extents, tuple(thread), tuple(value))


@lru_cache(maxsize=1024)
def gemm_microtile(
    m: int, n: int, threads: int, per_thread_m: int, per_thread_n: int, warp: int, group_m: int = 1
) -> Fragment:
    """The register tile of C (extents m, n) for a gemm by fused multiply-adds.

    Each thread holds about `per_thread_m` by `per_thread_n` elements: groups of up to 4 neighbours
    along n (`group_m` along m) repeated across the tile. A warp is as square as its lanes allow
    with 8 along n, so that a quarter-warp reads 8 different vectors of B and one of A. The thread
    grid is the split with the least work, then nearest to the block asked for.

    Raises `LayoutError` when `threads` are not whole warps (1 is always allowed).
    """
    _check(threads, warp, (m, n))
    group_n = next(g for g in (4, 2, 1) if per_thread_n % g == 0 or g == 1)
    best: tuple[tuple[float, ...], int, int] | None = None
    for tn, tm in _splits(threads, (-(-n // group_n), -(-m // group_m))):
        rows = group_m * -(-m // (tm * group_m))
        columns = group_n * -(-n // (tn * group_n))
        off = abs(rows - per_thread_m) + abs(columns - per_thread_n)
        # Per step of k a thread issues rows * columns multiply-adds and fetches rows + columns operands.
        key = (rows * columns + rows + columns, off, -tn)
        if best is None or key < best[0]:
            best = key, tm, tn
    assert best is not None  # one thread is always a candidate
    _, tm, tn = best
    return _microtile(m, n, threads, tm, tn, warp, group_m, group_n)


def _microtile(m: int, n: int, threads: int, tm: int, tn: int, warp: int, gm: int, gn: int) -> Fragment:
    lanes_n = gcd(tn, gcd(8, warp))
    lanes_m = gcd(tm, warp // lanes_n)
    lanes_n = gcd(tn, warp // lanes_m)
    modes: list[FragmentMode] = [
        (lanes_n, 1, gn),
        (lanes_m, 0, gm),
        (tn // lanes_n, 1, gn * lanes_n),
        (tm // lanes_m, 0, gm * lanes_m),
        (threads // (tm * tn), REPLICATED, 0),
    ]
    value: list[FragmentMode] = [
        (gn, 1, 1),
        (-(-n // (gn * tn)), 1, gn * tn),
        (gm, 0, 1),
        (-(-m // (gm * tm)), 0, gm * tm),
    ]
    kept = tuple(mode for mode in modes if mode[0] > 1)
    return Fragment((m, n), kept, tuple(mode for mode in value if mode[0] > 1))
