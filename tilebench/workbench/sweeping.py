"""The sweep of a bench: all that its controls were opened with, tried on a thread beside them.

A person comes first: while a position of the controls is checked or measured, the sweep waits with its next
run. What was measured by hand counts as a run of its row, because both are timed in the same way.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..errors import OptionError, TileError
from ..profile.positions import positions_of
from ..record import RunRecord, SweepRecord, SweepRow
from ..sweeps.engine import Measure, SweepEngine, SweepMethod, SweepProgress, config_key
from ..sweeps.finish import finished
from ..sweeps.others import Other, other_measurer
from ..sweeps.prepare import SweepCandidate
from ..sweeps.result import Sweep
from ..targets import AUTO, resolve
from .subject import Subject
from .tiers import plain_config
from .wish import Wish, moved

if TYPE_CHECKING:
    from ..kernel import Kernel
    from .session import Session


@dataclass(frozen=True)
class SweepShown:
    """A sweep as a picture shows it. `state` is `running`, `stopped`, `done` or `failed` (`why`)."""

    state: str
    progress: SweepProgress
    record: SweepRecord
    why: str = ""

    @property
    def rows(self) -> tuple[SweepRow, ...]:
        return self.progress.rows


def candidates(subject: Subject, wish: Wish, target: str | None = None) -> list[tuple[SweepCandidate, Wish]]:
    """Every combination of the values that the sweep was asked for, at the wish's other values.

    With `target` the kernels are made for that one, and the configurations are those of the wish.
    """
    names = list(subject.sweep)
    out: list[tuple[SweepCandidate, Wish]] = []
    for values in itertools.product(*subject.sweep.values()):
        now = replace(moved(wish, subject.knobs, dict(zip(names, values, strict=True))), edit=None)
        made = replace(now, target=target) if target is not None else now
        out.append((SweepCandidate(plain_config(now.config), _making(subject, made)), now))
    return out


def _making(subject: Subject, wish: Wish) -> Callable[[], Kernel]:
    return lambda: subject.make(wish)


def sweep_size(subject: Subject) -> int:
    """How many combinations the sweep has that a bench was opened with; 0 without one."""
    return math.prod(len(values) for values in subject.sweep.values()) if subject.sweep else 0


def known_rows(runs: Sequence[RunRecord]) -> list[SweepRow]:
    """What was measured by hand, as rows; a position without a time is tried again."""
    timed = [position for position in positions_of(runs) if position.timed]
    return [SweepRow(position.config, "timed", runs=position.timed) for position in timed]


class BenchSweep:
    """Begins, stops and takes up the sweep of one bench.

    `shown` gets what is to be shown, from the sweep's thread; `now` gives the wish of the controls, and
    `best` goes to that of the best row where they have not been moved since the sweep began.
    """

    def __init__(
        self,
        subject: Subject,
        shown: Callable[[SweepShown], None],
        busy: Callable[[], bool],
        now: Callable[[], Wish],
        best: Callable[[Wish], None],
        measure: Measure | None = None,
    ) -> None:
        self.subject = subject
        self._shown, self._busy, self._measure = shown, busy, measure
        self._wish_now, self._load = now, best
        # Other implementations, which have a turn in every pass.
        self.others: tuple[Other, ...] = ()
        self._cancel = threading.Event()
        self._thread: threading.Thread | None = None
        self._guard = threading.Lock()
        self._repeats = SweepMethod().repeats
        self.now: SweepShown | None = None
        # Where the controls stand at each configuration.
        self.wishes: dict[str, Wish] = {}

    @property
    def asked(self) -> bool:
        """Whether the bench was opened with a sweep."""
        return bool(self.subject.sweep)

    @property
    def running(self) -> bool:
        return self.now is not None and self.now.state == "running"

    def wish_of(self, config: Mapping[str, Any]) -> Wish | None:
        """Where the controls stand at a configuration of the sweep; None for another."""
        return self.wishes.get(config_key(config))

    def begin(self, wish: Wish, by_hand: Sequence[RunRecord], check: bool = True) -> None:
        """Begin, or go on where it stopped; nothing while it runs. A complete one gets more runs of each."""
        with self._guard:
            if self.running or not self.asked:
                return
            engine, target = self._engine(wish, by_hand, check)
            self._say("running", engine, target)
            self._thread = threading.Thread(
                target=self._run, args=(engine, target, wish), name="tilebench-bench-sweep", daemon=True
            )
            self._thread.start()

    def run_here(self, wish: Wish, by_hand: Sequence[RunRecord], check: bool = True) -> None:
        """The same in the caller's thread, until it ends. An interrupt stops it and goes on to the caller."""
        if self.asked:
            self._run(*self._engine(wish, by_hand, check), wish)

    def stop(self) -> None:
        """End it at once; what it has stays, and `begin` goes on from there."""
        self._cancel.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it does not run; False after `timeout` seconds."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)
            return not thread.is_alive()
        return True

    def _engine(self, wish: Wish, by_hand: Sequence[RunRecord], check: bool) -> tuple[SweepEngine, str]:
        manifest, machine = resolve(wish.target)
        if not manifest.available()[0]:  # as with a single position: times are those of what runs here
            manifest, machine = resolve(AUTO)
            found = candidates(self.subject, wish, AUTO)
        else:
            found = candidates(self.subject, wish)
        self.wishes = {config_key(one.config): now for one, now in found}
        known = {config_key(row.config): row for row in known_rows(by_hand)}
        rows = self.now.rows if self.now is not None else ()
        known |= {config_key(row.config): row for row in rows if row.state != "waiting"}
        if self.now is not None and self.now.state == "done" and self._same(self.now.rows):
            self._repeats += SweepMethod().repeats
        self._cancel = threading.Event()
        method = SweepMethod(self._repeats, check=check)
        engine = SweepEngine(
            [one for one, _ in found], method, device=manifest.device,
            known=list(known.values()), measure=self._measure, cancel=self._cancel, paused=self._busy,
            others=[other_measurer(other, method, self._cancel) for other in self.others],
        )  # fmt: skip

        def show(progress: SweepProgress) -> None:
            self._say("running", engine, machine.name, progress.now)

        engine.show = show
        return engine, machine.name

    def _same(self, rows: Sequence[SweepRow]) -> bool:
        """Whether these rows are those of the sweep that is to begin."""
        return set(self.wishes) == {config_key(row.config) for row in rows}

    def _run(self, engine: SweepEngine, target: str, wish: Wish) -> None:
        try:
            engine.run()
        except TileError as error:
            self._say("failed", engine, target, why=error.message)
            return
        except Exception as error:
            fault = f"a fault of tilebench: {type(error).__name__}: {error}"
            self._say("failed", engine, target, why=fault)
            return
        except BaseException:
            self._say("stopped", engine, target)
            raise
        self._say("done" if engine.complete else "stopped", engine, target)
        best = Sweep(self.now.record).best if engine.complete and self.now is not None else None
        found = self.wishes[config_key(best.config)] if best is not None else wish
        if self._wish_now().config == wish.config != found.config:
            self._load(found)

    def _say(
        self,
        state: str,
        engine: SweepEngine,
        target: str,
        trying: Mapping[str, Any] | None = None,
        why: str = "",
    ) -> None:
        progress = replace(engine.progress, now=trying or {})
        record = SweepRecord(
            self.subject.name, target, self.subject.sweep, progress.rows, engine.method.repeats,
            engine.method.check, others=progress.others, seconds=engine.seconds,
        )  # fmt: skip
        if state == "done":
            record = finished(record, engine, ceilings=False)
        self.now = SweepShown(state, progress, record, why)
        self._shown(self.now)


def all_runs(by_hand: Sequence[RunRecord], sweep: SweepShown | None) -> tuple[RunRecord, ...]:
    """The runs of the moves, then those of a sweep that are not among them."""
    if sweep is None:
        return tuple(by_hand)
    seen = {id(run) for run in by_hand}
    return (*by_hand, *(run for row in sweep.rows for run in row.runs if id(run) not in seen))


def asked_sweep(session: Session, wait: bool) -> Sweep:
    """The sweep that a program asks a bench for; with `wait` when it has ended. An interrupt stops it."""
    sweeper = session.sweeper
    if not sweeper.asked:
        raise OptionError(
            "{kernel} was opened without a sweep", kernel=session.subject.name,
            hint="give the values to try: sweep={{'block_M': [64, 128]}}, or --sweep block_M=64,128",
        )  # fmt: skip
    session.sweep()
    try:
        # In small steps, so that an interrupt comes through.
        while wait and not sweeper.wait(0.1):
            pass
    except KeyboardInterrupt:
        sweeper.stop()
        raise
    assert sweeper.now is not None  # it has begun
    return Sweep(sweeper.now.record)
