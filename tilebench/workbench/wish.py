"""What is wanted of a bench: one position of all controls, with the edits that belong to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..errors import OptionError, nearest
from ..schedule.choices import AS_WRITTEN, is_choice
from .slider import Slider

if TYPE_CHECKING:
    from .comparison import Against

# The name under which a configuration says which edit it is of.
EDITED = "edited"
# A bench in so many views at once: an output, a panel, a window, on two screens.
VIEWS = 8


@dataclass(frozen=True)
class StageEdit:
    """The text that a person wrote for a stage."""

    stage: str
    text: str


@dataclass(frozen=True)
class KeptEdit:
    """Edits that act together, in the road's order, and the configuration of the position they belong to."""

    number: int
    stages: tuple[StageEdit, ...]
    config: Mapping[str, Any]

    @property
    def label(self) -> str:
        """How it is called: `edit 2 of cuda`."""
        return f"edit {self.number} of {' and '.join(each.stage for each in self.stages)}"


@dataclass(frozen=True)
class Wish:
    """What is wanted now: one position of all controls. Plain and immutable."""

    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    choices: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sizes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    target: str | None = None
    stages: tuple[str, ...] = ()
    run: bool = False
    check: bool = False
    # How often a measurement and a check were asked for: what was answered is done again only then.
    run_asked: int = 0
    check_asked: int = 0
    edit: KeptEdit | None = None
    against: Against | None = None
    # Of each view the number of its last move that is in this wish; it is the same position without.
    heard: Mapping[str, int] = field(default_factory=dict[str, int], compare=False)

    def hearing(self, view: str, number: int) -> Wish:
        """The same wish, with a view's move in it; of the views the last few are remembered."""
        before = [each for each in self.heard.items() if each[0] != view]
        return replace(self, heard=dict([*before, (view, number)][-VIEWS:]))

    def asked_again(self, *, run: bool, check: bool) -> Wish:
        """The same wish, with a measurement or a check asked for once more."""
        return replace(self, run_asked=self.run_asked + run, check_asked=self.check_asked + check)

    @property
    def config(self) -> dict[str, Any]:
        """What a row of the history says: parameters, choices, a call's values by name, target, edit."""
        return self.position if self.edit is None else {**self.position, EDITED: self.edit.label}

    @property
    def position(self) -> dict[str, Any]:
        """Where the controls stand."""
        return {**self.values, **self.choices, **self.sizes, "target": self.target or "auto"}

    def value_of(self, control: Slider) -> Any:
        """The value of a control here; None for one of a call that nothing is said of."""
        if control.choice:
            return self.choices.get(control.name, control.value)
        if control.launch:
            return self.sizes.get(control.name, control.value if control.values else None)
        return self.values.get(control.name, control.value)

    def without_left_edit(self) -> Wish:
        """The wish without an edit that belongs to another position."""
        return self if self.edit is None or self.edit.config == self.position else replace(self, edit=None)


def placed(wish: Wish, config: Mapping[str, Any]) -> Wish:
    """The wish at a position that it was at before; `config` is what `Wish.config` gave then."""
    target = config.get("target")
    values = {name: config[name] for name in wish.values if name in config}
    others = (*values, "target", EDITED)
    rest = {name: value for name, value in config.items() if name not in others}
    choices = {name: value for name, value in rest.items() if is_choice(name)}
    sizes = {name: value for name, value in rest.items() if name not in choices}
    return replace(
        wish, values=values, choices=choices, sizes=sizes, target=None if target == "auto" else target,
        edit=None,
    )  # fmt: skip


def moved(wish: Wish, knobs: Sequence[Slider], changes: Mapping[str, Any]) -> Wish:
    """The wish with other values. `OptionError` for a name that no control has."""
    values, choices, sizes = dict(wish.values), dict(wish.choices), dict(wish.sizes)
    rest: dict[str, Any] = {}
    chosen = {knob.name for knob in knobs if knob.choice}
    called = {knob.name for knob in knobs if knob.launch}
    for name, value in changes.items():
        if name in values:
            values[name] = value
        elif name in called:
            sizes[name] = value
        elif name in chosen or is_choice(name):
            if value == AS_WRITTEN:
                choices.pop(name, None)
            else:
                choices[name] = value
        elif name in ("target", "stages", "run", "check"):
            rest[name] = tuple(value) if name == "stages" else value
        else:
            known = [*values, *called, *chosen, "target", "stages", "run", "check"]
            close = nearest(name, known, limit=1)
            raise OptionError(
                "this workbench has no {name}", name=name,
                hint=(f"did you mean {close[0]}? " if close else "") + "it has " + ", ".join(known),
            )  # fmt: skip
    sizes = {name: value for name, value in sizes.items() if value is not None}
    return replace(wish, values=values, choices=choices, sizes=sizes, **rest).without_left_edit()
