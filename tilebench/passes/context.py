"""What passes share: the machine, the remarks they leave, and the shape of a pass and a stage.

A pass is a function from a valid function to a valid function; nothing else is promised. Its
findings go into the context as remarks and choices, never into text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..errors import Place
from ..ir import Function, LegalForms, Node
from ..machine import Machine
from ..record import Choice, Diagnostic, PlaceRecord, Remark


@dataclass
class Context:
    """One compilation on its way down. `schedule` is the schedule value (or None: defaults).

    `asked` has the options of a schedule that act in a later stage, each with the place of what it is about.
    """

    machine: Machine
    schedule: Any = None
    remarks: list[Remark] = field(default_factory=list[Remark])
    choices: list[Choice] = field(default_factory=list[Choice])
    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])
    asked: set[tuple[str, Place | None]] = field(default_factory=set[tuple[str, Place | None]])

    def remark(
        self, pass_name: str, kind: str, message: str, node: Node | None = None, **values: Any
    ) -> None:
        """Note what a pass did (`applied`), could not do (`missed`) or saw (`note`), with numbers."""
        place = place_record(node.place if node is not None else None)
        self.remarks.append(Remark(pass_name, kind, message, place, values))


def place_record(place: Place | None) -> PlaceRecord | None:
    """A place as plain data: the line in the user's kernel, not in an inlined helper."""
    if place is None:
        return None
    line = place.user
    return PlaceRecord(line.file, line.line, line.column, line.end_line, line.end_column)


Pass = Callable[[Function, Context], Function]


@dataclass(frozen=True)
class StageRow:
    """A stage of the road: its name, the passes that lead to it in order, what is legal in it.

    Passes see one launch at a time, or with `whole` all those of a function at once.
    """

    name: str
    passes: tuple[tuple[str, Pass], ...]
    forms: LegalForms
    whole: bool = False
