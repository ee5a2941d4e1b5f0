"""How a target is told to people: what lists offer, how its texts are shown, what `doctor` checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal


def first_line(lines: Sequence[str], limit: int) -> int:
    """The start of a text that is worth showing from its first line on."""
    return 0


@dataclass(frozen=True)
class Beside:
    """What stands beside the lines of a language (`StageRecord.beside`).

    `show` gives of such a text what is shown in a few letters, a shade from 0 to 1, and the same in words.
    Where there is no room for it, its first `narrow` letters are shown.
    """

    name: str
    title: str
    show: Callable[[str], tuple[str, float, str]]
    narrow: int = 0


@dataclass(frozen=True)
class Language:
    """A language that a target emits. `name` is what Pygments calls it, `title` what people do.

    `says_origin` tells a line that only says where the next ones came from; a pane leaves it out
    where the record has that as a map. `start(lines, limit)` is the first of about `limit` lines to show of a
    longer text. `shorten` makes a line narrower without changing what it says. `quiet_registers`: most
    words are registers, which stay uncoloured. `beside` is what stands beside its lines, if anything does.
    """

    name: str
    title: str
    says_origin: Callable[[str], bool] | None = None
    start: Callable[[Sequence[str], int], int] = first_line
    shorten: Callable[[str], str] | None = None
    quiet_registers: bool = False
    beside: Beside | None = None


@dataclass(frozen=True)
class Finding:
    """One line of `tilebench doctor`: something that is there, missing, or broken.

    `extra` names the extra of the package whose installation mends it.
    """

    state: Literal["good", "missing", "broken"]
    name: str
    text: str
    extra: str = ""


@dataclass(frozen=True)
class Presentation:
    """What people are told of a target.

    `machines` are the target texts that a list offers, `told` the same in the words of a sentence.
    `shown` are the stages after `bounded` that stand in a view when nobody chose any. `checks` are the
    parts of `tilebench doctor`, each a title with a function that looks. `extras` are extras of our
    package, with what each is good for.
    """

    machines: tuple[str, ...] = ()
    told: str = ""
    shown: tuple[str, ...] = ()
    languages: tuple[Language, ...] = ()
    checks: tuple[tuple[str, Callable[[], Iterable[Finding]]], ...] = ()
    extras: Mapping[str, str] = field(default_factory=dict[str, str])
