"""Who meets whom in a reduction: every partner counts once, whatever the number of threads.

The oracle follows the sets of parts that each thread holds through shuffles and shared memory.
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import prod

import pytest

from tilebench.errors import LayoutError
from tilebench.ir import parse_function, walk
from tilebench.language.reduce import Reduce
from tilebench.language.words import registry
from tilebench.layout import Digit, Fragment
from tilebench.machine import WHOLE_BLOCK
from tilebench.passes.analysis.exchanges import Exchange, exchange_instruction, exchange_of, exchange_row
from tilebench.targets.cuda.machines import machine_of

WARP = 32


def part_of(thread: int, layout: Fragment) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The result that a thread has a part of, and which part of it."""
    digits = layout.thread_digits
    values = [thread // digit.divisor % digit.modulus for digit in digits]
    kept = tuple(value for value, digit in zip(values, digits, strict=True) if digit.dim == 1)
    part = tuple(value for value, digit in zip(values, digits, strict=True) if digit.dim == 0)
    return kept, part


def folded(layout: Fragment, exchange: Exchange) -> list[Counter[tuple[tuple[int, ...], tuple[int, ...]]]]:
    """What each thread has summed in the end, by result and part."""
    threads = layout.threads
    sums = [Counter([part_of(thread, layout)]) for thread in range(threads)]
    for distance in exchange.shuffles:
        assert distance < WARP
        # A shuffle across the end of the last warp reads a lane that is not there.
        sums = [
            sums[thread] + (sums[thread ^ distance] if thread ^ distance < threads else Counter())
            for thread in range(threads)
        ]
    if not exchange.across:
        return sums
    at_zero = [all(_digit(thread, d) == 0 for d in exchange.lanes) for thread in range(threads)]
    met: dict[tuple[int, ...], Counter[tuple[tuple[int, ...], tuple[int, ...]]]] = {}
    rows: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
    for thread in range(threads):
        if at_zero[thread]:
            kept = part_of(thread, layout)[0]
            row = tuple(_digit(thread, digit) for digit in exchange.across)
            assert row not in rows.setdefault(kept, set()), "two threads lay a part in one place"
            rows[kept].add(row)
            met[kept] = met.get(kept, Counter()) + sums[thread]
    assert all(len(found) == exchange.parts for found in rows.values())
    return [met[part_of(thread, layout)[0]] for thread in range(threads)]


def _digit(thread: int, digit: Digit) -> int:
    return thread // digit.divisor % digit.modulus


def fragment(modes: list[tuple[int, int]]) -> Fragment:
    """Threads by (count, dimension), fastest first; dimension 0 is reduced."""
    extents, thread = [1, 1], []
    for count, dim in modes:
        thread.append((count, dim, extents[dim]))
        extents[dim] *= count
    return Fragment((extents[0], extents[1]), tuple(thread))


COUNTS = (1, 2, 3, 4, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96, 128, 160, 192, 224, 256)
ALONE = [[(count, 0)] for count in COUNTS]
BESIDE = [
    [(kept, 1), (count, 0)] for kept, count in product((2, 3, 4, 6, 8, 32), COUNTS) if kept * count <= 256
]
SPLIT = [[(a, 0), (kept, 1), (b, 0)] for a, kept, b in product((2, 3, 8, 16), (2, 3, 4), (2, 3, 4, 6))]


@pytest.mark.parametrize("modes", [*ALONE, *BESIDE, *SPLIT], ids=str)
def test_every_partner_counts_once(modes: list[tuple[int, int]]) -> None:
    layout = fragment(modes)
    wanted = {part_of(other, layout) for other in range(layout.threads)}
    for thread, sums in enumerate(folded(layout, exchange_of(layout, 0, WARP))):
        kept = part_of(thread, layout)[0]
        assert sums == Counter(part for part in wanted if part[0] == kept), f"thread {thread}"


@pytest.mark.parametrize(
    ("modes", "shuffles", "parts"),
    [
        ([(32, 0)], (1, 2, 4, 8, 16), 1),
        ([(8, 1), (4, 0)], (8, 16), 1),
        ([(256, 0)], (1, 2, 4, 8, 16), 8),
        # 192 = 32 * 6 and 224 = 32 * 7: the warps halve, and the rest meets in shared memory.
        ([(192, 0)], (1, 2, 4, 8, 16), 6),
        ([(224, 0)], (1, 2, 4, 8, 16), 7),
        ([(12, 0)], (1, 2), 3),
        ([(3, 1), (32, 0)], (), 32),
        ([(64, 1), (4, 0)], (), 4),
    ],
)
def test_shuffles_over_powers_of_two(
    modes: list[tuple[int, int]], shuffles: tuple[int, ...], parts: int
) -> None:
    found = exchange_of(fragment(modes), 0, WARP)
    assert (found.shuffles, found.parts) == (shuffles, parts)


def reduction() -> Reduce:
    text = """@T.prim_func
def f():
    with T.Kernel(1, threads=32) as bx:
        x = T.alloc_fragment((16, 16), T.float32)
        s = T.alloc_fragment((16,), T.float32)
        T.reduce_sum(x, s, dim=0)
"""
    return next(node for node in walk(parse_function(text, registry())) if isinstance(node, Reduce))


@pytest.mark.parametrize("modes", [*ALONE, *BESIDE, *SPLIT], ids=str)
def test_the_row_is_the_cheapest_that_reaches_all(modes: list[tuple[int, int]]) -> None:
    """By the name of the row: `thread` where nobody has to be met, `shfl` where shuffles alone do."""
    machine, layout = machine_of("sm_80"), fragment(modes)
    rows = machine.instructions_for("reduce")
    exchange = exchange_of(layout, 0, machine.warp)
    wanted = "shared" if exchange.across else "shfl" if exchange.shuffles else "thread"
    row = exchange_row(reduction(), rows, layout, machine)
    lanes = prod(count for count, dim in modes if dim == 0)
    assert row.name == wanted
    assert exchange_instruction(reduction(), row, layout).lanes == (lanes if lanes > 1 else 0)
    assert row.group == WHOLE_BLOCK or wanted != "shared"


def test_a_row_that_does_not_reach_is_refused_with_the_layout() -> None:
    machine, layout = machine_of("sm_80"), fragment([(64, 0)])
    rows = [row for row in machine.instructions_for("reduce") if row.name == "shfl"]
    with pytest.raises(LayoutError, match=r"out of reach of shfl"):
        exchange_row(reduction(), rows, layout, machine)
