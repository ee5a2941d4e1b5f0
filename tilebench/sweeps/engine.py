"""The engine of a sweep: each configuration compiled once and run several times, all others between its runs.

First every configuration gets one run, so that all are seen soon; then each of those that have a time gets
another, and so on. All are timed by one method in one child. What the compiler refuses is `illegal`; what
crashes, never ends or is wrong is `failed`, and costs its own row alone. The order of the passes makes
drift visible: what a machine does meanwhile is in the spread of every configuration.
"""

from __future__ import annotations

import statistics
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import TileError
from ..kernel import Kernel, Package
from ..plain import to_plain
from ..profile.positions import ENOUGH_RUNS, Position
from ..record import RunRecord, SweepRow
from ..runtime.cancel import Cancelled
from ..targets.devices import HOST
from .measuring import ROUNDS, SECONDS, measure_once
from .prepare import CompileAhead, Prepared, SweepCandidate

# A run of so many times what others took is an endless loop; before others are known, the usual limit.
PATIENCE = 30
LEAST_LIMIT_S = 10.0
KNOWN_STEPS = 3

Measure = Callable[..., RunRecord]


@dataclass(frozen=True)
class SweepMethod:
    """How a sweep measures: `repeats` runs of a configuration, each of `rounds` in `seconds`.

    Where only the best is wanted, one that takes `within` times as long as the best so far has enough.
    """

    repeats: int = ENOUGH_RUNS
    rounds: int = ROUNDS
    seconds: float = SECONDS
    check: bool = True
    seed: int = 0
    run: bool = True
    within: float | None = None


@dataclass(frozen=True)
class SweepProgress:
    """How far a sweep is: its rows, steps done of all, and about how many seconds are left, once known."""

    rows: tuple[SweepRow, ...]
    done: int
    total: int
    now: Mapping[str, Any] = field(default_factory=dict[str, Any])
    left: float | None = None
    others: tuple[RunRecord, ...] = ()


