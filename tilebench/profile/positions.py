"""Runs by position: what the measurements of one configuration say together, and when two positions differ.

One run is a few tenths of a second on a machine that does other things too. What it says of itself (the
interval of its median) is narrower than the truth: the next run of the same code may lie outside. So runs
are kept by position, and a difference counts only where it is larger than what runs of one position differ
by.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from ..record import RunRecord

# A difference is taken for one when equal positions would show it in fewer cases than this.
LEVEL = 0.05
# Runs of each position that are enough for that: 2 / C(8, 4) = 0.029.
ENOUGH_RUNS = 4
# What one configuration's runs were seen to differ by on a machine that did nothing else: a card's clock goes
# from 1980 down to 1755 MHz as it nears its power limit.
DRIFT = 0.15
DOUBT = (
    f"?: apart by less than machines drift from run to run ({DRIFT:.0%}), of too few runs to tell: "
    f"{ENOUGH_RUNS} of each are enough."
)


def median_interval(samples: Sequence[float], level: float = 0.95) -> tuple[float, float] | None:
    """An interval for the median from order statistics, without assuming a distribution.

    The count of samples below the true median is binomial(n, 1/2); the widest pair of order
    statistics whose coverage reaches `level` is taken from the middle outwards (David and Nagaraja,
    Order Statistics, section 7.1). With fewer than 6 samples no pair reaches 95 %: smallest and
    greatest are given. None without samples.
    """
    ordered = sorted(samples)
    n = len(ordered)
    if n == 0:
        return None
    if n > 1000:  # the normal approximation is exact to a rank here, and needs no great binomials
        half = 0.98 * math.sqrt(n)
        low = math.floor(n / 2 - half)
        return ordered[low], ordered[n - 1 - low]
    chosen = [math.comb(n, k) for k in range(n + 1)]
    low = (n - 1) // 2
    while low > 0 and sum(chosen[low + 1 : n - low]) / 2**n < level:
        low -= 1
    return ordered[low], ordered[n - 1 - low]


@lru_cache(maxsize=4096)
def _interval(samples: tuple[float, ...]) -> tuple[float, float] | None:
    """The same, once for each run: a chart of a sweep asks for hundreds with every picture."""
    return median_interval(samples)


@dataclass(frozen=True)
class Position:
    """The runs of one configuration, oldest first (at least one). Times in seconds.

    Where the last run has no time, the position has none: what it was before is no longer so.
    """

    runs: tuple[RunRecord, ...]

    @property
    def last(self) -> RunRecord:
        """The newest run."""
        return self.runs[-1]

    @property
    def config(self) -> Mapping[str, Any]:
        return self.last.config

    @cached_property
    def timed(self) -> tuple[RunRecord, ...]:
        """The runs that have a time; none where the last one has none."""
        return tuple(run for run in self.runs if run.seconds) if self.last.seconds else ()

    @cached_property
    def medians(self) -> tuple[float, ...]:
        """The time of each run."""
        return tuple(run.seconds for run in self.timed if run.seconds)

    @cached_property
    def seconds(self) -> float | None:
        """The median of the runs' medians."""
        return statistics.median(self.medians) if self.medians else None

    @cached_property
    def range(self) -> tuple[float, float] | None:
        """From the least to the greatest of all runs' intervals: what runs differ by is in it."""
        found = [interval for run in self.timed if (interval := _interval(run.samples))]
        return (min(low for low, _ in found), max(high for _, high in found)) if found else None


def positions_of(runs: Sequence[RunRecord]) -> tuple[Position, ...]:
    """Runs by kernel, target and configuration, in the order of their first run."""
    found: dict[str, list[RunRecord]] = {}
    for run in runs:
        found.setdefault(position_key(run), []).append(run)
    return tuple(Position(tuple(of_one)) for of_one in found.values())


def same_work(first: Position, second: Position) -> bool:
    """Whether two positions compute as much, so that their times can be compared."""
    return (first.last.flops, first.last.bytes) == (second.last.flops, second.last.bytes)


def position_key(run: RunRecord) -> str:
    """Equal for runs of one position."""
    return repr((run.kernel, run.target, sorted(run.config.items(), key=lambda item: item[0])))


class Difference(NamedTuple):
    """How the time of one position stands to another's, as a part: -0.1 is a tenth less.

    `low` and `high` follow from the ranges of both. `decided`: equal positions would seldom show it.
    """

    part: float
    low: float
    high: float
    decided: bool
    why: str

    @property
    def mark(self) -> str:
        """What stands behind the figure: a question where drift alone could be what it says (`DOUBT`)."""
        apart = self.low > DRIFT or self.high < 1 / (1 + DRIFT) - 1
        return "" if self.decided or apart else " ?"


def difference(now: Position, then: Position) -> Difference | None:
    """The difference between two positions; None when either has no time, or they do not compute as much.

    Decided are two whose ranges lie apart, if that is rare by chance: of n and m runs that differ only by
    chance, all of one side are below all of the other in 2 of C(n + m, n) orders (the exact test of Mann
    and Whitney, 1947).
    """
    if not same_work(now, then) or not now.seconds or not then.seconds or not now.range or not then.range:
        return None
    part = now.seconds / then.seconds - 1
    low, high = now.range[0] / then.range[1] - 1, now.range[1] / then.range[0] - 1
    n, m = len(now.medians), len(then.medians)
    by_chance = 2 / math.comb(n + m, n)
    if low <= 0 <= high:
        return Difference(part, low, high, False, f"within what the {n} and {m} runs differ by")
    if by_chance > LEVEL:
        why = f"{n} and {m} runs are too few to tell; {ENOUGH_RUNS} of each are enough"
        return Difference(part, low, high, False, why)
    return Difference(part, low, high, True, f"the ranges of {n} and {m} runs lie apart")


def is_apart(first: Position, others: Sequence[Position]) -> bool:
    """Whether a position is faster than every other: there is another, and each difference is decided.

    Never where one of them computes more or less.
    """
    found = [difference(first, other) for other in others if other is not first and other.seconds]
    return bool(found) and all(each is not None and each.decided and each.part < 0 for each in found)


class Fastest(NamedTuple):
    """The fastest of several positions; `decided` when what runs differ by does not explain it.

    `number` is its place among them. Of positions that compute more or less than each other it is the one
    with the highest rate (`by_rate`), and is never decided.
    """

    number: int
    position: Position
    decided: bool
    by_rate: bool = False


def positions_by_kernel(runs: Iterable[RunRecord]) -> tuple[Position, ...]:
    """What was run under each kernel's name, each with all its runs, in the order of their first ones."""
    by_name: dict[str, list[RunRecord]] = {}
    for run in runs:
        by_name.setdefault(run.kernel, []).append(run)
    return tuple(Position(tuple(runs)) for runs in by_name.values())


def fastest(positions: Sequence[Position]) -> Fastest | None:
    """The fastest position that has a time; None without one."""
    good = [k for k, position in enumerate(positions) if position.seconds]
    if not good:
        return None
    alike = all(same_work(positions[good[0]], positions[k]) for k in good)
    found = min(good, key=lambda k: rank(positions[k], alike=alike))
    decided = alike and is_apart(positions[found], [positions[k] for k in good])
    return Fastest(found, positions[found], decided, not alike)


def rank(position: Position, *, alike: bool) -> float:
    """What positions are ordered by, the best least: times of the same work (`alike`), else rates."""
    seconds = position.seconds or math.inf
    work = position.last.flops or position.last.bytes
    return seconds if alike or not work else -work / seconds
