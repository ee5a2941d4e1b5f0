"""What another maker's profiler is to the rest: whether it is here, how it runs, what its report says."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..record import CompileRecord, LineCounter


@dataclass(frozen=True)
class LineProfiler:
    """A profiler that counts on the lines of a target's code.

    `missing` says why it cannot be used here, empty where it can. `run(command, names, cancel)` runs a
    command under it, which launches kernels of these names, and gives its report as text; when `cancel` is
    set it ends both at once, and what it gives is no report. `read(report, record)` makes counters of a
    report for the stages of a record. Both raise `TargetError` with what was said.
    """

    name: str
    missing: Callable[[], str]
    run: Callable[[Sequence[str], Sequence[str], threading.Event], str]
    read: Callable[[str, CompileRecord], tuple[LineCounter, ...]]
