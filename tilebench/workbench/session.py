"""The state of one workbench, and the one thread that answers its moves.

A control only says what is wanted. The thread takes the latest wish through the tiers, looks after
each whether a newer one has come, and gives every new picture to `publish`, at most ten a second.
Without threads (headless) a wish is answered before `want` returns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import InternalError, TileError
from ..runtime.latest import LatestWins, Status
from . import tiers
from .answering import Answering
from .board import PictureBoard
from .chart import chart_of
from .clocking import BenchClocks
from .counting import Counting
from .picture import Picture
from .slider import Slider
from .subject import Subject
from .sweeping import BenchSweep, SweepShown, sweep_size
from .wish import Wish, moved, placed

# Controls send one message a step (`continuous_update` is off), a held arrow key one every 30 ms. A GEMM's
# stages take 40 to 60 ms after it, so that they stand within 100.
DEBOUNCE_S = 0.03
# Faster than a hand presses a key twice on purpose: what comes later is waited for by nobody's next step.
PAUSE_S = 0.25


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
        self.counting = Counting()
        start = Picture(wish, sweeps=sweep_size(subject))
        self.board = PictureBoard(start, self.counting, lambda: self._latest.status, publish)
        self.answering = Answering(subject, self.board, beside=not inline, measure=measure, repeats=repeats)
        # What a person keeps and looks at, which the answers use.
        self.edits, self.comparison = self.answering.edits, self.answering.comparison
        self.pictures, self.others = self.answering.pictures, self.answering.others
        self.sweeper = BenchSweep(subject, self._swept, self._busy, lambda: self.wish, self._place, measure)
        self.clocks = BenchClocks(subject, shown=lambda shown: self.board.show(clocks=shown))
        self._latest: LatestWins[Wish] = LatestWins(
            self.answering.answer, DEBOUNCE_S, pause_s=PAUSE_S, on_status=self._on_status,
            on_error=self._on_error, inline=inline, name=f"tilebench-workbench-{subject.name}",
        )  # fmt: skip

    @property
    def picture(self) -> Picture:
        """What is shown now."""
        return self.board.picture

    @property
    def controls(self) -> tuple[Slider, ...]:
        """Every control of now: those that were asked for, and what the schedule offers."""
        return self.answering.controls

    def want(self, **changes: Any) -> None:
        """Ask for other values; returns at once (inline: when answered). `OptionError` for unknown names."""
        again = {name: bool(changes.get(name)) for name in ("run", "check")}
        self.change(lambda wish, _: moved(wish, self.controls, changes).asked_again(**again))

    def change(self, how: Callable[[Wish, Picture], Wish]) -> None:
        """Ask for what `how` makes of the wish and the picture of now, with the board's guard held."""
        with self.board.guard:
            self.wish = wish = how(self.wish, self.picture)
        self._latest.submit(wish)

    def notify(self, text: str, **fields: Any) -> None:
        """Say something of this moment, until the next wish; `fields` of the picture change with it."""
        self.board.show(notice=text, **fields)
        self.board.flush()

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
            self.answering.answered.enter("run", now)
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
        self.board.show(sweep=shown)
        if shown.state != "running":
            self.board.flush()

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
        return self.board.settle(timeout)

    def close(self) -> None:
        """Stop, and end the threads."""
        self.sweeper.stop()
        self.clocks.stop()
        self._latest.close()
        self.board.close()

    def _on_status(self, status: Status) -> None:
        changed = status.phase != self.picture.status.phase
        if status.phase == "cancelled":
            self.board.leave("cancelled")
        self.board.show()
        # A count may wait for the next one; another state may not, for nothing might come after it.
        if changed:
            self.board.flush()

    def _on_error(self, error: BaseException) -> None:
        """What no tier expected: shown as a fault of ours, never lost."""
        if not isinstance(error, TileError):
            error = InternalError(
                "the workbench failed: {kind}: {why}", kind=type(error).__name__, why=str(error),
                hint="this is a fault of tilebench; please report it with the kernel and its parameters",
            )  # fmt: skip
        self.board.show(problem=error, stale=self.picture.record is not None)
        self.board.flush()
