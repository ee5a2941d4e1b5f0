"""`tilebench.sweep` and `tilebench.open_sweep`."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import OptionError
from ..kernel.available import require_available
from ..record import SweepRecord, SweepRow
from ..targets import Manifest, resolve
from .candidates import Making, candidates_of
from .engine import Measure, SweepEngine, SweepMethod, SweepProgress
from .finish import finished, of_this_machine
from .others import Other, other_measurer, others_of_words
from .prepare import SweepCandidate
from .result import Sweep, open_record

if TYPE_CHECKING:
    from ..kernel import JitFunction, Kernel
    from ..schedule import Schedule, ScheduleFile


def sweep(
    kernel: JitFunction | Kernel,
    domains: Mapping[str, Sequence[Any]],
    *,
    with_: Mapping[str, Any] | None = None,
    target: str | None = None,
    schedule: Schedule | ScheduleFile | str | Path | None = None,
    run: bool = True,
    check: bool = True,
    repeats: int = SweepMethod().repeats,
    seed: int = 0,
    path: str | Path | None = None,
    against: Mapping[str, Any] | Sequence[str] = (),
    progress: Callable[[SweepProgress], object] | bool | None = None,
    cancel: threading.Event | None = None,
    measure: Measure | None = None,
) -> Sweep:
    """Compile, check and time every combination of values of a kernel function's parameters.

    `domains` are values by name: parameters, choices of the schedule (`ko.num_stages`), sizes of a call;
    `with_` are the others' values. Each configuration gets `repeats` runs in the measuring child with all
    others between them, so that the spread of each shows what the machine drifted by; what the compiler
    refuses and what fails has its reason in its row. `check` compares every element with the reference,
    `run=False` only compiles. With `path` the sweep is kept in a file, also when it is interrupted, and goes
    on from what that file has of the same code on the same machine. `against` are other implementations on
    the same arrays by the same method: names (`numpy`, `torch`, `torch.compile`, `cublas`, `triton`) or
    functions of the arrays by name. `progress` is called after each step (True: a line on a terminal);
    `cancel` ends it early; `measure` stands in for the child in tests.

    Raises what is wrong with the arguments, `TargetError` where the target cannot run here.
    """
    making = Making(kernel, with_ or {}, target, schedule)
    if run and measure is None:
        require_available(making.manifest, kernel.name, making.machine.name)
    return sweep_of(
        candidates_of(making, domains), kernel=kernel.name, target=making.target, domains=domains,
        method=SweepMethod(repeats=repeats, check=check, seed=seed, run=run), path=path, progress=progress,
        cancel=cancel, measure=measure, others=_others(against),
    )  # fmt: skip


def _others(against: Mapping[str, Any] | Sequence[str]) -> tuple[Other, ...]:
    if isinstance(against, str):
        against = [against]
    named = isinstance(against, Mapping)
    return others_of_words((), against) if named else others_of_words(tuple(against), {})


def sweep_of(
    candidates: Sequence[SweepCandidate],
    *,
    kernel: str,
    target: str | None,
    domains: Mapping[str, Sequence[Any]],
    method: SweepMethod | None = None,
    path: str | Path | None = None,
    progress: Callable[[SweepProgress], object] | bool | None = None,
    cancel: threading.Event | None = None,
    measure: Measure | None = None,
    others: Sequence[Other] = (),
) -> Sweep:
    """`sweep` of candidates that somebody else has made, all of one kernel and target."""
    method = method or SweepMethod()
    if method.repeats < 1:
        raise OptionError(
            "a sweep of {repeats} runs measures nothing", repeats=method.repeats, expected="1 or more"
        )
    manifest, machine = resolve(target)
    engine = SweepEngine(
        candidates, method, device=manifest.device, known=_known(path, kernel, manifest), measure=measure,
        cancel=cancel, show=_shower(progress),
        others=[other_measurer(other, method, cancel) for other in others],
    )  # fmt: skip
    plain = {name: tuple(values) for name, values in domains.items()}
    record = SweepRecord(kernel, machine.name, plain, (), method.repeats, method.check)
    try:
        engine.run()
    finally:  # an interrupt costs nothing that was measured
        record = replace(
            record, rows=tuple(engine.rows), seconds=engine.seconds, others=tuple(engine.other_runs)
        )
        if path is not None:
            Sweep(record).save(path, overwrite=True)
    made = Sweep(finished(record, engine, ceilings=method.run and measure is None))
    if path is not None:
        made.save(path, overwrite=True)
    return made


def _known(path: str | Path | None, kernel: str, manifest: Manifest) -> tuple[SweepRow, ...]:
    """The rows that a file has of this machine."""
    if path is None or not Path(path).exists():
        return ()
    found = open_record(path)
    if found.kernel != kernel:
        raise OptionError(
            "{path} holds a sweep of {other}, and this is one of {kernel}", path=path, other=found.kernel,
            kernel=kernel, hint="give another path, or remove the file",
        )  # fmt: skip
    return of_this_machine(found.rows, manifest)


def _shower(
    progress: Callable[[SweepProgress], object] | bool | None,
) -> Callable[[SweepProgress], object] | None:
    if progress is True or (progress is None and sys.stderr.isatty()):
        return ProgressLine()
    return progress if callable(progress) else None


class ProgressLine:
    """A line of progress on a terminal, written when something has changed."""

    def __init__(self) -> None:
        self._last = ""

    def __call__(self, now: SweepProgress) -> None:
        left = f", {now.left:.0f} s left" if now.left is not None and now.done < now.total else ""
        text = f"{now.done}/{now.total} runs{left}"
        if text != self._last:
            end = "\n" if now.done >= now.total else ""
            print(f"\r{text:<40}", end=end, file=sys.stderr, flush=True)
            self._last = text


def open_sweep(path: str | Path) -> Sweep:
    """The sweep of a file that `Sweep.save` wrote; no card is needed to look at it.

    Raises `OptionError` where the file cannot be read or holds something else.
    """
    return Sweep(open_record(path))
