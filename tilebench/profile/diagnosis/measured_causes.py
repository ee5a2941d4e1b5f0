"""Causes that only runs and checks show."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .case import Case, Cause, Evidence
from .static_causes import Row, percent

# A rate this far above a ceiling is none of that ceiling's.
ABOVE = 1.05
# A launch shorter than this many times the cost of launching is mostly launching.
LAUNCH_S = 4e-6
# Clocks that fell by more than this while it ran.
THROTTLED = 0.9


def wrong_on_one_target(case: Case) -> Cause | None:
    """Right on one target and wrong on another: the kernel relies on what only one of them does."""
    return wrong_on(case.checks)


def wrong_on(checks: Mapping[str, bool]) -> Cause | None:
    """The same of checks by target alone."""
    right = sorted(name for name, ok in checks.items() if ok)
    wrong = sorted(name for name, ok in checks.items() if not ok)
    if not right or not wrong:
        return None
    what = f"results are right on {', '.join(right)} and wrong on {', '.join(wrong)}"
    to_try = "the simulator, which names a race or an access outside, then the first stage that differs"
    figures = (Evidence("right", ", ".join(right)), Evidence("wrong", ", ".join(wrong)))
    return Cause("wrong_on_one_target", "schedule", what, to_try, figures, 1.0)


def cached_bandwidth(case: Case) -> Cause | None:
    """More bytes a second than memory has: they came from a cache."""
    run, ceiling = case.run, case.ceilings[1]
    if run is None or not run.seconds or not run.bytes or not ceiling:
        return None
    rate = run.bytes / run.seconds
    if rate <= ceiling * ABOVE:
        return None
    return Cause(
        "cached", "memory", f"{rate / ceiling:.2g} times the bandwidth of memory: the arrays lie in a cache",
        "arrays that are larger than the cache, or a method that empties it before each launch",
        (Evidence("bytes a second", f"{rate:.3g}"), Evidence("measured ceiling", f"{ceiling:.3g}"),
         Evidence("bytes", f"{run.bytes:.3g}"), Evidence("method", run.method.split(";")[0])), 0.0,
    )  # fmt: skip


def throttled(case: Case) -> Cause | None:
    """A card that lowered its clocks while it was timed."""
    run = case.run
    if run is None:
        return None
    for name, value in run.environment.items():
        clocks = (
            [float(each) for each in re.findall(r"\d+(?:\.\d+)?", value)] if name.endswith("sm_clock") else []
        )
        if len(clocks) > 1 and min(clocks) < THROTTLED * max(clocks):
            power = run.environment.get(name.replace("sm_clock", "power"), "")
            return Cause(
                "throttled", "compute", "the card lowered its clocks while this was timed",
                "compare only figures of one run, and leave time between measurements",
                (Evidence("clocks", value), *((Evidence("power", power),) if power else ())),
                1 - min(clocks) / max(clocks),
            )  # fmt: skip
    return None


def launch_bound(case: Case) -> Cause | None:
    """A kernel that is over before its launch has paid."""
    run = case.run
    if run is None or not run.seconds or run.seconds > LAUNCH_S or case.machine.warp == 1:
        return None
    return Cause(
        "launch_bound", "launch", f"a launch takes {run.seconds * 1e6:.2g} us, of which most is launching",
        "several of these in one kernel, or a graph of them",
        (Evidence("time", f"{run.seconds * 1e6:.2g} us"),), 0.8,
    )  # fmt: skip


def slower_than_another(case: Case) -> Cause | None:
    """A position that was measured before is faster, beyond what runs of one position differ by."""
    run = case.run
    if run is None:
        return None
    mine = min(each.seconds for each in case.runs if each.seconds)
    same = [(r.seconds, r) for r in case.others if r.seconds and (r.flops, r.bytes) == (run.flops, run.bytes)]
    there, best = min(same, key=lambda pair: pair[0], default=(mine, run))
    if there > 0.95 * mine:
        return None
    told = " ".join(f"{k}={v}" for k, v in best.config.items() if run.config.get(k) != v)
    part = 1 - there / mine
    figures = (Evidence("there", f"{there * 1e6:.4g} us"), Evidence("here", f"{mine * 1e6:.4g} us"))
    what = f"{told or 'another position'} was {percent(part)} faster"
    return Cause("better_position", "schedule", what, told or "that position", figures, part)


MEASURED: tuple[Row, ...] = (
    wrong_on_one_target, cached_bandwidth, throttled, launch_bound, slower_than_another,
)  # fmt: skip
