"""Controls as data, and what a browser says of one as a change of a wish."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import OptionError
from ..options import parse_value
from ..slider import Slider
from .state import ControlData

if TYPE_CHECKING:
    from ..picture import Picture
    from ..wish import Wish


def targets_offered(now: str | None) -> list[str]:
    """Every target a person can choose, as the list shows them: the one of now first if it is another."""
    from ...targets import manifest, names

    offered = [machine for name in names() for machine in manifest(name).presentation.machines]
    return offered if not now or now in offered else [now, *offered]


def label_of(value: Any) -> str:
    """A value as a slider shows it."""
    return {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def typed(text: str) -> Any:
    """The value of what was typed, None for nothing; what is no value stays text, which is then refused."""
    try:
        return parse_value(text.strip()) if text.strip() else None
    except OptionError:
        return text


def values_of(knob: Slider, now: Any) -> tuple[Any, ...]:
    """The values of a control in order; one that a program set beyond them is the last."""
    if not knob.values or any(_same(value, now) for value in knob.values):
        return knob.values
    return (*knob.values, now)


def _same(first: Any, second: Any) -> bool:
    """Equal, and not only because True is 1."""
    return first == second and isinstance(first, bool) == isinstance(second, bool)


def control_data(knob: Slider, wish: Wish) -> ControlData:
    """A control in its position of now."""
    now = wish.value_of(knob)
    values = values_of(knob, now)
    index = next((k for k, value in enumerate(values) if _same(value, now)), -1)
    kind = "choice" if knob.choice else "launch" if knob.launch else "knob"
    text = "" if now is None else str(now)
    return ControlData(knob.name, tuple(label_of(value) for value in values), index, text, kind)


def controls_data(knobs: Sequence[Slider], picture: Picture) -> tuple[ControlData, ...]:
    """The controls that are shown: not those that change nothing on this target."""
    every = (*knobs, *picture.offered)
    return tuple(control_data(each, picture.wish) for each in every if each.name not in picture.idle)


def idle_text(picture: Picture) -> str:
    """What is said in place of the controls that are not shown."""
    if not picture.idle or picture.record is None:
        return ""
    first, last = ", ".join(picture.idle[:-1]), picture.idle[-1]
    names = f"{first} and {last}" if first else last
    change = "change" if first else "changes"
    return f"on {picture.record.target.partition(':')[0]} {names} {change} nothing"


def change_of(message: Mapping[str, Any], knobs: Sequence[Slider], wish: Wish) -> dict[str, Any]:
    """The change that a browser's message asks for; empty for one of a control that is gone."""
    knob = next((each for each in knobs if each.name == message.get("name")), None)
    if knob is None:
        return {}
    if not knob.values:
        return {knob.name: typed(str(message.get("text", "")))}
    values, index = values_of(knob, wish.value_of(knob)), message.get("index")
    return {knob.name: values[index]} if isinstance(index, int) and 0 <= index < len(values) else {}
