"""The three tiers that answer a move: static figures, compiled text, measurement.

Each tier is a function from a kernel to more of the picture; whoever calls them looks after each
whether the answer is still wanted. Nothing here knows of widgets or threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import ResourceError, TileError
from ..record import CompileRecord, LineCounter, Resources, RunRecord, StageRecord
from ..recorder import make_record

if TYPE_CHECKING:
    from ..kernel import Kernel, Package
    from ..profile.diagnosis import Diagnosis
    from ..reference.check import CheckReport
    from .chart import ChartCeilings

# Shown beside what a target names when nobody chose stages: enough to see each kind of decision, and no
# listing that needs another maker's compiler.
COMMON_SHOWN = ("source", "tile")

Measure = Callable[..., RunRecord]


def stages_shown(kernel: Kernel, wanted: Sequence[str]) -> tuple[str, ...]:
    """The wanted stages that this target's road has, in the wanted order; the usual ones without a wish.

    Where a wish names stages of another road (the target has changed), the usual ones of this road
    that are its own stand in for them.
    """
    road = kernel.stages
    found = [name for name in wanted if name in road]
    own = [name for name in kernel.compilation.manifest.presentation.shown if name in road]
    if len(found) < len(wanted):
        found += [name for name in own if name not in found]
    return tuple(found or [name for name in (*COMMON_SHOWN, *own) if name in road])


def check_stages(kernel: Kernel, wanted: Sequence[str]) -> None:
    """Raise `OptionError`, with the nearest name, for a stage that no target's road has."""
    from ..targets import stage_names

    for name in wanted:
        if name not in kernel.stages and name not in stage_names():
            kernel.compilation.require(name)


def absent_stages(target: str, road: Sequence[str], wanted: Sequence[str]) -> tuple[str, ...]:
    """A sentence for each wanted stage that stands on the road of another target alone."""
    from ..targets import stage_owners

    absent = [name for name in wanted if name not in road]
    owners = stage_owners() if absent else {}
    own = target.partition(":")[0]
    return tuple(
        f"{name} is a stage of {' and '.join(owners[name])}: on {own} its usual stages stand in for it"
        for name in absent
        if name in owners
    )


def _tier_names(kernel: Kernel, tier: str) -> list[str]:
    return [step.name for step in kernel.compilation.manifest.steps if step.tier == tier]


def text_stages(kernel: Kernel) -> list[str]:
    """The stages of a target's own text, which milliseconds make."""
    return _tier_names(kernel, "text")


def record_of(kernel: Kernel, shown: Sequence[str]) -> CompileRecord:
    """The record with every stage that is made, in the road's order; shown ones that are not are pending."""
    compilation = kernel.compilation
    build = compilation.build
    reached = [
        n
        for n in kernel.stages
        if n == "source" or n in compilation.functions or (build is not None and n in build.texts)
    ]
    record = make_record(compilation, reached)
    by_name = {each.name: each for each in record.stages}
    languages = {step.name: step.language for step in compilation.manifest.steps}
    stages = tuple(
        by_name.get(name) or StageRecord(name, languages.get(name, "tile-ir"), "", pending=True)
        for name in kernel.stages
        if name in by_name or name in shown
    )
    return replace(record, stages=stages, resources=static_bound(kernel, record.resources))


def static_bound(kernel: Kernel, resources: Resources | None) -> Resources | None:
    """The resources with the occupancy that threads and shared memory allow, while registers are unknown."""
    occupancy = kernel.compilation.manifest.occupancy
    if resources is None or resources.registers is not None or resources.occupancy is not None:
        return resources
    if occupancy is None:
        return resources
    try:
        found = occupancy(kernel.compilation.machine, resources.threads, 0, resources.shared_bytes)
    except ResourceError:
        return resources
    limits = {k: v for k, v in found.limits.items() if k != "registers"}
    limited = min(limits, key=lambda name: limits[name])
    return replace(
        resources, blocks_per_sm=found.blocks, occupancy=found.fraction, limited_by=limited, limits=limits
    )


def shared_limit(kernel: Kernel) -> int:
    """Bytes of shared memory that a block may take; 0 where a block is one thread and shares none."""
    machine = kernel.compilation.machine
    level = machine.memory.get("shared")
    return level.per_block if level is not None and machine.warp > 1 else 0