class SweepEngine:
    """Runs a sweep; what it has so far stands in `rows` at any time, also after an error or an interrupt.

    `known` are rows of before: what was compiled from the same code is not run again. `others` measure other
    implementations on the arrays of a kernel; each has a turn in every pass. `measure` stands in
    for the measuring child; `show` gets the progress after each step, `paused` holds the next one back
    as long as it is true. `cancel` ends it at once. With `all_first` all are compiled before one is timed.
    """

    def __init__(
        self,
        candidates: Sequence[SweepCandidate],
        method: SweepMethod | None = None,
        *,
        device: str = HOST,
        known: Sequence[SweepRow] = (),
        others: Sequence[Callable[[Kernel, Package | None], RunRecord]] = (),
        measure: Measure | None = None,
        cancel: threading.Event | None = None,
        show: Callable[[SweepProgress], object] | None = None,
        paused: Callable[[], bool] = lambda: False,
        all_first: bool = False,
    ) -> None:
        self.candidates = list(candidates)
        self.method = method or SweepMethod()
        self.cancel = cancel or threading.Event()
        self.seconds = 0.0
        self._known = {config_key(row.config): row for row in known if row.state != "waiting"}
        self._measure = measure or measure_once
        self.show = show
        self._paused = paused
        self._others = others
        self.other_runs: list[RunRecord] = []
        self._names = varied_names([candidate.config for candidate in self.candidates])
        self._ahead = CompileAhead(self.candidates, device, all_first=all_first)
        self._prepared: dict[int, Prepared] = {}
        # One child may serve several sweeps, and what is right in one says nothing of another.
        self._name = uuid.uuid4().hex
        self._took: list[float] = []
        # What was waited for until a candidate was compiled.
        self._waited: list[float] = []
        # The time of the best row; None where one has changed since it was looked for.
        self._least: float | None = None
        # A row of before is shown from the beginning, and looked at again when its turn comes.
        self.rows = [self._known.get(config_key(c.config), SweepRow(c.config)) for c in self.candidates]

    @property
    def complete(self) -> bool:
        """Whether every row has all that it can have."""
        return all(self._is_complete(row) for row in self.rows)

    def run(self) -> tuple[SweepRow, ...]:
        """All rows, as far as they came before `cancel` was set. Interrupts leave what there is in `rows`."""
        start = time.perf_counter()
        try:
            for index in self._steps():
                while self._paused() and not self.cancel.wait(0.05):
                    pass
                self._tell(index)
                if self.cancel.is_set():
                    break
                self._step(index)
            self._tell(None)
        except Cancelled:
            self._tell(None)
        except BaseException:
            self.cancel.set()
            raise
        finally:
            self.seconds += time.perf_counter() - start
            self._ahead.close()
        return tuple(self.rows)

    def kernel_of(self, row: SweepRow) -> Kernel | None:
        """The kernel of one of the rows, where it was compiled."""
        found = next((k for k, one in enumerate(self.rows) if one.config == row.config), None)
        return self._prepared[found].kernel if found in self._prepared else None

    # -- steps
    def _steps(self) -> Iterator[int]:
        """Numbers of candidates: each compiled and run once, then those with a time again, pass by pass."""
        count = len(self.candidates)
        for index in range(count):
            self._prepare(index)
            if self.rows[index].state == "compiled" and self.method.run:
                yield index
        self._run_others()
        for number in range(1, self.method.repeats):
            first = number * count // self.method.repeats
            for index in [*range(first, count), *range(first)]:
                row = self.rows[index]
                if row.state == "timed" and len(row.runs) <= number and not self._is_complete(row):
                    yield index
            self._run_others()
        # What was timed before without a check has all its times, and gets one run with it.
        for index in range(count):
            if self.method.run and self._unchecked(index):
                yield index

    def _run_others(self) -> None:
        """One run of each other implementation, on the arrays of the first kernel that has a time."""
        first = next((k for k, row in enumerate(self.rows) if row.state == "timed"), None)
        found = self._prepared.get(first) if first is not None else None
        for measure in self._others if self.method.run else ():
            if found is not None and found.kernel is not None and not self.cancel.is_set():
                self.other_runs.append(measure(found.kernel, found.package))

    def _prepare(self, index: int) -> None:
        """Compile a candidate; a row of before is kept where the code is still the same."""
        if self.cancel.is_set():
            return
        self._tell(index)
        start = time.perf_counter()
        found = self._ahead.get(index, list(range(index + 1, len(self.candidates))))
        self._waited.append(time.perf_counter() - start)
        known = self._known.get(config_key(found.row.config))
        self._prepared[index] = found
        if known is not None and found.row.state == "compiled" and self._holds(known, found.row.code):
            self._enter(index, replace(known, code=found.row.code, seconds=found.row.seconds))
        else:
            self._enter(index, found.row)

    def _enter(self, index: int, row: SweepRow) -> None:
        self.rows[index], self._least = row, None

    def _holds(self, known: SweepRow, code: str) -> bool:
        """Whether a row of before is of this code and these numbers.

        One without a hash was timed in this process, where a configuration has one code, or was refused.
        """
        if any(run.seed not in (None, self.method.seed) for run in known.runs):
            return False
        return known.code == code or (known.code == "" and known.state == "timed")

    def _unchecked(self, index: int) -> bool:
        """Whether a row has times, and nobody has compared what it computes though something says that."""
        row, found = self.rows[index], self._prepared.get(index)
        if found is not None and found.package is not None and not found.package.tile_text:
            return False
        return row.state == "timed" and self.method.check and all(run.error is None for run in row.runs)

    def _step(self, index: int) -> None:
        """One run of a candidate, entered into its row."""
        row, found = self.rows[index], self._prepared[index]
        assert found.kernel is not None  # `_steps` gives compiled ones alone
        start = time.perf_counter()
        try:
            run = self._measure(
                found.kernel, package=found.package, rounds=self.method.rounds, seconds=self.method.seconds,
                seed=self.method.seed,
                check=self.method.check and all(run.error is None for run in row.runs),
                label=config_text(row.config, self._names), sweep=self._name, timeout=self._limit(),
                cancel=self.cancel, on_progress=_ignore,
            )  # fmt: skip
        except Cancelled:
            raise
        except TileError as error:
            if self.cancel.is_set():
                raise Cancelled("the sweep was stopped") from error
            self._enter(index, replace(row, state="failed", why=error.message))
            return
        self._took.append(time.perf_counter() - start)
        self._enter(index, entered(row, run))

    def _limit(self) -> float | None:
        """Seconds that a run may take; None for the limit that is set for all measurements."""
        if len(self._took) < KNOWN_STEPS:
            return None
        return max(LEAST_LIMIT_S, PATIENCE * statistics.median(self._took))

    # -- telling
    def _is_complete(self, row: SweepRow) -> bool:
        if row.state == "timed":
            return len(row.runs) >= self.method.repeats or self._is_beaten(row)
        return row.state in ("illegal", "failed") or (row.state == "compiled" and not self.method.run)

    def _is_beaten(self, row: SweepRow) -> bool:
        """Whether a row is so much slower than the best that more runs of it decide nothing."""
        if self.method.within is None:
            return False
        if self._least is None:
            self._least = min(Position(one.runs).seconds or 0.0 for one in self.rows if one.state == "timed")
        return (Position(row.runs).seconds or 0.0) > self.method.within * self._least

    def _tell(self, index: int | None) -> None:
        if self.show is not None:
            now: Mapping[str, Any] = self.rows[index].config if index is not None else {}
            self.show(replace(self.progress, now=now))

    @property
    def progress(self) -> SweepProgress:
        """How far it is."""
        repeats = self.method.repeats if self.method.run else 1
        missing = sum(0 if self._is_complete(row) else max(0, repeats - len(row.runs)) for row in self.rows)
        total = repeats * len(self.rows)
        others = tuple(self.other_runs)
        return SweepProgress(tuple(self.rows), total - missing, total, {}, self._left(missing), others)

    def _left(self, missing: int) -> float | None:
        """Seconds that the missing steps take by those that were taken."""
        if len(self._took) < KNOWN_STEPS:
            return None
        to_compile = len(self.candidates) - len(self._waited)
        return missing * statistics.mean(self._took[-50:]) + to_compile * statistics.mean(self._waited)


