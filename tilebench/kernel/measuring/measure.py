"""Timing a kernel in the measuring child, on copies of the person's arrays or on random ones.

The parent sends a package and gets a plain record back, so a wild store or an endless loop costs
one measurement. What a kernel is compared with travels too and runs in turn with it.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ...errors import ArgumentError, OptionError, flag_option, seconds_option, whole_option
from ...ir import Function, dtype_of, parse_function
from ...record import RunRecord
from ...runtime.arrays import ArgumentChecker
from ...runtime.job import Job
from ...runtime.packed import give_back, take_up
from ...runtime.worker import Worker, default_worker
from ...targets import resolve_machine
from ...targets.devices import HOST
from ..calls.host_arrays import host_copy
from .package import Package, in_order, load_package, package_of

if TYPE_CHECKING:
    from ...reference import CheckReport
    from ..kernel import Kernel


def measure_kernel(kernel: Kernel, arrays: Sequence[Any] = (), **options: Any) -> RunRecord:
    """One kernel timed in the child, with the options of `measure_against`; its record alone.

    A failure of the kernel stands in the record, it is not raised.
    """
    return measure_against(kernel, arrays, **options)[0]


def measure_against(
    kernel: Kernel,
    arrays: Sequence[Any] = (),
    *,
    rounds: int = 5,
    seconds: float = 0.5,
    seed: int = 0,
    check: bool = True,
    against: Mapping[str, Callable[..., Any]] | None = None,
    worker: Worker | None = None,
    timeout: float | None = None,
    cancel: threading.Event | None = None,
    on_progress: Callable[[Any], None] | None = None,
    sizes: Mapping[str, Any] | None = None,
) -> list[RunRecord]:
    """The kernel's record and then one for each callable of `against`, interleaved in one run.

    `seconds` is the time for all rounds of one contender. `check` compares every element with the
    reference first.
    A callable gets the NumPy arrays in parameter order and computes the same result. Raises
    `ArgumentError` for arrays that do not fit, `LaunchError` when the child dies or is too slow.
    """
    _refuse_options(rounds, seconds, seed, check, timeout, against or {})
    call = kernel.call_of(arrays, sizes)
    # NumPy arrays travel as they are, with their strides; those of a device come to the host first.
    copies = [traveller(array) for array in call.arrays]
    package = package_of(kernel, call.values)
    config = {k: v for k, v in kernel.parameters.items() if isinstance(v, (int, float, str, bool))}
    config |= call.values
    job = Job(
        "tilebench.kernel.measuring.measure:run_package",
        (package, copies or None, seed, rounds, seconds, config, check, dict(against or {})),
        name=f"timing {kernel.name}",
    )
    found: list[RunRecord] = (worker or default_worker()).call(
        job, timeout=timeout, cancel=cancel, on_progress=on_progress
    )
    return found


def _refuse_options(
    rounds: int, seconds: float, seed: int, check: bool, timeout: float | None, against: Mapping[str, Any]
) -> None:
    """Raise `OptionError` for an option that can mean nothing, before a child is started for it."""
    from ...profile.timing import LEAST_ROUNDS

    whole_option("rounds", rounds, LEAST_ROUNDS)
    seconds_option("seconds", seconds)
    whole_option("seed", seed, 0)
    flag_option("check", check)
    if timeout is not None:
        seconds_option("timeout", timeout, or_none=True)
    for name, function in against.items():
        if not callable(function):
            raise OptionError(
                "{name} is nothing to compare with", name=name, found="{kind}", kind=type(function).__name__,
                expected="a function of the arrays, in parameter order",
            )  # fmt: skip


def traveller(array: Any) -> Any:
    """What goes to the child for an array: a NumPy array as it lies, without a subclass of it."""
    own = isinstance(cast(object, array), np.ndarray)
    return np.asarray(array) if own else host_copy(array)


def run_package(
    package: Package,
    arrays: list[np.ndarray[Any, Any]] | None,
    seed: int,
    rounds: int,
    seconds: float,
    config: dict[str, Any],
    check: bool,
    against: dict[str, Callable[..., Any]],
) -> list[RunRecord]:
    """What runs in the child: load, check once, time. Returns records, the kernel's first."""
    session = TimedKernel(package, arrays if arrays is not None else random_inputs(package, seed))
    checked = session.check() if check and package.tile_text else None
    found = timed_records(session, rounds, seconds, config, checked, against)
    own = seed if arrays is None else None
    return [replace(record, seed=own) for record in found]


