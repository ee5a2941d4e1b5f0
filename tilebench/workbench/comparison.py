"""What the texts of a bench are compared with beside its own past: pinned compilations, and other targets.

A pin is a compilation under a name. A target is compiled for the position of now, again with each move, and
the bench stays where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..errors import OptionError, TileError, nearest
from . import tiers

if TYPE_CHECKING:
    from ..record import CompileRecord
    from .subject import Subject
    from .wish import Wish

# A compilation with all its texts is some 300 KB.
MOST_PINS = 24


@dataclass(frozen=True)
class Against:
    """What is wished to be compared with: `kind` is `pin` or `target`."""

    kind: str
    name: str


@dataclass(frozen=True)
class Compared:
    """What the texts are compared with now; without a record it is being made, or `problem` says why not."""

    against: Against
    record: CompileRecord | None = None
    problem: str = ""


class Comparison:
    """The pins of one bench, and the answer to what it is compared with."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self.pins: dict[str, CompileRecord] = {}

    def pin(self, name: str, record: CompileRecord | None, wish: Wish) -> str:
        """Keep a compilation under a name (that of its position without one); gives the name.

        Raises `OptionError` where there is no compilation yet.
        """
        if record is None:
            raise OptionError("there is no compilation to pin yet", hint="wait until the bench is up to date")
        name = name.strip() or self.own_name(record, wish)
        self.pins.pop(name, None)
        self.pins[name] = record
        while len(self.pins) > MOST_PINS:
            del self.pins[next(iter(self.pins))]
        return name

    def own_name(self, record: CompileRecord, wish: Wish) -> str:
        """A position in the words that tell it from others: what has a control, choices, target, edit."""
        knobs = [knob.name for knob in self._subject.knobs if not knob.choice]
        values = {**wish.values, **wish.sizes}
        words = [f"{name}={values[name]}" for name in knobs if name in values]
        words += [f"{name}={value}" for name, value in wish.choices.items()]
        return " ".join([*words, record.target, *([wish.edit.label] if wish.edit is not None else [])])

    def unpin(self, name: str) -> None:
        """Let a pin go. `OptionError` for a name that none has."""
        del self.pins[self._known(name)]

    def with_pin(self, name: str) -> Against:
        """What compares with a pin. `OptionError` for a name that none has."""
        return Against("pin", self._known(name))

    def _known(self, name: str) -> str:
        if name not in self.pins:
            close = nearest(name, list(self.pins), limit=1)
            raise OptionError(
                "nothing is pinned as {name}", name=name,
                hint=(f"did you mean {close[0]}? " if close else "")
                + ("pins: " + ", ".join(self.pins) if self.pins else "pin(name) keeps what the bench shows"),
            )  # fmt: skip
        return name

    def answer(
        self,
        wish: Wish,
        shown: Sequence[str],
        left: Callable[[], bool],
        show: Callable[[Compared | None], object],
    ) -> None:
        """Show what the wish is compared with, as far as it is made; `left` says that nobody waits any
        more.
        """
        against = wish.against
        if against is None or (against.kind == "pin" and against.name not in self.pins):
            show(None)
        elif against.kind == "pin":
            show(Compared(against, self.pins[against.name]))
        else:
            self._compile(wish, against, shown, left, show)

    def _compile(
        self,
        wish: Wish,
        against: Against,
        shown: Sequence[str],
        left: Callable[[], bool],
        show: Callable[[Compared | None], object],
    ) -> None:
        record: CompileRecord | None = None
        try:
            kernel = self._subject.make(replace(wish, target=against.name, edit=None))
            names = tiers.stages_shown(kernel, shown)
            record = tiers.static(kernel, names)
            if left():
                return
            show(Compared(against, record))
            record = tiers.compiled(kernel, names)
            if not left() and tiers.begin_later(kernel, names):
                record = tiers.later(kernel, names)
            if not left():
                show(Compared(against, record))
        except TileError as error:
            if not left():
                show(Compared(against, record, error.message))