def _ignore(_: object) -> None:
    return None


def entered(row: SweepRow, run: RunRecord) -> SweepRow:
    """A row with one more run, in the row's own configuration; a run without a time makes it a failure."""
    run = replace(run, config=dict(row.config))
    if run.failure or not run.seconds:
        why = run.failure or "it was not measured"
        return replace(row, state="failed", why=why, runs=(*row.runs, run))
    first = next((one for one in row.runs if one.error is not None), None)
    if first is not None:  # what one run's check found holds for all
        run = replace(run, error=first.error, bound=first.bound, unwritten=first.unwritten)
    return replace(row, state="timed", why="", runs=(*row.runs, run))


def config_key(config: Mapping[str, Any]) -> str:
    """Equal for equal configurations."""
    return repr(sorted((name, plain(value)) for name, value in config.items()))


def plain(value: Any) -> Any:
    """A value of a configuration as a record holds it: what is no number or text as it is written."""
    found = to_plain(value)
    return found if isinstance(found, (int, float, str)) else repr(value)


def varied_names(configs: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The names that take more than one value."""
    names = dict.fromkeys(name for config in configs for name in config)
    return tuple(n for n in names if len({repr(config.get(n)) for config in configs}) > 1)


def config_text(config: Mapping[str, Any], names: Sequence[str]) -> str:
    """`block_M=64 num_stages=2`, of these names."""
    return " ".join(f"{name}={config[name]}" for name in names if name in config)
