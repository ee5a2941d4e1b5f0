"""A workbench as a person holds it: a value that shows itself, with controls where there can be some."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import sys
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import settings
from ..errors import ResourceError, ScheduleError, TargetError, TileError
from ..profile.positions import ENOUGH_RUNS
from ..record import CompileRecord, RunRecord
from . import registry, tiers
from .counting import CODE, one_of_ways
from .history import MoveHistory
from .interrupts import watch
from .keeping import BenchKeeping, start_values
from .others import others_of_bench
from .picture import Picture
from .registry import CellRun
from .session import Session
from .slider import Slider
from .subject import Subject
from .sweeping import asked_sweep
from .wish import KeptEdit, moved

if TYPE_CHECKING:
    from ..kernel import JitFunction, Kernel
    from ..kernel.measuring.within import KernelShare
    from ..schedule import Schedule, ScheduleFile
    from ..sweeps.result import Sweep

_numbers = itertools.count(1)
# A page may show notebooks of several kernels, each with a first bench.
_KERNEL = uuid.uuid4().hex[:6]
# Errors that another position of the controls can mend; others are in the cell's text.
MENDABLE = (ResourceError, ScheduleError, TargetError)


def shell_now() -> Any:
    """The running IPython shell, or None. Looked up, never imported."""
    module = sys.modules.get("IPython")
    return None if module is None else module.get_ipython()


def is_interactive() -> bool:
    """Whether widgets can be shown: a notebook kernel with a person at it, and anywidget installed.

    A kernel that is run by a program (nbclient, papermill) does not allow input: then nobody moves a
    slider, and widget state would only be saved.
    """
    if settings.headless():
        return False
    kernel = getattr(shell_now(), "kernel", None)
    if kernel is None or not getattr(kernel, "_allow_stdin", False):
        return False
    return importlib.util.find_spec("anywidget") is not None


class Workbench(BenchKeeping):
    """One kernel on the bench. Made by `tilebench.workbench(...)` or `%%tile`.

    With controls it follows them; `set` moves them from a program. Without (a script, a headless
    run, another notebook system) `set` answers before it returns. `record`, `runs` and `history` are
    plain data.
    """

    def __init__(self, subject: Subject, session: Session, number: int, cell: CellRun) -> None:
        self.name = subject.name
        self.cell = cell
        self.session = session
        self.id = f"tb{number}-{_KERNEL}"
        self.closed = False
        self._view: Any = None
        # Of the two outputs in the cell: the live view, and the static form below it.
        self._view_output: Any = None
        self._static_output: Any = None
        self._drawing = threading.Lock()

    def __repr__(self) -> str:
        wish = self.session.wish
        values = ", ".join(f"{k}={v!r}" for k, v in {**wish.values, **wish.choices}.items())
        return f"<tilebench workbench of {self.name}({values}) for {wish.target or 'auto'}>"

    @property
    def record(self) -> CompileRecord | None:
        """The last good compilation."""
        return self.session.picture.record

    @property
    def knobs(self) -> tuple[Slider, ...]:
        """Every control of now: those that were asked for, and what the schedule offers."""
        return self.session.controls

    @property
    def runs(self) -> tuple[RunRecord, ...]:
        """The measurements, oldest first."""
        return self.session.picture.runs

    @property
    def history(self) -> MoveHistory:
        """The moves, oldest first."""
        return self.session.picture.history

    @property
    def error(self) -> TileError | None:
        """Why the newest wish could not be had, or None."""
        return self.session.picture.problem

    @property
    def report(self) -> Any:
        """The report of the last check, or None."""
        return self.session.picture.report

    def set(self, **changes: Any) -> Workbench:
        """Ask for other values: parameters, schedule choices, `target`, `stages`, `run`, `check`.

        Choices with a dot are given as `set(**{"ko.num_stages": 3})`. With controls it returns at
        once (`wait` waits for the answer). `OptionError` for a name that there is not.
        """
        self.session.want(**changes)
        return self

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until everything asked for has been answered; False after `timeout` seconds."""
        return self.session.wait(timeout)

    def again(self) -> Workbench:
        """Another run of this position where it is measured, another check where it is checked.

        After `stop` it goes on with what was stopped.
        """
        self.session.again()
        return self

    def sweep(self, *, wait: bool = True) -> Sweep:
        """Try every combination of the values that the bench was opened with (`sweep=`, `--sweep`).

        Each is compiled, checked and timed as a single position is, in several runs with all others between
        them; a sweep that was stopped goes on, a complete one gets more runs of each. With controls it
        runs beside them, and `wait=False` returns at once. Raises `OptionError` where no sweep was asked for.
        """
        return asked_sweep(self.session, wait)

    def against(self, *names: str, **others: Any) -> Workbench:
        """Time other implementations too, on the same arrays by the same method, in the same chart.

        Names are `numpy`, `torch`, `torch.compile`, `cublas`, `triton`: what the kernel computes is
        found by its result. `mine=function` is a function of the arrays in parameter order (NumPy's, on a
        card torch's) that returns the result or writes it; `small={"block_M": 32}` is this kernel in
        another position. Those that are wrong, or not here, say so. `OptionError` for what is none of these.
        """
        session = self.session
        session.others.want(others_of_bench(session.subject, session.wish, names, others))
        session.sweeper.others = session.others.wanted
        if session.wish.run:
            session.again()
        return self

    def within(self, program: Callable[[], object], runs: int = 9) -> KernelShare:
        """This kernel's share of a longer program, which is run here, and the most that a faster one brings.

        Printed it says both, with the range that the spread of the runs allows.
        """
        from ..kernel.measuring.within import share_within

        return share_within(self.session.subject.make(self.session.wish), program, runs)

    def stop(self) -> None:
        """Drop what is running or waiting; any later wish goes on."""
        self.session.stop()

    def edit(self, stage: str, text: str) -> Workbench:
        """Put `text` in the place of a stage's at this position, and compile on from there.

        Lines of it that are wrong are told by `error`. A move of a control leaves the edit, `edits` has it
        and `back_to_edit` brings it back. The compiler's own text is no edit. `OptionError` for a stage that
        the road has not.
        """
        self.session.change(self.session.edits.writing(stage, text))
        return self

    def revert(self, stage: str = "") -> Workbench:
        """Go back to what the compiler makes at a stage and below it; without a stage, everywhere."""
        self.session.change(self.session.edits.reverting(stage))
        return self

    @property
    def edits(self) -> tuple[KeptEdit, ...]:
        """The edits that were made on this bench, oldest first: each with its number, texts and position."""
        return self.session.edits.kept

    def back_to_edit(self, number: int) -> Workbench:
        """Go to the position of an edit, with it. `OptionError` for a number that no edit has."""
        self.session.change(self.session.edits.going_back(number))
        return self

    def count(self, how: str = "simulator", report: str = "") -> Workbench:
        """Count what lines do at this position; the figures stand in `record.counters` and beside the lines.

        `how` is `"code"` (instructions and bytes of machine code, from then on at every position),
        `"simulator"` (one block, run without a card) or `"card"` (by ncu). `report` is what ncu has printed
        elsewhere: `ncu --import FILE --page source --csv --print-source sass`. Raises `OptionError` for
        another word, `TargetError` for a report of another kernel or other code.
        """
        if report:
            self.session.counting.ask(CODE, self.session.wish)
            self.session.change(lambda wish, _: wish)
            self.wait()
            self.session.counting.take(report, self.session.picture)
        else:
            self.session.counting.ask(one_of_ways(how), self.session.wish)
        self.session.change(lambda wish, _: wish)
        return self

    def figure(self, kind: str = "history") -> dict[str, Any]:
        """The chart of the runs as a plotly figure (a dict); `kind` is `history` or `roofline`."""
        from .figure import run_figure

        return run_figure(self.runs, self.session.picture.ceilings, kind=kind)

    def save_schedule(self, path: str | Path, when: str = "", *, overwrite: bool = False) -> Path:
        """Write the position of the controls as a schedule file of one rule; gives the path.

        Block sizes and other controls that are parameters go into its `params`. `when` is the
        rule's condition, such as `"M <= 128"`. `tilebench.load_schedule` reads the file. One that is there
        already is refused, unless `overwrite`.
        """
        from ..schedule import Schedule, ScheduleFile, save_schedule

        subject, wish = self.session.subject, self.session.wish
        wished: Any = subject.schedule_of(wish)
        chosen = wished if isinstance(wished, Schedule) else Schedule()
        if isinstance(wished, ScheduleFile):
            target = self.record.target if self.record is not None else ""
            chosen = wished.choose({**wish.values, "target": target}) or Schedule()
        params = {each.name: wish.values[each.name] for each in subject.knobs if each.name in wish.values}
        return save_schedule(Schedule(params=params).over(chosen), path, when, overwrite=overwrite)

    def freeze(self) -> Workbench:
        """Leave a static picture in the controls' place, and close them."""
        self.close()
        return self

    def close(self, why: str = "") -> None:
        """End the thread and the controls. What is shown stays, as a picture; `why` is said above it."""
        if self.closed:
            return
        self.closed = True
        self.session.close()
        with self._drawing:
            if self._static_output is not None:
                from .parts import line_bundle, static_bundle

                # A widget that is closed is an error in a saved notebook: nothing is left of it.
                self._view_output.update(line_bundle(why), raw=True)
                self._static_output.update(static_bundle(self.session.picture), raw=True)
            if self._view is not None:
                self._view.close()
            self._view = self._view_output = self._static_output = None
        registry.leave(self)

    # -- showing
    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        from .parts import static_bundle

        return static_bundle(self.session.picture)

    def _ipython_display_(self) -> None:
        self.show()

    def show(self) -> None:
        """Show it in the running cell: with controls if it is interactive, else as a picture."""
        from .parts import static_bundle

        display: Any = importlib.import_module("IPython.display").display

        if self.closed or self._view is None:
            if shell_now() is None:
                print(repr(self))
            else:
                display(static_bundle(self.session.picture), raw=True)
            return
        with self._drawing:
            self._view_output = display(self._view.box, display_id=True)
            bundle = static_bundle(self.session.picture, fallback=self.id)
            self._static_output = display(bundle, raw=True, display_id=True)

    def build(self) -> None:
        """Make the view with its controls; the session's pictures then go there."""
        from .front.answers import answer
        from .front.widget import View

        self._view = View(
            self.id,
            self.name,
            self.session.subject.knobs,
            self.session.picture,
            lambda said: answer(self, said),
        )

    def draw(self, picture: Picture) -> None:
        """What the session calls with a new picture, from any thread."""
        with self._drawing:
            if self.closed or self._view is None:
                return
            # Two threads may come here in another order than their pictures were made in.
            picture = self.session.picture
            self._view.show(picture)
            if self._static_output is not None and picture.status.phase in ("done", "failed", "cancelled"):
                from .parts import static_bundle

                self._static_output.update(static_bundle(picture, fallback=self.id), raw=True)


