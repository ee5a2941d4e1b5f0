"""Other implementations of what a bench's kernel computes, timed on the same arrays by the same method."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..profile.positions import ENOUGH_RUNS, Position, positions_by_kernel
from ..record import RunRecord
from ..sweeps.others import Other, measure_other, others_of_words, problem_text
from .wish import Wish, moved

if TYPE_CHECKING:
    from ..kernel import Kernel
    from .picture import Picture
    from .subject import Subject


class OtherRuns:
    """What a bench compares with, and the runs so far: each gets as many as tell two positions apart.

    A run of each follows a run of the kernel, so that they are interleaved; for other arrays they begin anew.
    """

    def __init__(self, measure: Callable[..., RunRecord] = measure_other) -> None:
        self.wanted: tuple[Other, ...] = ()
        self.runs: tuple[RunRecord, ...] = ()
        self._measure = measure

    def want(self, others: Sequence[Other]) -> None:
        """Compare with these too; one of the same name takes the place of the one before."""
        names = {other.name for other in others}
        self.wanted = (*(other for other in self.wanted if other.name not in names), *others)
        self.runs = tuple(run for run in self.runs if run.kernel not in names)

    def turn(self, kernel: Kernel, cancel: threading.Event) -> tuple[RunRecord, ...]:
        """One more run of each that has not enough on this kernel's arrays; gives all runs."""
        from ..kernel.measuring.package import package_of

        package = package_of(kernel, kernel.calls.binder.of(kernel.sizes).values)
        arrays = problem_text(package)
        for other in self.wanted:
            mine = [r for r in self.runs if r.kernel == other.name and r.config.get("arrays") == arrays]
            failed = bool(mine) and bool(mine[-1].failure)
            if len(mine) < ENOUGH_RUNS and not failed and not cancel.is_set():
                self.runs = (*self.runs, self._measure(other, kernel, package=package, cancel=cancel))
        return self.runs


def others_of_bench(
    subject: Subject, wish: Wish, names: Sequence[str], given: Mapping[str, Any]
) -> tuple[Other, ...]:
    """The others of names, of functions, and of configurations of the bench's own kernel."""
    pinned: dict[str, Mapping[str, Any]] = {n: what for n, what in given.items() if isinstance(what, Mapping)}
    plain = {name: what for name, what in given.items() if name not in pinned}

    def making(changes: Mapping[str, Any]) -> Other:
        now = moved(wish, subject.knobs, changes)  # refused now where it is none of the controls
        return Other("", lambda: subject.make(now), pinned=True)

    own = [replace(making(changes), name=name) for name, changes in pinned.items()]
    return (*others_of_words(tuple(names), plain), *own)


def other_positions(picture: Picture) -> tuple[Position, ...]:
    """The other implementations on the arrays that were measured last, each with all its runs."""
    swept = picture.sweep.progress.others if picture.sweep is not None else ()
    runs = (*swept, *picture.others)
    arrays = runs[-1].config.get("arrays") if runs else None
    return positions_by_kernel(run for run in runs if run.config.get("arrays") == arrays)
