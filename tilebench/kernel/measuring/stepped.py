"""What a kernel's warps do in which order, without a card: the kernel with clocks in the simulator."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...record import RunRecord
from ...runtime.job import Job
from ...runtime.worker import default_worker
from .clocks import clocked
from .package import Package, package_of
from .simulated import simulate

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence

    from ..kernel import Kernel

# Blocks that are run: the first ones show how warps of one block go.
BLOCKS = 1
METHOD = "steps of the simulator, in their order: they are no time"


def steps(kernel: Kernel, *, cancel: threading.Event | None = None) -> RunRecord:
    """The order in which the first block's warps do what, by the simulator; `event_unit` says `steps`.

    On random arrays, in the measuring child. Raises `TargetError` where a target's threads have no clock, and
    what the simulator refuses.
    """
    from ...profile.timeline import sites_of

    timed = clocked(kernel)
    values = kernel.calls.binder.of(kernel.sizes).values
    config = {k: v for k, v in kernel.parameters.items() if isinstance(v, (int, float, str, bool))}
    timed.reach_code()
    job = Job(
        f"{__name__}:run_stepped",
        (package_of(timed, values), sites_of(timed.record([]).remarks), config | dict(values)),
        name=f"steps of {kernel.name}",
    )
    return replace(default_worker().call(job, cancel=cancel, timeout=0), kernel=kernel.name)


def run_stepped(package: Package, sites: Sequence[Any], config: dict[str, Any]) -> RunRecord:
    """What runs in the child."""
    from ...profile.timeline import events_of
    from .measure import random_inputs

    inputs = random_inputs(package, 0)
    inputs[-1] = np.zeros(package.arguments[-1].extents, np.int64)
    simulate(package, inputs, [(k, 0, 0) for k in range(BLOCKS)])
    events = events_of(inputs[-1], sites)
    return RunRecord(package.kernel, package.target, config, method=METHOD, events=events, event_unit="steps")
