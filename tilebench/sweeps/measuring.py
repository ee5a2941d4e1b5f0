"""One run of one kernel in the measuring child: how a bench and a sweep take every time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ..kernel import Kernel, Package
from ..kernel.measuring.package import package_of
from ..record import RunRecord
from ..runtime.job import Job
from ..runtime.worker import Worker, default_worker
from .prepare import code_of

# Of one run. Four of them tell two positions apart, and take under a second together.
ROUNDS = 5
SECONDS = 0.15


def measure_once(
    kernel: Kernel,
    *,
    package: Package | None = None,
    rounds: int = ROUNDS,
    seconds: float = SECONDS,
    seed: int = 0,
    check: bool = False,
    label: str = "",
    sweep: str = "",
    timeout: float | None = None,
    cancel: threading.Event | None = None,
    on_progress: Callable[[Any], None] | None = None,
    worker: Worker | None = None,
) -> RunRecord:
    """A run on random arrays; the kernel stays loaded in the child for its next one.

    Runs of one `sweep`, any text of its own, are held to one result where they are checked.

    Raises `Cancelled`, and `LaunchError` when the child dies or is too slow.
    """
    sent = package or package_of(kernel, kernel.calls.binder.of(kernel.sizes).values)
    job = Job(
        f"{__package__}.child:time_package",
        (sent, code_of(sent), seed, rounds, seconds, check, label, sweep),
        name=f"timing {kernel.name}",
    )  # fmt: skip
    return (worker or default_worker()).call(job, timeout=timeout, cancel=cancel, on_progress=on_progress)
