"""The state of one workbench, and the one thread that answers its moves.

A control only says what is wanted. The thread takes the latest wish through the tiers, looks after
each whether a newer one has come, and gives every new picture to `publish`, at most ten a second.
Without threads (headless) a wish is answered before `want` returns.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .. import settings
from ..errors import InternalError, TileError
from ..record import RunRecord
from ..runtime.cancel import Cancelled
from ..runtime.latest import LatestWins, RateLimit, Status, Ticket
from ..targets import AUTO
from . import tiers
from .answered import Questions
from .chart import chart_of
from .clocking import BenchClocks, rounds_told
from .comparison import Comparison
from .counting import Counting
from .edits import EditBook
from .effect import Effects
from .history import Move, MoveHistory
from .launch import need_launch_values
from .others import OtherRuns
from .picture import Picture
from .picturing import PictureMaker
from .slider import Slider
from .subject import Subject
from .sweeping import BenchSweep, SweepShown, sweep_size
from .wish import Wish, moved, placed

if TYPE_CHECKING:
    from ..kernel import Kernel

# Controls send one message a step (`continuous_update` is off), a held arrow key one every 30 ms. A GEMM's
# stages take 40 to 60 ms after it, so that they stand within 100.
DEBOUNCE_S = 0.03
# Faster than a hand presses a key twice on purpose: what comes later is waited for by nobody's next step.
PAUSE_S = 0.25
# A launch that takes longer than this is run once: a run has 18 launches at least. More are a person's to
# ask for.
SLOW_S = 0.1


class Session:
    """One workbench without its looks. Safe from any thread; `publish` may be called from any."""

    def __init__(
        self,
        subject: Subject,
        wish: Wish,
        *,
        inline: bool = True,
        publish: Callable[[Picture], object] | None = None,
        measure: tiers.Measure | None = None,
        repeats: int = 1,
    ) -> None:
        self.subject = subject
        self.wish = wish
        self.inline = inline
        self._measure = measure
        self._repeats = repeats
        self._answered, self._effects = Questions(), Effects(subject)
        self._guard = threading.RLock()
        self.edits, self.comparison, self.counting = EditBook(), Comparison(subject), Counting()
        self.pictures = PictureMaker(subject, beside=not inline)
        self._first = threading.Event()
        self._picture = Picture(wish, sweeps=sweep_size(subject))
        self.sweeper = BenchSweep(subject, self._swept, self._busy, lambda: self.wish, self._place, measure)
        self.others = OtherRuns()
        self.clocks = BenchClocks(subject, shown=lambda shown: self._show(clocks=shown))
        self._rate: RateLimit[Picture] = RateLimit(publish or (lambda _: None))
        self._latest: LatestWins[Wish] = LatestWins(
            self._answer, DEBOUNCE_S, pause_s=PAUSE_S, on_status=self._on_status, on_error=self._on_error,
            inline=inline, name=f"tilebench-workbench-{subject.name}",
        )  # fmt: skip

    @property
    def picture(self) -> Picture:
        """What is shown now."""
        with self._guard:
            return self._picture

    @property
    def controls(self) -> tuple[Slider, ...]:
        """Every control of now: those that were asked for, and what the schedule offers."""
        return (*self.subject.knobs, *self._picture.offered)

    def want(self, **changes: Any) -> None:
        """Ask for other values; returns at once (inline: when answered). `OptionError` for unknown names."""
        again = {name: bool(changes.get(name)) for name in ("run", "check")}
        self.change(lambda wish, _: moved(wish, self.controls, changes).asked_again(**again))

    def change(self, how: Callable[[Wish, Picture], Wish]) -> None:
        """Ask for what `how` makes of the wish and the picture of now, with the session's guard held."""
        with self._guard:
            self.wish = wish = how(self.wish, self._picture)
        self._latest.submit(wish)

    def notify(self, text: str, **fields: Any) -> None:
        """Say something of this moment, until the next wish; `fields` of the picture change with it."""
        self._show(notice=text, **fields)
        self._rate.flush()

    def again(self) -> None:
        """Ask for the same once more: what is measured gets another run; what was stopped goes on."""
        self.change(lambda wish, _: wish.asked_again(run=wish.run, check=wish.check))

    def restore(self, number: int) -> None:
        """Go back to the position of a point of the chart, by its number; nothing where there is none."""
        points = chart_of(self.picture.runs).points
        config = next((dict(point.config) for point in points if point.number == number), None)
        moves = [move for move in self.picture.history if tiers.plain_config(move.config) == config]
        if moves:
            self.change(lambda wish, _: self.edits.placed(wish, moves[-1].config))
        elif config is not None and (tried := self.sweeper.wish_of(config)) is not None:
            self._place(tried)

    def _place(self, tried: Wish) -> None:
        """Go to a configuration of the sweep, which has its runs and is not measured again for that."""

        def there(wish: Wish, _: object) -> Wish:
            now = placed(wish, tried.config)
            self._answered.enter("run", now)
            return now

        self.change(there)

    def sweep(self) -> None:
        """Begin the sweep that the bench was opened with, or go on with it; inline: until it ends."""
        begin = self.sweeper.run_here if self.inline else self.sweeper.begin
        begin(self.wish, self.picture.history.runs)

    def clock(self) -> None:
        """Record what warps do when at the position of now; inline: until it is there."""
        self.clocks.begin(self.wish, inline=self.inline)

    def _busy(self) -> bool:
        """Whether a person waits for something: their position comes before the next row of a sweep."""
        return not self.inline and self._latest.status.phase in ("compiling", "checking", "measuring")

    def _swept(self, shown: SweepShown) -> None:
        self._show(sweep=shown)
        if shown.state != "running":
            self._rate.flush()

    def stop(self) -> None:
        """Drop what is wanted or running; a running measurement ends at once. Any later wish goes on."""
        self.sweeper.stop()
        self.clocks.stop()
        self._latest.cancel()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until everything wanted has been answered; False after `timeout` seconds."""
        return self._latest.wait(timeout)

    def settle(self, timeout: float = 2.0) -> bool:
        """Wait for the first picture of what is wanted (or its refusal); False after `timeout` seconds."""
        return self._first.wait(timeout)

    def close(self) -> None:
        """Stop, and end the threads."""
        self.sweeper.stop()
        self.clocks.stop()
        self._latest.close()
        self._rate = RateLimit(lambda _: None)

    # -- what the thread does
    def _show(self, **fields: Any) -> None:
        with self._guard:
            fields = self.counting.on(fields.get("wish", self._picture.wish), fields)
            # Two threads may come here in another order than they spoke in: what was said last holds.
            self._picture = replace(self._picture, status=self._latest.status, **fields)
            picture = self._picture
        self._rate.offer(picture)
        if picture.record is not None or picture.problem is not None:
            self._first.set()

    def _on_status(self, status: Status) -> None:
        changed = status.phase != self._picture.status.phase
        if status.phase == "cancelled":
            self._leave("cancelled")
        self._show()
        # A count may wait for the next one; another state may not, for nothing might come after it.
        if changed:
            self._rate.flush()

    def _on_error(self, error: BaseException) -> None:
        """What no tier expected: shown as a fault of ours, never lost."""
        if not isinstance(error, TileError):
            error = InternalError(
                "the workbench failed: {kind}: {why}", kind=type(error).__name__, why=str(error),
                hint="this is a fault of tilebench; please report it with the kernel and its parameters",
            )  # fmt: skip
        self._show(problem=error, stale=self._picture.record is not None)
        self._rate.flush()

    def _answer(self, wish: Wish, ticket: Ticket[Wish]) -> None:
        """One wish through all tiers."""
        self._enter(wish, ticket.generation)
        ticket.phase("compiling")
        try:
            kernel = self.subject.make(wish)
            shown = tiers.stages_shown(kernel, wish.stages)
            record = tiers.static(kernel, shown)
        except TileError as error:
            if not ticket():
                self._refuse(wish, ticket.generation, error)
            return
        if ticket():
            return
        before = self._picture
        same = before.wish.config == wish.config and not before.stale
        self._show(
            wish=wish, record=record, stale=False, problem=None, report=before.report if same else None,
            offered=before.offered or tuple(self.subject.offered(kernel)),
            stage_names=kernel.stages, editable=tiers.editable_stages(kernel), shown=shown,
            shared_limit=tiers.shared_limit(kernel), notes=before.notes if same else (),
            diagnosis=before.diagnosis if same else None,
        )  # fmt: skip
        # What is kept back for the rate would wait for the compiler, and this is what a mover waits for.
        self._rate.flush()
        self.pictures.begin(kernel, record.resources)
        self._compile(kernel, shown, ticket)
        self.counting.count(kernel, wish, ticket, self._picture.record, self._show)
        self.comparison.answer(wish, shown, ticket, lambda found: self._show(compared=found))
        if (self._answered.due("run", wish) or self._answered.due("check", wish)) and not ticket():
            self._run(wish, kernel, ticket)
        elif not ticket():
            self._history(ticket.generation, state="done")
        if not ticket():  # behind the measurement, which a person waits for
            self._show(idle=self._effects.idle(kernel, wish, self.controls, ticket))
        self.pictures.look(wish, kernel, ticket, lambda found: self._show(pictures=found))

    def _compile(self, kernel: Kernel, shown: tuple[str, ...], ticket: Ticket[Wish]) -> None:
        """The compiled tier and the disassembly. What refuses them leaves the static picture standing."""
        try:
            record, pictures = self.pictures.compiled(kernel, shown)
            if ticket():
                return  # before another program is started for what nobody waits for
            more = tiers.begin_later(kernel, shown)
            with self._guard:
                self.edits.good(self._picture.wish.edit)
                history = self._picture.history.compiled(ticket.generation, record)
            self._show(record=record, history=history, pictures=pictures, pictured=self._picture.wish.config)
            self._diagnose(kernel)
            if more and not ticket():
                record = tiers.later(kernel, shown)
                if not ticket():
                    self._show(record=record)
        except TileError as error:
            if not ticket():
                pictures = self.pictures.of(kernel, None)
                self._show(problem=error, pictures=pictures, pictured=self._picture.wish.config)

    def _diagnose(self, kernel: Kernel) -> None:
        """Say again what bounds the kernel of the record, from what is known by now."""
        picture = self._picture
        if picture.record is not None:
            config = tiers.plain_config(picture.wish.config)
            self._show(
                diagnosis=tiers.diagnosis_of(kernel, picture.record, picture.runs, config, picture.ceilings)
            )

    def _run(self, wish: Wish, kernel: Kernel, ticket: Ticket[Wish]) -> None:
        """Measure and check, on the wished target where it runs here, else on the one that does."""
        notes: tuple[str, ...] = ()
        elsewhere = not tiers.runs_here(kernel)
        if elsewhere and wish.edit is not None:
            notes = self._leave_out(wish, kernel)
        elif elsewhere:
            why = kernel.compilation.manifest.available()[1]
            wished = kernel.target
            try:
                kernel = self.subject.make(replace(wish, target=AUTO))
            except TileError as error:
                self._finish(ticket, "failed", problem=error)
                return
            notes = (f"{wished} cannot run here ({why}): times and checks are those of {kernel.target}",)
            with self._guard:
                fields = self._answered.taken_over(self._picture, wish, kernel.target, ticket.generation)
            self._show(**fields)  # not under the guard: who draws holds a lock of its own, and asks for it
        self._show(notes=notes)
        try:
            need_launch_values(kernel)
        except TileError as error:
            self._finish(ticket, "failed", problem=error)
            return
        # A check that fails or takes too long is no reason not to measure.
        for what, answer in (("check", self._check), ("run", self._time)):
            try:
                if self._answered.due(what, wish) and not ticket():
                    answer(kernel, wish, ticket)
            except Cancelled:
                raise
            except TileError as error:
                self._answered.enter(what, wish)
                self._finish(ticket, "failed", problem=error)
        if not ticket():
            self._leave("done")

    def _leave_out(self, wish: Wish, kernel: Kernel) -> tuple[str, ...]:
        """What an edited kernel cannot be asked where its target does not run, as answered; says why."""
        self._answered.enter("run", wish)
        if why_not := tiers.why_not_checked(kernel):
            self._answered.enter("check", wish)
        return (tiers.elsewhere_note(kernel, why_not),)

    def _check(self, kernel: Kernel, wish: Wish, ticket: Ticket[Wish]) -> None:
        ticket.phase("checking")
        self._history(ticket.generation, state="checking")
        report = tiers.check(kernel, cancel=ticket.unwanted)
        if ticket():
            return
        self._answered.enter("check", wish)
        self._answered.report = (kernel.target, report)
        worst = report.largest
        with self._guard:
            history = self._picture.history.checked(ticket.generation, worst.error, worst.bound)
        self._show(report=report, history=history)

    def _time(self, kernel: Kernel, wish: Wish, ticket: Ticket[Wish]) -> None:
        """As many runs as belong to one answer; each is shown as it comes, and a newer wish ends them."""
        for number in range(self._repeats):
            ticket.phase("measuring")
            self._history(ticket.generation, state="measuring")
            run = tiers.measure(
                kernel,
                cancel=ticket.unwanted,
                on_progress=rounds_told(ticket, number, self._repeats),
                with_=self._measure,
            )
            if ticket():
                return
            self._enter_run(run, wish, ticket)
            if self.others.wanted:
                self._show(others=self.others.turn(kernel, ticket.unwanted))
            if number == 0 and self._picture.ceilings is None and not settings.headless():
                found = tiers.ceilings_of(kernel, ticket.unwanted)
                if found is not None and not ticket():
                    self._show(ceilings=found)
            if self._picture.record is not None and kernel.target == self._picture.record.target:
                self._diagnose(kernel)
            if ticket() or not run.seconds or run.seconds > SLOW_S:
                return

    def _enter_run(self, run: RunRecord, wish: Wish, ticket: Ticket[Wish]) -> None:
        # The chart's configuration is that of the controls, so that schedule choices stand in it.
        run = replace(run, config=tiers.plain_config(wish.config))
        report = self._picture.report
        if report is not None:  # of this position: an older one's was taken away with its record
            worst = report.largest
            run = replace(run, error=worst.error, bound=worst.bound)
        self._answered.enter("run", wish)
        with self._guard:
            history = self._picture.history.measured(ticket.generation, run)
        self._show(history=history)

    # -- the history
    def _enter(self, wish: Wish, generation: int) -> None:
        """A row for this wish; asking the same configuration again (a run, other stages) keeps its row."""
        with self._guard:
            history = self._picture.history
            last = history.moves[-1] if history.moves else None
            if last is not None and dict(last.config) == wish.config:
                now = replace(last, generation=generation, state="compiling", reason="")
                history = MoveHistory((*history.moves[:-1], now))
            else:
                history = history.passed().add(Move(generation, wish.config, "compiling"))
        self._show(history=history, edits=self.edits.kept, pins=tuple(self.comparison.pins), notice="")

    def _history(self, generation: int, **fields: Any) -> None:
        with self._guard:
            history = self._picture.history.change(generation, **fields)
        self._show(history=history)

    def _leave(self, state: str) -> None:
        """The newest move, where its answer is not complete, gets this state."""
        with self._guard:
            history = self._picture.history.left(state)
        self._show(history=history)

    def _finish(self, ticket: Ticket[Wish], state: str, problem: TileError) -> None:
        if not ticket():
            self._history(ticket.generation, state=state, reason=problem.message)
            self._show(problem=problem)

    def _refuse(self, wish: Wish, generation: int, error: TileError) -> None:
        """An illegal combination: its reason is shown, the last good picture stays and is marked."""
        self._history(generation, state="illegal", reason=error.message)
        self._show(wish=wish, problem=error, stale=self._picture.record is not None)
