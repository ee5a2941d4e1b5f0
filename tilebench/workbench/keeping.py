"""What a bench leaves behind: files of its kernel, record, measurement and program, and its position as
text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import OptionError
from ..record import BenchRecord
from ..schedule.choices import is_choice
from .comparison import Against
from .position_text import PositionWords, position_text, read_position
from .tiers import plain_config
from .wish import EDITED, moved

if TYPE_CHECKING:
    from ..kernel import Kernel
    from ..record import CompileRecord
    from .comparison import Compared
    from .session import Picture, Session
    from .wish import Wish


@dataclass(frozen=True)
class StartValues:
    """Where a bench opens: values of parameters and of a call, choices of the schedule, the target."""

    given: Mapping[str, Any]
    choices: Mapping[str, Any]
    target: str | None


def start_values(
    kernel: Any, given: Mapping[str, Any], target: str | None, at: str | Mapping[str, Any]
) -> StartValues:
    """Given values and those of a position together. `OptionError` for one that is in both."""
    said = read_position(at) if isinstance(at, str) else PositionWords(values=at)
    parameters = getattr(getattr(kernel, "signature", None), "parameters", {})
    if said.kernel and said.kernel != kernel.name:
        raise OptionError(
            "the position is of {other}, and this is {name}", other=said.kernel, name=kernel.name
        )
    if said.edit is not None or (EDITED in said.values and EDITED not in parameters):
        raise OptionError(
            "an edit is kept by the bench on which it was made",
            hint="save(...) of that bench writes its text",
        )
    if said.target is not None and target is not None:
        raise OptionError("the target is given twice", found="{a} and {b}", a=target, b=said.target)
    choices = {k: v for k, v in said.values.items() if is_choice(k) and k not in parameters}
    values = {k: v for k, v in said.values.items() if k not in choices}
    twice = next((name for name in values if name in given), None)
    if twice is not None:
        raise OptionError("{name} is given twice", name=twice)
    return StartValues({**given, **values}, choices, said.target or target)


def kernel_now(session: Session) -> Kernel:
    """The kernel of what is wanted now. Raises the `TileError` of what refuses it."""
    return session.subject.make(session.wish)


def tuned_names(session: Session) -> tuple[str, ...]:
    """The parameters that have a control: a schedule file holds them."""
    return tuple(knob.name for knob in session.subject.knobs if not knob.choice and not knob.launch)


def save_bench(session: Session, path: Path, overwrite: bool) -> tuple[Path, ...]:
    """See `Workbench.save`."""
    if path.suffix == ".tbz":
        from ..record_files import save

        record = session.picture.record
        if record is None:
            raise OptionError(
                "there is no compilation to save yet", hint="wait until the bench is up to date"
            )
        save(BenchRecord(record, session.picture.runs), path, overwrite=overwrite)
        return (path,)
    return kernel_now(session).save(path, tuned=tuned_names(session), overwrite=overwrite)


def save_runs(session: Session, path: Path, overwrite: bool) -> tuple[Path, ...]:
    """See `Workbench.save_measurement`."""
    from ..kernel.saving.measurements import save_measurement

    here = plain_config(session.wish.config)
    runs = [run for run in session.picture.runs if dict(run.config) == here and not run.failure]
    kernel = kernel_now(session)
    if runs and runs[-1].target != kernel.target:
        # Where the wished target does not run, times are those of the one that does.
        kernel = session.subject.make(replace(session.wish, target=runs[-1].target.partition(":")[0]))
    return save_measurement(kernel, runs, path, tuned=tuned_names(session), overwrite=overwrite)


def going(session: Session, text: str) -> Callable[[Wish, Picture], Wish]:
    """What goes to the position that a text says, for `Session.change`.

    Choices that the text does not name are as written; parameters and the target stay where it names none.
    """
    said = read_position(text)
    if said.kernel and said.kernel != session.subject.name:
        raise OptionError(
            "this bench shows {name}", name=session.subject.name, found="{other}", other=said.kernel,
            hint="open the other kernel: %%tile with the same line",
        )  # fmt: skip
    changes: Mapping[str, Any] = {**said.values, **({"target": said.target} if said.target else {})}

    def how(wish: Wish, _: Picture) -> Wish:
        there = moved(replace(wish, choices={}, edit=None), session.controls, changes)
        return there if said.edit is None else session.edits.back(there, said.edit)

    return how


class BenchKeeping:
    """The part of a `Workbench` that saves it and tells its position."""

    session: Session

    @property
    def position(self) -> str:
        """Where the controls stand, as one line: `gemm M=1024 block_M=64 ko.num_stages=3 target=cuda:sm_90a`.

        `go` takes it, and so does a `%%tile` line.
        """
        return position_text(self.session.subject.name, self.session.wish)

    def go(self, position: str) -> Any:
        """Go to the position that a line says; parameters that it does not name stay.

        Raises `OptionError` for another kernel's, or a name that this bench has not.
        """
        self.session.change(going(self.session, position))
        return self

    def pin(self, name: str = "") -> str:
        """Keep what the bench shows, to compare others with; gives the name, the position's without one."""
        name = self.session.comparison.pin(name, self.session.picture.record, self.session.wish)
        self.session.notify(f"Pinned as {name}", pins=tuple(self.session.comparison.pins))
        return name

    def unpin(self, name: str) -> None:
        """Let a pin go. `OptionError` for a name that none has."""
        self.session.comparison.unpin(name)
        self.session.notify("", pins=tuple(self.session.comparison.pins))

    @property
    def pins(self) -> Mapping[str, CompileRecord]:
        """The pinned compilations by name, oldest first."""
        return dict(self.session.comparison.pins)

    def compare(self, *, pin: str | None = None, target: str | None = None) -> Any:
        """Compare the texts with a pin, or with this position on another target; with neither, as by itself.

        The target is compiled beside the bench, which stays where it is, and again with each move; `compared`
        has its record. Raises `OptionError` for both at once, or a name that no pin has, `TargetError` for a
        target that there is not.
        """
        from ..targets import resolve

        if pin is not None and target is not None:
            raise OptionError("what is compared is one pin or one target", found=f"{pin} and {target}")
        against = self.session.comparison.with_pin(pin) if pin is not None else None
        if target is not None:
            resolve(target)
            against = Against("target", target)
        self.session.change(lambda wish, _: replace(wish, against=against))
        return self

    @property
    def compared(self) -> Compared | None:
        """What the texts are compared with, beside the bench's own past."""
        return self.session.picture.compared

    def save(self, path: str | Path, *, overwrite: bool = False) -> tuple[Path, ...]:
        """Save what the bench shows; gives the paths.

        A name that ends in `.tbz` becomes a record with all runs, which `tilebench.open_record` reads. Any
        other becomes a Python file with the kernel and, beside it, a schedule file with the position of the
        controls: `python FILE` checks and times it without Jupyter. Raises `OptionError` where a file is
        there already, unless `overwrite`.
        """
        return save_bench(self.session, Path(path), overwrite)

    def save_program(self, path: str | Path, *, seed: int = 0, overwrite: bool = False) -> Path:
        """Save the kernel of this position in its target's own language, with a `main`; see
        `Kernel.save_program`.
        """
        return kernel_now(self.session).save_program(path, seed=seed, overwrite=overwrite)

    def save_measurement(self, path: str | Path, *, overwrite: bool = False) -> tuple[Path, ...]:
        """Save a script that repeats the runs of this position by the same method; gives the paths.

        It prints what was recorded beside what it measures. Raises `OptionError` where nothing was measured
        here, or a file is there already, unless `overwrite`.
        """
        return save_runs(self.session, Path(path), overwrite)