def open_live(
    kernel: JitFunction | Kernel,
    *,
    with_: Mapping[str, Any] | None = None,
    sweep: Mapping[str, Sequence[Any]] | None = None,
    target: str | None = None,
    stages: Sequence[str] | None = None,
    schedule: Schedule | ScheduleFile | str | Path | None = None,
    run: bool = False,
    check: bool = False,
    at: str | Mapping[str, Any] | None = None,
    measure: tiers.Measure | None = None,
    against: tuple[Sequence[str], Mapping[str, Any]] = ((), {}),
) -> Workbench:
    """See `tilebench.workbench`. `measure` stands in for the measuring child in tests."""
    from ..schedule import as_given

    loaded = as_given(schedule)
    start = start_values(kernel, with_ or {}, target, at or {})
    subject = Subject(kernel, start.given, sweep, loaded, start.target)
    cell = registry.cell_now(shell_now())
    registry.make_room(subject.name, cell)
    interactive = is_interactive()
    wish = moved(subject.first_wish(tuple(stages or ()), run, check), subject.knobs, start.choices)
    first = _first_kernel(subject, wish, mendable=interactive)
    if stages and first is not None:
        tiers.check_stages(first, stages)
    number = next(_numbers)

    def publish(picture: Picture) -> None:
        bench.draw(picture)

    session = Session(
        subject, wish, inline=not interactive, measure=measure, publish=publish,
        repeats=ENOUGH_RUNS if interactive else 1,
    )  # fmt: skip
    session.others.want(others_of_bench(subject, wish, *against))
    session.sweeper.others = session.others.wanted
    bench = Workbench(subject, session, number, cell)
    if interactive:
        bench.build()
    _begin(bench, interactive)
    problem = session.picture.problem
    if not interactive and problem is not None and session.picture.record is None:
        bench.close()
        raise problem
    return bench


def _begin(bench: Workbench, interactive: bool) -> None:
    """Ask for the first picture. An interrupt leaves a bench that is stopped, and goes on to the cell."""
    registry.enter(bench)
    if (shell := shell_now()) is not None:
        watch(shell)
    try:
        bench.session.want()
        if interactive:
            # The cell's output holds the first picture, so that nothing jumps: compiled text takes
            # milliseconds, and what takes longer is shown as pending.
            bench.session.settle()
    except KeyboardInterrupt:
        bench.stop()
        if interactive:
            bench.show()
        raise


def _first_kernel(subject: Subject, wish: Any, mendable: bool) -> Kernel | None:
    """The first kernel, traced. What no control can mend is raised here, at the cell."""
    try:
        return subject.make(wish)
    except MENDABLE:
        if not mendable:
            raise
        return None
