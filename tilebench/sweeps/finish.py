"""What a sweep's record gets at its end: the compilation of the best row, and the machine's ceilings."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace

from ..errors import TileError
from ..kernel import Kernel
from ..kernel.measuring.diagnosing import measured_ceilings, peak_dtype
from ..profile.environment import environment
from ..record import SweepRecord, SweepRow
from ..targets import Manifest
from .engine import SweepEngine
from .result import Sweep

# What tells one machine from another in the environment of a run.
_MACHINE = ("processor", "gpu0_name")


def finished(record: SweepRecord, engine: SweepEngine, *, ceilings: bool) -> SweepRecord:
    """The record with the best row's compilation and, where asked for, the ceilings of its device."""
    best = Sweep(record).best
    kernel = engine.kernel_of(best) if best is not None else None
    if kernel is None:
        return record
    with contextlib.suppress(TileError):  # a listing that needs another maker's tool may be missing
        record = replace(record, best=kernel.record())
    return with_limits(record, kernel) if ceilings else record


def with_limits(record: SweepRecord, kernel: Kernel) -> SweepRecord:
    """The record with the measured ceilings of the device that the kernel runs on."""
    found = measured_ceilings(kernel)
    if found is None:
        return record
    limits = {"flops": found.peak(peak_dtype(kernel)) or 0.0, "bytes": found.most_bytes_s}
    how = "; ".join(part for part in (found.method, found.when) if part)
    return replace(record, limits=limits, machine=found.device, how=how)


def of_this_machine(rows: Sequence[SweepRow], manifest: Manifest) -> tuple[SweepRow, ...]:
    """The rows whose runs were made on this machine; one without runs is of any."""
    here = environment(manifest.environment()) if any(row.runs for row in rows) else {}
    return tuple(
        row
        for row in rows
        if all(run.environment.get(name) == here.get(name) for run in row.runs for name in _MACHINE)
    )
