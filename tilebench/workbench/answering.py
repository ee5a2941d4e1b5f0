"""One wish through all tiers, on the session's thread.

The static picture comes first, then what the target's compiler makes, then check and measurement. After each
the ticket says whether the answer is still wanted; what a tier refuses leaves the picture before it standing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .. import settings
from ..errors import TileError
from ..record import RunRecord
from ..runtime.cancel import Cancelled
from ..runtime.latest import Ticket
from ..targets import AUTO
from . import tiers
from .answered import Questions
from .board import PictureBoard
from .clocking import rounds_told
from .comparison import Comparison
from .edits import EditBook
from .effect import Effects
from .launch import need_launch_values
from .others import OtherRuns
from .picturing import PictureMaker
from .slider import Slider
from .subject import Subject
from .wish import Wish

if TYPE_CHECKING:
    from ..kernel import Kernel

# A launch that takes longer than this is run once: a run has 18 launches at least. More are a person's to
# ask for.
SLOW_S = 0.1


class Answering:
    """Answers the wishes of one session. One thread at a time asks."""

    def __init__(
        self,
        subject: Subject,
        board: PictureBoard,
        *,
        beside: bool,
        measure: tiers.Measure | None,
        repeats: int,
    ) -> None:
        self.subject = subject
        self.board = board
        self.measure = measure
        self.repeats = repeats
        self.answered, self._effects = Questions(), Effects(subject)
        self.edits, self.comparison = EditBook(), Comparison(subject)
        self.pictures = PictureMaker(subject, beside=beside)
        self.others = OtherRuns()

    @property
    def controls(self) -> tuple[Slider, ...]:
        """Every control of now: those that were asked for, and what the schedule offers."""
        return (*self.subject.knobs, *self.board.picture.offered)

    def answer(self, wish: Wish, ticket: Ticket[Wish]) -> None:
        """One wish through all tiers."""
        self.board.show(
            ticket=ticket,
            history=lambda moves: moves.entered(ticket.generation, wish.config),
            edits=self.edits.kept,
            pins=tuple(self.comparison.pins),
            notice="",
        )
        ticket.phase("compiling")
        try:
            kernel = self.subject.make(wish)
            shown = tiers.stages_shown(kernel, wish.stages)
            record = tiers.static(kernel, shown)
        except TileError as error:
            # An illegal combination: its reason is shown, the last good picture stays and is marked.
            stale = self.board.picture.record is not None
            self._finish(ticket, "illegal", error, wish=wish, stale=stale)
            return
        if ticket():
            return
        before = self.board.picture
        same = before.wish.config == wish.config and not before.stale
        self.board.show(
            wish=wish, record=record, stale=False, problem=None, report=before.report if same else None,
            offered=before.offered or tuple(self.subject.offered(kernel)),
            stage_names=kernel.stages, editable=tiers.editable_stages(kernel), shown=shown,
            shared_limit=tiers.shared_limit(kernel), notes=before.notes if same else (),
            diagnosis=before.diagnosis if same else None,
        )  # fmt: skip
        # What is kept back for the rate would wait for the compiler, and this is what a mover waits for.
        self.board.flush()
        self.pictures.begin(kernel, record.resources)
        self._compile(kernel, wish, shown, ticket)
        if self.board.counting.count(kernel, wish, ticket, self.board.picture.record, self.board.show):
            self._diagnose(kernel)
        self.comparison.answer(wish, shown, ticket, lambda found: self.board.show(compared=found))
        if (self.answered.due("run", wish) or self.answered.due("check", wish)) and not ticket():
            self._run(wish, kernel, ticket)
        elif not ticket():
            self._move(ticket, state="done")
        if not ticket():  # behind the measurement, which a person waits for
            self.board.show(idle=self._effects.idle(kernel, wish, self.controls, ticket))
        self.pictures.look(wish, kernel, ticket, lambda found: self.board.show(pictures=found))

    def _compile(self, kernel: Kernel, wish: Wish, shown: tuple[str, ...], ticket: Ticket[Wish]) -> None:
        """The compiled tier and the disassembly. What refuses them leaves the static picture standing."""
        try:
            record, pictures = self.pictures.compiled(kernel, shown)
            if ticket():
                return  # before another program is started for what nobody waits for
            more = tiers.begin_later(kernel, shown)
            with self.board.guard:
                self.edits.good(wish.edit)
            self.board.show(
                record=record,
                history=lambda moves: moves.compiled(ticket.generation, record),
                pictures=pictures,
                pictured=wish.config,
            )
            self._diagnose(kernel)
            if more and not ticket():
                record = tiers.later(kernel, shown)
                if not ticket():
                    self.board.show(record=record)
        except TileError as error:
            if not ticket():
                pictures = self.pictures.of(kernel, None)
                self.board.show(problem=error, pictures=pictures, pictured=wish.config)

    def _diagnose(self, kernel: Kernel) -> None:
        """Say again what bounds the kernel of the record, from what is known by now."""
        picture = self.board.picture
        if picture.record is not None:
            config = tiers.plain_config(picture.wish.config)
            self.board.show(
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
                self._finish(ticket, "failed", error)
                return
            notes = (f"{wished} cannot run here ({why}): times and checks are those of {kernel.target}",)
            runs, fields = self.answered.taken_over(self.board.picture, wish, kernel.target)
            self.board.show(history=lambda moves: moves.measured(ticket.generation, *runs), **fields)
        self.board.show(notes=notes)
        try:
            need_launch_values(kernel)
        except TileError as error:
            self._finish(ticket, "failed", error)
            return
        # A check that fails or takes too long is no reason not to measure.
        for what, answer in (("check", self._check), ("run", self._time)):
            try:
                if self.answered.due(what, wish) and not ticket():
                    answer(kernel, wish, ticket)
            except Cancelled:
                raise
            except TileError as error:
                self.answered.enter(what, wish)
                self._finish(ticket, "failed", error)
        if not ticket():
            self.board.leave("done")

    def _leave_out(self, wish: Wish, kernel: Kernel) -> tuple[str, ...]:
        """What an edited kernel cannot be asked where its target does not run, as answered; says why."""
        self.answered.enter("run", wish)
        if why_not := tiers.why_not_checked(kernel):
            self.answered.enter("check", wish)
        return (tiers.elsewhere_note(kernel, why_not),)

    def _check(self, kernel: Kernel, wish: Wish, ticket: Ticket[Wish]) -> None:
        ticket.phase("checking")
        self._move(ticket, state="checking")
        report = tiers.check(kernel, cancel=ticket.unwanted)
        if ticket():
            return
        self.answered.enter("check", wish)
        self.answered.report = (kernel.target, report)
        worst = report.largest
        self.board.show(
            report=report,
            history=lambda moves: moves.checked(ticket.generation, worst.error, worst.bound),
        )

    def _time(self, kernel: Kernel, wish: Wish, ticket: Ticket[Wish]) -> None:
        """As many runs as belong to one answer; each is shown as it comes, and a newer wish ends them."""
        for number in range(self.repeats):
            ticket.phase("measuring")
            self._move(ticket, state="measuring")
            run = tiers.measure(
                kernel,
                cancel=ticket.unwanted,
                on_progress=rounds_told(ticket, number, self.repeats),
                with_=self.measure,
            )
            if ticket():
                return
            self._enter_run(run, wish, ticket)
            if self.others.wanted:
                self.board.show(others=self.others.turn(kernel, ticket.unwanted))
            if number == 0 and self.board.picture.ceilings is None and not settings.headless():
                found = tiers.ceilings_of(kernel, ticket.unwanted)
                if found is not None and not ticket():
                    self.board.show(ceilings=found)
            if self.board.picture.record is not None and kernel.target == self.board.picture.record.target:
                self._diagnose(kernel)
            if ticket() or not run.seconds or run.seconds > SLOW_S:
                return

    def _enter_run(self, run: RunRecord, wish: Wish, ticket: Ticket[Wish]) -> None:
        # The chart's configuration is that of the controls, so that schedule choices stand in it.
        run = replace(run, config=tiers.plain_config(wish.config))
        report = self.board.picture.report
        if report is not None:  # of this position: an older one's was taken away with its record
            worst = report.largest
            run = replace(run, error=worst.error, bound=worst.bound)
        self.answered.enter("run", wish)
        self.board.show(history=lambda moves: moves.measured(ticket.generation, run))

    def _move(self, ticket: Ticket[Wish], **fields: Any) -> None:
        """Change the row of this wish."""
        self.board.show(ticket=ticket, history=lambda moves: moves.change(ticket.generation, **fields))

    def _finish(self, ticket: Ticket[Wish], state: str, problem: TileError, **fields: Any) -> None:
        self._move(ticket, state=state, reason=problem.message)
        self.board.show(ticket=ticket, problem=problem, **fields)