def static(kernel: Kernel, shown: Sequence[str]) -> CompileRecord:
    """Tier 0 and the text: every IR stage and the target's own text; milliseconds, no other maker's tool."""
    for row in kernel.compilation.rows:
        if row.name in kernel.stages:
            kernel.compilation.reach(row.name)
    for name in _tier_names(kernel, "text"):
        kernel.compilation.reach(name)
    return record_of(kernel, shown)


def compiled(kernel: Kernel, shown: Sequence[str]) -> CompileRecord:
    """Tier 1: what the target's compiler makes: code, and what it takes."""
    if kernel.compilation.edits:
        from ..kernel.measuring.trial import try_edited

        try_edited(kernel)
    for name in _tier_names(kernel, "code"):
        kernel.compilation.reach(name)
    return record_of(kernel, shown)


def begin_later(kernel: Kernel, shown: Sequence[str]) -> bool:
    """Start what is made in the background for a shown stage; whether there is any."""
    names = [name for name in _tier_names(kernel, "later") if name in shown]
    for name in names:
        kernel.compilation.begin(name)
    return bool(names)


def later(kernel: Kernel, shown: Sequence[str]) -> CompileRecord:
    """What takes another program: the disassembly."""
    for name in _tier_names(kernel, "later"):
        if name in shown:
            kernel.compilation.reach(name)
    return record_of(kernel, shown)


def later_stages(kernel: Kernel) -> list[str]:
    """The stages that are made in the background, by another program."""
    return _tier_names(kernel, "later")


def countable(kernel: Kernel) -> tuple[str, ...]:
    """The ways in which figures of lines can be had for a kernel, besides those of texts that are made."""
    from ..kernel.measuring.profiled import why_not_profiled
    from ..kernel.measuring.simulated import why_not_simulated

    out = ["code"] if later_stages(kernel) else []
    out += [] if why_not_simulated(kernel.compilation) else ["simulator"]
    return (*out, *([] if why_not_profiled(kernel.compilation) else ["card"]))


def count_lines(kernel: Kernel, how: str, *, cancel: threading.Event) -> tuple[LineCounter, ...]:
    """Count what a block does line by line, in the simulator, or what the card's profiler says.

    In the measuring child: a move of a slider ends it. Raises what refuses the kernel.
    """
    from ..kernel.measuring.package import package_of
    from ..runtime.job import Job
    from ..runtime.worker import default_worker

    package = package_of(kernel, kernel.calls.binder.of(kernel.sizes).values)
    if how == "card":
        from ..kernel.measuring.profiled import profile_lines

        record = later(kernel, later_stages(kernel))
        return profile_lines(package, record, cancel=cancel)
    from ..kernel.measuring import counted

    stage = next(reversed(kernel.compilation.functions))
    job = Job(f"{counted.__name__}:count_simulated", (package, stage), name=f"simulating {kernel.name}")
    return default_worker().call(job, cancel=cancel, timeout=0)


def runs_here(kernel: Kernel) -> bool:
    """Whether this machine can run the kernel's code."""
    return kernel.compilation.manifest.available()[0]


def editable_stages(kernel: Kernel) -> tuple[str, ...]:
    """The stages of a kernel's road whose texts compile on, in its order."""
    from ..kernel.continued import editable

    starts = editable(kernel.compilation.manifest)
    return tuple(name for name in kernel.stages if name in starts)


def why_not_checked(kernel: Kernel) -> str:
    """Why nothing here can check the kernel, in words; empty where it runs or the simulator takes it."""
    from ..kernel.measuring.simulated import why_not_simulated

    return "" if runs_here(kernel) else why_not_simulated(kernel.compilation)


def elsewhere_note(kernel: Kernel, why_not_checked: str) -> str:
    """A sentence on an edited kernel whose target does not run here."""
    why = kernel.compilation.manifest.available()[1]
    checked = (
        f"nothing here checks it ({why_not_checked})"
        if why_not_checked
        else ("a check runs it in the simulator")
    )
    return f"{kernel.target} cannot run here ({why}): the edited kernel is not timed, and {checked}"