def timed_records(
    session: TimedKernel,
    rounds: int,
    seconds: float,
    config: dict[str, Any],
    checked: CheckReport | None = None,
    against: Mapping[str, Callable[..., Any]] | None = None,
) -> list[RunRecord]:
    """A loaded kernel timed beside callables of its arrays, as records; the kernel's is first."""
    from ...profile.environment import environment
    from ...profile.timing import Contender, measure
    from ...runtime.job import cancelled, report

    package = session.package
    warm_up = session.warm_up()
    contenders = [Contender(package.kernel, session.run, session.renew, session.same)]
    if against:
        session.need_host(", ".join(against))
        contenders += [
            Contender(name, lambda call=call: call(*in_order(package, package.order, session.arrays)))
            for name, call in against.items()
        ]
    found = measure(
        contenders, clock=session.clock, flush=session.flush, seconds=seconds, rounds=rounds,
        progress=lambda each: report({"name": each.name, "round": each.round, "rounds": each.rounds}),
        cancelled=cancelled, watch=session.watch, warm_up=warm_up,
    )  # fmt: skip
    session.timed()
    where = environment(session.manifest.environment())
    records: list[RunRecord] = []
    for contender in contenders:
        record = found.run_record(
            contender.name, kernel=contender.name, target=package.target, config=config, environment=where,
            flops=package.flops, bytes=package.bytes,
        )  # fmt: skip
        record = replace(record, rounds=rounds, budget=seconds)
        if not any(dtype_of(p.dtype).is_float for p in package.arguments):
            record = replace(record, operation="OP")
        if contender.name == package.kernel:
            record = replace(record, edited=package.edited)
            record = record if checked is None else _with_check(record, checked)
            record = record if not record.failure else replace(record, samples=())
        records.append(record)
    return records


def random_inputs(package: Package, seed: int) -> list[np.ndarray[Any, Any]]:
    """Arrays for the parameters from a seed; outputs hold poison."""
    from ...reference import make_inputs

    arrays = make_inputs(tile_of(package), seed)
    return [arrays[argument.name] for argument in package.arguments]


def tile_of(package: Package) -> Function:
    """The kernel in the stage that the reference runs, or else in its last one."""
    return parse_function(
        package.tile_text or package.stage_text, resolve_machine(package.target)[0].registry, "<tile>"
    )


