"""Clocks inside a kernel: the same kernel with them, timed beside it in the measuring child."""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import TargetError
from ...language.closing.clocks import with_clocks
from ...language.lowered.clocks import ReadClock
from ...record import RunRecord
from ...runtime.job import Job
from ...runtime.worker import default_worker
from .measure import TimedKernel, random_inputs
from .package import Package, package_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..kernel import Kernel


def clocked(kernel: Kernel) -> Kernel:
    """The kernel with clocks in it. Raises `TargetError` where a target's threads have none to read."""
    compilation = kernel.compilation
    if ReadClock not in compilation.manifest.intrinsic_rows:
        raise TargetError(
            "{target} has no clock that a kernel reads", target=compilation.machine.name,
            hint="compile it for a card, as --target cuda:sm_90a; without one here the order of steps is "
            "the simulator's",
        )  # fmt: skip
    compilation.refuse_edited("a kernel with clocks")
    traced = kernel.calls.traced
    function, printed = with_clocks(traced.function, traced.printed)
    traced = replace(traced, function=function, printed=printed)
    made = type(kernel)(
        traced, compilation.manifest, compilation.machine, kernel.schedule, out_idx=kernel.outputs,
        start=compilation.start, meaning=kernel.meaning,
    )  # fmt: skip
    return made.at(kernel.sizes)


def timeline(
    kernel: Kernel,
    arrays: Sequence[Any] = (),
    *,
    rounds: int = 5,
    seconds: float = 0.3,
    seed: int = 0,
    sizes: Mapping[str, Any] | None = None,
) -> RunRecord:
    """A run of the kernel with and without clocks, in turn; the record has the events of its first blocks.

    On copies of the arrays or on random ones. A failure stands in the record. Raises `TargetError` where the
    target has no clocks.
    """
    from ...profile.timeline import sites_of
    from .measure import traveller

    timed = clocked(kernel)
    call = kernel.call_of(arrays, sizes)
    copies = [traveller(array) for array in call.arrays]
    config = {k: v for k, v in kernel.parameters.items() if isinstance(v, (int, float, str, bool))}
    config |= call.values
    timed.reach_code()
    both = package_of(kernel, call.values), package_of(timed, call.values)
    job = Job(
        "tilebench.kernel.measuring.clocks:run_clocked",
        (*both, sites_of(timed.record([]).remarks), copies or None, seed, rounds, seconds, config),
        name=f"clocks of {kernel.name}",
    )
    return default_worker().call(job)


def run_clocked(
    package: Package,
    with_them: Package,
    sites: Sequence[Any],
    arrays: list[np.ndarray[Any, Any]] | None,
    seed: int,
    rounds: int,
    seconds: float,
    config: dict[str, Any],
) -> RunRecord:
    """What runs in the child: both kernels timed in turn, then one run whose events are kept."""
    from ...profile.environment import environment
    from ...profile.timeline import events_of
    from ...profile.timing import Contender, measure
    from ...runtime.job import cancelled

    inputs = arrays if arrays is not None else random_inputs(package, seed)
    plain = TimedKernel(package, [array.copy() for array in inputs])
    rows = np.zeros(with_them.arguments[-1].extents, np.int64)
    clocks = TimedKernel(with_them, [*[array.copy() for array in inputs], rows])
    both = [Contender(package.kernel, plain.run), Contender("with clocks", clocks.run)]
    found = measure(
        both, clock=plain.clock, flush=plain.flush, seconds=seconds, rounds=rounds, cancelled=cancelled
    )
    record, other = (
        found.run_record(
            each.name, kernel=package.kernel, target=package.target, config=config,
            environment=environment(plain.manifest.environment()), flops=package.flops, bytes=package.bytes,
        )
        for each in both
    )  # fmt: skip
    own = clocks.arrays[-1]
    own[...] = 0
    if clocks.device is not None:
        clocks.device.upload()
    clocks.run()
    clocks.outputs()
    time = median(other.samples) if other.samples else None
    return replace(record, events=events_of(own, sites), clocked_seconds=time)