def measure(
    kernel: Kernel,
    *,
    check: bool = False,
    cancel: threading.Event,
    on_progress: Callable[[Any], None],
    with_: Measure | None = None,
) -> RunRecord:
    """Tier 2: time the kernel in the measuring child. A failure stands in the record."""
    from ..sweeps.measuring import ROUNDS, SECONDS, measure_once

    timed: Measure = with_ or measure_once
    try:
        return timed(
            kernel, rounds=ROUNDS, seconds=SECONDS, check=check, cancel=cancel, on_progress=on_progress
        )
    except TileError as error:
        if cancel.is_set():
            raise
        return RunRecord(kernel.name, kernel.target, dict(kernel.parameters), failure=error.message)


def check(kernel: Kernel, *, cancel: threading.Event, seed: int = 0) -> CheckReport:
    """Compare every element with the reference, in the measuring child: on random arrays from `seed`.

    In the simulator where the kernel's target does not run here.
    There for the same reasons as a measurement: a wild store or an endless loop costs the check, not
    the notebook, and a slider that moves on ends it. Raises `Cancelled`, or what the child met.
    """
    from ..kernel.measuring.package import package_of
    from ..runtime.job import Job
    from ..runtime.worker import default_worker

    package = package_of(kernel, kernel.calls.binder.of(kernel.sizes).values)
    if runs_here(kernel):
        job = Job(f"{__name__}:check_package", (package, seed), name=f"checking {kernel.name}")
        return default_worker().call(job, cancel=cancel)
    from ..kernel.measuring import simulated

    # A product of 1024 takes a minute there: who does not want to wait stops it.
    job = Job(f"{simulated.__name__}:check_simulated", (package, seed), name=f"simulating {kernel.name}")
    return default_worker().call(job, cancel=cancel, timeout=0)


def check_package(package: Package, seed: int) -> CheckReport:
    """What runs in the child."""
    from ..kernel.measuring.measure import TimedKernel, random_inputs, tile_of
    from ..reference import check_function

    session = TimedKernel(package, random_inputs(package, seed))
    before = {p.name: a.copy() for p, a in zip(package.arguments, session.arrays, strict=True)}
    session.run()
    session.outputs()  # from the device into the arrays, where there is one
    after = {p.name: a for p, a in zip(package.arguments, session.arrays, strict=True)}
    return check_function(tile_of(package), before, after, fresh=package.outputs, threads=package.threads)


def ceilings_of(kernel: Kernel, cancel: threading.Event | None = None) -> ChartCeilings | None:
    """The measured ceilings of the device that a kernel runs on; None when they cannot be measured."""
    from ..kernel.measuring.diagnosing import measured_ceilings, peak_dtype
    from .chart import machine_ceilings

    measured = measured_ceilings(kernel, cancel)
    return machine_ceilings(measured, peak_dtype(kernel)) if measured is not None else None


def measure_now(kernel: Kernel, config: dict[str, Any], *, check: bool) -> RunRecord:
    """One measurement that nobody cancels, with the configuration to stand in its record.

    Raises `TargetError` where the target cannot run here, else whatever refuses the kernel.
    """
    kernel.executable()
    run = measure(kernel, check=check, cancel=threading.Event(), on_progress=lambda _: None)
    return replace(run, config=plain_config(config))


def diagnosis_of(
    kernel: Kernel,
    record: CompileRecord,
    runs: Sequence[RunRecord],
    config: Mapping[str, Any],
    ceilings: ChartCeilings | None,
) -> Diagnosis:
    """What bounds a kernel, by its compilation and the runs of its own target; `config` is its position."""
    from ..kernel.measuring.diagnosing import case_of
    from ..profile.diagnosis import diagnose

    mine = [run for run in runs if run.target == record.target]
    here = [run for run in mine if dict(run.config) == dict(config)]
    others = [run for run in mine if dict(run.config) != dict(config)]
    limits = (ceilings.flops, ceilings.bytes) if ceilings is not None and mine else (None, None)
    return diagnose(case_of(kernel, record, here, others, limits))


def plain_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration that a record can hold: what is no number or text stands as it is written."""
    return {k: v if isinstance(v, (int, float, str)) else repr(v) for k, v in config.items()}
