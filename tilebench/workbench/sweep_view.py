"""A sweep as a bench without a kernel: what a file of one shows anywhere, also where its card is not."""

from __future__ import annotations

from typing import Any

from ..sweeps.engine import SweepProgress
from ..sweeps.result import Sweep
from .chart import ChartCeilings
from .parts import static_bundle
from .picture import Picture
from .sweeping import SweepShown
from .wish import Wish, placed


def sweep_picture(sweep: Sweep) -> Picture:
    """The picture of a sweep: the compilation of its best row, its chart and its table."""
    record, best = sweep.record, sweep.best
    limits = record.limits
    ceilings = None
    if limits:
        ceilings = ChartCeilings(limits.get("flops"), limits.get("bytes"), record.machine, record.how)
    done = sum(len(row.runs) for row in record.rows)
    progress = SweepProgress(record.rows, done, done)
    state = "done" if sweep.complete else "stopped"
    parameters = dict(record.best.parameters) if record.best is not None else {}
    wish = Wish(parameters, target=record.target)
    return Picture(
        placed(wish, best.config) if best is not None else wish,
        record=record.best,
        ceilings=ceilings,
        sweep=SweepShown(state, progress, record),
        others=record.others,
    )


def sweep_bundle(sweep: Sweep) -> dict[str, Any]:
    """The MIME bundle of a sweep."""
    return static_bundle(sweep_picture(sweep))