class TimedKernel:
    """A packaged kernel with its arrays where it works on them, as the timing method wants both.

    `arrays` are the host's. Where the target's kernels work elsewhere, `device` holds copies.
    """

    # When a device was last busy with turns of a kernel.
    busy_until = -math.inf

    def __init__(self, package: Package, arrays: list[np.ndarray[Any, Any]]) -> None:
        self.package = package
        self.arrays = arrays
        self.manifest = resolve_machine(package.target)[0]
        executable = load_package(package)
        place = self.manifest.device_arrays
        self.described = ArgumentChecker(package.arguments, HOST)(arrays)
        passed = in_order(package, package.params, self.described)
        self.device = place(executable, passed) if place is not None else None
        self.clock = self.device.clock if self.device is not None else None
        self.flush = self.device.flush if self.device is not None else None
        if self.device is not None:
            self.run: Callable[[], None] = self.device.run
        else:
            self.run = lambda: executable(passed)
        # Of the outputs of the first run: bytes of every configuration of a sweep would be many.
        self.first: list[bytes] = []
        self._kept = self._was_timed = False
        # A kernel that adds to an output gives another result each time; then nothing is compared.
        self.repeatable = not any(p.read and p.written for p in package.arguments)

    def poison(self) -> None:
        """Fill what is only written with what no right result holds."""
        from ...reference import poison

        for param, array in zip(self.package.arguments, self.arrays, strict=True):
            if param.written and not param.read:
                poison(array)
        take_up(self.described)
        if self.device is not None:
            self.device.upload()
            self.device.keep()
            self._kept = True

    def renew(self) -> None:
        """`poison` before each turn: on a device by a copy there, once it was done from the host."""
        if self.device is not None and self._kept:
            self.device.restore()
        else:
            self.poison()

    def outputs(self) -> list[np.ndarray[Any, Any]]:
        """The arrays that the kernel writes, with what stands in them now."""
        if self.device is not None:
            self.device.download()
        give_back(self.described)
        return [a for p, a in zip(self.package.arguments, self.arrays, strict=True) if p.written]

    def same(self) -> str:
        """What is wrong with the outputs after the timed runs; empty when they equal the first run's."""
        if not self.repeatable or not self.first:
            return ""
        from ...reference.chunks import digest

        if self.first != [digest(array) for array in self.outputs()]:
            return "the outputs changed from run to run: a race, or memory read that nothing wrote"
        return ""

    def warm_up(self) -> float:
        """Seconds of launches before the first turn."""
        from ...profile.timing import JUST_NOW_S, WARM_AGAIN_S, WARM_UP_S

        busy = time.monotonic() - TimedKernel.busy_until < JUST_NOW_S
        return WARM_AGAIN_S if self.device is not None and self._was_timed and busy else WARM_UP_S

    def timed(self) -> None:
        """Its turns are over."""
        self._was_timed = True
        if self.device is not None:
            TimedKernel.busy_until = time.monotonic()

    @property
    def watch(self) -> Callable[[], Mapping[str, str]] | None:
        """What reads clocks and power of a card between turns; None on the host, whose do not tell."""
        return self.manifest.environment if self.device is not None else None

    def check(self) -> CheckReport:
        """The check of the first run, whose outputs `same` compares with."""
        from ...reference import check_function

        before, after = self.checked_arrays()
        return check_function(
            tile_of(self.package), before, after, fresh=self.package.outputs, threads=self.package.threads
        )

    def checked_arrays(self) -> tuple[dict[str, np.ndarray[Any, Any]], dict[str, np.ndarray[Any, Any]]]:
        """Arrays by name before and after a first run, whose outputs are kept."""
        before = {p.name: a.copy() for p, a in zip(self.package.arguments, self.arrays, strict=True)}
        return before, self.first_run()

    def first_run(self) -> dict[str, np.ndarray[Any, Any]]:
        """Arrays by name after a first run, whose outputs are remembered."""
        from ...reference.chunks import digest

        self.poison()
        self.run()
        self.first = [digest(array) for array in self.outputs()]
        return {p.name: a for p, a in zip(self.package.arguments, self.arrays, strict=True)}

    def need_host(self, names: str) -> None:
        """Raise `ArgumentError` where the kernel is not timed on NumPy arrays, which comparisons get."""
        if self.device is not None:
            raise ArgumentError(
                "{names} cannot be compared on a device yet", names=names,
                hint='compare on target="cpu", or time it apart',
            )  # fmt: skip


def _with_check(record: RunRecord, report: CheckReport) -> RunRecord:
    """A record with what a check found; what went wrong before stays its failure."""
    largest = report.largest
    return replace(
        record, error=largest.error, bound=largest.bound, unwritten=report.unwritten,
        failure=record.failure or ("" if report.ok else report.verdict),
    )  # fmt: skip
