"""The configurations of a tuning through the engine of sweeps: what becomes of each."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from ..kernel import Kernel
from ..profile.positions import Position
from ..record import RunRecord, SweepRow
from ..sweeps import SweepCandidate, SweepEngine, SweepMethod
from .bench import RUNS, Bench, GivenUp
from .trials import Trial

# One whose first run takes so many times as long as the best is not the best.
WITHIN = 1.25


def tried(trials: Sequence[Trial], bench: Bench) -> tuple[Trial, ...]:
    """The trials, those with a kernel compiled and timed, in the same order.

    The best are told apart by `RUNS` runs each; what the compiler refuses is `illegal`, what does not run,
    runs wrong or never ends is `failed`.
    """
    # Copies, so that each stands for one configuration, also where two make the same kernel.
    kernels = {k: copy.copy(trial.kernel) for k, trial in enumerate(trials) if trial.kernel is not None}
    numbers = {id(kernel): k for k, kernel in kernels.items()}
    given_up: dict[int, float] = {}

    def measure(kernel: Kernel, *, timeout: float | None, **_: Any) -> RunRecord:
        number = numbers[id(kernel)]
        try:
            return bench.run(kernel, trials[number].arrays, timeout)
        except GivenUp as error:
            given_up[number] = error.seconds
            raise

    method = SweepMethod(repeats=RUNS, seconds=bench.seconds, check=False, within=WITHIN)
    candidates = [
        SweepCandidate({"configuration": number}, lambda kernel=kernel: kernel, packed=False)
        for number, kernel in kernels.items()
    ]
    engine = SweepEngine(candidates, method, measure=measure, all_first=True)
    rows = dict(zip(kernels, engine.run(), strict=True))
    return tuple(
        _ended(trial, rows[number], given_up.get(number)) if number in rows else trial
        for number, trial in enumerate(trials)
    )


def _ended(trial: Trial, row: SweepRow, given_up: float | None) -> Trial:
    """A trial with what the engine found; `given_up` is the estimate after which it was."""
    if given_up is not None:
        return trial.stopped(row.why, 1e3 * given_up)
    seconds = Position(row.runs).seconds if row.state == "timed" else None
    if seconds is not None:
        return trial.timed(1e3 * seconds)
    return trial.without("illegal" if row.state == "illegal" else "failed", row.why)
