"""Other implementations of what a kernel computes, on the same arrays, by the same method, in one child."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..errors import OptionError, TileError, nearest
from ..kernel import Kernel, Package
from ..kernel.measuring.package import package_of
from ..record import RunRecord
from ..runtime.cancel import Cancelled
from ..runtime.job import Job
from ..runtime.worker import Worker, default_worker
from .engine import SweepMethod
from .known import WORDS
from .measuring import ROUNDS, SECONDS, measure_once


@dataclass(frozen=True)
class Other:
    """What a kernel is compared with.

    `what` is a word of `WORDS`, a function of the arrays in parameter order (it returns the result or writes
    it), or, with `pinned`, a function that makes another kernel.
    """

    name: str
    what: Any
    pinned: bool = False


def others_of_words(names: tuple[str, ...], given: Mapping[str, Any]) -> tuple[Other, ...]:
    """The others of words and of functions by name. `OptionError` for a word that is none."""
    for name in names:
        if name not in WORDS:
            close = nearest(name, list(WORDS), limit=1)
            raise OptionError(
                "there is no implementation called {name}", name=name, known=", ".join(WORDS),
                hint=(f"did you mean {close[0]}? " if close else "")
                + "words: {known}; a function of your own is given by a name: against(mine=function)",
            )  # fmt: skip
    for name, what in given.items():
        if not callable(what) and what not in WORDS:
            raise OptionError(
                "{name} is nothing to compare with", name=name, found="{kind}", kind=type(what).__name__,
                expected="a function of the arrays in parameter order, or one of {words}",
                words=", ".join(WORDS),
            )  # fmt: skip
    return (*(Other(name, name) for name in names), *(Other(name, what) for name, what in given.items()))


def problem_text(package: Package) -> str:
    """The arrays and scalars that a kernel is called with: for the same ones others need no other run."""
    parts = [f"{p.name} {'x'.join(map(str, p.shape))} {p.dtype}" for p in package.arguments]
    return ", ".join([*parts, *(f"{name}={value}" for name, value in sorted(package.values.items()))])


def measure_other(
    other: Other,
    kernel: Kernel,
    *,
    package: Package | None = None,
    rounds: int = ROUNDS,
    seconds: float = SECONDS,
    seed: int = 0,
    cancel: threading.Event | None = None,
    worker: Worker | None = None,
) -> RunRecord:
    """One run of another implementation on the kernel's arrays; why there is none stands in its record."""
    sent = package or package_of(kernel, kernel.calls.binder.of(kernel.sizes).values)
    config = {"by": other.name, "arrays": problem_text(sent)}
    try:
        if other.pinned:
            run = measure_once(
                other.what(),
                rounds=rounds,
                seconds=seconds,
                seed=seed,
                check=True,
                cancel=cancel,
                worker=worker,
            )
        else:
            words = (sent, other.name, other.what, seed, rounds, seconds)
            job = Job(f"{__package__}.others_child:time_other", words, name=f"timing {other.name}")
            run: RunRecord = (worker or default_worker()).call(job, cancel=cancel)
    except Cancelled:
        raise
    except TileError as error:
        if cancel is not None and cancel.is_set():
            raise Cancelled("the measurement was stopped") from error
        return RunRecord(other.name, kernel.target, config, failure=error.message)
    return replace(run, kernel=other.name, config=config)


def other_measurer(
    other: Other, method: SweepMethod, cancel: threading.Event | None = None
) -> Callable[[Kernel, Package | None], RunRecord]:
    """What a sweep calls in every pass: on the numbers and by the method of its own runs."""
    return lambda kernel, package: measure_other(
        other, kernel, package=package, rounds=method.rounds, seconds=method.seconds, seed=method.seed,
        cancel=cancel,
    )  # fmt: skip
