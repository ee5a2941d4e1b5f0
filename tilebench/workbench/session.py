"""The state of one workbench, and the one thread that answers its moves.

A control only says what is wanted. The thread takes the latest wish through the tiers, looks after
each whether a newer one has come, and gives every new picture to `publish`, at most ten a second.
Without threads (headless) a wish is answered before `want` returns.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .. import settings
from ..errors import InternalError, TileError
from ..record import CompileRecord, RunRecord
from ..runtime.cancel import Cancelled
from ..runtime.latest import LatestWins, RateLimit, Status, Ticket
from ..targets import AUTO
from . import tiers
from .history import Move, MoveHistory
from .subject import Slider, Subject, Wish, moved

if TYPE_CHECKING:
    from ..kernel import Kernel
    from .chart import ChartCeilings

# Controls send one message a step (`continuous_update` is off), a held arrow key one every 30 ms. A GEMM's
# stages take 40 to 60 ms after it, so that they stand within 100.
DEBOUNCE_S = 0.03
# A kernel function and its records are kept as long as its workbench; each run is a few hundred bytes.
MOST_RUNS = 200


@dataclass(frozen=True)
class Picture:
    """Everything a view shows. `record` is the last good one; `stale` says it is not that of `wish`.

    `problem` is why the wish, or its compiled or measured part, could not be had. `notes` are
    sentences about the measurement. `shared_limit` is in bytes.
    """

    wish: Wish
    status: Status = field(default_factory=lambda: Status("idle"))
    record: CompileRecord | None = None
    stale: bool = False
    problem: TileError | None = None
    history: MoveHistory = field(default_factory=MoveHistory)
    ceilings: ChartCeilings | None = None
    report: Any = None
    notes: tuple[str, ...] = ()
    shared_limit: int = 0
    stage_names: tuple[str, ...] = ()
    offered: tuple[Slider, ...] = ()

    @property
    def runs(self) -> tuple[RunRecord, ...]:
        """The measurements, oldest first."""
        return self.history.runs


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
    ) -> None:
        self.subject = subject
        self.wish = wish
        self.inline = inline
        self._measure = measure
        self._guard = threading.RLock()
        self._first = threading.Event()
        self._picture = Picture(wish)
        self._rate: RateLimit[Picture] = RateLimit(publish or (lambda _: None))
        self._latest: LatestWins[Wish] = LatestWins(
            self._answer, DEBOUNCE_S, on_status=self._on_status, on_error=self._on_error, inline=inline,
            name=f"tilebench-workbench-{subject.name}",
        )  # fmt: skip

    @property
    def picture(self) -> Picture:
        """What is shown now."""
        with self._guard:
            return self._picture

    def want(self, **changes: Any) -> None:
        """Ask for other values; returns at once (inline: when answered). `OptionError` for unknown names."""
        with self._guard:
            self.wish = moved(self.wish, [*self.subject.knobs, *self._picture.offered], changes)
            wish = self.wish
        self._latest.submit(wish)

    def stop(self) -> None:
        """Drop what is wanted or running; a running measurement ends at once."""
        self._latest.cancel()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until everything wanted has been answered; False after `timeout` seconds."""
        return self._latest.wait(timeout)

    def settle(self, timeout: float = 2.0) -> bool:
        """Wait for the first picture of what is wanted (or its refusal); False after `timeout` seconds."""
        return self._first.wait(timeout)

    def close(self) -> None:
        """Stop, and end the thread."""
        self._latest.close()
        self._rate = RateLimit(lambda _: None)

    # -- what the thread does
    def _show(self, **fields: Any) -> None:
        with self._guard:
            self._picture = replace(self._picture, **fields)
            picture = self._picture
        self._rate.offer(picture)
        if picture.record is not None or picture.problem is not None:
            self._first.set()

    def _on_status(self, status: Status) -> None:
        changed = status.phase != self._picture.status.phase
        self._show(status=status)
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
        offered = self._picture.offered or tuple(self.subject.offered(kernel))
        self._show(
            wish=wish, record=record, stale=False, problem=None, report=None, offered=offered,
            stage_names=kernel.stages, shared_limit=tiers.shared_limit(kernel),
        )  # fmt: skip
        # What is kept back for the rate would wait for the compiler, and this is what a mover waits for.
        self._rate.flush()
        self._compile(kernel, shown, ticket)
        if (wish.run or wish.check) and not ticket():
            self._run(wish, kernel, ticket)
        elif not ticket():
            self._history(ticket.generation, state="done")

    def _compile(self, kernel: Kernel, shown: tuple[str, ...], ticket: Ticket[Wish]) -> None:
        """The compiled tier and the disassembly. What refuses them leaves the static picture standing."""
        try:
            record = tiers.compiled(kernel, shown)
            if ticket():
                return
            with self._guard:
                history = self._picture.history.compiled(ticket.generation, record)
            self._show(record=record, history=history)
            if tiers.has_later(kernel, shown) and not ticket():
                record = tiers.later(kernel, shown)
                if not ticket():
                    self._show(record=record)
        except TileError as error:
            if not ticket():
                self._show(problem=error)

    def _run(self, wish: Wish, kernel: Kernel, ticket: Ticket[Wish]) -> None:
        """Measure and check, on the wished target where it runs here, else on the one that does."""
        notes: tuple[str, ...] = ()
        if not tiers.runs_here(kernel):
            why = kernel.compilation.manifest.available()[1]
            wished = kernel.target
            try:
                kernel = self.subject.make(replace(wish, target=AUTO))
            except TileError as error:
                self._finish(ticket, "failed", problem=error)
                return
            notes = (f"{wished} cannot run here ({why}): times and checks are those of {kernel.target}",)
        self._show(notes=notes)
        try:
            if wish.check:
                ticket.phase("compiling")
                report = tiers.check(kernel, cancel=ticket.unwanted)
                if ticket():
                    return
                self._show(report=report)
            if wish.run:
                self._time(kernel, wish, ticket)
            else:
                self._history(ticket.generation, state="done")
        except Cancelled:
            raise
        except TileError as error:
            self._finish(ticket, "failed", problem=error)

    def _time(self, kernel: Kernel, wish: Wish, ticket: Ticket[Wish]) -> None:
        ticket.phase("measuring")
        self._history(ticket.generation, state="measuring")

        def progress(said: Any) -> None:
            if isinstance(said, dict):
                ticket.phase("measuring", int(said.get("round", 0)), int(said.get("rounds", 0)))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]

        run = tiers.measure(kernel, cancel=ticket.unwanted, on_progress=progress, with_=self._measure)
        if ticket():
            return
        # The chart's configuration is that of the controls, so that schedule choices stand in it.
        run = replace(run, config={k: v for k, v in wish.config.items() if isinstance(v, (int, float, str))})
        report = self._picture.report
        if report is not None:  # of this wish: an older one was taken away with its record
            worst = report.largest
            run = replace(run, error=worst.error, bound=worst.bound)
        with self._guard:
            history = self._picture.history.measured(ticket.generation, run)
        self._show(history=history)
        if self._picture.ceilings is None and not settings.headless():
            ceilings = tiers.ceilings_of(kernel)
            if ceilings is not None and not ticket():
                self._show(ceilings=ceilings)

    # -- the history
    def _enter(self, wish: Wish, generation: int) -> None:
        """A row for this wish; asking the same configuration again (a run, other stages) keeps its row."""
        with self._guard:
            history = self._picture.history
            last = history.moves[-1] if history.moves else None
            if last is not None and dict(last.config) == wish.config:
                history = MoveHistory(
                    (*history.moves[:-1], replace(last, generation=generation, state="compiling", reason=""))
                )
            else:
                moves = history.moves if last is None or last.state in ("done", "failed", "illegal") else (
                    *history.moves[:-1], replace(last, state="stale")
                )  # fmt: skip
                history = MoveHistory(moves).add(Move(generation, wish.config, "compiling"))
        self._show(history=history)

    def _history(self, generation: int, **fields: Any) -> None:
        with self._guard:
            history = self._picture.history.change(generation, **fields)
        self._show(history=history)

    def _finish(self, ticket: Ticket[Wish], state: str, problem: TileError) -> None:
        if not ticket():
            self._history(ticket.generation, state=state, reason=problem.message)
            self._show(problem=problem)

    def _refuse(self, wish: Wish, generation: int, error: TileError) -> None:
        """An illegal combination: its reason is shown, the last good picture stays and is marked."""
        self._history(generation, state="illegal", reason=error.message)
        self._show(wish=wish, problem=error, stale=self._picture.record is not None)
