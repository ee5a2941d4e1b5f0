"""The error root. Every message a user sees is one of these.

What is wrong, the user's line with carets, what was expected and found, what to do. The message
is a template plus values, so that a catalogue can translate it without parsing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .draw import draw_place
from .place import Place

_translate: Callable[[str], str] = str


def set_translation(translate: Callable[[str], str]) -> None:
    """Install a function from an English template to another language's template."""
    global _translate
    _translate = translate


class TileError(Exception):
    """The root of all errors that are a person's to mend.

    `what` is a template for `str.format` filled from `values`. `expected`, `found` and `hint` are
    templates too. `also` lists other places that have a part in it, each with a word of why.
    """

    title = "error"

    def __init__(
        self,
        what: str,
        /,
        *,
        at: Place | None = None,
        expected: str = "",
        found: str = "",
        hint: str = "",
        also: Sequence[tuple[str, Place | None]] = (),
        **values: object,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.values = values
        self.place = at
        self.expected = expected
        self.found = found
        self.hint = hint
        self.also = tuple((why, place) for why, place in also if place is not None)

    def _fill(self, template: str) -> str:
        text = _translate(template)
        return text.format(**self.values) if self.values else text

    @property
    def message(self) -> str:
        """The first line, without the place."""
        return self._fill(self.what)

    @property
    def headline(self) -> str:
        """The kind of the error and its message."""
        return f"{_translate(self.title)}: {self.message}"

    @property
    def parts(self) -> tuple[tuple[str, Place], ...]:
        """The other places that have a part in it, each with the filled sentence of why."""
        return tuple((self._fill(why), place) for why, place in self.also)

    @property
    def details(self) -> tuple[tuple[str, str], ...]:
        """What was expected, what was found and what to do, as far as they are said, each with its label."""
        rows = (("expected", self.expected), ("found", self.found), ("help", self.hint))
        return tuple((_translate(label), self._fill(template)) for label, template in rows if template)

    def explain(self, *, color: bool = False) -> str:
        """The whole text: message, quoted lines, expected and found, what to do."""
        out = [self.headline]
        if self.place is not None:
            out.append(draw_place(self.place, color=color))
        for why, place in self.parts:
            out.append(f"{why}:")
            out.append(draw_place(place, color=color))
        out += [f"  {label}: {said}" for label, said in self.details]
        return "\n".join(out)

    def __str__(self) -> str:
        return self.explain()


class LanguageError(TileError):
    """The kernel's text says something the language has not."""

    title = "language error"


class ShapeError(TileError):
    """Shapes, ranks, strides or extents do not fit."""

    title = "shape error"


class DTypeError(TileError):
    """Element types do not fit."""

    title = "dtype error"


class ScheduleError(TileError):
    """A schedule names what is not there, or asks for what cannot be."""

    title = "schedule error"


class LayoutError(TileError):
    """A layout cannot be formed, composed or divided as asked."""

    title = "layout error"


class ResourceError(TileError):
    """A kernel asks for more than the target has: shared memory, threads, registers."""

    title = "resource error"


class ArgumentError(TileError):
    """An array given to a kernel does not fit its parameter."""

    title = "argument error"


class OptionError(TileError):
    """An option, a name or a value that is not one of those that exist."""

    title = "option error"


class TargetError(TileError):
    """A target is unknown, cannot do what is asked, or its packages are missing."""

    title = "target error"


class LaunchError(TileError):
    """A kernel failed while it ran: time-out, crash of the child, illegal address."""

    title = "launch error"


class IRError(TileError):
    """Text of a stage does not parse, or a stage holds a form that is not legal in it."""

    title = "stage error"


class InternalError(TileError):
    """Something of ours went wrong. Carries a report to send."""

    title = "internal error"
